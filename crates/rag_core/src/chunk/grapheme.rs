//! Borders of graphemes, and what of a text can be seen.

use super::is_visible;
use std::ops::Range;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// The range without invisible graphemes at its ends.
pub(super) fn visible(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let start = range.start + invisible_length(slice);
    let rest = &text[start..range.end];
    let mut end = range.end;
    for grapheme in rest.graphemes(true).rev().take_while(|grapheme| !grapheme.contains(is_visible)) {
        end -= grapheme.len();
    }
    start..end.max(start)
}

/// Bytes that are looked at around a place. A grapheme or a run of flags that is longer may be cut, for else a text
/// that is one of these would be read through again for each piece.
const REACH: usize = 1024;

/// Bytes of the invisible graphemes that a text begins with.
pub(super) fn invisible_length(text: &str) -> usize {
    let mut length = 0;
    while length < text.len() {
        let end = text.floor_char_boundary(length + REACH);
        let part = &text[length..end];
        let invisible: usize =
            part.graphemes(true).take_while(|grapheme| !grapheme.contains(is_visible)).map(str::len).sum();
        length += invisible;
        if invisible < part.len() {
            break;
        }
    }
    length
}

/// The grapheme that begins at a code point border; empty at the end.
pub(super) fn grapheme_at(text: &str, start: usize) -> &str {
    text[start..text.floor_char_boundary(start + REACH)].graphemes(true).next().unwrap_or_default()
}

/// Whether a byte offset lies between two graphemes.
pub(super) fn is_grapheme_border(text: &str, at: usize) -> bool {
    if !text.is_char_boundary(at) {
        return false;
    }
    let (from, near) = around(text, at);
    GraphemeCursor::new(at - from, near.len(), true).is_boundary(near, 0).unwrap_or(false)
}

/// The last grapheme border up to `at`.
pub(super) fn grapheme_floor(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    if is_grapheme_border(text, at) {
        return at;
    }
    let (from, near) = around(text, at);
    let before = GraphemeCursor::new(at - from, near.len(), true).prev_boundary(near, 0);
    from + before.ok().flatten().unwrap_or(0)
}

/// The text near a place, and where it begins.
fn around(text: &str, at: usize) -> (usize, &str) {
    let from = text.floor_char_boundary(at.saturating_sub(REACH));
    (from, &text[from..text.floor_char_boundary(at + REACH)])
}

/// The first code point border from `at`.
pub(super) fn ceil_char(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at.min(text.len()))
}
