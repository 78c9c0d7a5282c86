//! L4: what SQL calls. Each function checks its arguments, calls one use case and shapes rows.
//!
//! The SQL declarations, with defaults and comments, are in `sql/`.

mod acronym;
mod alter;
mod answer;
mod answer_log;
mod answer_many;
mod answer_stream;
mod attach;
mod chunking;
mod collection;
mod embedding;
mod evaluate;
mod evaluate_answers;
mod explain;
mod feedback;
mod graph;
mod ingest;
mod metadata;
mod policy;
mod principal;
mod prompt;
mod rerank;
mod search;
mod status;
mod trigger;
mod verify;
mod work;

use crate::error::{Error, Result};
use crate::pg::elevation::with_safe_search_path;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, call_cache, memory, server, shared};
use crate::storage::installed;

/// Runs a function's body under a search path of our own, and gives errors the form that SQL gets. 55000 where the library
/// is not preloaded: nothing would be ingested, and half of an answer looks like a whole one. 55000 where it is of another
/// version than the tables, too.
fn call<T>(body: impl FnOnce() -> Result<T>) -> std::result::Result<T, ErrorReport> {
    call_even_unloaded(|| {
        shared::require()?;
        installed::require_version()?;
        body()
    })
}

/// As [`call`], for what works, or is a matter of rows alone, where the library is not preloaded.
fn call_even_unloaded<T>(body: impl FnOnce() -> Result<T>) -> std::result::Result<T, ErrorReport> {
    // In the order in which they are to end, from the last.
    let _memory = memory::GivenBack;
    let _call = call_cache::enter();
    with_safe_search_path(body).map_err(|mut error| {
        if error.has_private_detail && !server::user_is_superuser() {
            error.detail = None;
        }
        ErrorReport::from(error)
    })
}

/// The value of an argument that must not be null: 22004.
fn required<T>(argument: Option<T>, name: &str) -> Result<T> {
    argument.ok_or_else(|| Error::null(name))
}

/// The options object; a NULL is an error like any other non-object.
fn options_of(options: Option<GivenJsonb>) -> Result<serde_json::Value> {
    required(options, "options").map(|options| options.0)
}
