//! `rag_rerank`, `rag_rerank_chunks`, and a query's embedding.

use super::{call, options_of, required};
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{principal, server};
use crate::rights;
use crate::search::options::checked_query;
use crate::search::rerank::{MAX_PAIRS, logits, passage, sigmoid};
use crate::storage::{Id, chunk, id, uuid};
use pgrx::prelude::*;
use rag_core::option::OptionReader;
use rag_wire::{Lane, TextRole};

/// Options of reranking.
struct RerankOptions {
    model: Option<String>,
    k: usize,
    raw: bool,
}

impl RerankOptions {
    fn read(options: Option<GivenJsonb>, function: &str) -> Result<Self> {
        let options = options_of(options)?;
        let mut reader = OptionReader::new(&options, function)?;
        let read = Self {
            model: reader.text("model", 128)?.map(str::to_owned),
            k: reader.integer("k", 1..=MAX_PAIRS as i64)?.map_or(MAX_PAIRS, |k| k as usize),
            raw: reader.boolean("raw")?.unwrap_or(false),
        };
        reader.finish()?;
        Ok(read)
    }

    /// Items in falling order of score, ties by item; the first `k`.
    fn ordered<T: Ord>(&self, items: impl IntoIterator<Item = T>, logits: Vec<f64>) -> Vec<(T, f64)> {
        let score = |logit: f64| if self.raw { logit } else { sigmoid(logit) };
        let mut rows: Vec<(T, f64)> = items.into_iter().zip(logits.into_iter().map(score)).collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        rows.truncate(self.k);
        rows
    }
}

#[pg_extern(sql = false)]
fn rag_rerank(
    query: Option<&str>,
    documents: Option<Vec<Option<String>>>,
    options: Option<GivenJsonb>,
) -> std::result::Result<TableIterator<'static, (name!(index, i32), name!(score, f64))>, ErrorReport> {
    let rows = call(|| {
        let query = checked_query(required(query, "query")?, "query")?;
        let documents = required(documents, "documents")?;
        let options = RerankOptions::read(options, "rag_rerank")?;
        check_pairs(documents.len())?;
        let texts: Vec<String> = documents
            .into_iter()
            .map(|d| d.ok_or_else(|| Error::null("a text of documents")))
            .collect::<Result<_>>()?;
        let count = texts.len() as i32;
        let scores = logits(options.model.as_deref(), query, texts)?;
        Ok(options.ordered(1..=count, scores))
    })?;
    Ok(TableIterator::new(rows))
}

#[pg_extern(sql = false)]
fn rag_rerank_chunks(
    query: Option<&str>,
    chunk_ids: Option<Vec<Option<pgrx::Uuid>>>,
    options: Option<GivenJsonb>,
) -> std::result::Result<TableIterator<'static, (name!(chunk_id, pgrx::Uuid), name!(score, f64))>, ErrorReport>
{
    let rows = call(|| {
        let query = checked_query(required(query, "query")?, "query")?;
        let ids: Vec<Id> = required(chunk_ids, "chunk_ids")?.into_iter().flatten().map(id).collect();
        let options = RerankOptions::read(options, "rag_rerank_chunks")?;
        check_pairs(ids.len())?;
        let domains: Vec<Id> =
            rights::visible_domains(crate::config::all_domains() && server::user_is_superuser(), None)?
                .into_iter()
                .map(|d| d.id)
                .collect();
        let mut shown: Vec<_> = chunk::show(&domains, &ids)?.into_values().collect();
        shown.sort_by_key(|c| c.id);
        let passages = shown.iter().map(passage).collect();
        let scores = logits(options.model.as_deref(), query, passages)?;
        Ok(options.ordered(shown.iter().map(|c| c.id), scores))
    })?;
    Ok(TableIterator::new(rows.into_iter().map(|(id, score)| (uuid(id), score))))
}

fn check_pairs(count: usize) -> Result<()> {
    if count > MAX_PAIRS {
        return Err(Error::limit(format!("{count} texts to rerank, but the limit is {MAX_PAIRS}")));
    }
    Ok(())
}

#[pg_extern(sql = false)]
fn embed(input: Option<&str>, model: Option<&str>) -> std::result::Result<Vec<f32>, ErrorReport> {
    call(|| {
        let input = required(input, "input")?;
        let principals = principal::current_principals()?;
        let answer =
            engine::embed(model, TextRole::Query, vec![input.to_owned()], Lane::Interactive, &principals)?;
        Ok(answer.values)
    })
}
