//! Links, images and definitions of references in Markdown.

use crate::answer::code;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Most bytes of a link's target.
const MAX_TARGET: usize = 8_192;

/// What defines a reference, at the beginning of a line.
static DEFINITION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^([\s>*+-]*\[[^\]\n]*\]):").ok());

/// A text whose links and images are their text, outside of code. A number in brackets keeps these.
pub(super) fn without_links(text: &str) -> String {
    let spans = code::spans(text);
    let bytes = text.as_bytes();
    // What goes, and what comes in its place.
    let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut code = spans.iter().peekable();
    let mut at = 0;
    while at < bytes.len() {
        while code.next_if(|span| span.end <= at).is_some() {}
        if let Some(span) = code.peek().filter(|span| span.start <= at) {
            at = span.end;
            continue;
        }
        match bytes[at] {
            b'[' => {
                if at > 0 && bytes[at - 1] == b'!' {
                    edits.push((at - 1..at, ""));
                }
                open.push(at);
            }
            b']' => {
                let start = open.pop();
                match bytes.get(at + 1) {
                    Some(b'(') => {
                        let target = target(&text[at + 1..]);
                        match (start, target) {
                            (Some(start), Some(length)) => {
                                let is_number =
                                    bytes[start + 1..at].iter().all(u8::is_ascii_digit) && start + 1 < at;
                                if is_number {
                                    edits.push((at + 1..at + 1 + length, ""));
                                } else {
                                    edits.push((start..start + 1, ""));
                                    edits.push((at..at + 1 + length, ""));
                                }
                                at += length;
                            }
                            _ => edits.push((at + 1..at + 1, " ")),
                        }
                    }
                    Some(b':') => edits.push((at + 1..at + 1, " ")),
                    _ => {}
                }
            }
            _ => {}
        }
        at += 1;
    }
    if edits.is_empty() {
        return text.to_owned();
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut shown = String::with_capacity(text.len());
    let mut last = 0;
    for (range, with) in edits {
        shown.push_str(&text[last..range.start]);
        shown.push_str(with);
        last = range.end;
    }
    shown.push_str(&text[last..]);
    // What stood apart may have come together.
    if shown == text || shown.len() > text.len() { shown } else { without_links(&shown) }
}

/// The length of a target in parentheses that begins here; None where it does not end.
fn target(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().take(MAX_TARGET) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'\n' if text.as_bytes().get(at + 1) == Some(&b'\n') => return None,
            _ => {}
        }
    }
    None
}

/// Code in which nothing is a link, even to a renderer that takes it for none.
pub(super) fn broken(code: &str) -> String {
    let code = code.replace("](", "] (");
    match DEFINITION.as_ref() {
        Some(definition) => definition.replace_all(&code, "$1 :").into_owned(),
        None => code,
    }
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&DEFINITION);
}
