//! Notes of searches for `rag.query_log`, where `rag_ext.query_log` is on.

use super::{SearchOutcome, SearchRequest};
use crate::config;
use crate::error::{Error, Result};
use crate::pg::{principal, query_log, query_queue, server};
use crate::storage::text_of_id;
use rag_core::option::Choice;
use serde_json::json;
use std::time::Duration;

/// Most characters that are kept of a query.
const MAX_QUERY_CHARS: usize = 400;

/// Longest owner that is noted: longer ones do not fit into an index.
const MAX_OWNER_BYTES: usize = 1000;

/// Hits whose chunks are kept.
const MAX_CHUNKS: usize = 10;

/// Leaves a note of a search that is done. What cannot be noted is counted, and disturbs no search.
pub(crate) fn note(
    collection: Option<&str>,
    request: &SearchRequest<'_>,
    outcome: &SearchOutcome,
    time: Duration,
) {
    if !config::query_log() {
        return;
    }
    match written(collection, request, outcome, time) {
        Ok(note) => query_log::push(note.as_bytes()),
        Err(_) => query_log::drop_note(),
    }
}

fn written(
    collection: Option<&str>,
    request: &SearchRequest<'_>,
    outcome: &SearchOutcome,
    time: Duration,
) -> Result<String> {
    let owner = principal::current_owner()?;
    if owner.len() > MAX_OWNER_BYTES {
        return Err(Error::limit(format!("an owner of {} bytes is not logged", owner.len())));
    }
    let role = principal::existing_role(&owner)?;
    let query: String = request.query.chars().take(MAX_QUERY_CHARS).collect();
    let chunks: Vec<String> =
        outcome.hits.iter().take(MAX_CHUNKS).map(|hit| text_of_id(hit.chunk.id)).collect();
    let mut note = json!({
        "owner": owner, "owner_role": role.to_u32(), "at": server::now(), "query": query,
        "collection": collection, "mode": request.mode.name(), "k": request.k, "hits": outcome.hits.len(),
        "milliseconds": time.as_secs_f64() * 1000.0, "chunk_ids": chunks, "stages": outcome.stages.to_json(),
    });
    let text = note.to_string();
    if text.len() <= query_queue::NOTE_BYTES {
        return Ok(text);
    }
    // Reasons of many stages may be long: better a note without them than none.
    note["stages"] = json!([]);
    Ok(note.to_string())
}
