//! What HTML elements are to a reader, and what their text is stored as.

use super::super::dom::{Dom, NodeId};
use std::borrow::Cow;

/// Classes of an element.
pub(crate) fn classes(dom: &Dom, id: NodeId) -> impl Iterator<Item = &str> {
    dom.attribute(id, "class").unwrap_or_default().split_ascii_whitespace()
}

/// Whether headings in this element label it instead of opening a section.
pub(crate) fn is_aside(dom: &Dom, id: NodeId, name: &str) -> bool {
    matches!(name, "aside" | "figure" | "details") || classes(dom, id).any(|class| ASIDES.contains(&class))
}

/// Whether an element is no part of what a reader reads.
pub(crate) fn is_left_out(dom: &Dom, id: NodeId, name: &str, without_contents: bool) -> bool {
    if LEFT_OUT.contains(&name) || dom.attribute(id, "hidden").is_some() {
        return true;
    }
    if dom.attribute(id, "aria-hidden") == Some("true") {
        return true;
    }
    if matches!(dom.attribute(id, "role"), Some("navigation" | "search" | "doc-toc")) {
        return true;
    }
    let style = dom.attribute(id, "style").unwrap_or_default();
    if style.contains("none") || style.contains("hidden") {
        let style: String = style.to_ascii_lowercase().split_whitespace().collect();
        if style.contains("display:none") || style.contains("visibility:hidden") {
            return true;
        }
    }
    classes(dom, id).any(|class| NAVIGATION.contains(&class) || (without_contents && class == "toc"))
}

/// Elements without text for a reader.
const LEFT_OUT: &[&str] = &[
    "head", "script", "style", "nav", "template", "noscript", "noframes", "iframe", "object", "embed",
    "applet", "audio", "video", "canvas", "svg", "map", "select", "datalist", "button", "input", "textarea",
    "dialog", "progress", "meter",
];

/// Classes of navigation in DocBook, Sphinx and MediaWiki pages.
const NAVIGATION: &[&str] = &["navheader", "navfooter", "headerlink", "mw-editsection", "sphinxsidebar"];

/// Classes of DocBook's and Sphinx's boxes, whose headings are labels such as "Note".
const ASIDES: &[&str] = &[
    "note",
    "tip",
    "important",
    "warning",
    "caution",
    "admonition",
    "sidebar",
    "example",
    "figure",
    "table",
    "footnotes",
];

/// Whether a link's text is one of the signs that documentation puts beside what can be linked to.
pub(crate) fn is_link_to_itself(text: &str) -> bool {
    matches!(text.trim(), "#" | "¶" | "§" | "🔗")
}

/// Whether an element stands apart from the text before and after it.
pub(crate) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "body"
            | "center"
            | "details"
            | "div"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "html"
            | "legend"
            | "main"
            | "p"
            | "section"
            | "summary"
            | "search"
            | "optgroup"
            | "option"
    )
}

/// Text as it is stored: plain spaces for all that look like one, without soft hyphens, zero-width and
/// control characters.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let is_odd = |c: char| !matches!(c, ' '..='~' | '\n' | '\t') && replacement(c) != Some(c);
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter_map(replacement).collect())
}

fn replacement(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => Some(c),
        '\r' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => None,
        _ if c.is_control() => None,
        _ => Some(c),
    }
}
