//! Paragraphs: what they are by their properties and style.

use super::{DocxReader, enter_choice, math, run};
use crate::ParseError;
use crate::office::block::{Block, Item, Kind};
use crate::office::text::{CHECKED, Style, Text, UNCHECKED, link_to};
use crate::xml::{Element, Xml};
use std::rc::Rc;

/// The list of paragraphs that are items because they begin with a box to tick.
const TICKED_LIST: u32 = u32::MAX;

/// A paragraph in the making.
#[derive(Default)]
pub(super) struct Paragraph {
    pub(super) text: Text,
    /// What comes after it: text boxes, charts and notes.
    pub(super) after: Vec<Block>,
    style: Option<String>,
    outline: Option<u8>,
    number: Option<u32>,
    level: Option<u8>,
    ends_section: bool,
    end_is_deleted: bool,
}

impl DocxReader<'_> {
    /// Reads a paragraph whose start was read last.
    pub(super) fn paragraph(&mut self, xml: &mut Xml<'_>, out: &mut Vec<Block>) -> Result<(), ParseError> {
        let mut paragraph = Paragraph::default();
        let was_in_contents = self.fields.are_contents();
        if let Some(carried) = self.carried.take() {
            paragraph.text = carried;
        }
        while let Some(element) = xml.child()? {
            if element.name() == "pPr" {
                self.properties(xml, &mut paragraph)?;
            } else {
                self.inline(xml, &element, &mut paragraph, None)?;
            }
        }
        self.fields.end_paragraph();
        let section = if paragraph.ends_section && self.apart == 0 { self.pages.section() } else { None };
        if paragraph.end_is_deleted {
            out.append(&mut paragraph.after);
            self.carried = Some(paragraph.text).filter(|text| !text.is_blank());
        } else {
            self.end_paragraph(paragraph, was_in_contents || self.fields.are_contents(), out);
        }
        out.extend(section.map(Block::Page));
        Ok(())
    }

    /// Writes what is left of a paragraph whose end was deleted.
    pub(super) fn end_carried(&mut self, out: &mut Vec<Block>) {
        out.extend(self.carried.take().map(|text| Block::Paragraph(Kind::Body, text)));
    }

    fn end_paragraph(&mut self, mut paragraph: Paragraph, in_contents: bool, out: &mut Vec<Block>) {
        let style = self.styles.paragraph(paragraph.style.as_deref());
        let is_blank = paragraph.text.is_blank();
        if (in_contents || style.is_contents) && self.without_contents {
            self.left_out_contents |= !is_blank;
            out.extend(paragraph.text.last_page().map(Block::Page));
            out.append(&mut paragraph.after);
            return;
        }
        let heading = match paragraph.outline {
            Some(level @ 0..=8) => Some((level + 2).min(6)),
            Some(_) => None,
            None => style.heading,
        };
        // The level of the style belongs to the style's list.
        let (list, level) = match (paragraph.number, style.number) {
            (Some(list), _) => {
                (Some(list), paragraph.level.or(style.level.filter(|_| style.number == Some(list))))
            }
            (None, list) => (list, paragraph.level.or(style.level)),
        };
        // Word numbers empty paragraphs too.
        let label = list.and_then(|list| self.numbering.count(list, level, paragraph.style.as_deref()));
        let is_code = style.is_code || paragraph.text.looks_like_code();
        paragraph.text.tick();
        let kind = match (heading, label) {
            (Some(level), label) => {
                if let Some(label) = label.filter(|label| !label.number.is_empty()) {
                    let mut numbered = Text::default();
                    numbered.push(&format!("{} ", label.number), Style::default(), None);
                    // The page begins with the number, not after it.
                    out.extend(paragraph.text.take_first_page().map(Block::Page));
                    numbered.append(std::mem::take(&mut paragraph.text));
                    paragraph.text = numbered;
                }
                Kind::Heading(level)
            }
            (None, Some(label)) if label.is_continued => Kind::Continued(label.level),
            (None, Some(label)) => {
                let level = label.level.max(style.depth);
                Kind::Item(Item { level, list: label.list, number: label.number })
            }
            (None, None) if [CHECKED, UNCHECKED].iter().any(|sign| paragraph.text.starts_with(sign)) => {
                Kind::Item(Item { level: 0, list: TICKED_LIST, number: String::new() })
            }
            (None, None) if style.is_continued => Kind::Continued(usize::MAX),
            (None, None) if is_code => Kind::Code,
            (None, None) if style.is_quote => Kind::Quote,
            (None, None) => Kind::Body,
        };
        // An empty line of code is one between others.
        if !is_blank || kind == Kind::Code || paragraph.text.last_page().is_some() {
            out.push(Block::Paragraph(kind, paragraph.text));
        }
        out.append(&mut paragraph.after);
    }

    fn properties(&mut self, xml: &mut Xml<'_>, paragraph: &mut Paragraph) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            match element.name() {
                "pStyle" => paragraph.style = element.attribute("val"),
                "outlineLvl" => paragraph.outline = element.number("val"),
                "pageBreakBefore" if element.is_on() && self.apart == 0 => {
                    if let Some(page) = self.pages.set_before() {
                        paragraph.text.push_page(page);
                    }
                }
                "sectPr" => paragraph.ends_section = true,
                // An initial set apart from its word is a paragraph of its own.
                "framePr" if matches!(element.attribute("dropCap").as_deref(), Some("drop" | "margin")) => {
                    paragraph.end_is_deleted = true;
                }
                "numPr" => {
                    while let Some(element) = xml.child()? {
                        match element.name() {
                            "numId" => paragraph.number = element.number("val"),
                            "ilvl" => paragraph.level = element.number("val"),
                            _ => {}
                        }
                        xml.skip()?;
                    }
                    continue;
                }
                "rPr" => {
                    while let Some(element) = xml.child()? {
                        paragraph.end_is_deleted |= element.name() == "del";
                        xml.skip()?;
                    }
                    continue;
                }
                _ => {}
            }
            xml.skip()?;
        }
        Ok(())
    }

    /// Reads an element of a paragraph, whose start was read last.
    pub(super) fn inline(
        &mut self,
        xml: &mut Xml<'_>,
        element: &Element<'_>,
        paragraph: &mut Paragraph,
        link: Option<&Rc<str>>,
    ) -> Result<(), ParseError> {
        match element.name() {
            "r" => self.run(xml, paragraph, link),
            "hyperlink" => {
                let target = element.prefixed_attribute("id").and_then(|id| {
                    let link = self.links.get(&id).filter(|link| link.is_external)?;
                    link_to(&link.target)
                });
                self.inlines(xml, paragraph, target.as_ref().or(link))
            }
            "ins" | "moveTo" | "smartTag" | "customXml" | "dir" | "bdo" => self.inlines(xml, paragraph, link),
            "fldSimple" => {
                self.fields.begin();
                self.fields.instruct(&element.attribute("instr").unwrap_or_default());
                self.fields.begin_result();
                self.inlines(xml, paragraph, link)?;
                self.fields.end();
                Ok(())
            }
            "sdt" => {
                let control = run::Control::read(xml)?;
                if !control.has_content {
                    return Ok(());
                }
                match control.is_checked {
                    Some(is_checked) => {
                        let sign = if is_checked { CHECKED } else { UNCHECKED };
                        self.pages.text();
                        paragraph.text.push(sign, Style::default(), None);
                        xml.skip()?;
                    }
                    None if control.is_placeholder => xml.skip()?,
                    None => self.inlines(xml, paragraph, link)?,
                }
                xml.skip()
            }
            "oMath" => {
                let formula = math::latex(xml)?;
                if !formula.is_empty() {
                    self.pages.text();
                    paragraph.text.push(&format!("${formula}$"), Style::default(), None);
                }
                Ok(())
            }
            "oMathPara" => {
                let formula = math::latex(xml)?;
                if !formula.is_empty() {
                    self.pages.text();
                    paragraph.text.push(&format!("$${formula}$$"), Style::default(), None);
                }
                Ok(())
            }
            "AlternateContent" => {
                if enter_choice(xml)? {
                    self.inlines(xml, paragraph, link)?;
                    xml.skip()?;
                }
                Ok(())
            }
            _ => xml.skip(),
        }
    }

    fn inlines(
        &mut self,
        xml: &mut Xml<'_>,
        paragraph: &mut Paragraph,
        link: Option<&Rc<str>>,
    ) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            self.inline(xml, &element, paragraph, link)?;
        }
        Ok(())
    }
}
