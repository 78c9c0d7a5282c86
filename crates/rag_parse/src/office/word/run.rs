//! Runs: text of one formatting, and what stands between words.

use super::paragraph::Paragraph;
use super::style::{RunStyle, is_mono};
use super::{DocxReader, Note, enter_choice};
use crate::ParseError;
use crate::office::block::Block;
use crate::office::number::formatted;
use crate::office::symbol;
use crate::office::text::{CHECKED, Style, UNCHECKED};
use crate::xml::{Piece, Xml};
use std::rc::Rc;

/// A content control, read up to its content.
#[derive(Default)]
pub(super) struct Control {
    /// Whether there is content, which then is to be read, and the rest skipped.
    pub(super) has_content: bool,
    /// For a box to tick.
    pub(super) is_checked: Option<bool>,
    /// The content only says what to enter.
    pub(super) is_placeholder: bool,
}

impl Control {
    /// Reads the control whose start was read last, up to the start of its content.
    pub(super) fn read(xml: &mut Xml<'_>) -> Result<Self, ParseError> {
        let mut control = Self::default();
        while let Some(element) = xml.child()? {
            match element.name() {
                "sdtPr" => {
                    while let Some(property) = xml.child()? {
                        match property.name() {
                            "showingPlcHdr" => control.is_placeholder = property.is_on(),
                            "checkbox" => {
                                let mut is_checked = false;
                                while let Some(state) = xml.child()? {
                                    if state.name() == "checked" {
                                        is_checked = state.is_on();
                                    }
                                    xml.skip()?;
                                }
                                control.is_checked = Some(is_checked);
                                continue;
                            }
                            _ => {}
                        }
                        xml.skip()?;
                    }
                }
                "sdtContent" => {
                    control.has_content = true;
                    break;
                }
                _ => xml.skip()?,
            }
        }
        Ok(control)
    }
}

/// How a run looks.
#[derive(Debug, Default)]
struct Look {
    style: Style,
    is_hidden: bool,
    /// Its characters are places of this font.
    symbol_font: Option<String>,
}

