//! Markdown: kept as it came; its headings and front matter are read.

use crate::front_matter::FrontMatter;
use crate::properties::{Properties, TITLE};
use pulldown_cmark::{Event, HeadingLevel, MetadataBlockKind, Options, Parser, Tag, TagEnd};
use rag_core::document::{Heading, ParsedDocument};
use std::ops::Range;

/// A document with its headings (CommonMark; not those inside quotes, lists and code) and its front matter.
///
/// The title is that of the front matter, else the first heading of level 1.
pub(crate) fn parse(text: &str, media_type: String, mut properties: Properties) -> ParsedDocument {
    let headings = read(text, &mut properties);
    let title = properties.text(TITLE).map(str::to_owned);
    let first = || headings.iter().find(|heading| heading.level == 1 && !heading.title.is_empty());
    ParsedDocument {
        media_type,
        title: title
            .filter(|title| !title.is_empty())
            .or_else(|| first().map(|heading| heading.title.clone())),
        text: text.to_owned(),
        pages: Vec::new(),
        metadata_json: properties.into_json(),
        headings,
    }
}

/// Whether a text has what `parse` would find.
pub(crate) fn has_headings(text: &str) -> bool {
    // Nothing can be a heading without one of these; most plain text has none.
    if !text.contains(['#', '=', '-']) {
        return false;
    }
    let mut properties = Properties::default();
    !read(text, &mut properties).is_empty() || !properties.is_empty()
}

fn read(text: &str, properties: &mut Properties) -> Vec<Heading> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
        | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut headings = Vec::new();
    let mut depth = 0usize;
    let mut open: Option<(u8, String)> = None;
    let mut front_matter: Option<FrontMatter> = None;
    for (event, place) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                open = Some((number(level), String::new()))
            }
            Event::End(TagEnd::Heading(_)) if depth == 0 => {
                if let Some((level, title)) = open.take() {
                    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                    headings.push(Heading { level, title, bytes: whole_line(text, place) });
                }
            }
            Event::Start(Tag::MetadataBlock(kind)) => {
                front_matter = Some(FrontMatter::new(match kind {
                    MetadataBlockKind::YamlStyle => ':',
                    MetadataBlockKind::PlusesStyle => '=',
                }));
            }
            Event::End(TagEnd::MetadataBlock(_)) => front_matter = None,
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Table(_)) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Table) => {
                depth = depth.saturating_sub(1)
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(front_matter) = &mut front_matter {
                    front_matter.read(&words, properties);
                } else if let Some((_, title)) = &mut open {
                    title.push_str(&words);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, title)) = &mut open {
                    title.push(' ');
                }
            }
            _ => {}
        }
    }
    headings
}

fn number(level: HeadingLevel) -> u8 {
    level as u8
}

/// The range from the start of its first line, without the line break at its end.
fn whole_line(text: &str, place: Range<usize>) -> Range<usize> {
    let start = text[..place.start].rfind('\n').map_or(0, |at| at + 1);
    start..place.start + text[place].trim_end().len()
}
