//! Paragraphs as children of a section.

use super::border::Borders;
use super::cut::{Piece, Reading, Stretch, pieces};
use super::grapheme::visible;
use super::measure::{Limits, Ruler};
use std::ops::Range;

/// The children of a section: its paragraphs, tables, lists and code blocks, each whole where it fits `limits`.
///
/// Headings go with what follows them, the items of a list with blank lines between them stay together, and a
/// paragraph that ends in a colon stays with what it announces, as far as they fit together. What is shorter
/// than `min_size` is joined with what follows, at the section's end with what precedes.
pub(super) fn children(
    reading: &Reading<'_>,
    section: &Range<usize>,
    body: usize,
    min_size: usize,
    limits: Limits,
) -> Vec<Piece> {
    let whole = visible(reading.text, section.clone());
    if whole.is_empty() {
        return Vec::new();
    }
    let text = &reading.text[whole.clone()];
    let ruler = Ruler::of(text, limits.unit, reading.tokenizer);
    let borders = Borders::of(text, reading.language, None);
    let body = body.clamp(whole.start, whole.end) - whole.start;
    let blocks = Blocks { text, ruler, borders, body, min_size, size: limits.size };
    blocks
        .joined()
        .into_iter()
        .flat_map(|block| {
            let bytes = whole.start + block.start..whole.start + block.end;
            let body = (whole.start + body).clamp(bytes.start, bytes.end);
            pieces(reading, &Stretch { bytes, body, header: None }, limits)
        })
        .collect()
}

struct Blocks<'a> {
    text: &'a str,
    ruler: Ruler,
    borders: Borders,
    /// Where the text after the heading lines begins.
    body: usize,
    min_size: usize,
    size: usize,
}

impl Blocks<'_> {
    /// Stretches that part the text without gap.
    fn joined(&self) -> Vec<Range<usize>> {
        let starts = self.borders.blocks();
        let mut found: Vec<Range<usize>> = Vec::new();
        for (index, &start) in starts.iter().enumerate() {
            let start = if index == 0 { 0 } else { start };
            let end = starts.get(index + 1).copied().unwrap_or(self.text.len());
            match found.last_mut() {
                Some(open) if self.belongs(open, start, end) => open.end = end,
                _ => found.push(start..end),
            }
        }
        if found.is_empty() {
            found.push(0..self.text.len());
        }
        self.without_short_end(found)
    }

    /// Whether the block from `start` to `end` goes with the stretch before it.
    fn belongs(&self, open: &Range<usize>, start: usize, end: usize) -> bool {
        if start <= self.body {
            return true;
        }
        if self.ruler.between(open.start, end) > self.size {
            return false;
        }
        let before = self.text[open.clone()].trim_end();
        let last_block = self.borders.blocks()[..].partition_point(|at| *at < start);
        let goes_on =
            last_block.checked_sub(1).is_some_and(|at| self.borders.is_list_item(self.borders.blocks()[at]));
        self.ruler.between(open.start, open.end) < self.min_size
            || before.ends_with(':')
            || (goes_on && self.borders.is_list_item(start))
    }

    /// Joins a last stretch that is too short with the one before it.
    fn without_short_end(&self, mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
        if let [.., before, last] = found.as_mut_slice()
            && self.ruler.between(last.start, last.end) < self.min_size
            && self.ruler.between(before.start, last.end) <= self.size
        {
            before.end = last.end;
            found.pop();
        }
        found
    }
}
