//! The worker "rag_ext index": builds the vector indexes of one database, beside the workers that ingest.

use crate::config;
use crate::error::Result;
use crate::pg::{shared, utility, worker};
use crate::storage::{installed, vector_index};
use pgrx::{PgLogLevel, PgSqlErrorCode};

worker::worker_entry! {
    /// Entry of the worker "rag_ext index".
    rag_ext_index_main => run
}

fn run(database: u32) {
    if !worker::connect(c"rag_ext index", database) {
        return;
    }
    // An index that is built concurrently waits for every older transaction, at its end as well: to give up then would
    // be to begin anew.
    worker::wait_for_locks_without_limit();
    match build_all() {
        Ok(()) => shared::worker_idle(None),
        // Somebody uses the table alone, or the extension is gone: it is looked at again.
        Err(error) if error.code == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE => {}
        Err(_) if matches!(worker::transaction(installed::is_installed), Ok(false)) => {
            shared::worker_idle(None)
        }
        Err(error) => worker::log(
            PgLogLevel::WARNING,
            error.code,
            format!("rag_ext: a vector index cannot be built: {}", error.message),
            Some("It is tried again; meanwhile vector search compares all chunks."),
        ),
    }
}

fn build_all() -> Result<()> {
    while !worker::should_stop() && worker::transaction(installed::is_installed)? {
        let missing = worker::transaction(|| vector_index::missing(config::exact_search_limit()))?;
        let Some(missing) = missing else { break };
        worker::set_activity("rag_ext: building a vector index");
        worker::transaction(|| vector_index::remove_remains(&missing))?;
        utility::run_at_top_level(&missing.statement)?;
    }
    Ok(())
}
