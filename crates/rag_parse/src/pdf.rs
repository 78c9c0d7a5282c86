//! PDF: text in reading order, with the page of every character.
//!
//! A PDF says where letters stand, not what they form. [`interpret`] finds the letters, [`line`] puts them into
//! rows, [`column`] the rows into reading order, and [`block`] makes headings, paragraphs, lists, tables and
//! code of them. Objects, filters, encryption, fonts and encodings are read by hayro.

mod block;
mod column;
mod compose;
mod font;
mod heading;
mod info;
mod interpret;
mod line;
mod outline;
mod running;
mod script;
mod table;

use crate::writer::Writer;
use crate::{ParseError, ParseErrorKind};
use flate2::read::ZlibDecoder;
use hayro_font::hayro_syntax::object::Stream;
use hayro_font::hayro_syntax::{DecryptionError, Filter, LoadPdfError, Pdf};
use rag_core::document::{Heading, PageStart, ParsedDocument};
use std::io::Read;

/// Most pages of a document.
const MAX_PAGES: usize = 50_000;

/// Most bytes of page descriptions after decompression, over all pages.
const MAX_DECODED_BYTES: usize = 256 << 20;

/// Most drawing operations and characters, over all pages. The largest manuals have ten millions.
const MAX_OPERATIONS: u64 = 100_000_000;

/// What it costs to begin a form or another part of a page, in operations; a nested one costs its depth squared
/// times this, for forms in forms multiply.
const OPERATIONS_OF_A_FORM: u64 = 500;

/// Deflate makes at most this many bytes of one.
const MAX_DEFLATE_RATIO: usize = 1_032;

/// Parses a PDF.
pub(crate) fn parse(bytes: &[u8], media_type: String) -> Result<ParsedDocument, ParseError> {
    let pdf = Pdf::new(bytes.to_vec()).map_err(not_loaded)?;
    let count = pdf.pages().len();
    if count == 0 {
        return Err(damaged("it has no pages"));
    }
    if count > MAX_PAGES {
        return Err(ParseError::new(
            ParseErrorKind::LimitExceeded,
            format!("document has {count} pages, more than {MAX_PAGES}"),
            Some("Split the document."),
        ));
    }
    let mut fonts = font::Fonts::new();
    let mut budget = Budget::default();
    let (mut images, mut unknown) = (0, 0);
    let mut sheets = Vec::with_capacity(count);
    let mut rules = Vec::with_capacity(count);
    for page in pdf.pages().iter() {
        let drawn = interpret::draw(page, &mut fonts, &mut budget)?;
        images += drawn.images;
        unknown += drawn.unknown;
        let rows = line::rows(&drawn, &fonts);
        sheets.push(running::Sheet { height: page.render_dimensions().1, rows });
        rules.push(drawn.rules);
    }
    if sheets.iter().all(|sheet| sheet.rows.is_empty()) {
        return Err(without_text(count, images, unknown));
    }
    running::remove(&mut sheets);
    let lines: Vec<column::Line> =
        sheets.into_iter().enumerate().flat_map(|(page, sheet)| column::lines(sheet.rows, page)).collect();
    let norm = block::Norm::of(&lines);
    let mut blocks = block::blocks(lines, &rules, &norm);
    heading::mark(&mut blocks, &outline::bookmarks(&pdf), &norm);
    let mut writer = Writer::new();
    compose::write(&blocks, &mut writer);
    let Some((text, headings, starts)) = writer.finish_with_pages() else {
        return Err(crate::too_long());
    };
    Ok(ParsedDocument {
        media_type,
        title: info::title(&pdf).or_else(|| first_title(&headings)),
        pages: all_pages(count, &starts, text.len()),
        text,
        headings,
        metadata_json: info::metadata(&pdf).into_json(),
    })
}

/// The first heading, if none is above it.
fn first_title(headings: &[Heading]) -> Option<String> {
    let first = headings.first()?;
    let is_top = headings.iter().all(|heading| heading.level >= first.level);
    is_top.then(|| first.title.clone())
}

/// Where each page starts. A page without text starts where the next one does.
fn all_pages(count: usize, starts: &[PageStart], end: usize) -> Vec<PageStart> {
    let mut pages = Vec::with_capacity(count);
    let mut next = starts.iter().peekable();
    for page in 1..=count as u32 {
        while next.peek().is_some_and(|start| start.page < page) {
            next.next();
        }
        pages.push(PageStart { page, offset: next.peek().map_or(end, |start| start.offset) });
    }
    pages
}

