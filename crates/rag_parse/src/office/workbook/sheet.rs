//! The cells of one sheet.

use super::number::general;
use super::shared::{Styles, Texts, rich_text};
use crate::xml::{Element, Xml};
use crate::{ParseError, ParseErrorKind};
use std::ops::Range;

/// Rows and columns of a sheet (Excel's own limits).
const MAX_ROWS: u32 = 1_048_576;
const MAX_COLUMNS: u32 = 16_384;

/// Most cells with a value in a sheet.
const MAX_CELLS: usize = 8_000_000;

/// Most merged ranges of a sheet that are heeded.
const MAX_MERGES: usize = 100_000;

/// Most bytes of a value that is repeated in each cell of a merged range, and most cells that are so filled.
const MAX_REPEATED_BYTES: u32 = 200;
const MAX_FILLED_CELLS: usize = 500_000;

/// What a workbook's sheets share.
pub(super) struct Shared {
    pub(super) texts: Texts,
    pub(super) styles: Styles,
    /// Days are counted from 1904.
    pub(super) is_1904: bool,
}

/// Cells with a value, by row and column.
#[derive(Default)]
pub(super) struct Sheet {
    pub(super) cells: Vec<Cell>,
    text: String,
}

/// A cell with a value, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) row: u32,
    pub(super) column: u32,
    /// Place of its text; cells of a merged range share one.
    start: u32,
    end: u32,
}

impl Sheet {
    /// Reads a worksheet part.
    ///
    /// Errors: [`ParseErrorKind::LimitExceeded`] beyond [`MAX_CELLS`], and those of [`Xml`].
    pub(super) fn read(text: &str, part: &str, shared: &Shared) -> Result<Self, ParseError> {
        let mut sheet = Self::default();
        let mut merges = Vec::new();
        let mut xml = Xml::new(text, part);
        if xml.child()?.is_none() {
            return Ok(sheet);
        }
        while let Some(element) = xml.child()? {
            match element.name() {
                "sheetData" => sheet.read_rows(&mut xml, shared)?,
                "mergeCells" => {
                    while let Some(element) = xml.child()? {
                        let range = element.attribute("ref").and_then(|range| range_of(&range));
                        if merges.len() < MAX_MERGES {
                            merges.extend(range);
                        }
                        xml.skip()?;
                    }
                }
                _ => xml.skip()?,
            }
        }
        sheet.sort();
        sheet.fill(&merges);
        Ok(sheet)
    }

    /// The text of a cell.
    pub(super) fn text(&self, cell: &Cell) -> &str {
        self.text.get(cell.start as usize..cell.end as usize).unwrap_or_default()
    }

    fn read_rows(&mut self, xml: &mut Xml<'_>, shared: &Shared) -> Result<(), ParseError> {
        let mut next_row = 0u32;
        while let Some(element) = xml.child()? {
            if element.name() != "row" {
                xml.skip()?;
                continue;
            }
            let row = element.number::<u32>("r").map_or(next_row, |row| row.saturating_sub(1));
            next_row = row.saturating_add(1);
            let mut next_column = 0u32;
            while let Some(element) = xml.child()? {
                let named = element.attribute("r").and_then(|name| cell_of(&name));
                let (row, column) = named.unwrap_or((row, next_column));
                next_column = column.saturating_add(1);
                if element.name() != "c" || row >= MAX_ROWS || column >= MAX_COLUMNS {
                    xml.skip()?;
                    continue;
                }
                let start = self.text.len();
                self.read_cell(&element, xml, shared)?;
                if self.text[start..].trim().is_empty() {
                    self.text.truncate(start);
                    continue;
                }
                if self.cells.len() >= MAX_CELLS {
                    return Err(ParseError::new(
                        ParseErrorKind::LimitExceeded,
                        format!("sheet has more than {MAX_CELLS} cells"),
                        Some("Split the workbook."),
                    ));
                }
                self.cells.push(Cell { row, column, start: start as u32, end: self.text.len() as u32 });
            }
        }
        Ok(())
    }

