//! Presentations (PresentationML) as Markdown.
//!
//! Each slide is a page and begins with its title as a heading. Its shapes follow in the order in which a reader
//! looks at them, then the speaker's notes as a quotation. Left out are slide numbers, dates and footers, hidden
//! shapes and comments; hidden slides are kept, since they hold what did not fit the time.

mod layout;
mod order;
mod paragraph;
mod shape;

use super::block::{Block, Blocks, Kind};
use super::package::{self, Relationships};
use super::properties;
use super::text::{Style, Text};
use crate::properties::{PAGES, TITLE};
use crate::writer::Writer;
use crate::xml::{Piece, Xml};
use crate::zip::Archive;
use crate::{ParseError, ParseErrorKind, too_long};
use layout::Layouts;
use rag_core::document::ParsedDocument;
use shape::Role;
use std::collections::HashSet;

/// Most paragraphs and cells of a presentation.
const MAX_BLOCKS: usize = 1_000_000;

/// Parses a presentation.
///
/// The title is that of the core properties, else that of the first slide that has one.
pub(crate) fn parse(bytes: &[u8], media_type: String) -> Result<ParsedDocument, ParseError> {
    let archive = Archive::open(bytes)?;
    let (part, text) = package::main_part(&archive, "ppt/presentation.xml")?;
    let slides = slides(&archive, &part, &text)?;
    let mut deck = Deck { archive: &archive, layouts: Layouts::default(), blocks: 0 };
    let mut writer = Writer::new();
    let mut blocks = Blocks::new(&mut writer);
    for (index, slide) in slides.iter().enumerate() {
        let page = u32::try_from(index + 1).unwrap_or(u32::MAX);
        blocks.finish();
        blocks.write(Block::Page(page));
        for block in deck.slide(slide)? {
            blocks.write(block);
        }
        if blocks.is_full() {
            return Err(too_long());
        }
    }
    blocks.finish();
    let (text, headings, pages) = writer.finish_with_pages().ok_or_else(too_long)?;
    let mut metadata = properties::read(&archive)?;
    metadata.set_number(PAGES, slides.len() as u64);
    Ok(ParsedDocument {
        media_type,
        title: metadata
            .text(TITLE)
            .map(str::to_owned)
            .or_else(|| headings.first().map(|heading| heading.title.clone())),
        text,
        headings,
        pages,
        metadata_json: metadata.into_json(),
    })
}

/// Names of the slides' parts in the order of the presentation. A slide whose part is missing keeps its number.
fn slides(archive: &Archive<'_>, part: &str, text: &str) -> Result<Vec<String>, ParseError> {
    let links = Relationships::of(archive, part)?;
    let mut xml = Xml::new(text, part);
    let mut slides = Vec::new();
    let mut seen = HashSet::new();
    while let Some(piece) = xml.next()? {
        if let Piece::Start(element) = piece
            && element.name() == "sldId"
            && let Some(link) = element.prefixed_attribute("id").and_then(|id| links.get(&id))
            && seen.insert(link.target.clone())
        {
            slides.push(link.target.clone());
        }
    }
    Ok(slides)
}

/// A presentation while its slides are read.
struct Deck<'a> {
    archive: &'a Archive<'a>,
    layouts: Layouts,
    blocks: usize,
}

impl Deck<'_> {
    /// A slide's blocks in reading order; none if its part is missing.
    fn slide(&mut self, part: &str) -> Result<Vec<Block>, ParseError> {
        let Some(text) = self.archive.text(part)? else { return Ok(Vec::new()) };
        let links = Relationships::of(self.archive, part)?;
        let layout = self.layouts.of(self.archive, &links)?;
        let mut shapes = self.shapes(&text, part, &links, layout.as_deref())?;
        let mut titles = Vec::new();
        shapes.retain_mut(|shape| {
            if shape.role == Role::Title {
                titles.append(&mut shape.blocks);
            }
            shape.role == Role::Content
        });
        let mut blocks: Vec<Block> = title(titles).into_iter().collect();
        blocks.extend(order::in_reading_order(shapes).into_iter().flat_map(|shape| shape.blocks));
        if let Some(notes) = links.part("notesSlide") {
            blocks.extend(self.notes(notes)?);
        }
        Ok(blocks)
    }

    /// What the speaker says, as quotations.
    fn notes(&mut self, part: &str) -> Result<Vec<Block>, ParseError> {
        let Some(text) = self.archive.text(part)? else { return Ok(Vec::new()) };
        let links = Relationships::of(self.archive, part)?;
        let shapes = self.shapes(&text, part, &links, None)?;
        let mut notes = Vec::new();
        for block in shapes.into_iter().filter(|shape| shape.is_body).flat_map(|shape| shape.blocks) {
            let Block::Paragraph(_, text) = block else { continue };
            let mut said = Text::default();
            if notes.is_empty() {
                said.push("Notes: ", Style::default(), None);
            }
            said.append(text);
            notes.push(Block::Paragraph(Kind::Quote, said));
        }
        Ok(notes)
    }

    fn count_blocks(&mut self, more: usize) -> Result<(), ParseError> {
        self.blocks += more;
        if self.blocks > MAX_BLOCKS {
            return Err(ParseError::new(
                ParseErrorKind::LimitExceeded,
                format!("presentation has more than {MAX_BLOCKS} paragraphs and cells"),
                Some("Split the document."),
            ));
        }
        Ok(())
    }
}

/// The paragraphs of a title as one heading.
fn title(blocks: Vec<Block>) -> Option<Block> {
    let mut title = Text::default();
    for block in blocks {
        if let Block::Paragraph(_, text) = block {
            if !title.is_blank() {
                title.push_line_break();
            }
            title.append(text);
        }
    }
    (!title.is_blank()).then_some(Block::Paragraph(Kind::Heading(1), title))
}

#[cfg(test)]
#[path = "slides_tests.rs"]
mod tests;
