//! Measures of a ranking against binary judgements, by the code of `rag_evaluate`.

use rag_core::evaluate;

/// Normalised discounted cumulative gain of the first ten, from 0 to 1.
///
/// `ranked` says of each hit, best first, whether it is relevant; `relevant` is how many there are in all.
pub fn ndcg_at_10(ranked: &[bool], relevant: usize) -> f64 {
    evaluate::ndcg(&grades(ranked), &vec![1; relevant], 10)
}

/// Share of the relevant documents among the hits, from 0 to 1.
pub fn recall(ranked: &[bool], relevant: usize) -> f64 {
    evaluate::measures(&grades(ranked), &vec![1; relevant], ranked.len()).recall
}

fn grades(ranked: &[bool]) -> Vec<i32> {
    ranked.iter().map(|hit| i32::from(*hit)).collect()
}
