//! AsciiDoc: kept as it came; its headings and the title are read.

use crate::properties::{AUTHOR, Properties, TITLE};
use rag_core::document::{Heading, ParsedDocument};

/// Lines that begin and end blocks in which nothing is a heading.
const FENCES: &[&str] = &["----", "....", "====", "++++", "____", "****", "////", "|===", "```", "--"];

/// Most lines ahead of the title of what is told by content.
const MAX_LINES_BEFORE: usize = 50;

/// A document with its headings: lines of one to six `=` and a title, outside of blocks.
///
/// The title is that of level 1; an author's line below it is metadata.
pub(crate) fn parse(text: &str, media_type: String, mut properties: Properties) -> ParsedDocument {
    let mut headings: Vec<Heading> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut start = 0;
    let mut after_title = false;
    for line in text.split_inclusive('\n') {
        let place = start..start + line.trim_end().len();
        start += line.len();
        let line = line.trim_end();
        match fence {
            Some(open) if open == line => fence = None,
            Some(_) => {}
            None if is_fence(line) => fence = Some(line),
            None => {
                if let Some((level, title)) = heading(line) {
                    after_title = headings.is_empty() && level == 1;
                    if after_title {
                        properties.set(TITLE, title);
                    }
                    headings.push(Heading { level, title: title.to_owned(), bytes: place });
                    continue;
                }
                // The line below the title: `Ada Lovelace <ada@example.org>`.
                if std::mem::take(&mut after_title) && line.ends_with('>') && line.contains('<') {
                    properties.add(AUTHOR, line);
                }
            }
        }
    }
    ParsedDocument {
        media_type,
        title: properties.text(TITLE).map(str::to_owned),
        text: text.to_owned(),
        headings,
        pages: Vec::new(),
        metadata_json: properties.into_json(),
    }
}

/// Whether a text begins as a document does: with its title, ahead of which only attributes, comments and anchors
/// may stand.
pub(crate) fn is_document(text: &str) -> bool {
    for line in text.lines().take(MAX_LINES_BEFORE) {
        let line = line.trim_end();
        if let Some((level, _)) = heading(line) {
            // Pages of wikis close their headings.
            return level == 1 && !line.ends_with('=');
        }
        let may_stand = line.is_empty()
            || line.starts_with("//")
            || (line.starts_with(':') && line[1..].contains(':'))
            || (line.starts_with('[') && line.ends_with(']'));
        if !may_stand {
            return false;
        }
    }
    false
}

fn is_fence(line: &str) -> bool {
    FENCES.iter().any(|fence| {
        line == *fence
            || (fence.len() == 4
                && line.starts_with(fence)
                && line.bytes().all(|byte| byte == fence.as_bytes()[0]))
    })
}

/// Level and title of a heading.
fn heading(line: &str) -> Option<(u8, &str)> {
    let title = line.trim_start_matches('=');
    let level = line.len() - title.len();
    let title = title.strip_prefix([' ', '\t'])?.trim();
    // A title may be closed as it was opened.
    let title = title.strip_suffix(&line[..level]).map_or(title, str::trim_end);
    ((1..=6).contains(&level) && !title.is_empty()).then_some((level as u8, title))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{DocumentContent, detect, parse};

    #[test]
    fn headings_are_found_where_they_are_and_the_text_is_kept() {
        let text = "// comment\n:toc:\n\n= A Title\nAda Lovelace <ada@example.org>\n\n== Part ==\n\n----\n== code\n----\n\n=== Deeper\n====\n= example\n====\n=none\n";
        assert_eq!(detect(text.as_bytes()), "text/asciidoc");
        let parsed = parse(DocumentContent::Text(text), None).unwrap();
        let found: Vec<(u8, &str, &str)> = parsed
            .headings
            .iter()
            .map(|heading| (heading.level, heading.title.as_str(), &text[heading.bytes.clone()]))
            .collect();
        assert_eq!(
            found,
            [(1, "A Title", "= A Title"), (2, "Part", "== Part =="), (3, "Deeper", "=== Deeper")]
        );
        assert_eq!((parsed.text.as_str(), parsed.title.as_deref()), (text, Some("A Title")));
        assert!(parsed.metadata_json.contains("Ada Lovelace"));
    }

    #[test]
    fn other_text_is_not_taken_for_it() {
        for text in ["x = 1\n= 2\n", "= Wiki =\ntext", "[section]\nkey = value\n", "=", "== Part\n", ""] {
            assert_eq!(detect(text.as_bytes()), "text/plain", "{text}");
        }
    }
}
