//! What somebody said of chunks that earlier searches showed them, as a push for chunks that a search finds.
//!
//! Whose word counts, and which chunks a search has found, is the caller's business.

use crate::fuse::Ranked;
use crate::terms::{Terms, jaccard};
use std::collections::{BTreeSet, HashMap};

/// What was said of a chunk, and for which query.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The chunk, as the bits of its uuid.
    pub chunk: u128,
    /// The query that it was said for.
    pub query: String,
    /// Whether that is the query of now, to the letter.
    pub is_same_query: bool,
    /// 1: the chunk answers the query; -1: it does not.
    pub verdict: i32,
}

/// Least likeness of two queries: below it, what was said for one tells nothing of the other.
pub const LEAST_LIKENESS: f32 = 0.5;

/// How much has to be said until it counts half: one word for the same query pushes by 0.5, two by 0.67, three by 0.75.
const SMOOTHING: f32 = 1.0;

/// By how much chunks are pushed, each between -1 and 1: the sum of the verdicts by the likeness of their queries, over the
/// sum of these likenesses and 1. Chunks that are pushed by nothing are left out.
///
/// The likeness is 1 for the same query, else the Jaccard index of the stems of both queries' meaningful words, or 0
/// where that is below [`LEAST_LIKENESS`].
pub fn pushes(query: &str, said: &[Said]) -> HashMap<u128, f32> {
    let terms = Terms::new();
    let own = terms.of(query);
    let mut known: HashMap<&str, f32> = HashMap::new();
    let mut sums: HashMap<u128, (f32, f32)> = HashMap::new();
    for one in said {
        let likeness = match one.is_same_query {
            true => 1.0,
            false => *known.entry(&one.query).or_insert_with(|| likeness(&own, &terms.of(&one.query))),
        };
        let (verdicts, weight) = sums.entry(one.chunk).or_default();
        *verdicts += likeness * one.verdict.signum() as f32;
        *weight += likeness;
    }
    let pushes = sums.into_iter().map(|(chunk, (verdicts, weight))| (chunk, verdicts / (weight + SMOOTHING)));
    pushes.filter(|(_, push)| *push != 0.0).collect()
}

fn likeness(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f32 {
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    Some(jaccard(a, b)).filter(|likeness| *likeness >= LEAST_LIKENESS).unwrap_or(0.0)
}

/// The hits in their new order, ties by id: scores scaled to at most 1, and each chunk's push added to its own.
///
/// Where no score is above 0, they are taken as they are.
pub fn pushed(hits: &[Ranked], push: impl Fn(u128) -> f32) -> Vec<Ranked> {
    let best = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let scale = if best > 0.0 && best.is_finite() { best } else { 1.0 };
    let mut pushed: Vec<Ranked> =
        hits.iter().map(|hit| Ranked { id: hit.id, score: hit.score / scale + push(hit.id) }).collect();
    pushed.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    pushed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn said(query: &str, verdict: i32) -> Said {
        Said { chunk: 7, query: query.to_owned(), is_same_query: query == QUERY, verdict }
    }

    const QUERY: &str = "When does the night ferry leave?";

    #[track_caller]
    fn check(all: &[(&str, i32)], expected: f32) {
        let all: Vec<Said> = all.iter().map(|(query, verdict)| said(query, *verdict)).collect();
        let push = pushes(QUERY, &all).get(&7).copied().unwrap_or(0.0);
        assert!((push - expected).abs() < 1e-6, "{push}, not {expected}");
    }

    #[test]
    fn what_is_said_counts_by_the_likeness_of_its_query() {
        check(&[], 0.0);
        check(&[(QUERY, 1)], 0.5);
        check(&[(QUERY, -1)], -0.5);
        check(&[(QUERY, 1), (QUERY, 1)], 2.0 / 3.0);
        check(&[(QUERY, 1), (QUERY, -1)], 0.0);
        // ferry, leave, night: three of three, two of three, one of three.
        check(&[("the night ferry leaves", 1)], 0.5);
        check(&[("night ferries", 1)], (2.0 / 3.0) / (2.0 / 3.0 + 1.0));
        check(&[("the ferry", 1)], 0.0);
        check(&[("sourdough bread", -1)], 0.0);
        // Without a word that means something, only the same query is alike.
        check(&[("when is it?", 1)], 0.0);
        // However much is said, it is less than 1.
        check(&[(QUERY, 1); 99], 0.99);
        check(&[(QUERY, 1), ("night ferries", -1)], (1.0 / 3.0) / (5.0 / 3.0 + 1.0));
    }

    #[test]
    fn a_query_of_function_words_is_like_itself_alone() {
        let same = Said { chunk: 1, query: "to be".to_owned(), is_same_query: true, verdict: 1 };
        let other = Said { chunk: 2, query: "not to be".to_owned(), is_same_query: false, verdict: 1 };
        assert_eq!(pushes("to be", &[same, other]), HashMap::from([(1, 0.5)]));
    }

    #[test]
    fn a_push_moves_a_hit_and_ties_go_by_id() {
        let hits = [(1, 8.0), (2, 4.0), (3, 4.0), (4, 0.0)].map(|(id, score)| Ranked { id, score });
        let order = |push: fn(u128) -> f32| {
            let pushed = pushed(&hits, push);
            pushed.into_iter().map(|hit| (hit.id, hit.score)).collect::<Vec<_>>()
        };
        assert_eq!(order(|_| 0.0), [(1, 1.0), (2, 0.5), (3, 0.5), (4, 0.0)]);
        assert_eq!(order(|id| if id == 3 { 0.5 } else { 0.0 }), [(1, 1.0), (3, 1.0), (2, 0.5), (4, 0.0)]);
        assert_eq!(order(|id| if id == 1 { -0.75 } else { 0.0 })[2], (1, 0.25));
        assert!(pushed(&[], |_| 1.0).is_empty());
        let zero = [Ranked { id: 5, score: 0.0 }];
        assert_eq!(pushed(&zero, |_| 0.25), [Ranked { id: 5, score: 0.25 }]);
    }
}
