//! `rag_evaluate`.

use super::{call, options_of, required};
use crate::error::{Error, Result};
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, Oid};
use crate::search::evaluate::{Level, Outcome, Task, Way};
use crate::search::options::{Mode, SearchOptions, checked_k};
use crate::storage::judgement;
use pgrx::JsonB;
use pgrx::prelude::*;
use rag_core::evaluate::Measures;
use rag_core::option::{Choice, OptionError, OptionReader};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Most ways of searching of one call.
const MAX_WAYS: usize = 100;

/// Most characters of a variant's name, and of a collection's.
const MAX_CHARS: usize = 1000;

/// A row: what a way, or one query of it, came to.
struct EvaluatedRow {
    collection: Option<String>,
    variant: Option<String>,
    mode: Mode,
    query: Option<String>,
    queries: usize,
    measures: Measures,
    time: Duration,
    details: Value,
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_evaluate(
    collection: Option<&str>,
    queries: Option<Oid>,
    judgements: Option<Oid>,
    modes: Option<Vec<Option<String>>>,
    k: Option<i32>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(collection, Option<String>),
            name!(variant, Option<String>),
            name!(mode, &'static str),
            name!(query_id, Option<String>),
            name!(queries, i32),
            name!(recall, f64),
            name!(precision, f64),
            name!(mrr, f64),
            name!(ndcg, f64),
            name!(milliseconds, f64),
            name!(details, JsonB),
        ),
    >,
    ErrorReport,
> {
    let rows = call(|| {
        let queries = required(queries, "queries")?;
        let judgements = required(judgements, "judgements")?;
        let modes = modes_of(required(modes, "modes")?)?;
        let k = checked_k(required(k, "k")?)?;
        let options = options_of(options)?;
        let options = EvaluateOptions::read(&options, collection, &modes)?;
        let task =
            Task::new(judgement::queries(queries)?, judgement::judgements(judgements)?, options.level, k)?;
        let mut rows = Vec::new();
        for way in options.ways {
            let outcome = task.run(&way)?;
            rows.extend(rows_of(way, outcome, task.unjudged(), options.per_query));
        }
        Ok(rows)
    })?;
    Ok(TableIterator::new(rows.into_iter().map(|row| {
        (
            row.collection,
            row.variant,
            row.mode.name(),
            row.query,
            row.queries as i32,
            row.measures.recall,
            row.measures.precision,
            row.measures.reciprocal_rank,
            row.measures.ndcg,
            row.time.as_secs_f64() * 1000.0,
            JsonB(row.details),
        )
    })))
}

/// The row of a way, and behind it those of its queries, if they are asked for.
fn rows_of(way: Way, outcome: Outcome, unjudged: usize, per_query: bool) -> Vec<EvaluatedRow> {
    let row = |query, queries, measures, time, details| EvaluatedRow {
        collection: way.collection.clone(),
        variant: way.name.clone(),
        mode: way.mode,
        query,
        queries,
        measures,
        time,
        details,
    };
    let mut details =
        json!({ "relevant": outcome.relevant, "present": outcome.present, "unjudged_queries": unjudged });
    if !outcome.fallbacks.is_empty() {
        details["fallbacks"] = json!(outcome.fallbacks);
    }
    let mut rows = vec![row(None, outcome.queries.len(), outcome.mean, outcome.mean_time, details)];
    if per_query {
        let queries = outcome.queries.into_iter();
        rows.extend(queries.map(|(id, measures, time)| row(Some(id), 1, measures, time, json!({}))));
    }
    rows
}

fn modes_of(modes: Vec<Option<String>>) -> Result<Vec<Mode>> {
    if modes.is_empty() {
        return Err(Error::invalid("modes is empty").hint(Mode::hint()));
    }
    modes
        .into_iter()
        .map(|mode| Ok(Mode::parse(&mode.ok_or_else(|| Error::null("a mode of modes"))?, "a mode of modes")?))
        .collect()
}

/// Options of one evaluation.
struct EvaluateOptions {
    level: Level,
    per_query: bool,
    ways: Vec<Way>,
}

impl EvaluateOptions {
    /// Each variant is searched in its own mode, or in each of `modes`, with the options of all but for what it says itself.
    fn read(options: &Value, collection: Option<&str>, modes: &[Mode]) -> Result<Self> {
        let mut reader = OptionReader::new(options, "rag_evaluate")?;
        let level = reader.choice("level")?.unwrap_or(Level::Document);
        let per_query = reader.boolean("per_query")?.unwrap_or(false);
        let variants = reader.value("variants");
        let common = SearchOptions::read(&mut reader)?;
        reader.finish()?;
        let mut ways = Vec::new();
        for variant in variants_of(variants)? {
            let merged = Value::Object(merged(options, variant));
            let mut reader = OptionReader::new(&merged, "a variant of rag_evaluate")?;
            let name = reader.text("name", MAX_CHARS)?.map(str::to_owned);
            if name.is_none() {
                return Err(Error::invalid("a variant of rag_evaluate has no name"));
            }
            let own = reader.text("collection", MAX_CHARS)?;
            let mode = reader.choice::<Mode>("mode")?;
            let search = SearchOptions::read(&mut reader)?;
            reader.finish()?;
            for mode in mode.as_ref().map_or(modes, std::slice::from_ref) {
                let collection = own.or(collection).map(str::to_owned);
                too_many(ways.len() + 1)?;
                ways.push(Way { name: name.clone(), collection, mode: *mode, options: search.clone() });
            }
        }
        if ways.is_empty() {
            too_many(modes.len())?;
            let way = |mode: &Mode| Way {
                name: None,
                collection: collection.map(str::to_owned),
                mode: *mode,
                options: common.clone(),
            };
            ways = modes.iter().map(way).collect();
        }
        Ok(Self { level, per_query, ways })
    }
}

/// 54000 for more ways than one call may have.
fn too_many(ways: usize) -> Result<()> {
    if ways > MAX_WAYS {
        return Err(Error::limit(format!("{ways} ways to search, but the limit is {MAX_WAYS}")));
    }
    Ok(())
}

/// The objects of the option `variants`.
fn variants_of(variants: Option<&Value>) -> Result<Vec<&Map<String, Value>>> {
    let wrong = || OptionError::invalid("option \"variants\" of rag_evaluate must be an array of objects");
    let Some(variants) = variants else { return Ok(Vec::new()) };
    let variants = variants.as_array().ok_or_else(wrong)?;
    Ok(variants
        .iter()
        .map(|variant| variant.as_object().ok_or_else(wrong))
        .collect::<std::result::Result<_, _>>()?)
}

/// A variant's options over those of all.
fn merged(options: &Value, variant: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = options.as_object().cloned().unwrap_or_default();
    for key in ["level", "per_query", "variants"] {
        merged.remove(key);
    }
    merged.extend(variant.iter().map(|(key, value)| (key.clone(), value.clone())));
    merged
}
