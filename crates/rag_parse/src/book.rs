//! Books (EPUB): the chapters in reading order, each an HTML page of its own.
//!
//! A book has no pages that all its readers share, so none are told; its headings say where one is. Chapters without
//! a heading get the title that the table of contents gives them.

mod contents;

use crate::properties::{AUTHOR, CREATED, DESCRIPTION, KEYWORDS, LANGUAGE, MODIFIED, Properties, TITLE};
use crate::writer::Writer;
use crate::xml::{Piece, Xml};
use crate::zip::{Archive, normalized};
use crate::{ParseError, ParseErrorKind, html, too_long};
use contents::Contents;
use rag_core::document::ParsedDocument;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most entries of a book's manifest.
const MAX_ITEMS: usize = 50_000;

/// Elements of the metadata, and the key of each.
const NAMES: &[(&str, &str)] = &[
    ("title", TITLE),
    ("language", LANGUAGE),
    ("date", CREATED),
    ("description", DESCRIPTION),
    ("publisher", "publisher"),
    ("identifier", "identifier"),
    ("rights", "rights"),
];

/// How fonts are scrambled, which is no protection of the text.
const FONTS: &[&str] = &["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"];

/// Elements that HTML knows as empty; all others may be closed by `/>` in XHTML only.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];

/// Reads a book.
///
/// Errors: [`ParseErrorKind::NotParsable`] for a protected or damaged one, [`ParseErrorKind::LimitExceeded`] beyond
/// the limits of archives, XML and HTML.
pub(crate) fn parse(bytes: &[u8], media_type: String) -> Result<ParsedDocument, ParseError> {
    let archive = Archive::open(bytes)?;
    if is_protected(&archive)? {
        return Err(ParseError::new(
            ParseErrorKind::NotParsable,
            "book is protected by digital rights management",
            Some("Load a copy without protection."),
        ));
    }
    let part = package_part(&archive)?;
    let Some(text) = archive.text(&part)? else { return Err(no_package()) };
    let package = Package::read(&text, &part)?;
    let contents = Contents::of(&archive, &package);
    let mut writer = Writer::new();
    for item in package.chapters() {
        let Some(text) = archive.text(&item.part)? else { continue };
        let parsed = html::parse(&opened(&text), String::new(), Properties::default())?;
        if parsed.headings.is_empty()
            && !parsed.text.trim().is_empty()
            && let Some((level, title)) = contents.get(&item.part)
        {
            writer.heading(level, title.to_owned());
        }
        writer.markdown(&parsed.text, &parsed.headings, 0);
        if writer.is_full() {
            return Err(too_long());
        }
    }
    let (text, headings) = writer.finish().ok_or_else(too_long)?;
    let title = package.properties.text(TITLE).map(str::to_owned);
    let metadata_json = package.properties.into_json();
    Ok(ParsedDocument { media_type, title, text, headings, pages: Vec::new(), metadata_json })
}

fn no_package() -> ParseError {
    ParseError::new(
        ParseErrorKind::NotParsable,
        "book has no package document",
        Some("The file is damaged, or no book."),
    )
}

/// Whether anything but fonts is encrypted.
fn is_protected(archive: &Archive<'_>) -> Result<bool, ParseError> {
    let part = "META-INF/encryption.xml";
    let Some(text) = archive.text(part)? else { return Ok(false) };
    let mut xml = Xml::new(&text, part);
    while let Some(piece) = xml.next()? {
        if let Piece::Start(element) = piece
            && element.name() == "EncryptionMethod"
            && element.attribute("Algorithm").is_none_or(|own| !FONTS.contains(&own.as_str()))
        {
            // The method by which keys are encrypted is inside a key; a book with keys is protected.
            return Ok(true);
        }
    }
    Ok(false)
}

/// Name of the package document.
fn package_part(archive: &Archive<'_>) -> Result<String, ParseError> {
    let part = "META-INF/container.xml";
    if let Some(text) = archive.text(part)? {
        let mut xml = Xml::new(&text, part);
        while let Some(piece) = xml.next()? {
            if let Piece::Start(element) = piece
                && element.name() == "rootfile"
                && let Some(path) = element.attribute("full-path")
            {
                return Ok(normalized(&path));
            }
        }
    }
    Err(no_package())
}

/// What a package document says.
#[derive(Default)]
struct Package {
    properties: Properties,
    items: Vec<Item>,
    by_id: HashMap<String, usize>,
    /// Indexes of items in reading order.
    spine: Vec<usize>,
    /// The item that older books have their table of contents in.
    old_contents: Option<String>,
}

