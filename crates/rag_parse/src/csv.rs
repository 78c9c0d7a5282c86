//! Separated values as a Markdown table: commas, semicolons, tabs, pipes.
//!
//! Rows are written as they are read, so that a large file costs no more memory than its text.

use crate::detect::TSV;
use crate::properties::Properties;
use crate::table::{Lines, MAX_COLUMNS, one_line};
use crate::{MAX_DOCUMENT_BYTES, ParseError, too_long};
use ::csv::{ReaderBuilder, StringRecord};
use rag_core::document::ParsedDocument;
use std::fmt::Write;

/// Separators in falling order of preference where two fit equally: a comma is often part of a number.
const SEPARATORS: &[u8] = b"\t;|,";

/// Bytes and rows that are looked at to tell the separator.
const SAMPLE_BYTES: usize = 65_536;
const SAMPLE_ROWS: usize = 200;

/// Fewest rows of what is taken for a table without being said to be one.
const MIN_ROWS: usize = 3;

/// Longest name of a column in characters, in such a table.
const MAX_NAME_CHARS: usize = 64;

/// A file of separated values: its first row with several columns is the header, rows before it are a caption.
///
/// The separator is told from the content, unless the media type or a first line `sep=;` names it. A quote that
/// is never closed is an ordinary character.
pub(crate) fn parse(
    text: &str,
    media_type: String,
    properties: Properties,
) -> Result<ParsedDocument, ParseError> {
    let (named, text) = named_separator(text);
    let separator = match named {
        Some(separator) => separator,
        None if media_type == TSV => b'\t',
        None => likely_separator(sample(text)),
    };
    let mut rows = Rows::of(text, separator);
    let shape = Shape::of(&mut rows);
    let text = write(&mut Rows::of(text, separator), &shape).ok_or_else(too_long)?;
    Ok(ParsedDocument {
        media_type,
        title: None,
        text,
        headings: Vec::new(),
        pages: Vec::new(),
        metadata_json: properties.into_json(),
    })
}

/// Whether text is a table beyond doubt, though nobody says so: every row has as many columns as a header of
/// plain, different names.
pub(crate) fn is_table(text: &str) -> bool {
    let (named, text) = named_separator(text);
    if named.is_some() {
        return true;
    }
    let sample = sample(text);
    // A reader costs more than a look at a short text, and most are no tables.
    let breaks = sample.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    if breaks + 1 < MIN_ROWS {
        return false;
    }
    let Some(first) = sample.lines().next() else { return false };
    SEPARATORS.iter().any(|separator| {
        first.contains(char::from(*separator))
            && has_header(first, *separator)
            && is_regular(sample, *separator)
    })
}

fn has_header(line: &str, separator: u8) -> bool {
    let mut rows = Rows::of(line, separator);
    let Some(header) = rows.next() else { return false };
    let mut names: Vec<&str> = header.iter().map(str::trim).collect();
    let are_names = names.iter().all(|name| is_column_name(name));
    names.sort_unstable();
    are_names && names.len() > 1 && names.windows(2).all(|pair| pair[0] != pair[1])
}

fn is_column_name(name: &str) -> bool {
    name.starts_with(char::is_alphabetic)
        && name.chars().count() <= MAX_NAME_CHARS
        && !name.ends_with(['.', ':', '!', '?'])
        && name.chars().all(|c| c.is_alphanumeric() || " _-./()[]%#&€$£°".contains(c))
        && name.matches('(').count() == name.matches(')').count()
}

/// Whether all rows have as many columns, and commas part values rather than clauses.
fn is_regular(sample: &str, separator: u8) -> bool {
    let mut rows = Rows::of(sample, separator);
    let Some(columns) = rows.next().map(|row| row.len()) else { return false };
    let (mut count, mut spaced, mut fields) = (1usize, 0usize, 0usize);
    while let Some(row) = rows.next() {
        if row.len() != columns {
            return false;
        }
        count += 1;
        fields += columns - 1;
        spaced += row.iter().skip(1).filter(|field| field.starts_with(' ')).count();
    }
    count >= MIN_ROWS && (separator != b',' || spaced * 5 <= fields)
}

/// The separator with which most rows have the same number of columns.
fn likely_separator(sample: &str) -> u8 {
    let mut best = (0.0, b',');
    for separator in SEPARATORS {
        let mut widths = vec![0usize; MAX_COLUMNS + 1];
        let mut rows = Rows::of(sample, *separator);
        let mut count = 0usize;
        while let Some(row) = rows.next()
            && count < SAMPLE_ROWS
        {
            widths[row.len().min(MAX_COLUMNS)] += 1;
            count += 1;
        }
        let most = widths.iter().skip(2).max().copied().unwrap_or_default();
        let share = most as f64 / count.max(1) as f64;
        if share > best.0 {
            best = (share, *separator);
        }
    }
    best.1
}

