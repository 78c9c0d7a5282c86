//! Text documents (WordprocessingML) as Markdown.
//!
//! Kept is what a reader of the final document reads: text with its formatting, headings, lists with the numbers
//! that Word would show, tables, notes beside the paragraph that calls them, text boxes after theirs, formulas.
//! Left out are deletions, hidden text, comments, instructions of fields, tables of contents, headers and
//! footers. Pages are those that Word last laid out.

mod drawing;
mod field;
mod numbering;
mod page;
mod paragraph;
mod run;
mod style;
mod table;

use super::block::{Block, Blocks};
use super::package::{self, Relationships};
use super::{math, properties};
use crate::properties::{LANGUAGE, PAGES};
use crate::writer::Writer;
use crate::xml::{Element, Xml};
use crate::zip::Archive;
use crate::{ParseError, ParseErrorKind, too_long};
use field::Fields;
use numbering::Numbering;
use page::Pages;
use rag_core::document::{Heading, PageStart, ParsedDocument};
use std::collections::HashMap;
use style::Styles;

pub(crate) use style::is_mono;

/// Most paragraphs and cells of a document.
const MAX_BLOCKS: usize = 1_000_000;

/// Parses a text document.
///
/// The title is that of the core properties, else the first paragraph of the title style, else the first heading.
pub(crate) fn parse(bytes: &[u8], media_type: String) -> Result<ParsedDocument, ParseError> {
    let archive = Archive::open(bytes)?;
    let (part, text) = package::main_part(&archive, "word/document.xml")?;
    let parts = Parts::read(&archive, &part)?;
    let mut rendered = render(&archive, &parts, &part, &text, true)?;
    if rendered.headings.is_empty() && rendered.left_out_contents {
        // A table of contents repeats the headings; where there are none, it is text.
        rendered = render(&archive, &parts, &part, &text, false)?;
    }
    let Rendered { text, headings, pages, .. } = rendered;
    let mut metadata = properties::read(&archive)?;
    if let Some(language) = &parts.styles.language {
        metadata.set(LANGUAGE, language);
    }
    if let Some(last) = pages.last() {
        metadata.set_number(PAGES, u64::from(last.page));
    }
    let first = || {
        let highest = headings.iter().map(|heading| heading.level).min();
        headings.iter().find(|heading| Some(heading.level) == highest).map(|heading| heading.title.clone())
    };
    Ok(ParsedDocument {
        media_type,
        title: metadata.text(crate::properties::TITLE).map(str::to_owned).or_else(first),
        text,
        headings,
        pages,
        metadata_json: metadata.into_json(),
    })
}

/// What the other parts of the package say.
struct Parts {
    links: Relationships,
    styles: Styles,
    numbering: Option<(String, String)>,
    notes: Vec<Notes>,
}

/// A part with footnotes or endnotes.
struct Notes {
    note: Note,
    part: String,
    text: String,
    links: Relationships,
}

/// Kinds of notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Note {
    Foot,
    End,
}

impl Parts {
    fn read(archive: &Archive<'_>, main: &str) -> Result<Self, ParseError> {
        let links = Relationships::of(archive, main)?;
        let read = |kind: &str| -> Result<Option<(String, String)>, ParseError> {
            let Some(name) = links.part(kind) else { return Ok(None) };
            Ok(archive.text(name)?.map(|text| (name.to_owned(), text)))
        };
        let styles = match read("styles")? {
            Some((name, text)) => Styles::read(&text, &name)?,
            None => Styles::default(),
        };
        let mut notes = Vec::new();
        for (note, kind) in [(Note::Foot, "footnotes"), (Note::End, "endnotes")] {
            if let Some((part, text)) = read(kind)? {
                let links = Relationships::of(archive, &part)?;
                notes.push(Notes { note, part, text, links });
            }
        }
        let numbering = read("numbering")?;
        Ok(Self { links, styles, numbering, notes })
    }
}

/// A document as Markdown.
struct Rendered {
    text: String,
    headings: Vec<Heading>,
    pages: Vec<PageStart>,
    left_out_contents: bool,
}

fn render(
    archive: &Archive<'_>,
    parts: &Parts,
    part: &str,
    text: &str,
    without_contents: bool,
) -> Result<Rendered, ParseError> {
    let numbering = match &parts.numbering {
        Some((name, text)) => Numbering::read(text, name)?,
        None => Numbering::default(),
    };
    let mut reader = DocxReader {
        archive,
        styles: &parts.styles,
        numbering,
        links: &parts.links,
        notes: HashMap::new(),
        called: HashMap::new(),
        calls: [0; 2],
        fields: Fields::default(),
        pages: Pages::of(text, part)?,
        carried: None,
        without_contents,
        left_out_contents: false,
        blocks: 0,
        apart: 0,
    };
    for notes in &parts.notes {
        reader.notes(notes)?;
    }
    let mut writer = Writer::new();
    writer.page(1);
    let mut blocks = Blocks::new(&mut writer);
    let mut xml = Xml::new(text, part);
    xml.child()?;
    let mut pending = Vec::new();
    while let Some(element) = xml.child()? {
        if element.name() != "body" {
            xml.skip()?;
            continue;
        }
        while let Some(element) = xml.child()? {
            reader.block(&mut xml, &element, &mut pending)?;
            for block in pending.drain(..) {
                blocks.write(block);
            }
            if blocks.is_full() {
                return Err(too_long());
            }
        }
    }
    reader.end_carried(&mut pending);
    for block in pending {
        blocks.write(block);
    }
    blocks.finish();
    let (text, headings, mut pages) = writer.finish_with_pages().ok_or_else(too_long)?;
    if !reader.pages.are_known() {
        pages.clear();
    }
    Ok(Rendered { text, headings, pages, left_out_contents: reader.left_out_contents })
}