/// What is left of the work that a document may cost.
#[derive(Default)]
struct Budget {
    operations: u64,
    decoded: usize,
}

impl Budget {
    /// Counts an operation or character.
    fn operation(&mut self) -> Result<(), ParseError> {
        self.spend(1)
    }

    /// Counts the start of a form, which stands in `depth` others.
    fn form(&mut self, depth: usize) -> Result<(), ParseError> {
        let depth = depth as u64 + 1;
        self.spend(OPERATIONS_OF_A_FORM * depth * depth)
    }

    fn spend(&mut self, operations: u64) -> Result<(), ParseError> {
        self.operations += operations;
        if self.operations <= MAX_OPERATIONS {
            return Ok(());
        }
        Err(ParseError::new(
            ParseErrorKind::LimitExceeded,
            format!("document has more than {MAX_OPERATIONS} drawing operations"),
            Some("Split the document."),
        ))
    }

    /// Appends a page description. One that cannot be decoded is left out, as viewers do.
    fn append(&mut self, stream: &Stream<'_>, data: &mut Vec<u8>) -> Result<(), ParseError> {
        let room = MAX_DECODED_BYTES.saturating_sub(self.decoded);
        let filters = stream.filters();
        let expanding = filters
            .iter()
            .filter(|filter| {
                matches!(filter, Filter::FlateDecode | Filter::LzwDecode | Filter::RunLengthDecode)
            })
            .count();
        let raw = stream.raw_data();
        let may_be = raw.len().saturating_mul(MAX_DEFLATE_RATIO);
        if expanding > 1 && may_be.saturating_mul(MAX_DEFLATE_RATIO) > room {
            return Err(ParseError::new(
                ParseErrorKind::LimitExceeded,
                format!("a page description is compressed {expanding} times over"),
                None,
            ));
        }
        if expanding == 1 && filters.len() == 1 && may_be > room {
            let limit = room as u64 + 1;
            let decoder = ZlibDecoder::new(raw.as_ref());
            let size = std::io::copy(&mut decoder.take(limit), &mut std::io::sink()).unwrap_or(0);
            if size >= limit {
                return Err(too_much());
            }
        }
        if let Ok(decoded) = stream.decoded_data() {
            self.decoded = self.decoded.saturating_add(decoded.len());
            if decoded.len() > room {
                return Err(too_much());
            }
            data.extend_from_slice(&decoded);
        }
        Ok(())
    }
}

fn too_much() -> ParseError {
    ParseError::new(
        ParseErrorKind::LimitExceeded,
        format!("page descriptions have more than {MAX_DECODED_BYTES} bytes when decompressed"),
        Some("Split the document."),
    )
}

fn not_loaded(error: LoadPdfError) -> ParseError {
    let (message, hint) = match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => (
            "document is encrypted: it needs a password to be opened",
            "Save the document without a password and ingest it again.",
        ),
        LoadPdfError::Decryption(_) => (
            "document is encrypted in a way that is not supported",
            "Save the document without encryption and ingest it again.",
        ),
        LoadPdfError::Invalid => return damaged("no pages can be found in it"),
    };
    ParseError::new(ParseErrorKind::NotParsable, message, Some(hint))
}

fn damaged(how: &str) -> ParseError {
    ParseError::new(
        ParseErrorKind::NotParsable,
        format!("PDF is damaged: {how}"),
        Some("Is the file complete? If a viewer opens it, save it anew from there."),
    )
}

fn without_text(pages: usize, images: usize, unknown: usize) -> ParseError {
    let pages = if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") };
    let ocr = "Text in images can be read by optical character recognition: name a program in rag_ext.ocr_program, \
               or run the file through one and ingest the result.";
    let (message, hint) = match (unknown > 0, images > 0) {
        (true, _) => {
            (format!("document has {pages}, but its fonts do not tell what their characters mean"), Some(ocr))
        }
        (_, true) => (format!("document has {pages} and no text: it seems to be scanned"), Some(ocr)),
        _ => (format!("document has {pages} and no text"), None),
    };
    ParseError::new(ParseErrorKind::NotParsable, message, hint)
}
