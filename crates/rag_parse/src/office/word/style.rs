//! Styles of a text document: what paragraphs and runs are by their style.

use crate::ParseError;
use crate::xml::Xml;
use std::collections::HashMap;

/// Most styles of a document; Word's own limit is 4,079.
const MAX_STYLES: usize = 20_000;

/// Longest chain of styles based on each other; Word's own limit is 11.
const MAX_CHAIN: usize = 32;

/// A style as it is written, without what it inherits.
#[derive(Debug, Default, Clone)]
struct Own {
    /// In lower case. Names of built-in styles are English in every edition of Word; ids are not.
    name: String,
    based_on: Option<String>,
    outline: Option<u8>,
    number: Option<u32>,
    level: Option<u8>,
    bold: Option<bool>,
    italic: Option<bool>,
    strike: Option<bool>,
    hidden: Option<bool>,
    mono: Option<bool>,
}

/// All styles of a document.
#[derive(Default)]
pub(crate) struct Styles {
    by_id: HashMap<String, Own>,
    default_paragraph: Option<String>,
    /// Language of the text, as a BCP 47 tag.
    pub(crate) language: Option<String>,
    /// Whether text is monospaced unless a run says otherwise, so that such a font says nothing.
    pub(crate) is_mono: bool,
}

/// What a paragraph is by its style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ParagraphStyle {
    /// Level of a heading as it is written: 1 is a title, 2 what Word calls "heading 1".
    pub(crate) heading: Option<u8>,
    pub(crate) is_title: bool,
    pub(crate) is_contents: bool,
    pub(crate) is_code: bool,
    pub(crate) is_quote: bool,
    /// It goes on with an item of a list.
    pub(crate) is_continued: bool,
    /// How deep a list of this style is indented, from 0.
    pub(crate) depth: usize,
    /// Numbering definition and level of a list.
    pub(crate) number: Option<u32>,
    pub(crate) level: Option<u8>,
}

/// What a run is by its style.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunStyle {
    pub(crate) bold: bool,
    pub(crate) italic: bool,
    pub(crate) strike: bool,
    pub(crate) hidden: bool,
    pub(crate) code: bool,
}

impl Styles {
    /// Reads the part `word/styles.xml`.
    pub(crate) fn read(text: &str, part: &str) -> Result<Self, ParseError> {
        let mut styles = Self::default();
        let mut xml = Xml::new(text, part);
        if xml.child()?.is_none() {
            return Ok(styles);
        }
        while let Some(element) = xml.child()? {
            match element.name() {
                "docDefaults" => {
                    let mut own = Own::default();
                    own.read_all(&mut xml, &mut styles.language)?;
                    styles.is_mono = own.mono.unwrap_or_default();
                }
                "style" => {
                    let (id, kind) = (element.attribute("styleId"), element.attribute("type"));
                    let is_default =
                        matches!(element.attribute("default").as_deref(), Some("1" | "true" | "on"));
                    let mut own = Own::default();
                    own.read_all(&mut xml, &mut None)?;
                    if let Some(id) = id
                        && styles.by_id.len() < MAX_STYLES
                    {
                        if is_default && kind.as_deref() == Some("paragraph") {
                            styles.is_mono = own.mono.unwrap_or(styles.is_mono);
                            styles.default_paragraph.get_or_insert_with(|| id.clone());
                        }
                        styles.by_id.entry(id).or_insert(own);
                    }
                }
                _ => xml.skip()?,
            }
        }
        Ok(styles)
    }

    /// A style and those it is based on, each once.
    fn chain(&self, id: Option<&str>) -> impl Iterator<Item = &Own> {
        let mut next = id.and_then(|id| self.by_id.get(id));
        std::iter::from_fn(move || {
            let own = next?;
            next = own.based_on.as_deref().and_then(|id| self.by_id.get(id));
            Some(own)
        })
        // Chains may be circular in a broken file.
        .take(MAX_CHAIN)
    }

    /// What a paragraph of a style is; without one, of the default style.
    pub(crate) fn paragraph(&self, id: Option<&str>) -> ParagraphStyle {
        let id = id.filter(|id| self.by_id.contains_key(*id)).or(self.default_paragraph.as_deref());
        let mut style = ParagraphStyle::default();
        let mut outline = None;
        let mut may_be_title = true;
        for own in self.chain(id) {
            let name = own.name.as_str();
            // What is based on the title's style is a title only if it says so: authors and dates are not.
            may_be_title &= TITLES.iter().any(|title| name.contains(title)) && !SUBTITLES.contains(&name);
            style.is_title |= may_be_title && TITLES.contains(&name);
            style.is_continued |= name.starts_with("list continue");
            let depth = LISTS.iter().find_map(|list| level_after(name, list)).unwrap_or_default();
            style.depth = style.depth.max(depth.into());
            style.is_contents |= name.starts_with("toc ") || name == "table of figures";
            style.is_code |= is_code(name);
            style.is_quote |= QUOTES.contains(&name);
            let named = || HEADINGS.iter().find_map(|heading| level_after(name, heading));
            outline = outline.or(own.outline).or_else(named);
            style.number = style.number.or(own.number);
            style.level = style.level.or(own.level);
        }
        style.heading = match outline {
            _ if style.is_title => Some(1),
            // Outline level 9 is body text.
            Some(level @ 0..=8) => Some((level + 2).min(6)),
            _ => None,
        };
        style.is_title &= style.heading == Some(1);
        style
    }

