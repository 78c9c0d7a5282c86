//! Merging ranked lists of different scorers into one.
//!
//! Which retrievers are asked, and how many hits each gives, is decided by the caller.

use std::collections::HashMap;

/// One hit of a scorer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// The hit, as the bits of its uuid.
    pub id: u128,
    /// Higher is better; comparable within one list only.
    pub score: f32,
}

/// Merges ranked lists by reciprocal rank: a hit at rank `r` adds `weight / (k + r)` to its score.
///
/// A list is taken in the order it comes in; ranks start at 1, and the scores in it are not looked at. A hit
/// missing from a list gains nothing from it, so lists may differ in length and in scorer; an id that stands
/// in a list twice counts at its better place. A weight that is negative or not finite counts as 0: the
/// list's hits stay, with what other lists give them. `k` that is negative or not finite counts as
/// [`RRF_K`]. Falling order; equal scores keep the smaller id first, so paging is stable.
///
/// Source: Cormack, Clarke and Büttcher, SIGIR 2009.
pub fn rrf(lists: &[(&[Ranked], f32)], k: f32) -> Vec<Ranked> {
    let k = if k.is_finite() && k >= 0.0 { f64::from(k) } else { f64::from(RRF_K) };
    let mut sums = Sums::default();
    for (list, weight) in lists {
        let weight = usable(*weight);
        let mut rank = 0.0;
        sums.next_list();
        for hit in *list {
            rank += 1.0;
            sums.add(hit.id, weight / (k + rank));
        }
    }
    sums.ranked()
}

/// The constant of [`rrf`] in its paper.
pub const RRF_K: f32 = 60.0;

/// Merges lists by scores scaled to 0–1 per list (min–max) and added by weight.
///
/// The best hit of a list gets 1 and the worst 0; a list of one hit, or of equal scores, gives 1 to all. A
/// hit missing from a list gets 0 from it. Weights are used as they are: if they add up to 1, so do the
/// results at most. A score that is NaN or −∞ counts as the list's worst finite one, +∞ as its best; a weight
/// that is negative or not finite counts as 0. An id that stands in a list twice counts with its better
/// score. Falling order; equal scores keep the smaller id first.
///
/// Source: Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023 (convex
/// combination with min–max scaling).
pub fn weighted_min_max(lists: &[(&[Ranked], f32)]) -> Vec<Ranked> {
    let mut sums = Sums::default();
    for (list, weight) in lists {
        let weight = usable(*weight);
        let finite = || list.iter().map(|hit| f64::from(hit.score)).filter(|score| score.is_finite());
        let lowest = finite().fold(f64::INFINITY, f64::min);
        let highest = finite().fold(f64::NEG_INFINITY, f64::max);
        let scaled = |score: f64| {
            if score == f64::INFINITY {
                1.0
            } else if highest <= lowest {
                // All finite scores are equal, or there are none at all.
                if score.is_finite() || lowest == f64::INFINITY { 1.0 } else { 0.0 }
            } else if score.is_finite() {
                (score - lowest) / (highest - lowest)
            } else {
                0.0
            }
        };
        let mut best_first: Vec<&Ranked> = list.iter().collect();
        best_first.sort_by(|a, b| scaled(f64::from(b.score)).total_cmp(&scaled(f64::from(a.score))));
        sums.next_list();
        for hit in best_first {
            sums.add(hit.id, weight * scaled(f64::from(hit.score)));
        }
    }
    sums.ranked()
}

fn usable(weight: f32) -> f64 {
    if weight.is_finite() { f64::from(weight.max(0.0)) } else { 0.0 }
}

/// What each id has gathered. Added in doubles, so that the order of the lists does not show in the result.
#[derive(Default)]
struct Sums {
    /// Sum, and the last list that added to it.
    of: HashMap<u128, (f64, usize)>,
    list: usize,
}

impl Sums {
    fn next_list(&mut self) {
        self.list += 1;
    }

    fn add(&mut self, id: u128, gain: f64) {
        let (sum, last) = self.of.entry(id).or_insert((0.0, 0));
        if *last != self.list {
            *sum += gain;
            *last = self.list;
        }
    }

