//! The best of several blobs.

use crate::encoder::length;
use crate::fine::FineQuery;
use crate::layout::BLOCK;
use crate::query::Query;
use crate::reach::reach_of_first;
use crate::scan::{above, scan};
use crate::{Codes, Error};
use std::cmp::Ordering;

/// Asked every few thousand entries. Once it says no, the work ends with [`Error::Interrupted`].
pub type GoesOn = fn() -> bool;

/// Blocks between two questions whether to go on.
const BLOCKS_AT_ONCE: usize = 1024;

/// Candidates by one bit that are kept beyond the nearest that are wanted: so many, or one of so many entries if that is more. The
/// more entries there are, the more of them one bit takes to be nearer than the nearest.
const FEWEST_SPARE: usize = 4000;
const SPARE_SHARE: usize = 250;

/// Fewest of them that are estimated by four bits.
const FEWEST_ESTIMATED: usize = 400;

/// As many are looked for at least: the first few say too little of how far off the estimates are.
const FEWEST_WANTED: usize = 50;

/// An entry that may be among the nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The place of its blob among those that were searched.
    pub source: usize,
    /// Its place in the blob.
    pub entry: usize,
    /// About the cosine of its vector with the query.
    pub estimate: f32,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// Those that may be among the nearest as many as were wanted, best first, and so usually some more.
    pub candidates: Vec<Candidate>,
    /// Whether these are all that there are.
    pub is_all: bool,
}

/// The entries that may be among the `limit` nearest to the query.
///
/// `accept` is asked, with a blob's place and an entry's, only about entries good enough to get in; those it refuses take
/// no place. Absent entries are never found, and a query without a direction finds nothing.
///
/// One bit per dimension finds some thousands, and the four bits of the first ones tell how many of them are worth
/// estimating by these: see [`reach_of_first`].
///
/// # Errors
/// [`Error::Dimension`] for codes of other vectors, [`Error::Interrupted`] once `goes_on` says no.
pub fn nearest(
    codes: &[Codes],
    query: &[f32],
    limit: usize,
    accept: Option<&dyn Fn(usize, usize) -> bool>,
    goes_on: GoesOn,
) -> Result<Nearest, Error> {
    let nothing = Nearest { candidates: Vec::new(), is_all: true };
    let Some(length) = length(query).filter(|_| limit > 0) else { return Ok(nothing) };
    let unit: Vec<f32> = query.iter().map(|value| value / length).collect();
    let entries: usize = codes.iter().map(Codes::len).sum();
    let most = limit.saturating_add(FEWEST_SPARE.max(entries / SPARE_SHARE));
    let mut candidates = by_one_bit(codes, &unit, most, accept, goes_on)?;
    let is_all = candidates.len() < most;

    let estimates = Estimates::new(codes, &unit);
    let first = candidates.len().min(FEWEST_ESTIMATED.max(limit.saturating_mul(2)));
    let cosines: Vec<Option<f32>> = candidates[..first].iter().map(|c| Some(estimates.of(c))).collect();
    let reach = reach_of_first(&candidates, &cosines, limit.max(FEWEST_WANTED));
    let is_all = is_all && reach == candidates.len();
    candidates.truncate(reach);
    for (place, candidate) in candidates.iter_mut().enumerate() {
        let known = cosines.get(place).copied().flatten();
        candidate.estimate = known.unwrap_or_else(|| estimates.of(candidate));
    }
    candidates.sort_unstable_by(in_order);
    Ok(Nearest { candidates, is_all })
}

/// The estimates by four bits.
struct Estimates<'a> {
    codes: &'a [Codes],
    query: FineQuery,
    /// The query's product with the centre of each.
    bases: Vec<f32>,
}

impl<'a> Estimates<'a> {
    fn new(codes: &'a [Codes], unit: &[f32]) -> Self {
        let base =
            |codes: &Codes| codes.centre().iter().zip(unit).map(|(centre, value)| centre * value).sum();
        Self { codes, query: FineQuery::new(unit), bases: codes.iter().map(base).collect() }
    }

    fn of(&self, candidate: &Candidate) -> f32 {
        self.query.cosine(self.codes[candidate.source].row(candidate.entry), self.bases[candidate.source])
    }
}

