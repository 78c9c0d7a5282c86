//! Tables of a text document.

use super::{DocxReader, run};
use crate::ParseError;
use crate::office::block::{Block, Cell, Grid, Row};
use crate::table::MAX_COLUMNS;
use crate::xml::{Element, Xml};
use std::collections::HashMap;

/// How a cell is merged with the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merge {
    No,
    Begins,
    Continues,
}

impl DocxReader<'_> {
    /// Reads a table whose start was read last.
    pub(super) fn table(&mut self, xml: &mut Xml<'_>, out: &mut Vec<Block>) -> Result<(), ParseError> {
        let mut open = Open::default();
        self.rows(xml, &mut open)?;
        if !open.grid.rows.is_empty() {
            out.push(Block::Grid(open.grid));
        }
        Ok(())
    }

    fn rows(&mut self, xml: &mut Xml<'_>, open: &mut Open) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            match element.name() {
                "tr" => {
                    self.count_blocks(1)?;
                    let mut row = OpenRow::default();
                    self.cells(xml, &mut row, open)?;
                    if !row.is_deleted {
                        open.grid.rows.push(row.row);
                    }
                }
                _ => self.within(xml, &element, |reader, xml| reader.rows(xml, open))?,
            }
        }
        Ok(())
    }

    fn cells(&mut self, xml: &mut Xml<'_>, row: &mut OpenRow, open: &mut Open) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            match element.name() {
                "tc" => {
                    self.count_blocks(1)?;
                    self.cell(xml, row, open)?;
                }
                "trPr" => {
                    while let Some(property) = xml.child()? {
                        match property.name() {
                            "tblHeader" => row.row.is_head = property.is_on(),
                            "del" => row.is_deleted = true,
                            "gridBefore" => {
                                let columns = property.number("val").unwrap_or_default();
                                row.leave_empty(columns);
                            }
                            _ => {}
                        }
                        xml.skip()?;
                    }
                }
                _ => self.within(xml, &element, |reader, xml| reader.cells(xml, row, open))?,
            }
        }
        Ok(())
    }

    fn cell(&mut self, xml: &mut Xml<'_>, row: &mut OpenRow, open: &mut Open) -> Result<(), ParseError> {
        let mut blocks = Vec::new();
        let mut columns = 1usize;
        let mut merge = Merge::No;
        // A paragraph that goes on after its cell would leave it.
        let carried = self.carried.take();
        while let Some(element) = xml.child()? {
            if element.name() != "tcPr" {
                self.block(xml, &element, &mut blocks)?;
                continue;
            }
            while let Some(property) = xml.child()? {
                match property.name() {
                    "gridSpan" => columns = property.number("val").unwrap_or(1).clamp(1, MAX_COLUMNS),
                    "vMerge" => {
                        let begins = property.attribute("val").as_deref() == Some("restart");
                        merge = if begins { Merge::Begins } else { Merge::Continues };
                    }
                    "hMerge" if property.attribute("val").as_deref() != Some("restart") => columns = 0,
                    _ => {}
                }
                xml.skip()?;
            }
        }
        self.end_carried(&mut blocks);
        self.carried = carried;
        if !row.is_deleted {
            open.add(row, blocks, columns, merge);
        }
        Ok(())
    }

    /// Reads what a content control or the like holds in place of rows or cells.
    fn within(
        &mut self,
        xml: &mut Xml<'_>,
        element: &Element<'_>,
        read: impl FnOnce(&mut Self, &mut Xml<'_>) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        match element.name() {
            "sdt" => {
                if run::Control::read(xml)?.has_content {
                    read(self, xml)?;
                    xml.skip()?;
                }
                Ok(())
            }
            "customXml" | "ins" | "moveTo" => read(self, xml),
            _ => xml.skip(),
        }
    }
}

/// A table in the making.
#[derive(Default)]
struct Open {
    grid: Grid,
    /// Where the cells stand that go on below: row and cell by column.
    merged: HashMap<usize, (usize, usize)>,
}

/// A row in the making.
#[derive(Default)]
struct OpenRow {
    row: Row,
    column: usize,
    is_deleted: bool,
}

impl OpenRow {
    /// Columns before the first cell that have none.
    fn leave_empty(&mut self, columns: usize) {
        let columns = columns.min(MAX_COLUMNS);
        if columns > 0 {
            self.row.cells.push(Cell { blocks: Vec::new(), columns, rows: 1 });
            self.column += columns;
        }
    }
}

impl Open {
    fn add(&mut self, row: &mut OpenRow, mut blocks: Vec<Block>, columns: usize, merge: Merge) {
        // In the old way of merging across, the first cell stands for those that follow.
        if columns == 0
            && let Some(last) = row.row.cells.last_mut()
        {
            last.columns = (last.columns + 1).min(MAX_COLUMNS);
            last.blocks.append(&mut blocks);
            row.column += 1;
            return;
        }
        let columns = columns.max(1);
        let at = (self.grid.rows.len(), row.row.cells.len());
        match merge {
            Merge::Begins => {
                self.merged.insert(row.column, at);
            }
            Merge::Continues => {
                let above = self.merged.get(&row.column).copied();
                if let Some((begun, index)) = above
                    && let Some(cell) = self.grid.rows.get_mut(begun).and_then(|row| row.cells.get_mut(index))
                    && begun + cell.rows == at.0
                {
                    cell.rows += 1;
                    row.column += columns;
                    return;
                }
            }
            Merge::No => {
                self.merged.remove(&row.column);
            }
        }
        row.row.cells.push(Cell { blocks, columns, rows: 1 });
        row.column += columns;
    }
}
