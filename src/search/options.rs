//! Options of searching, read from jsonb: names, ranges, defaults. One place for all functions that search.

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
    /// When the graph extends a search.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum GraphUse {
        Off = "off",
        On = "on",
        /// Where the query asks for a relation.
        Auto = "auto",
    }
}

/// Options of one search.
#[derive(Debug, Clone)]
pub(crate) struct SearchOptions {
    pub(crate) fusion: Fusion,
    /// Share of the keyword retriever, 0 to 1.
    pub(crate) keyword_weight: f64,
    pub(crate) rrf_k: f64,
    /// Hits taken from each retriever.
    pub(crate) candidates: usize,
    /// Least fused score.
    pub(crate) min_score: Option<f64>,
    pub(crate) rerank: bool,
    /// Most pairs that are reranked.
    pub(crate) rerank_limit: usize,
    /// Most characters of a snippet.
    pub(crate) snippet_length: usize,
    pub(crate) graph: GraphUse,
    /// Searches that are made one after the other: the second from what the first has found.
    pub(crate) hops: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            fusion: Fusion::Weighted,
            keyword_weight: 0.5,
            rrf_k: 60.0,
            candidates: 100,
            min_score: None,
            rerank: false,
            rerank_limit: 20,
            snippet_length: 240,
            graph: GraphUse::Off,
            hops: 1,
        }
    }
}

impl SearchOptions {
    /// Takes the search options out of a reader, which then may hold others.
    pub(crate) fn read(reader: &mut OptionReader<'_>) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            fusion: reader.choice("fusion")?.unwrap_or(default.fusion),
            keyword_weight: reader.number("keyword_weight", 0.0..=1.0)?.unwrap_or(default.keyword_weight),
            rrf_k: reader.number("rrf_k", 1.0..=10_000.0)?.unwrap_or(default.rrf_k),
            candidates: reader.integer("candidates", 1..=1000)?.map_or(default.candidates, |n| n as usize),
            min_score: reader.number("min_score", 0.0..=1.0)?,
            rerank: reader.boolean("rerank")?.unwrap_or(default.rerank),
            rerank_limit: reader
                .integer("rerank_limit", 1..=1000)?
                .map_or(default.rerank_limit, |n| n as usize),
            snippet_length: reader
                .integer("snippet_length", 20..=10_000)?
                .map_or(default.snippet_length, |n| n as usize),
            graph: reader.choice("graph")?.unwrap_or(default.graph),
            hops: reader.integer("hops", 1..=2)?.map_or(default.hops, |n| n as usize),
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
