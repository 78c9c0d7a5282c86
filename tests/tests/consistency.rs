//! One transaction, one truth: the keyword retriever, the vector retriever and the tables agree in every snapshot, after
//! every crash, on every copy.

#![allow(clippy::unwrap_used)]

#[path = "consistency/cache.rs"]
mod cache;
#[path = "consistency/copies.rs"]
mod copies;
#[path = "consistency/crash.rs"]
mod crash;
#[path = "consistency/logical.rs"]
mod logical;
#[path = "consistency/repair.rs"]
mod repair;
#[path = "consistency/rewind.rs"]
mod rewind;
#[path = "consistency/snapshots.rs"]
mod snapshots;

use rag_tests::Session;

/// A word that every chunk of these tests holds.
const WORD: &str = "commonword";

/// The chunks that both retrievers and the table show, in one statement and so in one snapshot.
const RETRIEVERS: &str = "SELECT
    (SELECT coalesce(string_agg(id::text, ',' ORDER BY id), '') FROM rag.chunk),
    (SELECT coalesce(string_agg(chunk_id::text, ',' ORDER BY chunk_id), '') FROM rag_search('commonword', k => 1000, mode => 'keyword')),
    (SELECT coalesce(string_agg(chunk_id::text, ',' ORDER BY chunk_id), '') FROM rag_search('commonword', k => 1000, mode => 'vector'))";

/// Compares the retrievers with the table and returns the number of chunks.
#[track_caller]
fn assert_retrievers_agree(session: &mut Session, when: &str) -> usize {
    let rows = session.rows(RETRIEVERS);
    let [table, keyword, vector] = [0, 1, 2].map(|i| rows[0][i].clone().unwrap());
    assert_eq!(keyword, table, "keyword retriever, {when}");
    assert_eq!(vector, table, "vector retriever, {when}");
    let documents = session.count("SELECT count(*) FROM rag.chunk c LEFT JOIN rag.document d ON d.id = c.document_id WHERE d.id IS NULL");
    assert_eq!(documents, 0, "chunks without document, {when}");
    if table.is_empty() { 0 } else { table.split(',').count() }
}
