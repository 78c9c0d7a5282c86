//! A Markdown text as words, headings and table cells, with all that two good parsers may do differently made equal.
//!
//! - Both texts are read as GitHub's Markdown, so that escapes, entities, emphasis, list marks, link targets, comments
//!   (`<!-- image -->`) and tags are gone. The words of links and image descriptions stay.
//! - A word is a run of letters or a run of digits after compatibility normalisation, so that ligatures, `H₂O`,
//!   `H<sub>2</sub>O` and `H 2 O` are the same words. Case counts. Invisible marks (direction, soft hyphen, combining
//!   marks) do not, and neither do the boxes of a task list.
//! - Headings and cells are compared by their words; a table may be one of pipes or one of tags. A cell without words is not counted, and the line of a table's
//!   header is a row like others.
//! - In the plain text of a page, a word that is broken by a hyphen at a line's end is joined where it goes on in lower
//!   case.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use rag_core::document::ParsedDocument;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What is compared of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// In order.
    pub(crate) words: Vec<String>,
    /// Level and words.
    pub(crate) headings: Vec<(u8, String)>,
    /// The words of each cell.
    pub(crate) cells: Vec<String>,
}

impl Reading {
    /// What our parser found. Headings are those that sections are made of, not what looks like one in the text.
    pub(crate) fn of_parsed(parsed: &ParsedDocument) -> Self {
        let is_pdf = parsed.media_type == "application/pdf";
        let headings = parsed.headings.iter().map(|heading| (heading.level, sentence(&heading.title)));
        let headings = headings.filter(|(_, title)| !title.is_empty()).collect();
        let text = if is_pdf { joined_at_hyphens(&parsed.text) } else { parsed.text.clone() };
        Self { headings, ..Self::of_markdown(&text) }
    }

    /// What a Markdown text holds.
    pub(crate) fn of_markdown(markdown: &str) -> Self {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let mut reading = Self::default();
        let mut text = String::new();
        let mut html = String::new();
        // Where the innermost heading or cell begins.
        let mut began = 0;
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Start(Tag::Heading { .. } | Tag::TableCell) => {
                    text.push('\n');
                    began = text.len();
                }
                Event::End(TagEnd::Heading(level)) => {
                    let words = sentence(&text[began..]);
                    if !words.is_empty() {
                        reading.headings.push((level as u8, words));
                    }
                    text.push('\n');
                }
                Event::End(TagEnd::TableCell) => {
                    let words = sentence(&text[began..]);
                    if !words.is_empty() {
                        reading.cells.push(words);
                    }
                    text.push('\n');
                }
                Event::Text(piece) | Event::Code(piece) => text.push_str(&piece),
                Event::Html(piece) => html.push_str(&piece),
                Event::End(TagEnd::HtmlBlock) => {
                    reading.cells.extend(cells_of_html(&html));
                    text.push_str(&without_tags(&std::mem::take(&mut html)));
                }
                Event::InlineHtml(html) if is_break(&html) => text.push('\n'),
                Event::SoftBreak | Event::HardBreak => text.push('\n'),
                Event::Start(tag) if !is_inline(&tag) => text.push('\n'),
                Event::End(end) if !ends_inline(end) => text.push('\n'),
                _ => {}
            }
        }
        reading.words = words(&text);
        reading
    }

    /// The words of text without markup, as it stands on pages.
    pub(crate) fn of_pages(text: &str) -> Self {
        Self { words: words(&joined_at_hyphens(text)), ..Self::default() }
    }

    /// Headings whatever their level.
    pub(crate) fn titles(&self) -> Vec<&str> {
        self.headings.iter().map(|(_, title)| &title[..]).collect()
    }
}

fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

fn ends_inline(end: TagEnd) -> bool {
    matches!(end, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

fn is_break(tag: &str) -> bool {
    tag.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("<br"))
}

/// The cells of tables that a Markdown text holds as HTML, which Markdown allows.
fn cells_of_html(html: &str) -> Vec<String> {
    let starts = html.match_indices("<t").filter(|(at, _)| {
        let rest = &html[at + 2..];
        rest.starts_with(['d', 'h']) && rest[1..].starts_with(['>', ' '])
    });
    let cell = |(at, _): (usize, &str)| {
        let rest = &html[at..];
        let end = rest.find("</t").unwrap_or(rest.len());
        sentence(&without_tags(&rest[..end]))
    };
    starts.map(cell).filter(|words| !words.is_empty()).collect()
}

/// A run of HTML without tags, comments and the five entities that every writer of HTML escapes.
fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        text.push(' ');
        let end = if rest[start..].starts_with("<!--") { "-->" } else { ">" };
        rest = rest[start..].find(end).map_or("", |at| &rest[start + at + end.len()..]);
    }
    text.push_str(rest);
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text, |text, (entity, character)| text.replace(entity, character))
}

/// The words of a text with one blank between them.
fn sentence(text: &str) -> String {
    words(text).join(" ")
}

fn words(text: &str) -> Vec<String> {
    let text = text.replace("[x]", " ").replace("[X]", " ");
    let mut words: Vec<String> = Vec::new();
    let mut last = Kind::Other;
    for c in text.nfkc() {
        let kind = Kind::of(c);
        match kind {
            Kind::Invisible => continue,
            Kind::Other => {}
            _ if kind == last => words.last_mut().unwrap().push(c),
            _ => words.push(c.to_string()),
        }
        last = kind;
    }
    words
}

#[derive(PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Invisible,
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => Self::Invisible,
            _ if is_combining_mark(c) => Self::Invisible,
            _ if c.is_numeric() => Self::Digit,
            _ if c.is_alphabetic() => Self::Letter,
            _ => Self::Other,
        }
    }
}

fn joined_at_hyphens(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let goes_on = lines.peek().and_then(|next| next.trim_start().chars().next());
        let stem = line.trim_end().strip_suffix(['-', '\u{ad}', '\u{2010}']);
        match stem {
            Some(stem) if stem.ends_with(char::is_alphabetic) && goes_on.is_some_and(char::is_lowercase) => {
                joined.push_str(stem);
            }
            _ => {
                joined.push_str(line);
                joined.push('\n');
            }
        }
    }
    joined
}
