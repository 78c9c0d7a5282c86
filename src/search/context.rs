//! Small to big: chunks are found, and what stands around them is returned.

use super::diagnostics::Stages;
use super::scope::Scope;
use super::{MOST_CANDIDATES, SearchHit, SearchOutcome};
use crate::error::Result;
use crate::storage::Id;
use crate::storage::chunk::{self, Around, Surroundings};
use rag_core::choices;
use rag_core::option::{Choice, OptionReader};

choices! {
    /// What is returned of a chunk that was found.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Context {
        Chunk = "chunk",
        /// The section that it is a part of.
        Section = "section",
        /// The chunk with its neighbours in the document.
        Window = "window",
    }
}

/// Chunks that are found for each parent that is wanted, and by how much more each time that these are too few: several
/// may have the same one.
const CHILDREN: usize = 4;

/// How much around chunks is returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContextOptions {
    context: Context,
    /// Neighbours on either side.
    window: i32,
    /// Most tokens of all rows together; the first row is returned whatever it has.
    tokens: Option<i64>,
}

impl ContextOptions {
    /// Takes its options out of a reader, which may hold others.
    pub(crate) fn read(reader: &mut OptionReader<'_>) -> Result<Self> {
        Ok(Self {
            context: reader.choice("context")?.unwrap_or(Context::Chunk),
            window: reader.integer("context_window", 1..=20)?.map_or(1, |n| n as i32),
            tokens: reader.integer("context_tokens", 1..=10_000_000)?,
        })
    }

    /// `k` rows of what `search` finds, which is told for how many chunks to look. Where these have fewer parents, it looks
    /// for more, as long as there are any, and the budget of tokens has room.
    pub(crate) fn found(
        &self,
        scope: &Scope,
        k: usize,
        search: impl Fn(usize) -> Result<SearchOutcome>,
    ) -> Result<SearchOutcome> {
        let mut children = match self.context {
            Context::Chunk => k,
            Context::Section | Context::Window => k * CHILDREN,
        };
        loop {
            let mut found = search(children)?;
            let is_all = found.hits.len() < children || children >= MOST_CANDIDATES;
            let (parents, is_full) = self.widen(scope, found.hits, k, &mut found.stages)?;
            found.hits = parents;
            if is_all || is_full || found.hits.len() >= k {
                return Ok(found);
            }
            children = (children * CHILDREN).min(MOST_CANDIDATES);
        }
    }

    /// Puts parents in the place of chunks, each once, in the order of their best chunks: at most `k`, and as many as the
    /// budget of tokens has room for. A chunk that stands within a parent before it adds none. True: there is no room for more.
    fn widen(
        &self,
        scope: &Scope,
        mut hits: Vec<SearchHit>,
        k: usize,
        stages: &mut Stages,
    ) -> Result<(Vec<SearchHit>, bool)> {
        let around = match self.context {
            Context::Chunk if self.tokens.is_none() => return Ok((hits, true)),
            Context::Chunk => Around::Neighbours(0),
            // A neighbour that an added policy hides would be in it.
            _ if scope.may_hide_rows() => Around::Neighbours(0),
            Context::Section => Around::Section,
            Context::Window => Around::Neighbours(self.window),
        };
        let found = hits.len();
        let ids: Vec<Id> = hits.iter().map(|hit| hit.chunk.id).collect();
        let look = |_| chunk::surroundings(&scope.ids(), &ids, around);
        let Some((watch, mut surroundings)) = stages.attempt("context", "chunks as they are", look)? else {
            hits.truncate(k);
            return Ok((hits, true));
        };
        let mut parents: Vec<SearchHit> = Vec::with_capacity(k.min(found));
        let (mut tokens, mut is_full) = (0, false);
        for mut hit in hits {
            let contains = |parent: &SearchHit| {
                let (whole, part) = (&parent.chunk, &hit.chunk);
                whole.document == part.document
                    && whole.char_from <= part.char_from
                    && part.char_to <= whole.char_to
            };
            if parents.len() == k || parents.iter().any(contains) {
                continue;
            }
            let Some(Surroundings { content, chars, pages, tokens: more }) =
                surroundings.remove(&hit.chunk.id)
            else {
                continue;
            };
            tokens += more;
            if self.tokens.is_some_and(|most| tokens > most) && !parents.is_empty() {
                is_full = true;
                break;
            }
            let chunk = &mut hit.chunk;
            (chunk.content, chunk.char_from, chunk.char_to) = (content, chars.0, chars.1);
            (chunk.page_from, chunk.page_to) = pages;
            parents.push(hit);
        }
        stages.done_as(watch, found, parents.len(), self.context.name());
        Ok((parents, is_full))
    }
}
