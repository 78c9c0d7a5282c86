//! Options of searching, read from jsonb: names, ranges, defaults. One place for all functions that search.

use super::preprocess::Steps;
use crate::config;
use crate::error::{Error, Result};
use rag_core::choices;
use rag_core::option::OptionReader;

/// Most rows of one call.
pub(crate) const MAX_K: i32 = 1000;

/// Most bytes of a query or question.
pub(crate) const MAX_QUERY_BYTES: usize = 64 * 1024;

choices! {
    /// Which retrievers are asked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Mode {
        Hybrid = "hybrid",
        Keyword = "keyword",
        Vector = "vector",
    }
}

choices! {
    /// How the retrievers' lists become one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fusion {
        /// Min–max normalised scores, weighted.
        Weighted = "weighted",
        /// Reciprocal rank fusion.
        Rrf = "rrf",
    }
}

choices! {
    /// What becomes of a chunk that says nearly the same as a better one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum NearDuplicates {
        /// It gives way to the next ones, as long as there are any.
        Remove = "remove",
        Keep = "keep",
    }
}

choices! {
    /// When the graph extends a search.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum GraphUse {
        Off = "off",
        On = "on",
        /// Where the query asks for a relation.
        Auto = "auto",
    }
}

choices! {
    /// From what the second of two searches takes what it looks for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum NextHop {
        /// From the entities that the first hits are about.
        Entities = "entities",
        /// From the chat model, which reads the first hits.
        Chat = "chat",
    }
}

/// Options of one search.
#[derive(Debug, Clone)]
pub(crate) struct SearchOptions {
    pub(crate) fusion: Fusion,
    /// Share of the keyword retriever, 0 to 1; where none is given it is found by rules.
    pub(crate) keyword_weight: Option<f64>,
    pub(crate) rrf_k: f64,
    /// Hits taken from each retriever.
    pub(crate) candidates: usize,
    /// Least fused score.
    pub(crate) min_score: Option<f64>,
    /// Least cosine of what the vector retriever finds.
    pub(crate) min_similarity: Option<f64>,
    /// Least score of the reranker.
    pub(crate) min_rerank_score: Option<f64>,
    pub(crate) near_duplicates: NearDuplicates,
    /// Added to a fused score, scaled to at most 1, where the name of the source has a word of the query.
    pub(crate) source_boost: f64,
    /// What the caller's feedback counts for, 0 to 1; where none is given, what the collections say.
    pub(crate) feedback_boost: Option<f64>,
    /// Whether hits are reranked; by default they are where a model or a least score for it is named.
    pub(crate) rerank: bool,
    /// The reranker; `None` is the server's.
    pub(crate) rerank_model: Option<String>,
    /// Most pairs that are reranked; `None` leaves it to the setting.
    pub(crate) rerank_limit: Option<usize>,
    /// Most hits that are left after reranking; `None` leaves as many as are asked for.
    pub(crate) rerank_top_n: Option<usize>,
    /// Most characters of a snippet.
    pub(crate) snippet_length: usize,
    /// What is done with the query first.
    pub(crate) steps: Steps,
    pub(crate) graph: GraphUse,
    /// Searches that are made one after the other: the second from what the first has found.
    pub(crate) hops: usize,
    pub(crate) next_hop: NextHop,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            fusion: Fusion::Weighted,
            keyword_weight: None,
            rrf_k: 60.0,
            candidates: config::candidates(),
            min_score: None,
            min_similarity: None,
            min_rerank_score: None,
            near_duplicates: NearDuplicates::Remove,
            source_boost: 0.0,
            feedback_boost: None,
            rerank: false,
            rerank_model: None,
            rerank_limit: None,
            rerank_top_n: config::rerank_top_n(),
            snippet_length: 240,
            steps: Steps::default(),
            graph: GraphUse::Off,
            hops: 1,
            next_hop: NextHop::Entities,
        }
    }
}

impl SearchOptions {
    /// Takes the search options out of a reader, which then may hold others.
    pub(crate) fn read(reader: &mut OptionReader<'_>) -> Result<Self> {
        let default = Self::default();
        let rerank_model = reader.text("rerank_model", 128)?.map(str::to_owned);
        let min_rerank_score = reader.number("min_rerank_score", 0.0..=1.0)?;
        let is_reranked = rerank_model.is_some() || min_rerank_score.is_some();
        Ok(Self {
            fusion: reader.choice("fusion")?.unwrap_or(default.fusion),
            keyword_weight: reader.number("keyword_weight", 0.0..=1.0)?,
            rrf_k: reader.number("rrf_k", 1.0..=10_000.0)?.unwrap_or(default.rrf_k),
            candidates: reader.integer("candidates", 1..=1000)?.map_or(default.candidates, |n| n as usize),
            min_score: reader.number("min_score", 0.0..=1.0)?,
            min_similarity: reader.number("min_similarity", -1.0..=1.0)?,
            min_rerank_score,
            near_duplicates: reader.choice("near_duplicates")?.unwrap_or(default.near_duplicates),
            source_boost: reader.number("source_boost", 0.0..=1.0)?.unwrap_or(default.source_boost),
            feedback_boost: reader.number("feedback_boost", 0.0..=1.0)?,
            rerank: reader.boolean("rerank")?.unwrap_or(is_reranked),
            rerank_model,
            rerank_limit: reader.integer("rerank_limit", 1..=1000)?.map(|n| n as usize),
            rerank_top_n: reader
                .integer("rerank_top_n", 1..=1000)?
                .map_or(default.rerank_top_n, |n| Some(n as usize)),
            snippet_length: reader
                .integer("snippet_length", 20..=10_000)?
                .map_or(default.snippet_length, |n| n as usize),
            steps: Steps::read(reader)?,
            graph: reader.choice("graph")?.unwrap_or(default.graph),
            hops: reader.integer("hops", 1..=2)?.map_or(default.hops, |n| n as usize),
            next_hop: reader.choice("next_hop")?.unwrap_or(default.next_hop),
        })
    }
}

/// A number of rows, 1 to 1000.
pub(crate) fn checked_k(k: i32) -> Result<usize> {
    if (1..=MAX_K).contains(&k) {
        Ok(k as usize)
    } else {
        Err(Error::invalid(format!("k is {k}, but must be from 1 to {MAX_K}")))
    }
}

/// A query of at most 64 KiB that has a letter or digit of some script: nothing else can be found or answered.
pub(crate) fn checked_query<'a>(query: &'a str, name: &str) -> Result<&'a str> {
    if query.len() > MAX_QUERY_BYTES {
        return Err(Error::limit(format!(
            "{name} has {} bytes, but the limit is {MAX_QUERY_BYTES}",
            query.len()
        )));
    }
    if !query.contains(char::is_alphanumeric) {
        let what = if query.trim().is_empty() { "is empty" } else { "has no letter or digit" };
        return Err(Error::invalid(format!("{name} {what}"))
            .hint("Give at least one word, name, number or code to look for."));
    }
    Ok(query)
}