impl DocxReader<'_> {
    /// Reads a run whose start was read last.
    pub(super) fn run(
        &mut self,
        xml: &mut Xml<'_>,
        paragraph: &mut Paragraph,
        link: Option<&Rc<str>>,
    ) -> Result<(), ParseError> {
        let mut look = Look::default();
        let mut is_first = true;
        while let Some(element) = xml.child()? {
            if element.name() == "rPr" && is_first {
                look = self.look(xml)?;
            } else if look.is_hidden && !matches!(element.name(), "fldChar" | "instrText") {
                xml.skip()?;
            } else {
                self.run_content(xml, &element, paragraph, &look, link)?;
            }
            is_first = false;
        }
        Ok(())
    }

    /// Reads the properties of a run whose start was read last.
    fn look(&mut self, xml: &mut Xml<'_>) -> Result<Look, ParseError> {
        let mut style = RunStyle::default();
        let mut look = Look::default();
        while let Some(element) = xml.child()? {
            match element.name() {
                // Comes first, by the schema.
                "rStyle" => style = self.styles.run(element.attribute("val").as_deref()),
                "b" => style.bold = element.is_on(),
                "i" => style.italic = element.is_on(),
                "strike" | "dstrike" => style.strike = element.is_on(),
                "vanish" => style.hidden = element.is_on(),
                "vertAlign" => {
                    look.style.superscript = element.attribute("val").as_deref() == Some("superscript");
                }
                "rFonts" => {
                    if let Some(font) = element.attribute("ascii") {
                        style.code |= is_mono(&font) && !self.styles.is_mono;
                        look.symbol_font = Some(font).filter(|font| symbol::is_font(font));
                    }
                }
                "del" | "moveFrom" => look.is_hidden = true,
                _ => {}
            }
            xml.skip()?;
        }
        look.is_hidden |= style.hidden;
        let RunStyle { bold, italic, strike, code, .. } = style;
        look.style = Style { bold, italic, strike, code, superscript: look.style.superscript };
        Ok(look)
    }

    fn run_content(
        &mut self,
        xml: &mut Xml<'_>,
        element: &crate::xml::Element<'_>,
        paragraph: &mut Paragraph,
        look: &Look,
        link: Option<&Rc<str>>,
    ) -> Result<(), ParseError> {
        let style = look.style;
        match element.name() {
            "t" => {
                let mut text = xml.text()?;
                if let Some(font) = &look.symbol_font {
                    text = text.chars().filter_map(|c| symbol::in_font(font, c)).collect();
                }
                self.words(&text, paragraph, style, link);
                return Ok(());
            }
            "tab" | "ptab" => self.words("\t", paragraph, style, link),
            "noBreakHyphen" => self.words("-", paragraph, style, link),
            "cr" => paragraph.text.push_line_break(),
            "br" => match element.attribute("type").as_deref() {
                Some("page") if self.apart == 0 => {
                    let page = self.pages.set();
                    paragraph.text.push_line_break();
                    paragraph.text.push_page(page);
                }
                _ => paragraph.text.push_line_break(),
            },
            "lastRenderedPageBreak" if self.apart == 0 => {
                if let Some(page) = self.pages.rendered() {
                    paragraph.text.push_page(page);
                }
            }
            "sym" => {
                let code =
                    element.attribute("char").and_then(|code| u32::from_str_radix(code.trim(), 16).ok());
                let font = element.attribute("font").unwrap_or_default();
                if let Some(sign) = code.and_then(|code| symbol::of_font(&font, code)) {
                    self.words(sign.encode_utf8(&mut [0; 4]), paragraph, style, link);
                }
            }
            "footnoteReference" | "endnoteReference" => {
                let note = if element.name() == "footnoteReference" { Note::Foot } else { Note::End };
                if let Some(id) = element.attribute("id") {
                    self.call_note(note, id, paragraph);
                }
            }
            "fldChar" => {
                self.field_character(element.attribute("fldCharType").as_deref());
                return self.form_field(xml, paragraph);
            }
            "instrText" => {
                self.fields.instruct(&xml.text()?);
                return Ok(());
            }
            "drawing" | "pict" | "object" => return self.drawing(xml, paragraph),
            "AlternateContent" => {
                if enter_choice(xml)? {
                    while let Some(element) = xml.child()? {
                        self.run_content(xml, &element, paragraph, look, link)?;
                    }
                    xml.skip()?;
                }
                return Ok(());
            }
            "ruby" => {
                while let Some(element) = xml.child()? {
                    if element.name() == "rubyBase" {
                        while let Some(element) = xml.child()? {
                            self.inline(xml, &element, paragraph, link)?;
                        }
                    } else {
                        xml.skip()?;
                    }
                }
                return Ok(());
            }
            _ => {}
        }
        xml.skip()
    }

    fn words(&mut self, words: &str, paragraph: &mut Paragraph, style: Style, link: Option<&Rc<str>>) {
        if !self.fields.are_in_result() {
            return;
        }
        if self.apart == 0 && !words.trim().is_empty() {
            self.pages.text();
        }
        paragraph.text.push(words, style, link.or(self.fields.link()));
    }

    fn field_character(&mut self, kind: Option<&str>) {
        match kind {
            Some("begin") => self.fields.begin(),
            Some("separate") => self.fields.begin_result(),
            Some("end") => self.fields.end(),
            _ => {}
        }
    }

    /// The state of a box to tick in a form of Word 97, which stands where its field begins.
    fn form_field(&mut self, xml: &mut Xml<'_>, paragraph: &mut Paragraph) -> Result<(), ParseError> {
        let mut is_checked = None;
        let mut open = 1usize;
        while open > 0 {
            match xml.next()? {
                Some(Piece::Start(element)) => {
                    open += 1;
                    match element.name() {
                        "checkBox" => is_checked = Some(false),
                        "default" | "checked" if is_checked.is_some() => is_checked = Some(element.is_on()),
                        _ => {}
                    }
                }
                Some(Piece::End) => open -= 1,
                Some(Piece::Text(_)) => {}
                None => break,
            }
        }
        if let Some(is_checked) = is_checked {
            let sign = if is_checked { CHECKED } else { UNCHECKED };
            paragraph.text.push(sign, Style::default(), None);
        }
        Ok(())
    }

    fn call_note(&mut self, note: Note, id: String, paragraph: &mut Paragraph) {
        // Word has no notes in notes and boxes.
        if self.apart > 0 {
            return;
        }
        let key = (note, id);
        let sign = match self.called.get(&key) {
            Some(sign) => sign.clone(),
            None => {
                let Some(blocks) = self.notes.remove(&key) else { return };
                let (format, calls) = match note {
                    Note::Foot => ("decimal", &mut self.calls[0]),
                    Note::End => ("lowerRoman", &mut self.calls[1]),
                };
                *calls = calls.saturating_add(1);
                let sign = formatted(*calls, format);
                self.called.insert(key, sign.clone());
                paragraph.after.push(Block::Note(sign.clone(), blocks));
                sign
            }
        };
        paragraph.text.push(&format!("[^{sign}]"), Style::default(), None);
    }
}
