//! The vector retriever: exact up to a number of chunks, above it over the codes of segments. The choice is ours, by what
//! the caller sees; never the planner's.

use super::allowed::{Allowed, Look};
use super::coded::CodedEntries;
use super::retriever::Retriever;
use super::scope::Scope;
use super::visible_segments;
use crate::config;
use crate::engine;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::principal;
use crate::storage::Id;
use crate::storage::embedding::{self, QueryVector, VectorHit, VectorSpace};
use rag_core::fuse::Ranked;
use rag_wire::{Lane, TextRole};

/// All vectors are compared.
const EXACT: &str = "exact";

/// Those are compared whose codes seem nearest: see `rag_vector`.
const CODED: &str = "rabitq";

/// Ranks by the cosine of vectors.
pub(crate) struct VectorRetriever<'a> {
    look: &'a Look<'a>,
    /// The query's vector in the space of each model, and the domains whose chunks have theirs there.
    groups: Vec<Group>,
    visible: usize,
    method: &'static str,
}

struct Group {
    space: VectorSpace,
    vector: Vec<f32>,
    /// The same for statements.
    query: QueryVector,
    domains: Vec<Id>,
    /// The codes, once they were looked for, and whether there are any.
    coded: Option<Option<CodedEntries>>,
}

impl<'a> VectorRetriever<'a> {
    /// Embeds the query, or a passage like those that it looks for, by each model of the scope. `visible` chunks are the
    /// caller's to see, where that is known: it chooses the way.
    pub(crate) fn open(
        scope: &Scope,
        (text, role): (&str, TextRole),
        look: &'a Look<'a>,
        visible: Option<usize>,
    ) -> Result<Self> {
        let visible = match visible {
            Some(visible) => visible,
            None => visible_segments::count_chunks(scope)?,
        };
        let principals = principal::current_principals()?;
        let mut groups = Vec::new();
        for (model, domains) in scope.by_model() {
            let Some(space) = elevated(|| embedding::vector_space(model))? else { continue };
            let texts = vec![text.to_owned()];
            let answer = engine::embed(Some(model), role, texts, Lane::Interactive, &principals)?;
            let query = QueryVector::new(&answer.values)?;
            groups.push(Group { space, vector: answer.values, query, domains, coded: None });
        }
        Ok(Self { look, groups, visible, method: EXACT })
    }
}

impl VectorRetriever<'_> {
    /// At least the nearest `limit` chunks, in no order; `None` where all that a filter lets through has been listed
    /// meanwhile, which chooses the way anew.
    fn compare(&mut self, limit: usize) -> Result<Option<Vec<VectorHit>>> {
        let allowed = self.look.allowed();
        let compared = allowed.and_then(Allowed::listed).map_or(self.visible, |listed| listed.chunks.len());
        let is_exact = compared as i64 <= config::exact_search_limit();
        let mut hits: Vec<VectorHit> = Vec::new();
        self.method = EXACT;
        for Group { space, vector, query, domains, coded } in &mut self.groups {
            if !is_exact && coded.is_none() {
                *coded = Some(elevated(|| CodedEntries::open(self.look.scope(), *space, domains))?);
            }
            let coded = coded.as_ref().and_then(Option::as_ref).filter(|_| !is_exact);
            hits.extend(match (coded, allowed) {
                (Some(coded), _) => {
                    self.method = CODED;
                    let Some(found) = coded.nearest((vector, query), limit, self.look)? else {
                        return Ok(None);
                    };
                    found
                }
                (None, Some(allowed)) => {
                    let listed = allowed.list()?.chunks.iter().map(|(chunk, domain)| (*domain, *chunk));
                    elevated(|| embedding::nearest_among(*space, listed, query, limit))?
                }
                (None, None) => elevated(|| embedding::nearest_exact(*space, domains, query, limit))?,
            });
        }
        Ok(Some(hits))
    }
}

impl Retriever for VectorRetriever<'_> {
    const NAME: &'static str = "vector";
    const FILTERS: bool = true;

    fn rank(&mut self, limit: usize) -> Result<Vec<Ranked>> {
        loop {
            if let Some(mut hits) = self.compare(limit)? {
                hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
                hits.truncate(limit);
                return Ok(hits
                    .iter()
                    .map(|hit| Ranked { id: hit.chunk, score: hit.score as f32 })
                    .collect());
            }
        }
    }

    fn ranked(&self) -> usize {
        self.visible
    }

    fn method(&self) -> Option<&'static str> {
        Some(self.method)
    }
}
