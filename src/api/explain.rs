//! `rag_explain`.

use super::search::filter_of;
use super::{call, options_of, required};
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::search::SearchRequest;
use crate::search::diagnostics::Stage;
use crate::search::explain::{ExplainedCandidate, explain};
use crate::search::options::{Mode, SearchOptions, checked_k, checked_query};
use crate::search::scope::Scope;
use crate::storage::uuid;
use pgrx::JsonB;
use pgrx::prelude::*;
use rag_core::option::{Choice, OptionReader};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Stages whose ranks and scores have columns; those of others stand in the details.
const WITH_COLUMNS: [&str; 4] = ["keyword", "vector", "fusion", "rerank"];

/// A stage, or a candidate.
enum ExplainRow {
    Stage(Stage),
    Candidate(Box<ExplainedCandidate>),
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_explain(
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
            name!(kind, &'static str),
            name!(stage, Option<&'static str>),
            name!(input, Option<i64>),
            name!(output, Option<i64>),
            name!(milliseconds, Option<f64>),
            name!(method, Option<String>),
            name!(fallback, Option<String>),
            name!(reason, Option<String>),
            name!(rank, Option<i32>),
            name!(score, Option<f64>),
            name!(document_id, Option<pgrx::Uuid>),
            name!(chunk_id, Option<pgrx::Uuid>),
            name!(title, Option<String>),
            name!(uri, Option<String>),
            name!(keyword_rank, Option<i32>),
            name!(keyword_score, Option<f64>),
            name!(vector_rank, Option<i32>),
            name!(vector_score, Option<f64>),
            name!(fusion_rank, Option<i32>),
            name!(fusion_score, Option<f64>),
            name!(rerank_rank, Option<i32>),
            name!(rerank_score, Option<f64>),
            name!(dropped, Option<String>),
            name!(details, JsonB),
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
        let mut reader = OptionReader::new(&options, "rag_explain")?;
        let with_candidates = reader.boolean("per_candidate")?.unwrap_or(false);
        let options = SearchOptions::read(&mut reader)?;
        reader.finish()?;
        let scope = Scope::to_read(collection)?;
        let request = SearchRequest { query, k, mode, filter: filter.as_ref(), options: &options };
        let explained = explain(&scope, &request, with_candidates)?;
        let stages = explained.stages.into_rows().into_iter().map(ExplainRow::Stage);
        let candidates = explained.candidates.into_iter().map(|c| ExplainRow::Candidate(Box::new(c)));
        Ok(stages.chain(candidates).collect::<Vec<_>>())
    })?;
    Ok(TableIterator::new(rows.into_iter().map(|row| match row {
        ExplainRow::Stage(stage) => (
            "stage",
            Some(stage.name),
            Some(stage.input as i64),
            Some(stage.output as i64),
            Some(stage.milliseconds),
            stage.method.map(Cow::into_owned),
            stage.fallback.map(str::to_owned),
            stage.reason,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            JsonB(stage.details.unwrap_or_else(|| json!({}))),
        ),
        ExplainRow::Candidate(found) => {
            let details = places_without_columns(&found);
            let ExplainedCandidate { chunk, candidate, hit } = *found;
            let rank_in = |stage: &str| candidate.place(stage).map(|place| place.rank as i32);
            let score_in = |stage: &str| candidate.place(stage).map(|place| place.score);
            let [keyword, vector, fusion, rerank] = WITH_COLUMNS;
            (
                "candidate",
                None,
                None,
                None,
                None,
                None,
                None,
                None,
                hit.map(|(rank, _)| rank as i32),
                hit.map(|(_, score)| score),
                Some(uuid(chunk.document)),
                Some(uuid(chunk.id)),
                chunk.title,
                chunk.uri,
                rank_in(keyword),
                score_in(keyword),
                rank_in(vector),
                score_in(vector),
                rank_in(fusion),
                score_in(fusion),
                rank_in(rerank),
                score_in(rerank),
                candidate.dropped.clone(),
                JsonB(details),
            )
        }
    })))
}

/// `{"graph": {"rank": 1, "score": 0.5}}`, for each stage without columns of its own.
fn places_without_columns(found: &ExplainedCandidate) -> Value {
    let others = found.candidate.places.iter().filter(|place| !WITH_COLUMNS.contains(&place.stage));
    let places: Map<String, Value> = others
        .map(|place| (place.stage.to_owned(), json!({ "rank": place.rank, "score": place.score })))
        .collect();
    Value::Object(places)
}