/// The walk through a document.
struct DocxReader<'a> {
    archive: &'a Archive<'a>,
    styles: &'a Styles,
    numbering: Numbering,
    /// Relationships of the part that is read.
    links: &'a Relationships,
    /// Notes that no one has called yet.
    notes: HashMap<(Note, String), Vec<Block>>,
    /// Signs of the notes that have been called.
    called: HashMap<(Note, String), String>,
    /// How many footnotes and endnotes have been called.
    calls: [u32; 2],
    fields: Fields,
    pages: Pages,
    /// Text of a paragraph whose end has been deleted, which the next one continues.
    carried: Option<super::text::Text>,
    without_contents: bool,
    left_out_contents: bool,
    blocks: usize,
    /// Open text boxes and notes, which stand apart from the pages of the body.
    apart: usize,
}

impl<'a> DocxReader<'a> {
    /// Reads the blocks below the element whose start was read last.
    fn blocks(&mut self, xml: &mut Xml<'_>, out: &mut Vec<Block>) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            self.block(xml, &element, out)?;
        }
        Ok(())
    }

    /// Reads one element of a body, cell, text box or note, whose start was read last.
    fn block(
        &mut self,
        xml: &mut Xml<'_>,
        element: &Element<'_>,
        out: &mut Vec<Block>,
    ) -> Result<(), ParseError> {
        match element.name() {
            "p" => {
                self.count_blocks(1)?;
                self.paragraph(xml, out)
            }
            "tbl" => self.table(xml, out),
            "sdt" => {
                let control = run::Control::read(xml)?;
                if control.has_content {
                    if control.is_placeholder {
                        xml.skip()?;
                    } else {
                        self.blocks(xml, out)?;
                    }
                    xml.skip()?;
                }
                Ok(())
            }
            "customXml" | "smartTag" | "ins" | "moveTo" => self.blocks(xml, out),
            "AlternateContent" => {
                if enter_choice(xml)? {
                    self.blocks(xml, out)?;
                    xml.skip()?;
                }
                Ok(())
            }
            "oMathPara" | "oMath" => {
                let mut text = super::text::Text::default();
                text.push(&format!("$${}$$", math::latex(xml)?), Default::default(), None);
                out.push(Block::Paragraph(super::block::Kind::Body, text));
                Ok(())
            }
            _ => xml.skip(),
        }
    }

    fn count_blocks(&mut self, more: usize) -> Result<(), ParseError> {
        self.blocks += more;
        if self.blocks > MAX_BLOCKS {
            return Err(ParseError::new(
                ParseErrorKind::LimitExceeded,
                format!("document has more than {MAX_BLOCKS} paragraphs and cells"),
                Some("Split the document."),
            ));
        }
        Ok(())
    }

    /// Reads a part with notes.
    fn notes(&mut self, notes: &'a Notes) -> Result<(), ParseError> {
        let own = std::mem::replace(&mut self.links, &notes.links);
        self.apart += 1;
        let mut xml = Xml::new(&notes.text, &notes.part);
        if xml.child()?.is_some() {
            while let Some(element) = xml.child()? {
                // Those with a type are the lines that part notes from the text.
                let is_note = matches!(element.attribute("type").as_deref(), None | Some("normal"));
                let id = element.attribute("id").filter(|_| is_note);
                let mut blocks = Vec::new();
                self.blocks(&mut xml, &mut blocks)?;
                self.end_carried(&mut blocks);
                self.fields = Fields::default();
                if let Some(id) = id {
                    self.notes.entry((notes.note, id)).or_insert(blocks);
                }
            }
        }
        self.apart -= 1;
        self.links = own;
        Ok(())
    }
}

/// Enters the first alternative of an `mc:AlternateContent`, the one that says most. Whether there is one: then
/// its content is to be read, and the rest [skipped](Xml::skip).
fn enter_choice(xml: &mut Xml<'_>) -> Result<bool, ParseError> {
    while let Some(element) = xml.child()? {
        if matches!(element.name(), "Choice" | "Fallback") {
            return Ok(true);
        }
        xml.skip()?;
    }
    Ok(false)
}

#[cfg(test)]
#[path = "word_file_tests.rs"]
mod file_tests;
#[cfg(test)]
#[path = "word_tests.rs"]
mod tests;
