//! Who sees what: every table, view and function, for every kind of caller.

#![allow(clippy::unwrap_used)]

#[path = "isolation/added_policies.rs"]
mod added_policies;
#[path = "isolation/beside_many.rs"]
mod beside_many;
#[path = "isolation/enabling.rs"]
mod enabling;
#[path = "isolation/estimates.rs"]
mod estimates;
#[path = "isolation/gateways.rs"]
mod gateways;
#[path = "isolation/matrix.rs"]
mod matrix;
#[path = "isolation/ranking.rs"]
mod ranking;
#[path = "isolation/roles.rs"]
mod roles;
#[path = "isolation/sharing.rs"]
mod sharing;
#[path = "isolation/side_channels.rs"]
mod side_channels;
#[path = "isolation/tricks.rs"]
mod tricks;
#[path = "isolation/writing.rs"]
mod writing;

use rag_tests::Session;

/// The vectors that the caller can get at; rag.embedding itself is not for them.
const VECTORS: &str = "rag_vectors(ARRAY(SELECT id FROM rag.chunk))";

/// Owners of what a search for a word that every document holds brings.
fn owners_found(session: &mut Session) -> Vec<String> {
    session.column(
        "SELECT DISTINCT d.owner FROM rag_search('owned', k => 1000) s JOIN rag.document d ON d.id = s.document_id ORDER BY 1",
    )
}

/// Owners of the documents that plain SQL shows.
fn owners_shown(session: &mut Session) -> Vec<String> {
    session.column("SELECT DISTINCT owner FROM rag.document ORDER BY 1")
}

/// Plain SQL, both retrievers, and rag_answer agree about whose documents the caller sees.
#[track_caller]
fn assert_sees(session: &mut Session, owners: &[&str]) {
    let mut owners = owners.to_vec();
    owners.sort_unstable();
    assert_eq!(owners_shown(session), owners, "rag.document");
    for mode in ["keyword", "vector", "hybrid"] {
        let found = session.column(&format!(
            "SELECT DISTINCT d.owner FROM rag_search('owned', k => 1000, mode => '{mode}') s
             JOIN rag.document d ON d.id = s.document_id ORDER BY 1"
        ));
        assert_eq!(found, owners, "{mode}");
    }
    let answer = session.json("SELECT rag_answer('What is owned?', options => '{\"min_support\": 0}')");
    for citation in answer["citations"].as_array().unwrap() {
        let id = citation["document_id"].as_str().unwrap();
        assert_eq!(
            session.count(&format!("SELECT count(*) FROM rag.document WHERE id = '{id}'")),
            1,
            "{answer:#}"
        );
    }
}

/// One document whose text says to whom it belongs.
fn own_something(session: &mut Session, label: &str) -> String {
    session.ingest(&format!("This note is owned by {label}."), &format!("note of {label}"))
}
