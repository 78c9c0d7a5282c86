//! The method `semantic`: sentences in groups, until what is meant breaks away.
//!
//! Each sentence is embedded together with its neighbours, and a chunk ends where the cosine distance to the next one is
//! above a percentile of all distances of the document (Kamradt, 2023, "5 Levels of Text Splitting"). What embeds is the
//! caller's; here stands what is to be embedded, and what follows from the vectors.

use super::border::Borders;
use super::cut::{Piece, Reading, Stretch, pieces};
use super::grapheme::visible;
use super::measure::{Limits, Ruler};
use super::section::{Unit, units};
use super::{ChunkRequest, Tokenizer};
use crate::document::ParsedDocument;
use std::ops::Range;

/// Sentences on each side that are embedded with one: a sentence alone says too little of what it is about.
const NEIGHBOURS: usize = 1;

/// Most sentences of a document that are compared. A longer one is cut as by `recursive`: there is a vector per sentence.
pub const MAX_SENTENCES: usize = 20_000;

/// A sentence with its neighbours. A table or a block of code counts as one sentence, a heading belongs to what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentenceGroup {
    /// Where the sentence begins in the document's text.
    pub start: usize,
    /// What is to be embedded: sentence and neighbours, as far as the model takes them.
    pub bytes: Range<usize>,
    /// The heading section that it stands in: no two of them are compared.
    section: usize,
}

/// The sentences of a document, in order.
pub fn sentence_groups(
    parsed: &ParsedDocument,
    request: &ChunkRequest<'_>,
    tokenizer: &dyn Tokenizer,
) -> Vec<SentenceGroup> {
    let budget = request.budget;
    let room = budget.max_tokens.saturating_sub(budget.special_tokens + budget.passage_prefix_tokens).max(1);
    let mut groups = Vec::new();
    for (section, unit) in units(&parsed.text, &parsed.headings).iter().enumerate() {
        let sentences = sentences(&parsed.text, request, unit);
        for (index, sentence) in sentences.iter().enumerate() {
            let last = &sentences[(index + NEIGHBOURS).min(sentences.len() - 1)];
            let whole = sentences[index.saturating_sub(NEIGHBOURS)].start..last.end;
            groups.push(SentenceGroup {
                start: sentence.start,
                bytes: fitting(&parsed.text, whole, sentence, room, tokenizer),
                section,
            });
        }
    }
    groups
}

/// The sentences of a section: stretches that part its visible text.
fn sentences(text: &str, request: &ChunkRequest<'_>, unit: &Unit) -> Vec<Range<usize>> {
    let whole = visible(text, unit.bytes.clone());
    if whole.is_empty() {
        return Vec::new();
    }
    let section = &text[whole.clone()];
    let borders = Borders::of(section, request.language, None);
    let body = unit.body.clamp(whole.start, whole.end) - whole.start;
    let kept_whole = |at: usize| {
        let block = borders.blocks().partition_point(|start| *start <= at).checked_sub(1);
        let block = block.map(|index| borders.blocks()[index]);
        block.is_some_and(|block| block < at && borders.is_kept_whole(block))
    };
    // Where the text begins is a start in any case; headings do not stand alone.
    let is_start = |at: &usize| *at > body && !kept_whole(*at) && borders.headed_by(*at).is_none();
    let starts = std::iter::once(0).chain(borders.sentences().iter().copied().filter(is_start));
    let mut starts: Vec<usize> = starts.collect();
    starts.dedup();
    starts.push(section.len());
    starts.windows(2).map(|pair| whole.start + pair[0]..whole.start + pair[1]).collect()
}

/// Sentence and neighbours if the model takes them, else the sentence, else its beginning.
fn fitting(
    text: &str,
    whole: Range<usize>,
    sentence: &Range<usize>,
    room: usize,
    tokenizer: &dyn Tokenizer,
) -> Range<usize> {
    for range in [&whole, sentence] {
        let range = visible(text, range.clone());
        if tokenizer.count(&text[range.clone()]) <= room {
            return range;
        }
    }
    let mut range = visible(text, sentence.clone());
    let mut tokens = room;
    while tokenizer.count(&text[range.clone()]) > room && tokens > 0 {
        let spans = tokenizer.token_spans(&text[range.clone()]);
        let end = spans.get(tokens - 1).map_or(range.len(), |span| span.end);
        range.end = range.start + text[range.clone()].floor_char_boundary(end);
        tokens = tokens.saturating_sub(1);
    }
    range
}

