//! Ranked ids as hits with what is shown of them: those that may still become one of the `k`, without near-duplicates.

use super::diagnostics::Stages;
use super::keyword::Highlighter;
use super::options::{NearDuplicates, SearchOptions};
use super::scope::Scope;
use super::{RankedHits, SearchHit, SearchRequest};
use crate::error::Result;
use crate::storage::Id;
use crate::storage::chunk::{self, ShownChunk};
use rag_core::file_name::file_name;
use rag_core::fuse::Ranked;
use rag_core::near_duplicate::DistinctTexts;
use std::collections::{HashMap, HashSet};

/// Near-duplicates that one search removes at most: those beyond it are kept, so that a collection of hardly anything
/// else is not gone through.
const MOST_REMOVED: usize = 1000;

/// Tells near-duplicates, where they are to be removed, from what is shown before them.
pub(super) struct Sieve {
    distinct: Option<DistinctTexts>,
    pub(super) removed: usize,
}

impl Sieve {
    pub(super) fn new(options: &SearchOptions) -> Self {
        let removes = options.near_duplicates == NearDuplicates::Remove;
        Self { distinct: removes.then(DistinctTexts::default), removed: 0 }
    }

    /// The stage of so many hits that are left.
    pub(super) fn done(&self, left: usize, stages: &mut Stages) {
        if self.distinct.is_some() {
            let watch = stages.start("near_duplicates");
            stages.done(watch, left + self.removed, left);
        }
    }

    /// Whether a chunk is shown. Asked in the order of ranks.
    pub(super) fn admits(&mut self, chunk: &ShownChunk) -> bool {
        let Some(distinct) = self.distinct.as_mut().filter(|_| self.removed < MOST_REMOVED) else {
            return true;
        };
        let is_distinct = distinct.admit(&chunk.content).is_none();
        self.removed += usize::from(!is_distinct);
        is_distinct
    }
}

/// Hits, and how many near-duplicates gave way to them.
pub(super) struct Shown {
    pub(super) hits: Vec<SearchHit>,
    pub(super) removed: usize,
}

/// The best hits, best first.
pub(super) fn show(
    scope: &Scope,
    request: &SearchRequest<'_>,
    ranked: RankedHits,
    stages: &mut Stages,
) -> Result<Shown> {
    let options = request.options;
    let needed = if options.rerank { options.rerank_limit.max(request.k) } else { request.k };
    let mut order = ranked.order;
    order.retain(|hit| options.min_score.is_none_or(|least| f64::from(hit.score) >= least));
    let mut chunks = HashMap::new();
    if options.source_boost > 0.0 {
        chunks = show_chunks(scope, &order)?;
        let watch = stages.start("source_boost");
        let boosted = boost_sources(scope, request, &chunks, &mut order);
        stages.done(watch, order.len(), boosted);
    }
    let (keyword, vector) = (places(&ranked.keyword), places(&ranked.vector));
    let mut sieve = Sieve::new(options);
    let mut hits = Vec::with_capacity(needed.min(order.len()));
    let mut rest = order.as_slice();
    while hits.len() < needed && !rest.is_empty() {
        let (next, others) = rest.split_at((needed - hits.len()).min(rest.len()));
        rest = others;
        if options.source_boost == 0.0 {
            chunks = show_chunks(scope, next)?;
        }
        for hit in next {
            let Some(chunk) = chunks.remove(&hit.id).filter(|chunk| sieve.admits(chunk)) else { continue };
            let (keyword, vector) = (keyword.get(&hit.id).copied(), vector.get(&hit.id).copied());
            hits.push(SearchHit { chunk, score: f64::from(hit.score), keyword, vector, rerank: None });
        }
    }
    sieve.done(hits.len(), stages);
    Ok(Shown { hits, removed: sieve.removed })
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
    let languages = scope.languages();
    let mut highlighter = Highlighter::new(request.query);
    let named: HashSet<Id> = chunks
        .values()
        .filter(|chunk| {
            let name = chunk.uri.as_deref().and_then(file_name).or_else(|| chunk.title.clone());
            let language = languages.get(&chunk.domain).map_or("simple", String::as_str);
            name.is_some_and(|name| !highlighter.matches(&name, language).is_empty())
        })
        .map(|chunk| chunk.id)
        .collect();
    let best = order.first().map_or(1.0, |hit| hit.score).max(f32::MIN_POSITIVE);
    for hit in order.iter_mut() {
        let boost = if named.contains(&hit.id) { request.options.source_boost as f32 } else { 0.0 };
        hit.score = hit.score / best + boost;
    }
    order.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    named.len()
}