    /// Appends what a cell shows.
    fn read_cell(
        &mut self,
        element: &Element<'_>,
        xml: &mut Xml<'_>,
        shared: &Shared,
    ) -> Result<(), ParseError> {
        let kind = element.attribute("t").unwrap_or_default();
        let style = element.number::<usize>("s");
        let (mut value, mut formula) = (None, None);
        while let Some(element) = xml.child()? {
            match element.name() {
                "v" => value = Some(xml.text()?),
                "f" => formula = Some(xml.text()?),
                "is" => rich_text(xml, &mut self.text)?,
                _ => xml.skip()?,
            }
        }
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            // Written by a program that does not calculate: better than a gap.
            if let Some(formula) = formula.filter(|formula| !formula.is_empty() && kind != "inlineStr") {
                self.text.push('=');
                self.text.push_str(&formula);
            }
            return Ok(());
        };
        match kind.as_str() {
            "s" => {
                let text = value.trim().parse().ok().and_then(|index| shared.texts.get(index));
                self.text.push_str(text.unwrap_or_default());
            }
            "b" => self.text.push_str(if value.trim() == "0" { "FALSE" } else { "TRUE" }),
            "str" | "e" | "inlineStr" => self.text.push_str(&value),
            "d" => self.text.push_str(value.trim_end_matches("T00:00:00")),
            _ => match value.trim().parse::<f64>() {
                Ok(number) => {
                    let code = style.and_then(|style| shared.styles.code(style));
                    let shown =
                        code.map_or_else(|| general(number), |code| code.show(number, shared.is_1904));
                    self.text.push_str(&shown);
                }
                Err(_) => self.text.push_str(&value),
            },
        }
        Ok(())
    }

    /// Sorts by row and column; of cells in the same place the first counts.
    fn sort(&mut self) {
        if !self.cells.is_sorted_by(|a, b| (a.row, a.column) < (b.row, b.column)) {
            self.cells.sort_by_key(|cell| (cell.row, cell.column));
            self.cells.dedup_by_key(|cell| (cell.row, cell.column));
        }
    }

    /// Repeats the value of a merged range in each of its cells, so that every row can be read alone.
    fn fill(&mut self, merges: &[(Range<u32>, Range<u32>)]) {
        // A range may reach to the end of the sheet; what lies beyond all values is nothing.
        let rows = self.cells.last().map_or(0, |cell| cell.row + 1);
        let columns = self.cells.iter().map(|cell| cell.column + 1).max().unwrap_or_default();
        let mut filled = Vec::new();
        let mut left = MAX_FILLED_CELLS;
        for (of_rows, of_columns) in merges {
            let first = (of_rows.start, of_columns.start);
            let Ok(at) = self.cells.binary_search_by_key(&first, |cell| (cell.row, cell.column)) else {
                continue;
            };
            let cell = self.cells[at];
            if cell.end - cell.start > MAX_REPEATED_BYTES {
                continue;
            }
            for row in of_rows.start..of_rows.end.min(rows) {
                for column in of_columns.start..of_columns.end.min(columns) {
                    if (row, column) != first && left > 0 {
                        left -= 1;
                        filled.push(Cell { row, column, ..cell });
                    }
                }
                if left == 0 {
                    break;
                }
            }
        }
        if !filled.is_empty() {
            // What a covered cell holds is not shown, but the sort is stable and keeps it.
            self.cells.append(&mut filled);
            self.sort();
        }
    }
}

impl Cell {
    /// Whether two cells show one value, because they are merged.
    pub(super) fn is_one_with(&self, other: &Self) -> bool {
        self.start == other.start
    }
}

/// Row and column of a name such as `AB12`, counted from 0.
pub(super) fn cell_of(name: &str) -> Option<(u32, u32)> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
    let row: u32 = name.get(letters..)?.parse().ok()?;
    let mut column = 0u32;
    for letter in name.bytes().take(letters) {
        column = column.checked_mul(26)?.checked_add(u32::from(letter.to_ascii_uppercase() - b'A') + 1)?;
    }
    Some((row.checked_sub(1)?, column.checked_sub(1)?))
}

/// Rows and columns of a range such as `A1:C3`.
fn range_of(name: &str) -> Option<(Range<u32>, Range<u32>)> {
    let (first, last) = name.split_once(':').unwrap_or((name, name));
    let ((top, left), (bottom, right)) = (cell_of(first)?, cell_of(last)?);
    Some((top..bottom.checked_add(1)?.min(MAX_ROWS), left..right.checked_add(1)?.min(MAX_COLUMNS)))
}
