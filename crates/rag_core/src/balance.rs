//! How much each of two retrievers is to be believed for one query, told by their lists.
//!
//! No retriever is the better one for all collections: a model says little of a language that it does not know, and words
//! say little where questions and documents share few. What tells them apart without judgements is how their scores fall
//! from the first hit on: a retriever that knows sets its first hits apart. Where both find the same, it does not matter.
//! Cosines tell more, for they have a scale: a model that does not know a language finds all of its texts alike.

use crate::fuse::Ranked;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Hits at the head of each list that are looked at.
const HEAD: usize = 10;

/// Share of the keyword retriever where nothing speaks for either, measured: see docs/measured.md.
const EVEN: f32 = 0.5;

/// How much the share follows the peaks of lists without a common hit.
const LED: f32 = 0.75;

/// Share of hits that both heads have from which on the lists agree.
const AGREED: f32 = 0.5;

/// Share of the keyword retriever where the vector retriever is not to be believed.
const DOUBTED: f32 = 0.9;

/// Contrast of the vector retriever up to which it is not to be believed, and from which on it is.
const CONTRAST: RangeInclusive<f32> = 0.1..=0.3;

/// Share of common hits from which on doubts do not matter.
const CONFIRMED: f32 = 0.7;

/// What two lists say of themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// Share of the keyword retriever, from 0 to 1.
    pub keyword_weight: f32,
    /// Share of the first ten hits that both lists have; of fewer where a list is shorter.
    pub agreement: f32,
    /// How far the first hit of the keyword retriever stands above its tenth, as a share of the list's range.
    pub keyword_peak: f32,
    /// The same of the vector retriever.
    pub vector_peak: f32,
    /// How far its first cosine stands above the tenth, as a share of what lies between that and 1; 1 where that says nothing.
    pub vector_contrast: f32,
}

/// Weighs two lists, both best first, within bounds of the keyword retriever's share.
///
/// The share is `0.5 + d · (p − q) / (p + q)`, where `p` and `q` are the peaks of the lists, and `d` falls from 0.75 for
/// lists without a common hit among their first ten to 0 where half of these are common. Where the vector retriever's cosines
/// are too much alike, the share rises from there towards 0.9, beyond the bounds: the more, the fewer hits are common.
pub fn balance(keyword: &[Ranked], vector: &[Ranked], bounds: RangeInclusive<f32>) -> Balance {
    let (keyword_peak, vector_peak) = (peak(keyword), peak(vector));
    let first: HashSet<u128> = keyword.iter().take(HEAD).map(|hit| hit.id).collect();
    let common = vector.iter().take(HEAD).filter(|hit| first.contains(&hit.id)).count();
    let most = keyword.len().min(vector.len()).clamp(1, HEAD);
    let agreement = common as f32 / most as f32;
    let sum = keyword_peak + vector_peak;
    let lead = if sum > 0.0 { (keyword_peak - vector_peak) / sum } else { 0.0 };
    let disagreement = 1.0 - (agreement / AGREED).min(1.0);
    let believed = (EVEN + LED * disagreement * lead).clamp(*bounds.start(), *bounds.end());
    let vector_contrast = contrast(vector);
    let (least, most) = (*CONTRAST.start(), *CONTRAST.end());
    let doubt = 1.0 - ((vector_contrast - least) / (most - least)).clamp(0.0, 1.0);
    let unconfirmed = 1.0 - (agreement / CONFIRMED).min(1.0);
    let keyword_weight = believed + doubt * unconfirmed * (DOUBTED - believed).max(0.0);
    Balance { keyword_weight, agreement, keyword_peak, vector_peak, vector_contrast }
}

/// Of cosines. A list that is too short to tell is believed.
fn contrast(hits: &[Ranked]) -> f32 {
    let [first, .., _] = hits else { return 1.0 };
    let tenth = hits[(HEAD - 1).min(hits.len() - 1)].score;
    let room = 1.0 - tenth;
    let share = (first.score - tenth) / room;
    if hits.len() >= HEAD && room > 0.0 && share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 }
}

