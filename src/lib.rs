//! Retrieval-augmented generation inside Postgres.
//!
//! Layers, imports pointing down: `api` → `workers`, `answer` → `search` → `rights` → `attach` → `document` → `collection` →
//! `ingest` → `engine`, `storage` → `pg`. See ARCHITECTURE.md.

use pgrx::prelude::*;

mod answer;
mod api;
mod attach;
mod collection;
mod config;
mod document;
mod engine;
mod error;
mod ingest;
mod pg;
mod rights;
mod search;
mod setting;
mod storage;
mod workers;

pgrx::pg_module_magic!(name, version);

/// Registers settings and, where the library is preloaded, shared memory and background workers.
#[allow(non_snake_case)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    config::register();
    pg::planner::install();
    pg::explain::install();
    pg::statement::install();
    pg::user_id::register();
    if pg::server::is_preloading() {
        rag_core::answer::prepare();
        pg::shared::reserve();
        pg::hint::install();
        workers::register();
    }
}