/// Excel's first line `sep=;`, and the text after it.
fn named_separator(text: &str) -> (Option<u8>, &str) {
    let Some((line, rest)) = text.split_once('\n') else { return (None, text) };
    let line = line.trim_end().trim_matches('"');
    let named = line.get(..4).filter(|key| key.eq_ignore_ascii_case("sep="));
    match named.map(|_| &line.as_bytes()[4..]) {
        Some([separator]) if separator.is_ascii() && !b"\"\r\n".contains(separator) => {
            (Some(*separator), rest)
        }
        _ => (None, text),
    }
}

/// The first rows: whole lines, as far as they are not too long.
fn sample(text: &str) -> &str {
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    match sample.rfind('\n') {
        Some(end) if sample.len() < text.len() => &sample[..=end],
        _ => sample,
    }
}

/// Rows of separated values, without empty ones.
struct Rows<'a> {
    text: &'a str,
    separator: u8,
    reader: ::csv::Reader<&'a [u8]>,
    /// Where the reader began.
    from: usize,
    row: StringRecord,
    is_quoting: bool,
}

impl<'a> Rows<'a> {
    fn of(text: &'a str, separator: u8) -> Self {
        let reader = reader(text, separator, true);
        Self { text, separator, reader, from: 0, row: StringRecord::new(), is_quoting: true }
    }

    fn next(&mut self) -> Option<&StringRecord> {
        loop {
            // Text is UTF-8 and rows may be of any length, so there is nothing left that could fail.
            if !self.reader.read_record(&mut self.row).unwrap_or(false) {
                return None;
            }
            if self.is_quoting && self.is_last() && self.ends_in_quotes() {
                // Read once more, from here to the end, as if there were no quotes.
                self.is_quoting = false;
                self.from += self.row_start();
                self.reader = reader(&self.text[self.from..], self.separator, false);
                continue;
            }
            if self.row.iter().any(|field| !field.trim().is_empty()) {
                return Some(&self.row);
            }
        }
    }

    fn row_start(&self) -> usize {
        let start = self.row.position().map_or(0, ::csv::Position::byte);
        usize::try_from(start).unwrap_or_default().min(self.text.len() - self.from)
    }

    fn is_last(&self) -> bool {
        self.reader.position().byte() >= (self.text.len() - self.from) as u64
    }

    /// Whether the row, which is the last, has a quote that is never closed.
    fn ends_in_quotes(&self) -> bool {
        let row = &self.text[self.from + self.row_start()..];
        row.matches('"').count() % 2 == 1
    }
}

fn reader(text: &str, separator: u8, is_quoting: bool) -> ::csv::Reader<&[u8]> {
    ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .quoting(is_quoting)
        .from_reader(text.as_bytes())
}

/// What must be known of a table before its first row is written.
struct Shape {
    columns: usize,
    rows: usize,
    /// Rows of a single field ahead of the header.
    caption_rows: usize,
}

impl Shape {
    fn of(rows: &mut Rows<'_>) -> Self {
        let (mut columns, mut count, mut caption_rows) = (0usize, 0usize, 0usize);
        while let Some(row) = rows.next() {
            let own = row.len().min(MAX_COLUMNS);
            let filled = row.iter().filter(|field| !field.trim().is_empty()).count();
            caption_rows += usize::from(filled == 1 && caption_rows == count);
            columns = columns.max(own);
            count += 1;
        }
        // In a table of one column, or of a few rows, there is no telling a caption from a header.
        if columns < 2 || caption_rows * 2 > count {
            caption_rows = 0;
        }
        Self { columns, rows: count, caption_rows }
    }
}

/// The table; `None` if it is longer than a document may be.
fn write(rows: &mut Rows<'_>, shape: &Shape) -> Option<String> {
    let mut out = String::new();
    let mut index = 0usize;
    let mut lines = Lines::new(shape.rows, shape.columns);
    while let Some(row) = rows.next() {
        if index < shape.caption_rows {
            for field in row.iter().filter(|field| !field.trim().is_empty()) {
                let _ = write!(out, "{}\n\n", one_line(field));
            }
            index += 1;
            continue;
        }
        lines.row(row.iter(), &mut out);
        if out.len() > MAX_DOCUMENT_BYTES {
            return None;
        }
        index += 1;
    }
    Some(out)
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
