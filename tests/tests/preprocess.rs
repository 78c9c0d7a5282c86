//! What is done with a query before the search: each step finds what the plain query does not, tells of it, depends on
//! nothing that the caller does not see, and leaves the plain query where it fails.

#![allow(clippy::unwrap_used)]

#[path = "preprocess/acronyms.rs"]
mod acronyms;
#[path = "preprocess/chat.rs"]
mod chat;
#[path = "preprocess/rules.rs"]
mod rules;

use rag_tests::{Session, literal};
use serde_json::Value;

/// Addresses of what is found, best first.
fn found(session: &mut Session, query: &str, mode: &str, options: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT uri FROM rag_search({}, k => 3, mode => '{mode}', options => '{options}')",
        literal(query)
    ))
}

/// What a stage tells, if it was there.
fn stage(session: &mut Session, query: &str, mode: &str, options: &str, name: &str) -> Option<Value> {
    let details = session.json(&format!(
        "SELECT details FROM rag_search({}, k => 1, mode => '{mode}', options => '{options}')",
        literal(query)
    ));
    details["stages"].as_array().unwrap().iter().find(|stage| stage["stage"] == name).cloned()
}
