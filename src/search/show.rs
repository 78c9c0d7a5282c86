//! Ranked ids as hits with what is shown of them: those that may still become one of the `k`, without near-duplicates.

use super::diagnostics::Stages;
use super::keyword::Highlighter;
use super::options::{NearDuplicates, SearchOptions};
use super::scope::Scope;
use super::{RankedHits, SearchHit, SearchRequest, rerank, scored};
use crate::error::Result;
use crate::pg::interrupts;
use crate::storage::Id;
use crate::storage::chunk::{self, ShownChunk};
use rag_core::file_name::file_name;
use rag_core::fuse::Ranked;
use rag_core::near_duplicate::DistinctTexts;
use std::collections::{HashMap, HashSet};

/// Hits in the order of their ranks, apart from near-duplicates of better ones.
pub(super) struct Sieve {
    distinct: Option<DistinctTexts>,
    hits: Vec<(usize, SearchHit)>,
    /// They give way to the next ones, as long as there are any.
    near_duplicates: Vec<(usize, SearchHit)>,
}

impl Sieve {
    pub(super) fn new(options: &SearchOptions) -> Self {
        let removes = options.near_duplicates == NearDuplicates::Remove;
        let distinct = removes.then(DistinctTexts::default);
        Self { distinct, hits: Vec::new(), near_duplicates: Vec::new() }
    }

    /// Takes the next hit by rank.
    pub(super) fn push(&mut self, hit: SearchHit) {
        let place = self.hits.len() + self.near_duplicates.len();
        interrupts::check();
        let is_near = self
            .distinct
            .as_mut()
            .is_some_and(|distinct| distinct.admit(&rerank::above(&hit.chunk), &hit.chunk.content).is_some());
        if is_near { &mut self.near_duplicates } else { &mut self.hits }.push((place, hit));
    }

    /// Whether near-duplicates leave fewer than `k` others.
    pub(super) fn is_short(&self, k: usize) -> bool {
        !self.near_duplicates.is_empty() && self.hits.len() < k
    }

    /// The hits in the order of their ranks: near-duplicates only where there is nothing else to make up `k`.
    pub(super) fn finish(mut self, k: usize, stages: &mut Stages) -> Vec<SearchHit> {
        let removed =
            self.near_duplicates.split_off(k.saturating_sub(self.hits.len()).min(self.near_duplicates.len()));
        stages.dropped(removed.iter().map(|(_, hit)| hit.chunk.id), |_| {
            "near-duplicate of a better one".to_owned()
        });
        self.hits.append(&mut self.near_duplicates);
        self.hits.sort_by_key(|(place, _)| *place);
        if self.distinct.is_some() {
            let watch = stages.start("near_duplicates");
            stages.done(watch, self.hits.len() + removed.len(), self.hits.len());
        }
        self.hits.into_iter().map(|(_, hit)| hit).collect()
    }
}

/// The best hits, best first.
pub(super) fn show(
    scope: &Scope,
    request: &SearchRequest<'_>,
    ranked: RankedHits,
    stages: &mut Stages,
) -> Result<Sieve> {
    let options = request.options;
    let reranked = if options.rerank { rerank::most_pairs(options) } else { 0 };
    let (needed, limit) = if reranked > request.k { (reranked, "rerank_limit") } else { (request.k, "k") };
    let mut order = ranked.order;
    let mut chunks = HashMap::new();
    if options.source_boost > 0.0 {
        chunks = show_chunks(scope, &order)?;
        let watch = stages.start("source_boost");
        let boosted = boost_sources(scope, request, &chunks, &mut order);
        stages.done(watch, order.len(), boosted);
        stages.ranked("source_boost", scored(&order));
    }
    let (keyword, vector) = (places(&ranked.keyword), places(&ranked.vector));
    let mut sieve = Sieve::new(options);
    let mut rest = order.as_slice();
    while sieve.hits.len() < needed && !rest.is_empty() {
        let (next, others) = rest.split_at(needed.min(rest.len()));
        rest = others;
        if options.source_boost == 0.0 {
            chunks = show_chunks(scope, next)?;
        }
        for hit in next {
            let Some(chunk) = chunks.remove(&hit.id) else { continue };
            let (keyword, vector) = (keyword.get(&hit.id).copied(), vector.get(&hit.id).copied());
            sieve.push(SearchHit { chunk, score: f64::from(hit.score), keyword, vector, rerank: None });
        }
    }
    stages.dropped(rest.iter().map(|hit| hit.id), |_| format!("beyond {limit}"));
    Ok(sieve)
}

fn show_chunks(scope: &Scope, hits: &[Ranked]) -> Result<HashMap<Id, ShownChunk>> {
    let ids: Vec<Id> = hits.iter().map(|hit| hit.id).collect();
    chunk::show(&scope.ids(), &ids)
}

/// Rank from 1 and score of each hit.
fn places(list: &[Ranked]) -> HashMap<Id, (usize, f64)> {
    list.iter().enumerate().map(|(i, hit)| (hit.id, (i + 1, f64::from(hit.score)))).collect()
}

/// Scales scores to at most 1, adds the boost where the name of a chunk's source has a word of the query, and puts the
/// hits in their new order, ties by id. Returns how many were boosted.
fn boost_sources(
    scope: &Scope,
    request: &SearchRequest<'_>,
    chunks: &HashMap<Id, ShownChunk>,
    order: &mut [Ranked],
) -> usize {
    let mut highlighter = Highlighter::new(request.query);
    let named: HashSet<Id> = chunks
        .values()
        .filter(|chunk| {
            let name = chunk.uri.as_deref().and_then(file_name).or_else(|| chunk.title.clone());
            name.is_some_and(|name| !highlighter.matches(&name, scope.language(chunk.domain)).is_empty())
        })
        .map(|chunk| chunk.id)
        .collect();
    let best = order.first().map(|hit| hit.score).filter(|score| *score > 0.0).unwrap_or(1.0);
    for hit in order.iter_mut() {
        let boost = if named.contains(&hit.id) { request.options.source_boost as f32 } else { 0.0 };
        hit.score = hit.score / best + boost;
    }
    order.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    named.len()
}
