//! Measures of a ranking against judgements, as trec_eval computes them.
//!
//! A ranking is the grades of its hits, best first, 0 where nobody judged; the judgements are all grades that were given
//! for the query. A grade above 0 is relevant, 0 and below is not. Who stands where, ties included, is decided before:
//! a document that stands twice would count twice.

pub mod answers;
mod bootstrap;

pub use bootstrap::{RESAMPLES, paired_bootstrap};

/// The cut of nDCG that is reported everywhere.
pub const NDCG_CUT: usize = 10;

/// What one query came to, or the mean of several. Each is from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measures {
    /// Share of the relevant that are among the first `k` (`recall_k`).
    pub recall: f64,
    /// Share of the first `k` places that are relevant (`P_k`): places without a hit count as not relevant.
    pub precision: f64,
    /// 1 / rank of the first relevant among the first `k` (`recip_rank` of a run of `k`), else 0.
    pub reciprocal_rank: f64,
    /// nDCG of the first [`NDCG_CUT`] (`ndcg_cut_10`).
    pub ndcg: f64,
}

/// All measures of one query. 0 each where nothing is relevant, or `k` is 0.
pub fn measures(ranked: &[i32], judged: &[i32], k: usize) -> Measures {
    let first = &ranked[..ranked.len().min(k)];
    let found = count_relevant(first) as f64;
    let share = |of: usize| if of == 0 { 0.0 } else { found / of as f64 };
    Measures {
        recall: share(count_relevant(judged)),
        precision: share(k),
        reciprocal_rank: first
            .iter()
            .position(|grade| *grade > 0)
            .map_or(0.0, |place| 1.0 / (place + 1) as f64),
        ndcg: ndcg(ranked, judged, NDCG_CUT),
    }
}

/// Normalised discounted cumulative gain of the first `cut`: the gain of a hit is its grade, divided by log2(rank + 1),
/// in relation to the best order of all that was judged. 0 where nothing is relevant.
///
/// Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002, with the discount of
/// trec_eval, which divides from the first place on.
pub fn ndcg(ranked: &[i32], judged: &[i32], cut: usize) -> f64 {
    let mut best = judged.to_vec();
    best.sort_unstable_by(|a, b| b.cmp(a));
    let ideal = gain(&best, cut);
    if ideal > 0.0 { gain(ranked, cut) / ideal } else { 0.0 }
}

fn gain(grades: &[i32], cut: usize) -> f64 {
    let gains = grades.iter().take(cut).enumerate();
    gains.map(|(place, grade)| f64::from((*grade).max(0)) / (place as f64 + 2.0).log2()).sum()
}

fn count_relevant(grades: &[i32]) -> usize {
    grades.iter().filter(|grade| **grade > 0).count()
}

/// The mean over queries, each with the same weight; 0 of none.
pub fn mean(of_queries: &[Measures]) -> Measures {
    let count = of_queries.len().max(1) as f64;
    let mean = |value: fn(&Measures) -> f64| of_queries.iter().map(value).sum::<f64>() / count;
    Measures {
        recall: mean(|m| m.recall),
        precision: mean(|m| m.precision),
        reciprocal_rank: mean(|m| m.reciprocal_rank),
        ndcg: mean(|m| m.ndcg),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    /// What `evaluate/trec_eval.py` wrote: random runs and judgements with what trec_eval says of them.
    #[derive(Deserialize)]
    struct Case {
        k: usize,
        judgements: BTreeMap<String, i32>,
        run: BTreeMap<String, f32>,
        expected: [f64; 4],
    }

    /// Grades of a run in trec_eval's order: falling scores, and falling names where they are equal.
    fn ranked(case: &Case) -> Vec<i32> {
        let mut hits: Vec<(&String, f32)> = case.run.iter().map(|(name, score)| (name, *score)).collect();
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(a.0)));
        hits.iter().map(|(name, _)| case.judgements.get(*name).copied().unwrap_or(0)).collect()
    }

    #[test]
    fn numbers_are_those_of_trec_eval() {
        let cases: Vec<Case> = serde_json::from_str(include_str!("evaluate/trec_eval.json")).unwrap();
        assert!(cases.len() >= 200, "{} cases", cases.len());
        let mut with_ties = 0;
        for (number, case) in cases.iter().enumerate() {
            let judged: Vec<i32> = case.judgements.values().copied().collect();
            let found = measures(&ranked(case), &judged, case.k);
            let found = [found.recall, found.precision, found.reciprocal_rank, found.ndcg];
            for (found, expected) in found.iter().zip(case.expected) {
                assert!((found - expected).abs() < 1e-12, "case {number}: {found:?} instead of {expected:?}");
            }
            let scores: std::collections::BTreeSet<u32> = case.run.values().map(|s| s.to_bits()).collect();
            with_ties += usize::from(scores.len() < case.run.len());
        }
        assert!(with_ties > 50, "{with_ties} cases with ties");
    }

    #[test]
    fn the_best_order_scores_one_and_a_later_place_less() {
        assert_eq!(ndcg(&[3, 1, 0], &[1, 3], 10), 1.0);
        assert!((ndcg(&[0, 1], &[1], 10) - 1.0 / 3f64.log2()).abs() < 1e-12);
        assert!(ndcg(&[1, 3], &[3, 1], 10) < 1.0);
        assert!((ndcg(&[1; 10], &[1; 25], 10) - 1.0).abs() < 1e-12, "more are relevant than fit");
    }

    #[test]
    fn only_the_first_places_count() {
        let mut ranked = [0; 11];
        ranked[10] = 2;
        let ten = measures(&ranked, &[2, 1], 10);
        assert_eq!(ten, Measures::default());
        let eleven = measures(&ranked, &[2, 1], 11);
        assert_eq!((eleven.recall, eleven.precision, eleven.reciprocal_rank), (0.5, 1.0 / 11.0, 1.0 / 11.0));
        assert_eq!(eleven.ndcg, 0.0);
    }

    #[test]
    fn without_hits_or_judgements_all_is_zero() {
        for (ranked, judged, k) in
            [(&[][..], &[1][..], 10), (&[0, 0], &[], 10), (&[1], &[1], 0), (&[-1], &[-1, 0], 5)]
        {
            assert_eq!(Measures { ndcg: 0.0, ..measures(ranked, judged, k) }, Measures::default());
        }
        assert_eq!(ndcg(&[0], &[], 10), 0.0);
        assert_eq!(mean(&[]), Measures::default());
    }

    #[test]
    fn each_query_has_the_same_weight() {
        let good = Measures { recall: 1.0, precision: 0.5, reciprocal_rank: 1.0, ndcg: 0.8 };
        let half = Measures { recall: 0.5, precision: 0.25, reciprocal_rank: 0.5, ndcg: 0.4 };
        assert_eq!(mean(&[good, Measures::default()]), half);
    }
}