/// A file of the book.
struct Item {
    /// Name in the archive.
    part: String,
    media_type: String,
    /// The table of contents.
    is_contents: bool,
    is_in_spine: bool,
}

impl Package {
    fn read(text: &str, part: &str) -> Result<Self, ParseError> {
        let mut package = Self::default();
        let folder = part.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut xml = Xml::new(text, part);
        if xml.child()?.is_none() {
            return Err(no_package());
        }
        while let Some(element) = xml.child()? {
            match element.name() {
                "metadata" => package.read_metadata(&mut xml)?,
                "manifest" => package.read_manifest(&mut xml, folder)?,
                "spine" => {
                    package.old_contents = element.attribute("toc");
                    package.read_spine(&mut xml)?;
                }
                _ => xml.skip()?,
            }
        }
        Ok(package)
    }

    fn read_metadata(&mut self, xml: &mut Xml<'_>) -> Result<(), ParseError> {
        let mut open = 0usize;
        while let Some(piece) = xml.next()? {
            let element = match piece {
                Piece::Start(element) => element,
                Piece::End if open == 0 => break,
                Piece::End => {
                    open -= 1;
                    continue;
                }
                Piece::Text(_) => continue,
            };
            // The first edition wraps them once more.
            if matches!(element.name(), "dc-metadata" | "x-metadata") {
                open += 1;
                continue;
            }
            let name = element.name().to_ascii_lowercase();
            let property = element.attribute("property");
            let value = xml.text()?;
            match name.as_str() {
                "creator" => self.properties.add(AUTHOR, &value),
                "subject" => self.properties.add(KEYWORDS, &value),
                "meta" if property.as_deref() == Some("dcterms:modified") => {
                    self.properties.set(MODIFIED, &value);
                }
                _ => {
                    if let Some((_, key)) = NAMES.iter().find(|(known, _)| *known == name) {
                        self.properties.set(key, &value);
                    }
                }
            }
        }
        Ok(())
    }

    fn read_manifest(&mut self, xml: &mut Xml<'_>, folder: &str) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            if let (Some(id), Some(href)) = (element.attribute("id"), element.attribute("href"))
                && self.items.len() < MAX_ITEMS
            {
                let properties = element.attribute("properties").unwrap_or_default();
                self.by_id.insert(id, self.items.len());
                self.items.push(Item {
                    part: target(folder, &href).0,
                    media_type: element.attribute("media-type").unwrap_or_default().to_ascii_lowercase(),
                    is_contents: properties.split_whitespace().any(|property| property == "nav"),
                    is_in_spine: false,
                });
            }
            xml.skip()?;
        }
        Ok(())
    }

    fn read_spine(&mut self, xml: &mut Xml<'_>) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            let item = element.attribute("idref").and_then(|id| self.by_id.get(&id).copied());
            // A chapter is read once, however often it is named.
            if let Some(item) = item
                && !std::mem::replace(&mut self.items[item].is_in_spine, true)
            {
                self.spine.push(item);
            }
            xml.skip()?;
        }
        Ok(())
    }

    /// The pages in reading order, without the table of contents.
    fn chapters(&self) -> impl Iterator<Item = &Item> {
        let pages = self.spine.iter().map(|item| &self.items[*item]);
        pages.filter(|item| {
            !item.is_contents
                && matches!(
                    &*item.media_type,
                    "application/xhtml+xml" | "text/html" | "text/x-oeb1-document" | ""
                )
        })
    }
}

/// The part that a link names, and the place in it.
fn target<'a>(folder: &str, href: &'a str) -> (String, Option<&'a str>) {
    let (path, place) = href.split_once('#').map_or((href, None), |(path, place)| (path, Some(place)));
    (normalized(&format!("{folder}/{}", percent_decoded(path))), place)
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// XHTML as HTML reads it: `<title/>` would swallow the page.
fn opened(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let name_length =
            rest[1..].bytes().take_while(|b| b.is_ascii_alphanumeric() || b":-_".contains(b)).count();
        let name = &rest[1..1 + name_length];
        if name.is_empty() {
            out.push('<');
            rest = &rest[1..];
            continue;
        }
        // The end of the tag, which may stand in quotes before.
        let mut quote = None;
        let end = rest.bytes().position(|byte| {
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                _ => {}
            }
            quote.is_none() && byte == b'>'
        });
        let Some(end) = end else { break };
        let tag = &rest[..=end];
        match tag.strip_suffix("/>") {
            Some(opening) if !VOID.contains(&name.to_ascii_lowercase().as_str()) => {
                out.push_str(opening);
                out.push_str("></");
                out.push_str(name);
                out.push('>');
            }
            _ => out.push_str(tag),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
