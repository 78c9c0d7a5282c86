//! What ways of searching are worth on the caller's own queries and judgements.
//!
//! Every query is a search as `rag_search` does it; the measures are those of `rag_core::evaluate`. Queries without a
//! judgement tell nothing and are left out; one that finds nothing counts 0.

use super::diagnostics::Stages;
use super::options::{MAX_K, Mode, SearchOptions, checked_query};
use super::scope::Scope;
use super::{SearchHit, SearchRequest, search};
use crate::error::{Error, Result, excerpt};
use crate::storage::judgement::{JudgedQuery, Judgements};
use crate::storage::{chunk, document, id_of_text, text_of_id};
use rag_core::choices;
use rag_core::evaluate::{Measures, NDCG_CUT, mean, measures};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

choices! {
    /// What judgements are of.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Level {
        /// Documents, by uri, or by id where they have none.
        Document = "document",
        /// Chunks, by id.
        Chunk = "chunk",
    }
}

/// Chunks that are asked for at first, for each document that is wanted, and by how much more each time that these belong
/// to too few documents.
const CHUNKS_PER_DOCUMENT: usize = 4;

/// One way of searching.
pub(crate) struct Way {
    pub(crate) name: Option<String>,
    pub(crate) collection: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) options: SearchOptions,
}

/// What is searched for, and what is right.
pub(crate) struct Task {
    queries: Vec<JudgedQuery>,
    judgements: Judgements,
    /// Queries that nobody judged.
    unjudged: usize,
    level: Level,
    k: usize,
}

/// What one way came to.
pub(crate) struct Outcome {
    /// Measures and time of each query, in the order of the queries.
    pub(crate) queries: Vec<(String, Measures, Duration)>,
    pub(crate) mean: Measures,
    pub(crate) mean_time: Duration,
    /// Judged as relevant, and how many of these the caller sees in what was searched.
    pub(crate) relevant: usize,
    pub(crate) present: usize,
    /// How often a stage fell back on what.
    pub(crate) fallbacks: BTreeMap<String, usize>,
}

impl Task {
    /// 22023: no query has a judgement, or one cannot be searched for.
    pub(crate) fn new(
        mut queries: Vec<JudgedQuery>,
        judgements: Judgements,
        level: Level,
        k: usize,
    ) -> Result<Self> {
        let all = queries.len();
        queries.retain(|query| judgements.contains_key(&query.id));
        if queries.is_empty() {
            return Err(Error::invalid(format!("none of {all} queries has a judgement"))
                .hint("\"id\" of the queries and \"query_id\" of the judgements are compared as texts."));
        }
        for query in &queries {
            checked_query(&query.text, "query")
                .map_err(|error| error.detail(format!("Its id is \"{}\".", excerpt(&query.id))))?;
        }
        let unjudged = all - queries.len();
        Ok(Self { queries, judgements, unjudged, level, k })
    }

    /// Queries that were left out, because nobody judged what they find.
    pub(crate) fn unjudged(&self) -> usize {
        self.unjudged
    }

    /// Searches for every query.
    pub(crate) fn run(&self, way: &Way) -> Result<Outcome> {
        let scope = Scope::to_read(way.collection.as_deref())?;
        let mut fallbacks = BTreeMap::new();
        let mut queries = Vec::with_capacity(self.queries.len());
        for query in &self.queries {
            let (names, time) = self
                .ranked(&scope, way, &query.text, &mut fallbacks)
                .map_err(|error| of_query(error, &query.id))?;
            let empty = HashMap::new();
            let grades = self.judgements.get(&query.id).unwrap_or(&empty);
            let ranked: Vec<i32> = names.iter().map(|name| grades.get(name).copied().unwrap_or(0)).collect();
            let judged: Vec<i32> = grades.values().copied().collect();
            queries.push((query.id.clone(), measures(&ranked, &judged, self.k), time));
        }
        let of_queries: Vec<Measures> = queries.iter().map(|(_, measures, _)| *measures).collect();
        let time: Duration = queries.iter().map(|(_, _, time)| *time).sum();
        let relevant = self.relevant();
        Ok(Outcome {
            mean: mean(&of_queries),
            mean_time: time / queries.len() as u32,
            queries,
            present: self.present(&scope, &relevant)?,
            relevant: relevant.len(),
            fallbacks,
        })
    }

    /// What the judgements of these queries call relevant.
    fn relevant(&self) -> HashSet<&str> {
        let grades = self.queries.iter().filter_map(|query| self.judgements.get(&query.id)).flatten();
        grades.filter(|(_, grade)| **grade > 0).map(|(name, _)| name.as_str()).collect()
    }

    fn present(&self, scope: &Scope, names: &HashSet<&str>) -> Result<usize> {
        match self.level {
            Level::Document => {
                document::count_named(&scope.ids(), &names.iter().copied().collect::<Vec<_>>())
            }
            Level::Chunk => {
                let ids: Vec<_> = names.iter().filter_map(|name| id_of_text(name)).collect();
                Ok(chunk::showable(&scope.ids(), &ids)?.len())
            }
        }
    }

    /// The first documents or chunks, as many as the measures look at, and how long it took to find the first chunks: a
    /// document stands where its first chunk stands.
    fn ranked(
        &self,
        scope: &Scope,
        way: &Way,
        query: &str,
        fallbacks: &mut BTreeMap<String, usize>,
    ) -> Result<(Vec<String>, Duration)> {
        let wanted = self.k.max(NDCG_CUT);
        let most = MAX_K as usize;
        let mut asked = match self.level {
            Level::Document => (wanted * CHUNKS_PER_DOCUMENT).min(most),
            Level::Chunk => wanted,
        };
        let mut first = None;
        loop {
            let since = Instant::now();
            let request =
                SearchRequest { query, k: asked, mode: way.mode, filter: None, options: &way.options };
            let found = search(scope, &request)?;
            let time = *first.get_or_insert_with(|| since.elapsed());
            let is_all = found.hits.len() < asked || asked == most;
            let mut names = self.names(found.hits);
            if is_all || names.len() >= wanted {
                count(&found.stages, fallbacks);
                names.truncate(wanted);
                return Ok((names, time));
            }
            asked = (asked * CHUNKS_PER_DOCUMENT).min(most);
        }
    }

    /// What judgements call the hits, each once.
    fn names(&self, hits: Vec<SearchHit>) -> Vec<String> {
        let name = |hit: SearchHit| match self.level {
            Level::Document => hit.chunk.uri.unwrap_or_else(|| text_of_id(hit.chunk.document)),
            Level::Chunk => text_of_id(hit.chunk.id),
        };
        let mut seen = HashSet::new();
        hits.into_iter().map(name).filter(|name| seen.insert(name.clone())).collect()
    }
}

/// An error that says which of the queries it is about, by its id: the text is nobody else's to read.
fn of_query(error: Error, id: &str) -> Error {
    error.about(&format!("query \"{}\"", excerpt(id)))
}

fn count(stages: &Stages, fallbacks: &mut BTreeMap<String, usize>) {
    for (stage, to) in stages.fallbacks() {
        *fallbacks.entry(format!("{stage}: {to}")).or_default() += 1;
    }
}
