//! Background workers: the engine's supervisor, the launcher, and the workers that it starts per database.
//!
//! Two workers run as long as the server: "rag_ext engine" keeps the engine's process alive, "rag_ext launcher"
//! starts "rag_ext ingest" workers where there is work and lets them go where there is none, so that an idle
//! database has no connection of ours. Beside them "rag_ext index" builds vector indexes, which takes long, and "rag_ext graph"
//! asks the chat model what chunks name.

mod attach;
mod chores;
pub(crate) mod engine_settings;
mod failure;
mod graph;
mod index;
mod ingest;
pub(crate) mod launcher;
mod looks;
mod machine;
mod merge;
mod model_change;
pub(crate) mod supervisor;
mod turn;
mod unwritten;
mod write;

use crate::pg::{shared, worker};
use pgrx::bgworkers::BgWorkerStartTime;

/// Registers the two permanent workers. Call from `_PG_init`, while libraries are preloaded.
pub(crate) fn register() {
    // A hot standby embeds queries, so it needs the engine; it ingests nothing.
    worker::register("rag_ext engine", "rag_ext_engine_main", BgWorkerStartTime::ConsistentState, false);
    worker::register("rag_ext launcher", "rag_ext_launcher_main", BgWorkerStartTime::RecoveryFinished, true);
}

/// Has a worker look for jobs in the current database as soon as the current transaction has committed.
pub(crate) fn wake_at_commit() {
    shared::request_work_at_commit();
}

worker::worker_entry! {
    /// Entry of the worker "rag_ext engine".
    rag_ext_engine_main => |_| supervisor::run()
}

worker::worker_entry! {
    /// Entry of the worker "rag_ext launcher".
    rag_ext_launcher_main => |_| launcher::run()
}