    fn ranked(self) -> Vec<Ranked> {
        let mut ranked: Vec<Ranked> =
            self.of.into_iter().map(|(id, (sum, _))| Ranked { id, score: sum as f32 }).collect();
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(hits: &[(u128, f32)]) -> Vec<Ranked> {
        hits.iter().map(|&(id, score)| Ranked { id, score }).collect()
    }

    #[test]
    fn reciprocal_ranks_add_up() {
        let (a, b) = (list(&[(1, 9.0), (2, 8.0)]), list(&[(2, 0.9), (3, 0.1)]));
        let fused = rrf(&[(&a, 1.0), (&b, 1.0)], 60.0);
        let expected = [(2, 1.0 / 62.0 + 1.0 / 61.0), (1, 1.0 / 61.0), (3, 1.0 / 62.0)];
        assert_eq!(fused, list(&expected.map(|(id, score): (u128, f64)| (id, score as f32))));
    }

    #[test]
    fn equal_scores_keep_the_smaller_id_first() {
        let (a, b) = (list(&[(7, 1.0), (3, 0.5)]), list(&[(3, 1.0), (7, 0.5)]));
        assert_eq!(rrf(&[(&a, 1.0), (&b, 1.0)], 60.0).iter().map(|hit| hit.id).collect::<Vec<_>>(), [3, 7]);
    }

    #[test]
    fn min_max_scales_each_list_and_weighs_it() {
        let (a, b) = (list(&[(1, 30.0), (2, 20.0), (3, 10.0)]), list(&[(3, 0.8), (4, 0.6)]));
        let fused = weighted_min_max(&[(&a, 0.5), (&b, 0.5)]);
        assert_eq!(fused, list(&[(1, 0.5), (3, 0.5), (2, 0.25), (4, 0.0)]));
    }

    #[test]
    fn a_single_hit_and_equal_scores_scale_to_one() {
        for scores in [vec![(1, -3.0)], vec![(1, 2.0), (2, 2.0)], vec![(1, f32::NAN)]] {
            let hits = list(&scores);
            assert!(weighted_min_max(&[(&hits, 1.0)]).iter().all(|hit| hit.score == 1.0), "{scores:?}");
        }
    }

    #[test]
    fn a_score_that_is_no_number_ranks_last_in_its_list() {
        let hits = list(&[(1, f32::NAN), (2, 5.0), (3, 1.0), (4, f32::INFINITY)]);
        let fused = weighted_min_max(&[(&hits, 1.0)]);
        assert_eq!(fused, list(&[(2, 1.0), (4, 1.0), (1, 0.0), (3, 0.0)]));
    }

    #[test]
    fn a_list_without_weight_keeps_its_hits() {
        let (a, b) = (list(&[(1, 1.0)]), list(&[(2, 1.0)]));
        assert_eq!(rrf(&[(&a, 1.0), (&b, 0.0)], 60.0).len(), 2);
        assert_eq!(weighted_min_max(&[(&a, 1.0), (&b, f32::NAN)]).len(), 2);
    }

    fn hits() -> impl Strategy<Value = Vec<Ranked>> {
        let score = prop_oneof![8 => -10.0f32..10.0, 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)];
        proptest::collection::vec((0u128..12, score), 0..12)
            .prop_map(|hits| hits.into_iter().map(|(id, score)| Ranked { id, score }).collect())
    }

    proptest! {
        #[test]
        fn every_id_comes_back_once_in_falling_order(a in hits(), b in hits(), k in -1.0f32..100.0) {
            for fused in [rrf(&[(&a, 1.0), (&b, 0.5)], k), weighted_min_max(&[(&a, 0.7), (&b, 0.3)])] {
                let mut given: Vec<u128> = a.iter().chain(&b).map(|hit| hit.id).collect();
                given.sort_unstable();
                given.dedup();
                let mut got: Vec<u128> = fused.iter().map(|hit| hit.id).collect();
                got.sort_unstable();
                prop_assert_eq!(got, given);
                prop_assert!(fused.iter().all(|hit| hit.score.is_finite() && hit.score >= 0.0));
                for pair in fused.windows(2) {
                    prop_assert!((pair[1].score, pair[0].id) < (pair[0].score, pair[1].id)
                        || pair[0].score > pair[1].score);
                }
            }
        }

        #[test]
        fn the_order_of_the_lists_does_not_matter(a in hits(), b in hits()) {
            prop_assert_eq!(rrf(&[(&a, 1.0), (&b, 1.0)], 60.0), rrf(&[(&b, 1.0), (&a, 1.0)], 60.0));
            prop_assert_eq!(
                weighted_min_max(&[(&a, 0.5), (&b, 0.5)]),
                weighted_min_max(&[(&b, 0.5), (&a, 0.5)])
            );
        }

        #[test]
        fn min_max_stays_within_the_weights(a in hits(), b in hits()) {
            let fused = weighted_min_max(&[(&a, 0.5), (&b, 0.5)]);
            prop_assert!(fused.iter().all(|hit| hit.score <= 1.0));
        }
    }
}