    /// What a run of a style is.
    pub(crate) fn run(&self, id: Option<&str>) -> RunStyle {
        let mut merged = Own::default();
        let mut code = false;
        for own in self.chain(id) {
            code |= is_code(&own.name) || own.name == "verbatim char";
            merged.bold = merged.bold.or(own.bold);
            merged.italic = merged.italic.or(own.italic);
            merged.strike = merged.strike.or(own.strike);
            merged.hidden = merged.hidden.or(own.hidden);
            merged.mono = merged.mono.or(own.mono);
        }
        let on = Option::unwrap_or_default;
        RunStyle {
            bold: on(merged.bold),
            italic: on(merged.italic),
            strike: on(merged.strike),
            hidden: on(merged.hidden),
            code: code || (on(merged.mono) && !self.is_mono),
        }
    }
}

impl Own {
    /// Reads the properties below the element whose start was read last, however deep.
    fn read_all(&mut self, xml: &mut Xml<'_>, language: &mut Option<String>) -> Result<(), ParseError> {
        while let Some(element) = xml.child()? {
            match element.name() {
                "name" => self.name = element.attribute("val").unwrap_or_default().trim().to_lowercase(),
                "basedOn" => self.based_on = element.attribute("val"),
                "outlineLvl" => self.outline = element.number("val"),
                "numId" => self.number = element.number("val"),
                "ilvl" => self.level = element.number("val"),
                "b" => self.bold = Some(element.is_on()),
                "i" => self.italic = Some(element.is_on()),
                "strike" | "dstrike" => self.strike = Some(element.is_on()),
                "vanish" => self.hidden = Some(element.is_on()),
                "rFonts" => self.mono = element.attribute("ascii").map(|font| is_mono(&font)),
                "lang" => *language = element.attribute("val").or(language.take()),
                // Parts of a table, such as its first row, are formatted apart.
                "tblStylePr" => {}
                "pPr" | "rPr" | "numPr" | "pPrDefault" | "rPrDefault" => {
                    self.read_all(xml, language)?;
                    continue;
                }
                _ => {}
            }
            xml.skip()?;
        }
        Ok(())
    }
}

/// Names of the title style: Word's, and what other programs translate it to.
const TITLES: &[&str] = &["title", "titel", "titre", "título", "titolo", "tytuł", "название", "标题", "表題"];

/// Names of the subtitle style.
const SUBTITLES: &[&str] = &["subtitle", "untertitel", "sous-titre", "subtítulo", "sottotitolo"];

/// What precedes the level in the names of heading styles. Word names them in English, others as they please.
const HEADINGS: &[&str] = &[
    "heading",
    "überschrift",
    "titre",
    "título",
    "titolo",
    "kop",
    "rubrik",
    "overskrift",
    "otsikko",
    "nagłówek",
    "nadpis",
    "заголовок",
    "标题",
    "見出し",
    "제목",
];

/// What precedes the depth in the names of list styles, each of which is a list of its own.
const LISTS: &[&str] = &["list bullet", "list number", "list continue", "list"];

/// Names of styles for quotations.
const QUOTES: &[&str] = &["quote", "intense quote", "block text", "quotations", "blockquote"];

/// The outline level, from 0, of a style named by its level, from 1: `heading 3` and `Überschrift3`.
fn level_after(name: &str, prefix: &str) -> Option<u8> {
    let level: u8 = name.strip_prefix(prefix)?.trim_start().parse().ok()?;
    (1..=9).contains(&level).then(|| level - 1)
}

fn is_code(name: &str) -> bool {
    name.split(|c: char| !c.is_alphanumeric()).any(|word| word == "code" || word == "codeblock")
        || name.starts_with("html preformatted")
        || name.starts_with("preformatted text")
        || matches!(name, "macro text" | "macro" | "listing" | "sourcecode" | "source text")
}

/// Whether a font has letters of one width.
pub(crate) fn is_mono(font: &str) -> bool {
    let font = font.to_lowercase();
    MONO_FONTS.contains(&font.as_str()) || font.ends_with(" mono") || font.contains("mono ")
}

const MONO_FONTS: &[&str] = &[
    "andale mono",
    "cascadia code",
    "consolas",
    "courier",
    "courier new",
    "fira code",
    "inconsolata",
    "lucida console",
    "menlo",
    "monaco",
    "source code pro",
    "sfmono-regular",
];
