//! The best candidates so far.

use crate::Candidate;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Keeps the best `limit` candidates over all blobs.
pub(crate) struct Top {
    limit: usize,
    /// The worst candidate first.
    heap: BinaryHeap<Reverse<Ranked>>,
    threshold: f32,
}

/// Greater the better it is: by estimate, then by the earlier place.
struct Ranked(Candidate);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |ranked: &Ranked| (ranked.0.source, ranked.0.entry);
        self.0.estimate.total_cmp(&other.0.estimate).then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl Top {
    pub(crate) fn new(limit: usize) -> Top {
        let threshold = if limit == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Top { limit, heap: BinaryHeap::with_capacity(limit.min(1 << 16)), threshold }
    }

    /// Only estimates above this get in. Those of absent entries never do.
    #[inline]
    pub(crate) fn threshold(&self) -> f32 {
        self.threshold
    }

    pub(crate) fn push(&mut self, candidate: Candidate) {
        if self.heap.len() >= self.limit {
            self.heap.pop();
        }
        self.heap.push(Reverse(Ranked(candidate)));
        if self.heap.len() == self.limit
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.threshold = worst.0.estimate;
        }
    }

    /// The candidates, best first.
    pub(crate) fn into_candidates(self) -> Vec<Candidate> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(ranked)| ranked.0).collect()
    }
}
