//! The engine process: cancelled waits, sudden deaths, bad settings, and a chat endpoint beside it.

#![allow(clippy::unwrap_used)]

#[path = "engine/cancelling.rs"]
mod cancelling;
#[path = "engine/chat.rs"]
mod chat;
#[path = "engine/dying.rs"]
mod dying;
#[path = "engine/generating.rs"]
mod generating;
#[path = "engine/local_model.rs"]
mod local_model;
#[path = "engine/offline.rs"]
mod offline;
#[path = "engine/prompting.rs"]
mod prompting;
#[path = "engine/providers.rs"]
mod providers;
#[path = "engine/settings.rs"]
mod settings;
#[path = "engine/streaming.rs"]
mod streaming;

use rag_tests::{Cluster, Session, wait_until};
use std::time::Duration;

/// For what takes a moment where nobody is in the way.
const LIMIT: Duration = Duration::from_secs(60);

/// A call that keeps the engine busy for many seconds: 200 pairs of a question and a long passage.
const LONG_CALL: &str = "SELECT count(*) FROM rag_rerank('how does a glacier move? ' || clock_timestamp(), ARRAY(SELECT n || repeat(' a glacier moves downhill under its own weight', 40) FROM generate_series(1, 200) n))";

/// Waits until a backend has been at its statement for so long that it does nothing but wait.
fn wait_until_active(cluster: &Cluster, pid: i32) {
    let mut watcher = cluster.connect("postgres", "postgres");
    wait_until("the call is running", LIMIT, || {
        watcher.count(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' AND now() - query_start > interval '300 ms'"
        )) == 1
    });
}

/// Service is back when a text that no cache knows gets its vector.
fn wait_for_service(session: &mut Session) {
    wait_until("the engine serves again", Duration::from_secs(90), || {
        session.try_rows("SELECT rag_embed('are you back? ' || clock_timestamp())").is_ok()
    });
}
