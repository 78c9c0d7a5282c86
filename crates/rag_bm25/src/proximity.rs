//! What the best entries gain by words of the query that stand together in them as they do in the query.
//!
//! A pair of words counts like a term: by how often an entry has it, in relation to its length, and by how rare it is. How
//! rare is told by the best entries alone. That is as good as what all entries would tell, which costs reading them, and
//! better where all of the best have the pair, for then it tells nothing.

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

use crate::Error;
use crate::index::TEXT;
use crate::phrase::keep_common;
use crate::plan::Plan;
use crate::query::Pair;
use crate::top::Ranked;
use crate::weight::inverse_frequency;

/// How many of the best entries are looked at.
pub(crate) const HEAD: usize = 100;

/// What a pair counts against a term. On average over five test collections 0.1 to 0.5 are all better than none, and 0.3 and
/// 0.5 do not differ; on chunks of SciFact 0.5 is better.
const SHARE: f32 = 0.5;

/// Adds to the first hits what their pairs count, and puts them in their new order. Hits are best first.
///
/// Costs a look at the positions of each term of a pair in each segment that has one of these hits.
pub(crate) fn reward(plan: &Plan<'_>, hits: &mut [Ranked]) -> Result<(), Error> {
    let head = hits.len().min(HEAD);
    let head = &mut hits[..head];
    let pairs = &plan.query.pairs;
    if pairs.is_empty() || head.is_empty() {
        return Ok(());
    }
    // How often each hit has each pair.
    let mut counts = vec![0; head.len() * pairs.len()];
    let mut by_place: Vec<usize> = (0..head.len()).collect();
    by_place.sort_unstable_by_key(|hit| (head[*hit].segment, head[*hit].entry));
    for same in by_place.chunk_by(|a, b| head[*a].segment == head[*b].segment) {
        plan.check()?;
        count(plan, head, same, &mut counts)?;
    }
    for pair in 0..pairs.len() {
        let of_pair = |hit: usize| counts[hit * pairs.len() + pair];
        let having = (0..head.len()).filter(|hit| of_pair(*hit) > 0).count() as u64;
        if having == 0 {
            continue;
        }
        let weight = plan.norms.weight(TEXT, SHARE * inverse_frequency(head.len() as u64, having), 1);
        for (at, hit) in head.iter_mut().enumerate().filter(|(at, _)| of_pair(*at) > 0) {
            let norm = plan.segments[hit.segment].field(TEXT).norms.fieldnorm_id(hit.entry);
            hit.points += weight.points(norm, of_pair(at));
        }
    }
    head.sort_by(|a, b| b.cmp(a));
    Ok(())
}

/// Counts the pairs in hits of one segment, which are given by their places in `head`, in the order of their entries.
fn count(plan: &Plan<'_>, head: &[Ranked], hits: &[usize], counts: &mut [u32]) -> Result<(), Error> {
    let Some(segment) = hits.first().map(|hit| head[*hit].segment) else { return Ok(()) };
    let pairs = &plan.query.pairs;
    let mut readers: Vec<Option<SegmentPostings>> = Vec::new();
    readers.resize_with(plan.query.terms.len(), || None);
    let is_found =
        |term: usize| plan.found_in(segment).iter().any(|found| found.term == term && found.field == TEXT);
    let possible: Vec<(usize, &Pair)> =
        pairs.iter().enumerate().filter(|(_, pair)| pair.terms.iter().all(|term| is_found(*term))).collect();
    let index = &plan.segments[segment].field(TEXT).index;
    for found in plan.found_in(segment).iter().filter(|found| found.field == TEXT) {
        if possible.iter().any(|(_, pair)| pair.terms.contains(&found.term)) {
            let option = IndexRecordOption::WithFreqsAndPositions;
            readers[found.term] = Some(index.read_postings_from_terminfo(&found.info, option)?);
        }
    }
    let mut positions: Vec<Vec<u32>> = vec![Vec::new(); readers.len()];
    for hit in hits {
        let entry = head[*hit].entry;
        for (reader, positions) in readers.iter_mut().zip(&mut positions) {
            positions.clear();
            if let Some(reader) = reader
                && is_at(reader, entry)
            {
                reader.append_positions_with_offset(0, positions);
            }
        }
        for (pair, Pair { terms: [first, second], distance }) in &possible {
            if positions[*first].is_empty() || positions[*second].is_empty() {
                continue;
            }
            let mut places: Vec<u32> =
                positions[*second].iter().filter_map(|at| at.checked_sub(*distance)).collect();
            keep_common(&mut places, &positions[*first]);
            counts[hit * pairs.len() + pair] = places.len() as u32;
        }
    }
    Ok(())
}

/// Whether a list has an entry. Entries must be asked for in rising order.
fn is_at(postings: &mut SegmentPostings, entry: u32) -> bool {
    let doc = postings.doc();
    let doc = if doc < entry && doc != TERMINATED { postings.seek(entry) } else { doc };
    doc == entry
}
