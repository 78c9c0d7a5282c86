//! XML read piece by piece, within limits.
//!
//! A pull reader over `quick-xml` for parts of office documents: elements by their local names, because
//! producers choose prefixes and the strict and transitional dialects differ in nothing but namespaces.
//! Entities beyond the predefined ones are not expanded, so none can grow.

use crate::{ParseError, ParseErrorKind};
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use rag_core::option::quoted;
use std::borrow::Cow;

/// Deepest nesting of elements. Word's own documents stay below 100.
pub(crate) const MAX_XML_DEPTH: usize = 256;

/// A piece of XML.
pub(crate) enum Piece<'a> {
    /// An element begins; an empty one is followed by [`Piece::End`] as well.
    Start(Element<'a>),
    /// The innermost open element ends.
    End,
    /// Text with references resolved. An element's text may come in several pieces.
    Text(Cow<'a, str>),
}

/// The start of an element.
pub(crate) struct Element<'a> {
    start: BytesStart<'a>,
}

impl Element<'_> {
    /// Name without prefix.
    pub(crate) fn name(&self) -> &str {
        let name = self.start.name().into_inner();
        name.split_once(':').map_or(name, |(_, local)| local)
    }

    /// Value of an attribute by its name, which may be written with a prefix. Without one in `name`, an attribute
    /// without prefix goes before one with a prefix.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let mut prefixed = None;
        for attribute in self.start.attributes().with_checks(false).flatten() {
            let key = attribute.key.into_inner();
            if key == name {
                return value(&attribute);
            }
            if prefixed.is_none() && key.split_once(':').is_some_and(|(_, local)| local == name) {
                prefixed = value(&attribute);
            }
        }
        prefixed
    }

    /// Value of an attribute that has a prefix, by its local name, such as `id` for `r:id`.
    pub(crate) fn prefixed_attribute(&self, local_name: &str) -> Option<String> {
        self.start
            .attributes()
            .with_checks(false)
            .flatten()
            .find(|attribute| {
                attribute.key.into_inner().split_once(':').is_some_and(|(_, local)| local == local_name)
            })
            .and_then(|attribute| value(&attribute))
    }

    /// Value of an attribute as a number.
    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.attribute(name)?.trim().parse().ok()
    }

    /// A switch such as `<w:b/>` or `<w:b w:val="0"/>`: on unless its value says otherwise.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.attribute("val").as_deref(), Some("0" | "false" | "off" | "none"))
    }
}

fn value(attribute: &quick_xml::events::attributes::Attribute<'_>) -> Option<String> {
    let value = attribute.normalized_value(XmlVersion::Implicit1_0);
    Some(value.map_or_else(|_| attribute.value.to_string(), Cow::into_owned))
}

/// Reads one part.
pub(crate) struct Xml<'a> {
    reader: Reader<&'a [u8]>,
    /// What an error calls the part.
    part: &'a str,
    depth: usize,
}

impl<'a> Xml<'a> {
    /// Begins to read; `part` is the name that errors give.
    pub(crate) fn new(text: &'a str, part: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = false;
        config.allow_dangling_amp = true;
        Self { reader, part, depth: 0 }
    }

    /// The next piece; `None` at the end of the part.
    ///
    /// Errors: [`ParseErrorKind::NotParsable`] where it is not well-formed, [`ParseErrorKind::LimitExceeded`]
    /// beyond [`MAX_XML_DEPTH`].
    pub(crate) fn next(&mut self) -> Result<Option<Piece<'a>>, ParseError> {
        loop {
            // The reader's own words would quote the document.
            let event = self.reader.read_event().map_err(|_| {
                ParseError::new(
                    ParseErrorKind::NotParsable,
                    format!(
                        "{} is not well-formed at byte {}",
                        quoted(self.part),
                        self.reader.error_position()
                    ),
                    Some("The file is damaged."),
                )
            })?;
            return Ok(Some(match event {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > MAX_XML_DEPTH {
                        return Err(ParseError::new(
                            ParseErrorKind::LimitExceeded,
                            format!(
                                "elements of {} are nested deeper than {MAX_XML_DEPTH}",
                                quoted(self.part)
                            ),
                            Some("Is it a document at all?"),
                        ));
                    }
                    Piece::Start(Element { start })
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    Piece::End
                }
                Event::Text(text) => Piece::Text(text.xml10_content()),
                Event::CData(text) => Piece::Text(text.xml10_content()),
                Event::GeneralRef(reference) => {
                    let name: &str = &reference;
                    match (reference.resolve_char_ref(), quick_xml::escape::resolve_xml_entity(name)) {
                        (Ok(Some(character)), _) => Piece::Text(Cow::Owned(character.to_string())),
                        (_, Some(text)) => Piece::Text(Cow::Borrowed(text)),
                        _ => Piece::Text(Cow::Owned(format!("&{name};"))),
                    }
                }
                Event::Eof if self.depth > 0 => {
                    return Err(ParseError::new(
                        ParseErrorKind::NotParsable,
                        format!("{} ends inside an element", quoted(self.part)),
                        Some("The file is truncated or damaged."),
                    ));
                }
                Event::Eof => return Ok(None),
                // `expand_empty_elements` leaves none.
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                    continue;
                }
            }));
        }
    }

    /// The next child of the element whose start was read last, passing over text; `None` when that element
    /// has ended. Each child must be read to its end or [skipped](Self::skip) before the next call.
    pub(crate) fn child(&mut self) -> Result<Option<Element<'a>>, ParseError> {
        loop {
            match self.next()? {
                Some(Piece::Start(element)) => return Ok(Some(element)),
                Some(Piece::Text(_)) => {}
                Some(Piece::End) | None => return Ok(None),
            }
        }
    }

    /// Passes over the rest of the element whose start was read last.
    pub(crate) fn skip(&mut self) -> Result<(), ParseError> {
        let mut open = 1usize;
        while open > 0 {
            match self.next()? {
                Some(Piece::Start(_)) => open += 1,
                Some(Piece::End) => open -= 1,
                Some(Piece::Text(_)) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// The text of the element whose start was read last, with that of the elements inside.
    pub(crate) fn text(&mut self) -> Result<String, ParseError> {
        let mut text = String::new();
        let mut open = 1usize;
        while open > 0 {
            match self.next()? {
                Some(Piece::Start(_)) => open += 1,
                Some(Piece::End) => open -= 1,
                Some(Piece::Text(more)) => text.push_str(&more),
                None => break,
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
