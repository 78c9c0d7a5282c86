//! The retrievers' lists as one, and how much each of them counts.

use super::advice;
use super::diagnostics::Stages;
use super::options::{Fusion, SearchOptions};
use super::scope::Scope;
use rag_core::balance::balance;
use rag_core::fuse::{self, Ranked};
use std::ops::RangeInclusive;

/// What the keyword retriever's share may be where the model knows the language, or nothing is known of it.
const SHARE: RangeInclusive<f32> = 0.25..=0.8;

/// The same where the model does not know the language.
const SHARE_OF_FOREIGN: RangeInclusive<f32> = 0.75..=0.85;

/// One list of two, best first, as a stage that says by which rule the lists were weighed.
pub(super) fn fuse(
    scope: &Scope,
    query: &str,
    options: &SearchOptions,
    keyword: &[Ranked],
    vector: &[Ranked],
    stages: &mut Stages,
) -> Vec<Ranked> {
    let watch = stages.start("fusion");
    let (fused, method) = match (options.fusion, options.keyword_weight) {
        (Fusion::Rrf, weight) => {
            let weight = weight.unwrap_or(0.5) as f32;
            (fuse::rrf(&[(keyword, weight), (vector, 1.0 - weight)], options.rrf_k as f32), "rrf")
        }
        (Fusion::Weighted, Some(weight)) => (weighted(keyword, vector, weight as f32), "weighted, as given"),
        (Fusion::Weighted, None) => {
            let (bounds, method) = match advice::is_foreign(scope, query) {
                true => (SHARE_OF_FOREIGN, "weighted, by language"),
                false => (SHARE, "weighted, by agreement"),
            };
            (weighted(keyword, vector, balance(keyword, vector, bounds).keyword_weight), method)
        }
    };
    stages.done_as(watch, keyword.len() + vector.len(), fused.len(), method);
    fused
}

fn weighted(keyword: &[Ranked], vector: &[Ranked], share: f32) -> Vec<Ranked> {
    fuse::weighted_min_max(&[(keyword, share), (vector, 1.0 - share)])
}
