//! What bytes stand for, by document and by font.

use encoding_rs::{Encoding, WINDOWS_1252};
use std::collections::HashMap;

/// Most fonts of a document.
const MAX_FONTS: usize = 10_000;

/// The encodings of a document.
pub(super) struct Charsets {
    usual: &'static Encoding,
    by_font: HashMap<i32, &'static Encoding>,
    /// The first half of a character beyond 16 bits.
    high: Option<u16>,
}

impl Default for Charsets {
    fn default() -> Self {
        Self { usual: WINDOWS_1252, by_font: HashMap::new(), high: None }
    }
}

impl Charsets {
    /// Name of the document's encoding.
    pub(super) fn name(&self) -> &'static str {
        self.usual.name()
    }

    /// Takes a code page for the document.
    pub(super) fn set_default(&mut self, code_page: i32) {
        self.usual = of_code_page(code_page).unwrap_or(WINDOWS_1252);
    }

    /// Takes a character set for a font.
    pub(super) fn set_font(&mut self, font: i32, charset: i32) {
        let code_page = match charset {
            77 => 10_000,
            128 => 932,
            129 => 949,
            134 => 936,
            136 => 950,
            161 => 1_253,
            162 => 1_254,
            163 => 1_258,
            177 => 1_255,
            178 => 1_256,
            186 => 1_257,
            204 => 1_251,
            222 => 874,
            238 => 1_250,
            _ => return,
        };
        if let Some(encoding) = of_code_page(code_page)
            && self.by_font.len() < MAX_FONTS
        {
            self.by_font.insert(font, encoding);
        }
    }

    /// Text of bytes in a font.
    pub(super) fn decode(&self, bytes: &[u8], font: i32) -> String {
        let encoding = self.by_font.get(&font).copied().unwrap_or(self.usual);
        encoding.decode_without_bom_handling(bytes).0.into_owned()
    }

    /// The character that a UTF-16 code unit completes.
    pub(super) fn utf16(&mut self, unit: u16) -> Option<char> {
        let high = self.high.take();
        match unit {
            0xd800..0xdc00 => {
                self.high = Some(unit);
                None
            }
            0xdc00..0xe000 => char::decode_utf16([high?, unit]).next()?.ok(),
            // Symbol fonts have their characters here; what they show is not known.
            0xf000..0xf100 => char::from_u32(u32::from(unit) - 0xf000).filter(|c| !c.is_control()),
            0 => None,
            _ => char::from_u32(u32::from(unit)),
        }
    }
}

fn of_code_page(code_page: i32) -> Option<&'static Encoding> {
    let label = match code_page {
        65_001 => "utf-8".to_owned(),
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        866 => "ibm866".to_owned(),
        10_000 => "macintosh".to_owned(),
        874 | 1_250..=1_258 => format!("windows-{code_page}"),
        _ => return None,
    };
    Encoding::for_label(label.as_bytes())
}
