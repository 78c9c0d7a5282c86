//! Reranking: scores of pairs of query and text, as logits or from 0 to 1, by a model of the engine or the chat model.

use super::SearchHit;
use super::options::SearchOptions;
use crate::config;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::principal;
use crate::storage::chunk::ShownChunk;
use pgrx::PgSqlErrorCode;
use rag_core::rerank::{
    CHAT_MODEL, MAX_CHAT_PASSAGES, SCORES_SCHEMA, chat_logits, chat_prompt, chat_reminder, parse_scores,
};
use rag_wire::{Chat, ChatMessage, MAX_PAIR_BUDGET};
use std::time::{Duration, Instant};

/// Most pairs of one call.
pub(crate) const MAX_PAIRS: usize = 1000;

/// Most tokens of a chat model's scores: some twelve per passage, and room for blanks.
const SCORES_TOKENS: u32 = 512;

/// Tries at scores of a chat model that can be used.
const CHAT_TRIES: usize = 2;

/// Who scored, and what: logits of the first passages, in their order.
struct Scored {
    model: String,
    logits: Vec<f64>,
}

/// Logits of passages, in their order.
pub(crate) fn logits(model: Option<&str>, query: &str, passages: Vec<String>) -> Result<Vec<f64>> {
    let is_chat = model == Some(CHAT_MODEL);
    let limit = if is_chat { MAX_CHAT_PASSAGES } else { MAX_PAIRS };
    if passages.len() > limit {
        return Err(Error::limit(format!("{} texts to rerank, but the limit is {limit}", passages.len())));
    }
    let within = if is_chat { config::llm_deadline() } else { config::engine_timeout() };
    Ok(score(model, query, passages, false, within)?.logits)
}

fn score(
    model: Option<&str>,
    query: &str,
    passages: Vec<String>,
    within_budget: bool,
    within: Duration,
) -> Result<Scored> {
    if passages.is_empty() {
        return Ok(Scored { model: String::new(), logits: Vec::new() });
    }
    if model == Some(CHAT_MODEL) {
        let logits = ask_chat(query, &passages, Instant::now() + within)?;
        return Ok(Scored { model: CHAT_MODEL.to_owned(), logits });
    }
    let principals = principal::current_principals()?;
    let (model, scores) = engine::rerank(model, query, passages, within_budget, within, &principals)?;
    Ok(Scored { model, logits: scores.into_iter().map(f64::from).collect() })
}

/// Has the chat model score passages, all in one prompt. A reply that cannot be used is asked for once more.
fn ask_chat(query: &str, passages: &[String], deadline: Instant) -> Result<Vec<f64>> {
    let texts: Vec<&str> = passages.iter().map(String::as_str).collect();
    let mut messages = chat_prompt(query, &texts);
    let principals = principal::current_principals()?;
    let mut tries = 0;
    loop {
        let asked = messages.iter();
        let chat = Chat {
            messages: asked
                .map(|(role, content)| ChatMessage { role: (*role).to_owned(), content: content.clone() })
                .collect(),
            max_tokens: SCORES_TOKENS,
            json_schema: Some(SCORES_SCHEMA.to_owned()),
            ..Chat::default()
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let completion = engine::chat(chat, left, &principals)?;
        let problem = match parse_scores(&completion.text, passages.len()) {
            Ok(scores) => return Ok(chat_logits(&scores)),
            Err(problem) => problem,
        };
        tries += 1;
        if tries == CHAT_TRIES {
            return Err(Error::new(
                PgSqlErrorCode::ERRCODE_SYSTEM_ERROR,
                format!("the chat model's scores cannot be used: {problem}"),
            ));
        }
        // It also makes another prompt, which the engine's cache does not answer.
        messages.push(chat_reminder(&problem));
    }
}

/// A logit as a number from 0 to 1.
pub(crate) fn sigmoid(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Most hits that a search with these options may rerank.
pub(crate) fn most_pairs(options: &SearchOptions) -> usize {
    let most = limit(options).unwrap_or(MAX_PAIR_BUDGET);
    if options.rerank_model.as_deref() == Some(CHAT_MODEL) { most.min(MAX_CHAT_PASSAGES) } else { most }
}

/// What the caller or the setting says; `None` leaves it to the engine.
fn limit(options: &SearchOptions) -> Option<usize> {
    options.rerank_limit.or_else(config::rerank_limit)
}

/// Puts the first hits in the order of the reranker, ties by id; the others stay behind them. Either all that are to be
/// scored are, before `rag_ext.rerank_timeout`, or it fails and the hits are as before. Returns the number of pairs, and the
/// model.
pub(crate) fn rerank_hits(
    query: &str,
    hits: &mut [SearchHit],
    options: &SearchOptions,
) -> Result<(usize, String)> {
    let most = hits.len().min(most_pairs(options));
    let passages = hits[..most].iter().map(|hit| passage(&hit.chunk)).collect();
    let (model, within) = (options.rerank_model.as_deref(), config::rerank_timeout());
    let scored =
        score(model, query, passages, limit(options).is_none(), within).map_err(|error| {
            match error.code {
                PgSqlErrorCode::ERRCODE_QUERY_CANCELED => late(within),
                _ => error,
            }
        })?;
    let head = &mut hits[..scored.logits.len()];
    for (hit, logit) in head.iter_mut().zip(&scored.logits) {
        let score = sigmoid(*logit);
        hit.rerank = Some(score);
        hit.score = score;
    }
    head.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.id.cmp(&b.chunk.id)));
    Ok((scored.logits.len(), scored.model))
}

fn late(within: Duration) -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
        format!("no scores within rag_ext.rerank_timeout, {} ms", within.as_millis()),
    )
}

/// What a reranker reads: title and headings, a table's header, then the text.
pub(crate) fn passage(chunk: &ShownChunk) -> String {
    let above = above(chunk);
    if above.is_empty() { chunk.content.clone() } else { format!("{above}\n{}", chunk.content) }
}

/// What a chunk stands under: title and headings, and a table's header.
pub(super) fn above(chunk: &ShownChunk) -> String {
    let headings = &chunk.header_path;
    let mut parts: Vec<&str> = Vec::new();
    parts.extend(chunk.title.as_deref().filter(|t| headings.first().map(String::as_str) != Some(*t)));
    parts.extend(headings.iter().map(String::as_str));
    let above = [Some(parts.join(" > ")).filter(|path| !path.is_empty()), chunk.table_header.clone()];
    above.into_iter().flatten().collect::<Vec<_>>().join("\n")
}
