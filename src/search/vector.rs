//! The vector arm: exact up to a number of visible chunks, above it HNSW, and exact again where that gives
//! fewer than wanted. The choice is ours, by what the caller sees; never the planner's.

use super::scope::Scope;
use crate::config;
use crate::engine;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::principal;
use crate::storage::Id;
use crate::storage::embedding::{self, VectorHit};
use rag_core::fuse::Ranked;
use rag_wire::{Lane, TextRole};

/// Hits, best first, and how they were found.
pub(crate) struct Found {
    pub(crate) hits: Vec<Ranked>,
    pub(crate) method: &'static str,
}

/// The nearest chunks of the scope; with `documents`, of these alone.
pub(crate) fn search(
    scope: &Scope,
    query: &str,
    limit: usize,
    visible: usize,
    documents: Option<&[Id]>,
) -> Result<Found> {
    let principals = principal::current_principals()?;
    let mut hits: Vec<VectorHit> = Vec::new();
    let mut method = "exact";
    let groups = scope.by_model();
    for (model, domains) in &groups {
        let Some(space) = elevated(|| embedding::space(model))? else { continue };
        let answer = engine::embed(
            Some(model),
            TextRole::Query,
            vec![query.to_owned()],
            Lane::Interactive,
            &principals,
        )?;
        let vector = embedding::vector_text(&answer.values);
        let mut found = None;
        if documents.is_none() && visible as i64 > config::exact_search_limit() {
            found = elevated(|| embedding::nearest_approximate(space, domains, &vector, limit))?
                .filter(|hits| hits.len() >= limit);
            if found.is_some() {
                method = "hnsw";
            }
        }
        hits.extend(match found {
            Some(found) => found,
            None => elevated(|| embedding::nearest_exact(space, domains, &vector, limit, documents))?,
        });
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    hits.truncate(limit);
    let hits = hits.into_iter().map(|h| Ranked { id: h.chunk, score: h.score as f32 }).collect();
    Ok(Found { hits, method })
}
