//! `rag_search`.

use super::{call, options_of, required};
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::stored_jsonb::StoredJsonb;
use crate::search::context::ContextOptions;
use crate::search::keyword::Highlighter;
use crate::search::log::LoggedCall;
use crate::search::options::{Mode, SearchOptions, checked_k, checked_query};
use crate::search::scope::Scope;
use crate::search::{SearchHit, SearchRequest, log, search};
use crate::storage::uuid;
use pgrx::prelude::*;
use rag_core::filter::{Filter, parse_filter};
use rag_core::option::{Choice, OptionReader};
use serde_json::json;
use std::time::Instant;

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_search(
    query: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    k: Option<i32>,
    mode: Option<&str>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(rank, i32),
            name!(document_id, pgrx::Uuid),
            name!(section_id, pgrx::Uuid),
            name!(chunk_id, pgrx::Uuid),
            name!(collection, Option<String>),
            name!(title, Option<String>),
            name!(uri, Option<String>),
            name!(header_path, Vec<String>),
            name!(page_from, Option<i32>),
            name!(page_to, Option<i32>),
            name!(char_from, i32),
            name!(char_to, i32),
            name!(snippet, String),
            name!(content, String),
            name!(score, f64),
            name!(keyword_rank, Option<i32>),
            name!(keyword_score, Option<f64>),
            name!(vector_rank, Option<i32>),
            name!(vector_score, Option<f64>),
            name!(rerank_score, Option<f64>),
            name!(metadata, StoredJsonb),
            name!(details, StoredJsonb),
        ),
    >,
    ErrorReport,
> {
    let rows = call(|| {
        let query = checked_query(required(query, "query")?, "query")?;
        let k = checked_k(required(k, "k")?)?;
        let mode = Mode::parse(required(mode, "mode")?, "mode")?;
        let filter = filter_of(filter)?;
        let options = options_of(options)?;
        let mut reader = OptionReader::new(&options, "rag_search")?;
        let options = SearchOptions::read(&mut reader)?;
        let context = ContextOptions::read(&mut reader)?;
        reader.finish()?;
        let scope = Scope::to_read(collection)?;
        let since = Instant::now();
        let found = context.found(&scope, k, |k| {
            search(&scope, &SearchRequest { query, k, mode, filter: filter.as_ref(), options: &options })
        })?;
        log::note(&LoggedCall {
            query,
            collection,
            mode: mode.name(),
            k,
            chunks: found.hits.iter().map(|hit| hit.chunk.id).collect(),
            stages: &found.stages,
            time: since.elapsed(),
        });
        let mut highlighter = Highlighter::new(found.words.as_deref().unwrap_or(query));
        let stored =
            |details| StoredJsonb::of(details).ok_or_else(|| Error::internal("details are not stored"));
        let (first, other) = (stored(json!({ "stages": found.stages.to_json() }))?, stored(json!({}))?);
        let rows: Vec<(SearchHit, Option<String>, String, StoredJsonb)> = found
            .hits
            .into_iter()
            .enumerate()
            .map(|(i, hit)| {
                let (domain, content) = (hit.chunk.domain, &hit.chunk.content);
                let snippet = highlighter.snippet(content, scope.language(domain), options.snippet_length);
                let details = if i == 0 { &first } else { &other };
                (hit, scope.name(domain), snippet, details.clone())
            })
            .collect();
        Ok(rows)
    })?;
    Ok(TableIterator::new(rows.into_iter().enumerate().map(move |(i, (hit, name, snippet, details))| {
        let SearchHit { chunk, score, keyword, vector, rerank } = hit;
        let rank_of = |place: Option<(usize, f64)>| place.map(|(rank, _)| rank as i32);
        let score_of = |place: Option<(usize, f64)>| place.map(|(_, score)| score);
        (
            i as i32 + 1,
            uuid(chunk.document),
            uuid(chunk.section),
            uuid(chunk.id),
            name,
            chunk.title,
            chunk.uri,
            chunk.header_path,
            chunk.page_from,
            chunk.page_to,
            chunk.char_from,
            chunk.char_to,
            snippet,
            chunk.content,
            score,
            rank_of(keyword),
            score_of(keyword),
            rank_of(vector),
            score_of(vector),
            rerank,
            chunk.metadata,
            details,
        )
    })))
}

/// The filter, if there is one.
pub(super) fn filter_of(filter: Option<GivenJsonb>) -> Result<Option<Filter>> {
    Ok(filter.map(|filter| parse_filter(&filter.0)).transpose()?)
}
