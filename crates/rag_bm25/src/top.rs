//! The best hits so far.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::weight::{Points, points_below, score_of};

/// Keeps the best `limit` hits over all segments, so that what one segment gave lets the next skip.
pub(crate) struct Top<'a> {
    limit: usize,
    accept: Option<&'a dyn Fn(u128) -> bool>,
    /// The worst hit first.
    heap: BinaryHeap<Reverse<Ranked>>,
    threshold: Points,
}

/// An entry with its points, greater the better it is: by score, then by smaller id.
#[derive(Clone, Copy)]
pub(crate) struct Ranked {
    pub(crate) points: Points,
    pub(crate) id: u128,
    pub(crate) segment: usize,
    /// Its number in the segment.
    pub(crate) entry: u32,
}

impl Ranked {
    pub(crate) fn score(&self) -> f32 {
        score_of(self.points)
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        // Scores are never negative, so their bits rise with them.
        self.score().to_bits().cmp(&other.score().to_bits()).then(other.id.cmp(&self.id))
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

impl<'a> Top<'a> {
    pub(crate) fn new(limit: usize, accept: Option<&'a dyn Fn(u128) -> bool>) -> Top<'a> {
        Top { limit, accept, heap: BinaryHeap::new(), threshold: if limit == 0 { Points::MAX } else { 0 } }
    }

    /// Entries with fewer points cannot get in.
    #[inline]
    pub(crate) fn threshold(&self) -> Points {
        self.threshold
    }

    /// Takes an entry in if it is among the best and accepted.
    pub(crate) fn offer(&mut self, candidate: Ranked) {
        let is_full = self.heap.len() >= self.limit;
        if is_full && self.heap.peek().is_none_or(|worst| candidate <= worst.0) {
            return;
        }
        if self.accept.is_some_and(|accept| !accept(candidate.id)) {
            return;
        }
        if is_full {
            self.heap.pop();
        }
        self.heap.push(Reverse(candidate));
        if self.heap.len() == self.limit
            && let Some(worst) = self.heap.peek()
        {
            self.threshold = points_below(worst.0.score());
        }
    }

    /// Whether hits may have been turned away because there were enough better ones.
    pub(crate) fn is_full(&self) -> bool {
        self.heap.len() >= self.limit
    }

    /// The hits, best first.
    pub(crate) fn into_hits(self) -> Vec<Ranked> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(hit)| hit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statistics;
    use crate::weight::Norms;

    fn points(score: f32) -> Points {
        (f64::from(score) * 4_294_967_296.0) as Points
    }

    fn offer(top: &mut Top<'_>, points: Points, id: u128) {
        top.offer(Ranked { points, id, segment: 0, entry: 0 });
    }

    fn ids(top: Top<'_>) -> Vec<u128> {
        top.into_hits().iter().map(|hit| hit.id).collect()
    }

    #[test]
    fn equal_scores_keep_the_smaller_id_first_whatever_the_order_of_arrival() {
        for order in [[5, 3, 9, 1], [1, 3, 5, 9], [9, 5, 3, 1]] {
            let mut top = Top::new(2, None);
            order.iter().for_each(|id| offer(&mut top, points(1.5), *id));
            assert_eq!(ids(top), [1, 3]);
        }
    }

    #[test]
    fn an_entry_as_good_as_the_worst_is_not_below_the_threshold() {
        let statistics = Statistics { documents: 1000, title_tokens: 5_000, text_tokens: 77_000 };
        let norms = Norms::new(&statistics);
        for frequency in 1..500 {
            let weight = norms.weight(0, norms.inverse_frequency(frequency), 1);
            let points = weight.points(40, frequency as u32);
            let mut top = Top::new(1, None);
            offer(&mut top, points, 7);
            assert!(top.threshold() <= points);
            assert!(top.threshold() as f64 > points as f64 * 0.999_999);
            offer(&mut top, points, 3);
            assert_eq!(ids(top), [3]);
        }
    }

    #[test]
    fn hits_that_are_not_accepted_take_no_place() {
        let accept = |id: u128| id.is_multiple_of(2);
        let mut top = Top::new(2, Some(&accept));
        for id in 0..10 {
            offer(&mut top, points(1.0 + id as f32), id);
        }
        assert_eq!(ids(top), [8, 6]);
    }

    #[test]
    fn no_places_take_no_hits() {
        let mut top = Top::new(0, None);
        offer(&mut top, points(1.0), 1);
        assert!(top.is_full());
        assert!(ids(top).is_empty());
    }
}
