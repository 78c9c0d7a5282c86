//! Workbooks: each sheet a page with a heading, its tables, and its comments.
//!
//! Values are shown as their number formats show them. Hidden sheets are left out, hidden rows and columns are not:
//! filters hide them.

mod note;
mod number;
mod region;
mod shared;
mod sheet;

use super::block::Blocks;
use super::package::{Relationships, main_part};
use super::properties;
use crate::properties::{PAGES, TITLE};
use crate::table::Lines;
use crate::writer::Writer;
use crate::xml::Xml;
use crate::zip::Archive;
use crate::{MAX_DOCUMENT_BYTES, ParseError, too_long};
use rag_core::document::ParsedDocument;
use shared::{Styles, Texts};
use sheet::{Cell, Shared, Sheet};

/// Level of a sheet's heading: that of a section of the workbook.
const SHEET_LEVEL: u8 = 2;

/// Reads a workbook.
///
/// Errors: [`crate::ParseErrorKind::NotParsable`] for a damaged one, [`crate::ParseErrorKind::LimitExceeded`] beyond
/// the limits of archives, XML and sheets.
pub(crate) fn parse(bytes: &[u8], media_type: String) -> Result<ParsedDocument, ParseError> {
    let archive = Archive::open(bytes)?;
    let (name, text) = main_part(&archive, "xl/workbook.xml")?;
    let relationships = Relationships::of(&archive, &name)?;
    let (sheets, is_1904) = read_workbook(&text, &name)?;
    let part = |kind| relationships.part(kind).map(|part| archive.text(part)).transpose();
    let shared = Shared {
        texts: part("sharedStrings")?
            .flatten()
            .map(|text| Texts::read(&text))
            .transpose()?
            .unwrap_or_default(),
        styles: part("styles")?.flatten().map(|text| Styles::read(&text)).transpose()?.unwrap_or_default(),
        is_1904,
    };
    let people = note::people(&archive, &relationships)?;
    let mut writer = Writer::new();
    let mut page = 0;
    for entry in &sheets {
        if entry.is_hidden {
            continue;
        }
        page += 1;
        let Some(target) = relationships.get(&entry.id).filter(|target| !target.is_external) else {
            continue;
        };
        let own = Relationships::of(&archive, &target.target)?;
        let mut tables = Vec::new();
        if target.kind == "worksheet"
            && let Some(text) = archive.text(&target.target)?
        {
            let mut sheet = Sheet::read(&text, &target.target, &shared)?;
            drop(text);
            for cells in region::tables(std::mem::take(&mut sheet.cells)) {
                tables.push(table(&sheet, &cells)?);
            }
        }
        let (boxes, charts) = note::drawings(&archive, &own)?;
        let notes = [boxes, note::comments(&archive, &own, &people)?].concat();
        if tables.is_empty() && notes.is_empty() && charts.is_empty() {
            continue;
        }
        writer.page(page);
        writer.heading(SHEET_LEVEL, entry.name.clone());
        for Table { captions, lines } in &tables {
            captions.iter().for_each(|caption| writer.paragraph(std::slice::from_ref(caption)));
            if !lines.is_empty() {
                writer.lines(lines.lines());
            }
        }
        let mut blocks = Blocks::new(&mut writer);
        charts.into_iter().for_each(|block| blocks.write(block));
        blocks.finish();
        notes.iter().for_each(|note| writer.paragraph(std::slice::from_ref(note)));
    }
    let mut properties = properties::read(&archive)?;
    properties.set_number(PAGES, u64::from(page));
    let hidden = sheets.iter().filter(|sheet| sheet.is_hidden).count();
    if hidden > 0 {
        properties.set_number("hidden_sheets", hidden as u64);
    }
    let title = properties.text(TITLE).map(str::to_owned);
    let (text, headings, pages) = writer.finish_with_pages().ok_or_else(too_long)?;
    Ok(ParsedDocument { media_type, title, text, headings, pages, metadata_json: properties.into_json() })
}

/// A sheet as the workbook names it.
struct Entry {
    name: String,
    /// Of its relationship.
    id: String,
    is_hidden: bool,
}

/// The sheets in the order of their tabs, and whether days are counted from 1904.
fn read_workbook(text: &str, part: &str) -> Result<(Vec<Entry>, bool), ParseError> {
    let (mut sheets, mut is_1904) = (Vec::new(), false);
    let mut xml = Xml::new(text, part);
    if xml.child()?.is_none() {
        return Ok((sheets, is_1904));
    }
    while let Some(element) = xml.child()? {
        match element.name() {
            "workbookPr" => {
                is_1904 = matches!(element.attribute("date1904").as_deref(), Some("1" | "true"));
                xml.skip()?;
            }
            "sheets" => {
                while let Some(element) = xml.child()? {
                    if let (Some(name), Some(id)) =
                        (element.attribute("name"), element.prefixed_attribute("id"))
                    {
                        let is_hidden =
                            matches!(element.attribute("state").as_deref(), Some("hidden" | "veryHidden"));
                        sheets.push(Entry { name: crate::table::one_line(&name), id, is_hidden });
                    }
                    xml.skip()?;
                }
            }
            _ => xml.skip()?,
        }
    }
    Ok((sheets, is_1904))
}

/// A table as it is written: what stands above it, and its lines.
struct Table {
    captions: Vec<String>,
    lines: String,
}

/// Writes the cells of a table. A single value, and rows of a single value above the header, are text.
fn table(sheet: &Sheet, cells: &[Cell]) -> Result<Table, ParseError> {
    let mut columns: Vec<u32> = cells.iter().map(|cell| cell.column).collect();
    columns.sort_unstable();
    columns.dedup();
    let rows: Vec<&[Cell]> = cells.chunk_by(|a, b| a.row == b.row).collect();
    let is_caption = |row: &&&[Cell]| row.iter().all(|cell| cell.is_one_with(&row[0]));
    let above = rows.iter().take_while(is_caption).count();
    // In a single column there is no telling a caption from a header, and a last row is better a table than none.
    let is_text = cells.len() == 1 || columns.len() > 1 && (above == rows.len() || above + 1 < rows.len());
    let captions = if is_text { above } else { 0 };
    let mut table = Table { captions: Vec::new(), lines: String::new() };
    let mut last: Option<Cell> = None;
    for row in &rows[..captions] {
        // A range may be merged over rows too.
        if last.is_none_or(|last| !last.is_one_with(&row[0])) {
            table.captions.push(crate::table::one_line(sheet.text(&row[0])));
        }
        last = Some(row[0]);
    }
    let mut lines = Lines::new(rows.len() - captions, columns.len());
    let mut shown: Vec<&str> = Vec::new();
    for row in &rows[captions..] {
        shown.clear();
        // A value that spans all columns heads the rows below it.
        let is_one = row.iter().all(|cell| cell.is_one_with(&row[0]));
        for cell in if is_one { &row[..1] } else { row } {
            let at = columns.binary_search(&cell.column).unwrap_or_default();
            shown.resize(at, "");
            shown.push(sheet.text(cell));
        }
        lines.row(shown.iter().copied(), &mut table.lines);
        if table.lines.len() > MAX_DOCUMENT_BYTES {
            return Err(too_long());
        }
    }
    Ok(table)
}

#[cfg(test)]
#[path = "workbook_tests.rs"]
mod tests;
