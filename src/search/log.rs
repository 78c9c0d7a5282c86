//! Notes of searches and answers for `rag.query_log`, where `rag_ext.query_log` is on.

use super::diagnostics::Stages;
use crate::config;
use crate::error::{Error, Result};
use crate::pg::notes::{self, Log};
use crate::pg::{principal, server};
use crate::storage::{Id, text_of_id};
use rag_core::hash;
use serde_json::json;
use std::time::Duration;

/// Most characters that are kept of a query.
const MAX_QUERY_CHARS: usize = 400;

/// Longest owner that is noted: longer ones do not fit into an index.
const MAX_OWNER_BYTES: usize = 1000;

/// Hits whose chunks are kept.
const MAX_CHUNKS: usize = 10;

/// A call that is done.
pub(crate) struct LoggedCall<'a> {
    pub(crate) query: &'a str,
    pub(crate) collection: Option<&'a str>,
    /// That of the search, or [`ANSWER`].
    pub(crate) mode: &'static str,
    pub(crate) k: usize,
    /// Chunks of the hits, or of the citations, best first.
    pub(crate) chunks: Vec<Id>,
    pub(crate) stages: &'a Stages,
    pub(crate) time: Duration,
}

/// The mode of `rag_answer` and its other shapes.
pub(crate) const ANSWER: &str = "answer";

/// Leaves a note of a call. What cannot be noted is counted, and disturbs nobody.
pub(crate) fn note(call: &LoggedCall<'_>) {
    if config::query_log() && leave_note(call).is_err() {
        notes::drop_note(Log::Queries);
    }
}

fn leave_note(call: &LoggedCall<'_>) -> Result<()> {
    let NoteOwner { name, role, number } = note_owner()?;
    let query: String = call.query.chars().take(MAX_QUERY_CHARS).collect();
    let chunks: Vec<String> = call.chunks.iter().take(MAX_CHUNKS).map(|chunk| text_of_id(*chunk)).collect();
    let mut note = json!({
        "owner": name, "owner_role": role, "at": server::now(), "query": query,
        "collection": call.collection, "mode": call.mode, "k": call.k, "hits": call.chunks.len(),
        "milliseconds": call.time.as_secs_f64() * 1000.0, "chunk_ids": chunks, "stages": call.stages.to_json(),
    });
    if note.to_string().len() > Log::Queries.note_bytes() {
        // Reasons of many stages may be long: better a note without them than none.
        note["stages"] = json!([]);
    }
    notes::push(Log::Queries, role, number, note.to_string().as_bytes());
    Ok(())
}

/// Whose a note is.
pub(crate) struct NoteOwner {
    pub(crate) name: String,
    pub(crate) role: u32,
    /// Tells owners of one role apart.
    pub(crate) number: u64,
}

/// The caller, as the owner of a note.
pub(crate) fn note_owner() -> Result<NoteOwner> {
    let name = principal::current_owner()?;
    if name.len() > MAX_OWNER_BYTES {
        return Err(Error::limit(format!("an owner of {} bytes is not logged", name.len())));
    }
    let role = principal::existing_role(&name)?.to_u32();
    let number = hash::number(name.as_bytes());
    Ok(NoteOwner { name, role, number })
}
