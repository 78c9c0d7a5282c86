//! Byte positions as characters and pages.

use crate::document::{CharSpan, PageStart};
use std::ops::Range;

/// Character offsets of chosen byte offsets, found in one pass over the text.
pub struct CharOffsets {
    bytes: Vec<usize>,
    chars: Vec<u32>,
}

impl CharOffsets {
    /// Offsets of the ends of these ranges.
    pub fn of<'a>(text: &str, ranges: impl Iterator<Item = &'a Range<usize>>) -> Self {
        let mut bytes: Vec<usize> = ranges.flat_map(|range| [range.start, range.end]).collect();
        bytes.sort_unstable();
        bytes.dedup();
        let (mut at, mut count) = (0, 0u32);
        let chars = bytes
            .iter()
            .map(|&byte| {
                count += u32::try_from(text[at..byte].chars().count()).unwrap_or(u32::MAX);
                at = byte;
                count
            })
            .collect();
        Self { bytes, chars }
    }

    /// One of the ranges, in characters.
    pub fn span(&self, range: &Range<usize>) -> CharSpan {
        let char_of = |byte: usize| match self.bytes.binary_search(&byte) {
            Ok(at) | Err(at) => self.chars.get(at).copied().unwrap_or_default(),
        };
        CharSpan { from: char_of(range.start), to: char_of(range.end) }
    }
}

/// First and last page of a range. What stands before the first page start counts to the first page.
pub fn pages(starts: &[PageStart], range: &Range<usize>) -> Option<(u32, u32)> {
    let page_at = |byte: usize| {
        let after = starts.partition_point(|start| start.offset <= byte);
        starts.get(after.saturating_sub(1)).map(|start| start.page)
    };
    Some((page_at(range.start)?, page_at(range.end.saturating_sub(1).max(range.start))?))
}
