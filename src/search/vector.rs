//! The vector retriever: exact up to a number of visible chunks, above it HNSW, and exact again where that gives
//! fewer than wanted. The choice is ours, by what the caller sees; never the planner's.

use super::retriever::{Allowed, Retriever};
use super::scope::Scope;
use super::visible_segments;
use crate::config;
use crate::engine;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::principal;
use crate::storage::Id;
use crate::storage::embedding::{self, VectorHit, VectorSpace};
use rag_core::fuse::Ranked;
use rag_wire::{Lane, TextRole};

/// Ranks by the cosine of vectors.
pub(crate) struct VectorRetriever<'a> {
    documents: Option<&'a [Id]>,
    /// The query's vector in the space of each model, and the domains whose chunks have theirs there.
    groups: Vec<Group>,
    visible: usize,
    method: &'static str,
}

struct Group {
    space: VectorSpace,
    vector: String,
    domains: Vec<Id>,
}

impl<'a> VectorRetriever<'a> {
    /// Embeds the query, or a passage like those that it looks for, by each model of the scope. `visible` chunks are the caller's to see, where that is known: it
    /// chooses the way.
    pub(crate) fn open(
        scope: &Scope,
        (text, role): (&str, TextRole),
        allowed: Option<&'a Allowed>,
        visible: Option<usize>,
    ) -> Result<Self> {
        let visible = match visible {
            Some(visible) => visible,
            None => match visible_segments::count_chunks(scope) {
                Err(error) if error.is_damage() => 0,
                counted => counted?,
            },
        };
        let principals = principal::current_principals()?;
        let mut groups = Vec::new();
        for (model, domains) in scope.by_model() {
            let Some(space) = elevated(|| embedding::vector_space(model))? else { continue };
            let texts = vec![text.to_owned()];
            let answer = engine::embed(Some(model), role, texts, Lane::Interactive, &principals)?;
            groups.push(Group { space, vector: embedding::vector_text(&answer.values), domains });
        }
        let documents = allowed.map(|allowed| allowed.documents.as_slice());
        Ok(Self { documents, groups, visible, method: "exact" })
    }
}

impl Retriever for VectorRetriever<'_> {
    const NAME: &'static str = "vector";

    fn rank(&mut self, limit: usize) -> Result<Vec<Ranked>> {
        let is_exact = self.documents.is_some() || self.visible as i64 <= config::exact_search_limit();
        let mut hits: Vec<VectorHit> = Vec::new();
        self.method = "exact";
        for Group { space, vector, domains } in &self.groups {
            let approximate = match is_exact {
                true => None,
                false => elevated(|| embedding::nearest_approximate(*space, domains, vector, limit))?
                    .filter(|hits| hits.len() >= limit),
            };
            hits.extend(match approximate {
                Some(found) => {
                    self.method = "hnsw";
                    found
                }
                None => {
                    elevated(|| embedding::nearest_exact(*space, domains, vector, limit, self.documents))?
                }
            });
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
        hits.truncate(limit);
        Ok(hits.into_iter().map(|hit| Ranked { id: hit.chunk, score: hit.score as f32 }).collect())
    }

    fn ranked(&self) -> usize {
        self.visible
    }

    fn method(&self) -> Option<&'static str> {
        Some(self.method)
    }
}
