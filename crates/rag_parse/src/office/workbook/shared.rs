//! Texts that cells name by number, and the formats that they name.

use super::number::Code;
use crate::ParseError;
use crate::xml::{Piece, Xml};
use std::collections::HashMap;
use std::ops::Range;

/// Longest text of a cell in bytes; Excel allows 32,767 characters.
const MAX_CELL_BYTES: usize = 1 << 18;

/// The shared strings of a workbook.
#[derive(Default)]
pub(super) struct Texts {
    all: String,
    places: Vec<Range<u32>>,
}

impl Texts {
    /// Reads the part of shared strings.
    pub(super) fn read(text: &str) -> Result<Self, ParseError> {
        let mut texts = Self::default();
        let mut xml = Xml::new(text, "shared strings");
        if xml.child()?.is_none() {
            return Ok(texts);
        }
        while let Some(element) = xml.child()? {
            let start = texts.all.len();
            if element.name() == "si" {
                rich_text(&mut xml, &mut texts.all)?;
            } else {
                xml.skip()?;
                continue;
            }
            // A part has less than four gigabytes.
            texts.places.push(start as u32..texts.all.len() as u32);
        }
        Ok(texts)
    }

    /// The text of a number.
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        let place = self.places.get(index)?;
        self.all.get(place.start as usize..place.end as usize)
    }
}

/// The runs of the element whose start was read last, without what is only read aloud.
pub(super) fn rich_text(xml: &mut Xml<'_>, out: &mut String) -> Result<(), ParseError> {
    let start = out.len();
    let (mut open, mut aloud, mut in_text) = (1usize, 0usize, false);
    while open > 0 {
        match xml.next()? {
            Some(Piece::Start(element)) => {
                open += 1;
                if aloud > 0 || element.name() == "rPh" {
                    aloud += 1;
                }
                in_text = aloud == 0 && element.name() == "t";
            }
            Some(Piece::End) => {
                open -= 1;
                aloud = aloud.saturating_sub(1);
                in_text = false;
            }
            Some(Piece::Text(text)) if in_text && out.len() - start < MAX_CELL_BYTES => unescape(&text, out),
            Some(Piece::Text(_)) => {}
            None => break,
        }
    }
    Ok(())
}

/// Characters that XML has no room for are written as `_x000D_`.
fn unescape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).filter(|_| rest.as_bytes().get(at + 6) == Some(&b'_'));
        let c = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match c {
            Some(c) => {
                out.push(if c.is_control() { ' ' } else { c });
                rest = &rest[at + 7..];
            }
            None => {
                out.push_str("_x");
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
}

/// The number formats of a workbook's cell styles.
#[derive(Default)]
pub(super) struct Styles {
    codes: Vec<Option<Code>>,
    /// Index into `codes` by style.
    by_style: Vec<u32>,
}

impl Styles {
    /// Reads the part of styles.
    pub(super) fn read(text: &str) -> Result<Self, ParseError> {
        let mut own = HashMap::new();
        let mut ids = Vec::new();
        let mut xml = Xml::new(text, "styles");
        if xml.child()?.is_none() {
            return Ok(Self::default());
        }
        while let Some(element) = xml.child()? {
            let is_formats = element.name() == "numFmts";
            if !is_formats && element.name() != "cellXfs" {
                xml.skip()?;
                continue;
            }
            while let Some(element) = xml.child()? {
                let id: u32 = element.number("numFmtId").unwrap_or_default();
                if is_formats {
                    own.insert(id, element.attribute("formatCode").unwrap_or_default());
                } else {
                    ids.push(id);
                }
                xml.skip()?;
            }
        }
        let mut styles = Self::default();
        let mut places: HashMap<u32, u32> = HashMap::new();
        for id in ids {
            let place = *places.entry(id).or_insert_with(|| {
                let code = own.get(&id).map(String::as_str).or_else(|| built_in(id));
                styles.codes.push(code.map(Code::read));
                styles.codes.len() as u32 - 1
            });
            styles.by_style.push(place);
        }
        Ok(styles)
    }

    /// The format of a style, unless it has none.
    pub(super) fn code(&self, style: usize) -> Option<&Code> {
        self.codes.get(*self.by_style.get(style)? as usize)?.as_ref()
    }
}

/// The codes of formats that need none (18.8.30). Dates are written as ISO 8601 has them, because they depend on
/// the reader's country.
fn built_in(id: u32) -> Option<&'static str> {
    Some(match id {
        1 => "0",
        2 => "0.00",
        3 => "#,##0",
        4 => "#,##0.00",
        9 => "0%",
        10 => "0.00%",
        11 => "0.00E+00",
        14 | 27..=31 | 36 | 50..=54 | 57 | 58 => "yyyy-mm-dd",
        15 => "d-mmm-yy",
        16 => "d-mmm",
        17 => "mmm-yy",
        18 => "h:mm AM/PM",
        19 => "h:mm:ss AM/PM",
        20 | 32 | 34 => "h:mm",
        21 | 33 | 35 => "h:mm:ss",
        22 => "yyyy-mm-dd h:mm",
        37 | 38 => "#,##0;(#,##0)",
        39 | 40 => "#,##0.00;(#,##0.00)",
        41 | 42 => "#,##0",
        43 | 44 => "#,##0.00",
        45 => "mm:ss",
        46 => "[h]:mm:ss",
        47 => "mm:ss.0",
        48 => "0.0E+0",
        _ => return None,
    })
}
