//! The best of several blobs.

use crate::encoder::length;
use crate::layout::BLOCK;
use crate::query::Query;
use crate::scan::scan;
use crate::{Codes, Error};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Asked every few thousand entries. Once it says no, the work ends with [`Error::Interrupted`].
pub type GoesOn = fn() -> bool;

/// Blocks between two questions whether to go on.
const BLOCKS_AT_ONCE: usize = 1024;

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

/// A candidate's estimate [`in_order`], its source and its entry: the lowest estimate first, and of equal ones the last.
type WorstFirst = Reverse<(i32, Reverse<(usize, usize)>)>;

/// The `limit` entries whose vectors seem nearest to the query, best first.
///
/// `accept` is asked, with a blob's place and an entry's, only about entries good enough to get in; those it refuses take
/// no place. Absent entries are never found, and a query without a direction finds nothing.
///
/// # Errors
/// [`Error::Dimension`] for codes of other vectors, [`Error::Interrupted`] once `goes_on` says no.
pub fn nearest(
    codes: &[Codes],
    query: &[f32],
    limit: usize,
    accept: Option<&dyn Fn(usize, usize) -> bool>,
    goes_on: GoesOn,
) -> Result<Vec<Candidate>, Error> {
    let Some(length) = length(query).filter(|_| limit > 0) else { return Ok(Vec::new()) };
    let unit: Vec<f32> = query.iter().map(|value| value / length).collect();
    let mut best: BinaryHeap<WorstFirst> = BinaryHeap::new();
    // Absent entries are not above it.
    let mut threshold = f32::NEG_INFINITY;
    let mut estimates = Vec::with_capacity(BLOCKS_AT_ONCE * BLOCK);
    for (source, codes) in codes.iter().enumerate() {
        if codes.dimension() != unit.len() {
            return Err(Error::Dimension { found: codes.dimension(), expected: unit.len() });
        }
        let relative = Query::new(&unit, &codes.centre(), codes.header());
        let bytes_at_once = BLOCKS_AT_ONCE * codes.header().block_bytes();
        for (part, blocks) in codes.blocks().chunks(bytes_at_once).enumerate() {
            if !goes_on() {
                return Err(Error::Interrupted);
            }
            let first = part * BLOCKS_AT_ONCE * BLOCK;
            scan(&relative, codes.header(), blocks, &mut estimates);
            for (place, estimate) in estimates.iter().enumerate() {
                let entry = first + place;
                if *estimate > threshold && accept.is_none_or(|accept| accept(source, entry)) {
                    best.push(Reverse((in_order(estimate.to_bits() as i32), Reverse((source, entry)))));
                    if best.len() > limit {
                        best.pop();
                    }
                    if let (true, Some(Reverse((worst, _)))) = (best.len() == limit, best.peek()) {
                        threshold = estimate_of(*worst);
                    }
                }
            }
        }
    }
    let candidate = |Reverse((order, Reverse((source, entry))))| Candidate {
        source,
        entry,
        estimate: estimate_of(order),
    };
    Ok(best.into_sorted_vec().into_iter().map(candidate).collect())
}

/// A whole number for the bits of an estimate, in the order of the estimates; and its bits for the number.
fn in_order(bits: i32) -> i32 {
    bits ^ (bits >> 31) & i32::MAX
}

fn estimate_of(order: i32) -> f32 {
    f32::from_bits(in_order(order) as u32)
}
