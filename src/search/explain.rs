//! A search with all that it did: its stages, and on request what became of each candidate.

use super::diagnostics::Stages;
use super::scope::Scope;
use super::trail::Candidate;
use super::{SearchRequest, search_noting};
use crate::error::Result;
use crate::storage::Id;
use crate::storage::chunk::{self, ShownChunk};
use std::collections::HashMap;

/// What a search did.
pub(crate) struct Explained {
    pub(crate) stages: Stages,
    /// The hits in their order, then the others by their best rank in any stage; none unless asked for.
    pub(crate) candidates: Vec<ExplainedCandidate>,
}

/// A chunk that a retriever found.
pub(crate) struct ExplainedCandidate {
    pub(crate) chunk: ShownChunk,
    pub(crate) candidate: Candidate,
    /// Rank from 1 and score among the hits.
    pub(crate) hit: Option<(usize, f64)>,
}

/// Searches as [`super::search`] does, with the same hits, and tells how.
///
/// Candidates are looked up as the caller: one that they may not see is not told of.
pub(crate) fn explain(
    scope: &Scope,
    request: &SearchRequest<'_>,
    with_candidates: bool,
) -> Result<Explained> {
    let stages = if with_candidates { Stages::with_trail() } else { Stages::default() };
    let mut found = search_noting(scope, request, stages)?;
    let Some(trail) = found.stages.take_trail() else {
        return Ok(Explained { stages: found.stages, candidates: Vec::new() });
    };
    let hits: HashMap<Id, (usize, f64)> =
        found.hits.iter().enumerate().map(|(i, hit)| (hit.chunk.id, (i + 1, hit.score))).collect();
    let ids: Vec<Id> = trail.0.keys().copied().collect();
    let mut shown = chunk::show(&scope.ids(), &ids)?;
    let mut candidates: Vec<ExplainedCandidate> = trail
        .0
        .into_iter()
        .filter_map(|(id, candidate)| {
            let (chunk, hit) = (shown.remove(&id)?, hits.get(&id).copied());
            // What one retriever or query has dropped, another one may have found.
            let dropped = candidate.dropped.filter(|_| hit.is_none());
            Some(ExplainedCandidate { chunk, candidate: Candidate { dropped, ..candidate }, hit })
        })
        .collect();
    candidates.sort_by_key(|candidate| {
        let rank = candidate.hit.map_or(usize::MAX, |(rank, _)| rank);
        let best = candidate.candidate.places.iter().map(|place| place.rank).min();
        (rank, best.unwrap_or(usize::MAX), candidate.chunk.id)
    });
    Ok(Explained { stages: found.stages, candidates })
}
