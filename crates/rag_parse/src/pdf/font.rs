//! The fonts of a PDF: what a character code says, how wide it is, and how it looks.

use hayro_font::hayro_cmap::{self, BfString};
use hayro_font::hayro_syntax::object::{Array, Dict, Name};
use hayro_font::kurbo::Vec2;
use hayro_font::{CMapResolverFn, FontCache, FontGlyph, FontQuery, FontResolverFn, StandardFont};
use std::collections::HashMap;
use std::sync::Arc;
use unicode_normalization::UnicodeNormalization;

/// What a reader sees of a font.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) fixed_pitch: bool,
}

/// One character code of a font.
#[derive(Debug, Clone)]
pub(super) struct Code {
    /// Empty if nobody can tell what it says.
    pub(super) text: Box<str>,
    /// In thousandths of the font size.
    pub(super) advance: Vec2,
}

/// Number of a font in [`Fonts`].
pub(super) type FontId = usize;

struct Loaded<'a> {
    font: hayro_font::Font<'a>,
    style: Style,
    codes: HashMap<u32, Code>,
}

/// The fonts that were used so far.
pub(super) struct Fonts<'a> {
    cache: FontCache<'a>,
    font_resolver: FontResolverFn,
    cmap_resolver: CMapResolverFn,
    fonts: Vec<Loaded<'a>>,
    /// By the place of the font's dictionary in the file.
    ids: HashMap<(usize, usize), Option<FontId>>,
    standard: Option<FontId>,
}

impl<'a> Fonts<'a> {
    pub(super) fn new() -> Self {
        Self {
            cache: FontCache::new(),
            font_resolver: Arc::new(|query| match query {
                FontQuery::Standard(font) => Some(font.get_font_data()),
                FontQuery::Fallback(query) => Some(query.pick_standard_font().get_font_data()),
            }),
            cmap_resolver: Arc::new(hayro_cmap::load_embedded),
            fonts: Vec::new(),
            ids: HashMap::new(),
            standard: None,
        }
    }

    /// The font of a dictionary; `None` if it cannot be read.
    pub(super) fn load(&mut self, dict: &Dict<'a>) -> Option<FontId> {
        let key = (dict.data().as_ptr() as usize, dict.data().len());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = self
            .cache
            .font(dict, &self.font_resolver, &self.cmap_resolver)
            .map(|font| self.add(font, style_of(dict)));
        self.ids.insert(key, id);
        id
    }

    /// What viewers take where no font is named.
    pub(super) fn standard(&mut self) -> Option<FontId> {
        if self.standard.is_none() {
            let font = self.cache.standard_font(StandardFont::Helvetica, &self.font_resolver)?;
            self.standard = Some(self.add(font, Style::default()));
        }
        self.standard
    }

    fn add(&mut self, font: hayro_font::Font<'a>, style: Style) -> FontId {
        self.fonts.push(Loaded { font, style, codes: HashMap::new() });
        self.fonts.len() - 1
    }

    pub(super) fn style(&self, id: FontId) -> Style {
        self.fonts[id].style
    }

    /// The next character code of a string that is not at its end, and its length in bytes.
    pub(super) fn read_code(&self, id: FontId, bytes: &[u8], at: usize) -> (u32, usize) {
        let (code, length) = self.fonts[id].font.read_code(bytes, at);
        (code, length.max(1))
    }

    pub(super) fn is_horizontal(&self, id: FontId) -> bool {
        self.fonts[id].font.is_horizontal()
    }

    pub(super) fn code(&mut self, id: FontId, code: u32) -> &Code {
        let Loaded { font, codes, .. } = &mut self.fonts[id];
        codes.entry(code).or_insert_with(|| {
            let unicode = match font.glyph(font.map_code(code), code) {
                FontGlyph::Outline(glyph) => glyph.as_unicode(),
                FontGlyph::Type3(glyph) => glyph.as_unicode(),
            };
            let advance = font.code_advance(code);
            let advance = if advance.is_finite() { advance } else { Vec2::ZERO };
            Code { text: unicode.map_or_else(Default::default, |unicode| clean(&unicode)), advance }
        })
    }
}

/// Text as it is stored: ligatures and presentation forms as letters, bullets of symbol fonts as bullets.
fn clean(unicode: &BfString) -> Box<str> {
    let mut out = String::new();
    let mut push = |c: char| match c {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' | '\t' | '\n' | '\r' => out.push(' '),
        '\u{f0b7}' | '\u{f0a7}' | '\u{f0d8}' | '\u{f076}' | '\u{f0fc}' | '\u{f06e}' => out.push('•'),
        '\u{fb00}'..='\u{fb4f}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => out.extend(c.nfkc()),
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {}
        '\u{fffd}' | '\u{fffe}' | '\u{ffff}' | '\u{e000}'..='\u{f8ff}' => {}
        _ if c.is_control() => {}
        _ => out.push(c),
    };
    match unicode {
        BfString::Char(c) => push(*c),
        // A code that stands for a whole text is a lie that would multiply it.
        BfString::String(text) => text.chars().take(16).for_each(push),
    }
    out.into_boxed_str()
}

/// How a font looks, by its name and descriptor.
fn style_of(dict: &Dict<'_>) -> Style {
    let descendant =
        dict.get::<Array<'_>>("DescendantFonts").and_then(|fonts| fonts.iter::<Dict<'_>>().next());
    let descriptor = dict
        .get::<Dict<'_>>("FontDescriptor")
        .or_else(|| descendant.as_ref()?.get::<Dict<'_>>("FontDescriptor"))
        .unwrap_or_default();
    let name = dict.get::<Name<'_>>("BaseFont").map(|name| name.as_str().to_ascii_lowercase());
    let name = name.unwrap_or_default();
    let name = name.split_once('+').map_or(name.as_str(), |(_, name)| name);
    let flags = descriptor.get::<u32>("Flags").unwrap_or(0);
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let starts = |parts: &[&str]| parts.iter().any(|part| name.starts_with(part));
    Style {
        bold: has(&["bold", "black", "heavy", "demi", "-bd", "medium-", "-medi"])
            || starts(&["cmbx", "cmb1", "sfbx", "cmssbx", "sfsx", "lmbx", "ptmb", "phvb"])
            || descriptor.get::<f32>("FontWeight").is_some_and(|weight| weight >= 600.0)
            || flags & FORCE_BOLD != 0,
        italic: has(&["italic", "oblique", "slanted", "-ital"])
            || starts(&["cmti", "cmsl", "sfti", "sfsl", "lmri"])
            || flags & ITALIC != 0,
        fixed_pitch: flags & FIXED_PITCH != 0
            || has(&["mono", "courier", "typewriter", "consol", "inconsolata", "menlo"])
            || starts(&["cmtt", "cmsltt", "sftt", "sfst", "lmtt", "pcr", "txtt"]),
    }
}

/// Bits of a font descriptor's flags (ISO 32000-1, table 123).
const FIXED_PITCH: u32 = 1;
const ITALIC: u32 = 1 << 6;
const FORCE_BOLD: u32 = 1 << 18;
