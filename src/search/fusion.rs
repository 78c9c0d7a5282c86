//! The retrievers' lists as one, and how much each of them counts.

use super::advice;
use super::diagnostics::Stages;
use super::options::{Fusion, SearchOptions};
use super::scope::Scope;
use super::scored;
use rag_core::balance::{Balance, balance};
use rag_core::fuse::{self, Ranked};
use serde_json::json;
use std::ops::RangeInclusive;

/// What the keyword retriever's share may be where the model knows the language, or nothing is known of it.
const SHARE: RangeInclusive<f32> = 0.25..=0.8;

/// The same where the model does not know the language.
const SHARE_OF_FOREIGN: RangeInclusive<f32> = 0.75..=0.85;

/// One list of two, best first, as a stage that says by which rule the lists were weighed. Whether the query is in a language
/// that no model knows is told before.
pub(super) fn fuse(
    scope: &Scope,
    is_query_foreign: bool,
    options: &SearchOptions,
    keyword: &[Ranked],
    vector: &[Ranked],
    stages: &mut Stages,
) -> Vec<Ranked> {
    let watch = stages.start("fusion");
    let (fused, method, details) = match (options.fusion, options.keyword_weight) {
        (Fusion::Rrf, weight) => {
            let weight = weight.unwrap_or(0.5) as f32;
            let fused = fuse::rrf(&[(keyword, weight), (vector, 1.0 - weight)], options.rrf_k as f32);
            (fused, "rrf", json!({ "keyword_weight": weight, "rrf_k": options.rrf_k }))
        }
        (Fusion::Weighted, Some(weight)) => {
            let fused = weighted(keyword, vector, weight as f32);
            (fused, "weighted, as given", json!({ "keyword_weight": weight }))
        }
        (Fusion::Weighted, None) => {
            let (bounds, method) = match is_query_foreign || advice::are_collections_foreign(scope) {
                true => (SHARE_OF_FOREIGN, "weighted, by language"),
                false => (SHARE, "weighted, by agreement"),
            };
            let Balance { keyword_weight, agreement, keyword_peak, vector_peak, vector_contrast } =
                balance(keyword, vector, bounds);
            let details = json!({
                "keyword_weight": keyword_weight, "agreement": agreement,
                "keyword_peak": keyword_peak, "vector_peak": vector_peak, "vector_contrast": vector_contrast,
            });
            (weighted(keyword, vector, keyword_weight), method, details)
        }
    };
    stages.done_as(watch, keyword.len() + vector.len(), fused.len(), method);
    stages.detail(details);
    stages.ranked("fusion", scored(&fused));
    fused
}

fn weighted(keyword: &[Ranked], vector: &[Ranked], share: f32) -> Vec<Ranked> {
    fuse::weighted_min_max(&[(keyword, share), (vector, 1.0 - share)])
}