/// From 0 for a list that is flat at its head to 1 for one that is flat behind its first hit.
fn peak(hits: &[Ranked]) -> f32 {
    let [first, .., last] = hits else { return hits.len() as f32 };
    let range = first.score - last.score;
    let head = first.score - hits[(HEAD - 1).min(hits.len() - 1)].score;
    if range > 0.0 && head.is_finite() && range.is_finite() { (head / range).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A hundred hits from `first` on, whose scores fall by `head` over the first ten, and by 1 in all.
    fn list(first: u128, head: f32) -> Vec<Ranked> {
        let score = |at: usize| match at {
            0..10 => 1.0 - head * at as f32 / 9.0,
            _ => (1.0 - head) * (99 - at) as f32 / 90.0,
        };
        (0..100).map(|at| Ranked { id: first + at as u128, score: score(at) }).collect()
    }

    #[test]
    fn lists_that_agree_weigh_the_same_whatever_their_shape() {
        let found = balance(&list(5, 0.9), &list(0, 0.1), 0.0..=1.0);
        assert_eq!((found.agreement, found.keyword_weight), (0.5, EVEN));
    }

    #[test]
    fn where_they_disagree_the_one_that_is_surer_weighs_more() {
        let weight = |keyword: f32, vector: f32| {
            balance(&list(0, keyword), &list(500, vector), 0.25..=0.8).keyword_weight
        };
        assert_eq!(weight(0.5, 0.5), EVEN);
        assert_eq!(weight(0.9, 0.2), 0.8);
        assert!(weight(0.6, 0.5) > EVEN && weight(0.5, 0.6) < EVEN);
        assert_eq!(weight(0.1, 0.9), 0.25);
    }

    #[test]
    fn a_single_hit_is_sure_and_no_hit_says_nothing() {
        let one = [Ranked { id: 9_000, score: 3.0 }];
        assert!(balance(&one, &list(0, 0.4), 0.25..=0.8).keyword_weight > EVEN);
        assert_eq!(balance(&[], &[], 0.25..=0.8).keyword_weight, EVEN);
        assert_eq!(peak(&[Ranked { id: 1, score: 2.0 }, Ranked { id: 2, score: 2.0 }]), 0.0);
    }

    #[test]
    fn cosines_that_are_all_alike_are_not_believed_unless_the_words_confirm_them() {
        let alike: Vec<Ranked> =
            list(500, 0.5).iter().map(|hit| Ranked { score: 0.7 + 0.04 * hit.score, ..*hit }).collect();
        let found = balance(&list(0, 0.5), &alike, 0.25..=0.8);
        assert!((found.vector_contrast - 0.02 / 0.28).abs() < 1e-4, "{found:?}");
        assert_eq!(found.keyword_weight, DOUBTED);
        let found = balance(&list(500, 0.5), &alike, 0.25..=0.8);
        assert_eq!((found.agreement, found.keyword_weight), (1.0, EVEN));
        // Too few to tell.
        assert!(balance(&list(0, 0.5), &alike[..3], 0.25..=0.8).keyword_weight <= 0.8);
    }

    proptest! {
        #[test]
        fn the_share_keeps_to_its_bounds(
            keyword in proptest::collection::vec((0u128..30, any::<f32>()), 0..30),
            vector in proptest::collection::vec((0u128..30, any::<f32>()), 0..30),
        ) {
            let [keyword, vector] = [keyword, vector]
                .map(|hits| hits.into_iter().map(|(id, score)| Ranked { id, score }).collect::<Vec<_>>());
            let share = balance(&keyword, &vector, 0.25..=0.8).keyword_weight;
            prop_assert!((0.25..=DOUBTED).contains(&share), "{}", share);
        }
    }
}