/// Where chunks begin, from the vectors of the groups, which have length 1: in order, without the starts of sections.
///
/// A chunk begins where the distance to the sentence before is greater than the percentile of all distances, which is
/// interpolated as numpy does. Equal distances everywhere give no break.
pub fn breaks(groups: &[SentenceGroup], vectors: &[Vec<f32>], percentile: u32) -> Vec<usize> {
    let cosine =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let neighbours = groups.windows(2).zip(vectors.windows(2));
    let distances: Vec<(usize, f64)> = neighbours
        .filter(|(groups, _)| groups[0].section == groups[1].section)
        .map(|(groups, vectors)| (groups[1].start, 1.0 - cosine(&vectors[0], &vectors[1])))
        .collect();
    let mut sorted: Vec<f64> = distances.iter().map(|(_, distance)| *distance).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(threshold) = percentile_of(&sorted, percentile) else { return Vec::new() };
    distances.into_iter().filter(|(_, distance)| *distance > threshold).map(|(start, _)| start).collect()
}

fn percentile_of(sorted: &[f64], percentile: u32) -> Option<f64> {
    let place = f64::from(percentile) / 100.0 * sorted.len().checked_sub(1)? as f64;
    let (below, share) = (place.floor() as usize, place.fract());
    let low = *sorted.get(below)?;
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    Some(low + (high - low) * share)
}

/// The children of a section: what stands between breaks, joined where it is shorter than `min_size` and fits `limits`
/// together, cut where it is longer.
pub(super) fn children(
    reading: &Reading<'_>,
    unit: &Unit,
    breaks: &[usize],
    min_size: usize,
    limits: Limits,
) -> Vec<Piece> {
    let whole = visible(reading.text, unit.bytes.clone());
    let ruler = Ruler::of(&reading.text[whole.clone()], limits.unit, reading.tokenizer);
    let length = |range: &Range<usize>| ruler.between(range.start - whole.start, range.end - whole.start);
    let inner = breaks.iter().copied().filter(|at| *at > whole.start.max(unit.body) && *at < whole.end);
    let mut stretches: Vec<Range<usize>> = Vec::new();
    let mut start = whole.start;
    for end in inner.chain([whole.end]) {
        let next = start..end;
        start = end;
        match stretches.last_mut() {
            Some(open) if length(open) < min_size && length(&(open.start..end)) <= limits.size => {
                open.end = end
            }
            _ => stretches.push(next),
        }
    }
    if let [.., before, last] = stretches.as_mut_slice()
        && length(last) < min_size
        && length(&(before.start..last.end)) <= limits.size
    {
        before.end = last.end;
        stretches.pop();
    }
    let cut = |bytes: Range<usize>| {
        let body = unit.body.clamp(bytes.start, bytes.end);
        pieces(reading, &Stretch { bytes, body, header: None }, limits)
    };
    stretches.into_iter().flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(start: usize, section: usize) -> SentenceGroup {
        SentenceGroup { start, bytes: start..start + 1, section }
    }

    /// A vector of length 1 at so many degrees.
    fn at(degrees: f32) -> Vec<f32> {
        let (sin, cos) = degrees.to_radians().sin_cos();
        vec![cos, sin]
    }

    #[test]
    fn a_break_is_where_the_distance_is_above_the_percentile() {
        let check = |degrees: &[f32], percentile: u32, expected: &[usize]| {
            let groups: Vec<SentenceGroup> = (0..degrees.len()).map(|n| group(n * 10, 0)).collect();
            let vectors: Vec<Vec<f32>> = degrees.iter().copied().map(at).collect();
            assert_eq!(breaks(&groups, &vectors, percentile), expected, "{degrees:?}");
        };
        check(&[0.0, 5.0, 10.0, 80.0, 85.0, 90.0], 95, &[30]);
        check(&[0.0, 5.0, 60.0, 65.0, 130.0, 135.0], 50, &[20, 40]);
        check(&[0.0, 0.0, 0.0], 95, &[]);
        check(&[0.0], 95, &[]);
        check(&[], 95, &[]);
    }

    #[test]
    fn sections_are_not_compared() {
        let groups = [group(0, 0), group(10, 0), group(20, 1), group(30, 1), group(40, 1)];
        let vectors = [0.0, 2.0, 90.0, 92.0, 98.0].map(at);
        assert_eq!(breaks(&groups, &vectors, 95), [40]);
    }

    #[test]
    fn percentiles_are_those_of_numpy() {
        let numbers = [1.0, 2.0, 4.0, 8.0];
        for (percentile, expected) in [(1, 1.03), (50, 3.0), (95, 7.4), (99, 7.88)] {
            let found = percentile_of(&numbers, percentile);
            assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{percentile}: {found:?}");
        }
        assert_eq!(percentile_of(&[], 95), None);
    }
}
