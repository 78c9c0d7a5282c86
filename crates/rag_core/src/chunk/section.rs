//! From headings to sections.

use super::is_visible;
use crate::document::Heading;
use std::ops::Range;

/// A section to be cut.
#[derive(Debug)]
pub(super) struct Unit {
    /// The heading sections it is made of: where each begins, and its titles from the outermost heading down.
    pub(super) parts: Vec<(usize, Vec<String>)>,
    /// Place in the text, heading lines included.
    pub(super) bytes: Range<usize>,
    /// Where the text after the last of its leading heading lines begins.
    pub(super) body: usize,
}

impl Unit {
    fn new(path: &[(u8, String)], bytes: Range<usize>, body: usize) -> Self {
        Self { parts: vec![(bytes.start, titles(path))], bytes, body }
    }

    /// The titles that all parts touched by a stretch of it have in common, from the outermost down.
    pub(super) fn header_path(&self, stretch: &Range<usize>) -> Vec<String> {
        let first = self.parts.partition_point(|(start, _)| *start <= stretch.start).saturating_sub(1);
        let end = self.parts.partition_point(|(start, _)| *start < stretch.end).max(first + 1);
        let touched = self.parts.get(first..end).unwrap_or_default();
        let Some(((_, path), others)) = touched.split_first() else { return Vec::new() };
        let common = others.iter().map(|(_, other)| shared(path, other)).min().unwrap_or(path.len());
        path[..common].to_vec()
    }
}

/// How many titles two paths begin with in common.
pub(super) fn shared(a: &[String], b: &[String]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The sections of a text: without gap, in order, each with visible text besides its headings unless the
/// document has none at all. Empty for a text with nothing visible.
///
/// Headings that are out of order, overlap, or do not lie on characters are passed over.
pub(super) fn units(text: &str, headings: &[Heading]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut path: Vec<(u8, String)> = Vec::new();
    // Start of the section in the making, and of its text: earlier heading lines without text count to it.
    let mut start = 0;
    let mut body = 0;
    for heading in headings {
        let place = &heading.bytes;
        if place.start < body || place.end < place.start || text.get(place.clone()).is_none() {
            continue;
        }
        if text[body..place.start].contains(is_visible) {
            units.push(Unit::new(&path, start..place.start, body));
            start = place.start;
        }
        body = place.end;
        path.retain(|(level, _)| *level < heading.level);
        path.push((heading.level, heading.title.clone()));
    }
    if text[body..].contains(is_visible) {
        units.push(Unit::new(&path, start..text.len(), body));
    } else if let Some(last) = units.last_mut() {
        last.bytes.end = text.len();
    } else if text.contains(is_visible) {
        units.push(Unit::new(&path, 0..text.len(), text.len()));
    }
    units
}

fn titles(path: &[(u8, String)]) -> Vec<String> {
    path.iter().map(|(_, title)| title.clone()).filter(|title| !title.is_empty()).collect()
}