/// The `limit` entries whose vectors seem nearest by one bit per dimension, best first.
fn by_one_bit(
    codes: &[Codes],
    unit: &[f32],
    limit: usize,
    accept: Option<&dyn Fn(usize, usize) -> bool>,
    goes_on: GoesOn,
) -> Result<Vec<Candidate>, Error> {
    let mut best = Best::new(limit);
    let mut estimates = Vec::with_capacity(BLOCKS_AT_ONCE);
    let mut places = vec![0; BLOCKS_AT_ONCE * BLOCK];
    for (source, codes) in codes.iter().enumerate() {
        if codes.dimension() != unit.len() {
            return Err(Error::Dimension { found: codes.dimension(), expected: unit.len() });
        }
        let relative = Query::new(unit, &codes.centre(), codes.header());
        let bytes_at_once = BLOCKS_AT_ONCE * codes.header().block_bytes();
        for (part, blocks) in codes.blocks().chunks(bytes_at_once).enumerate() {
            if !goes_on() {
                return Err(Error::Interrupted);
            }
            let first = part * BLOCKS_AT_ONCE * BLOCK;
            scan(&relative, codes.header(), blocks, &mut estimates);
            let count = above(&estimates, best.threshold, &mut places);
            for place in &places[..count] {
                let (entry, estimate) = (first + place, estimates.as_flattened()[*place]);
                // Those before it may have raised the threshold.
                if estimate > best.threshold && accept.is_none_or(|accept| accept(source, entry)) {
                    best.push(Candidate { source, entry, estimate });
                }
            }
        }
    }
    Ok(best.into_sorted())
}

/// Those that may be among the best `limit`, twice as many at most: then the worse ones are dropped, all at once.
struct Best {
    limit: usize,
    kept: Vec<Candidate>,
    /// What is not above it is not among them. Absent entries are not above the first.
    threshold: f32,
}

impl Best {
    fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::new(), threshold: f32::NEG_INFINITY }
    }

    /// Takes one that comes after all others: of equal estimates the first ones stay.
    fn push(&mut self, candidate: Candidate) {
        self.kept.push(candidate);
        if self.kept.len() == self.limit.saturating_mul(2) {
            self.drop_worst();
        }
    }

    fn drop_worst(&mut self) {
        let mut estimates: Vec<f32> = self.kept.iter().map(|candidate| candidate.estimate).collect();
        let (better, last, _) = estimates.select_nth_unstable_by(self.limit - 1, |a, b| b.total_cmp(a));
        let last = *last;
        let mut equal = 1 + better.iter().filter(|estimate| estimate.total_cmp(&last).is_eq()).count();
        let mut stay = 0;
        for place in 0..self.kept.len() {
            let candidate = self.kept[place];
            let order = candidate.estimate.total_cmp(&last);
            // Whether one stays is anyone's guess, also the processor's: so there is no branch.
            let is_first_equal = order.is_eq() & (equal > 0);
            equal -= usize::from(is_first_equal);
            self.kept[stay] = candidate;
            stay += usize::from(order.is_gt() | is_first_equal);
        }
        self.kept.truncate(stay);
        self.threshold = last;
    }

    fn into_sorted(mut self) -> Vec<Candidate> {
        if self.kept.len() > self.limit {
            self.drop_worst();
        }
        self.kept.sort_unstable_by(in_order);
        self.kept
    }
}

/// The higher estimate first, and of equal ones the first entry.
fn in_order(a: &Candidate, b: &Candidate) -> Ordering {
    b.estimate.total_cmp(&a.estimate).then((a.source, a.entry).cmp(&(b.source, b.entry)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_the_first_of_all_in_order(steps in prop::collection::vec(-9_i8..9, 0..300), limit in 1_usize..40) {
            let candidate = |(entry, step): (usize, &i8)| {
                Candidate { source: entry / 100, entry: entry % 100, estimate: f32::from(*step) }
            };
            let mut all: Vec<Candidate> = steps.iter().enumerate().map(candidate).collect();
            let mut best = Best::new(limit);
            for candidate in &all {
                if candidate.estimate > best.threshold {
                    best.push(*candidate);
                }
            }
            all.sort_by(in_order);
            all.truncate(limit);
            prop_assert_eq!(best.into_sorted(), all);
        }
    }
}
