//! Existing tables as collections: what follows from a change of the table, and who sees it.

#![allow(clippy::unwrap_used)]

#[path = "attach/copies.rs"]
mod copies;
#[path = "attach/endless.rs"]
mod endless;
#[path = "attach/following.rs"]
mod following;
#[path = "attach/leaks.rs"]
mod leaks;
#[path = "attach/random.rs"]
mod random;
#[path = "attach/rights.rs"]
mod rights;
#[path = "attach/standing.rs"]
mod standing;

use rag_tests::Session;

/// Documents of a collection as their rows say: the text of each, in order.
fn indexed(session: &mut Session, collection: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT string_agg(c.content, '|' ORDER BY c.ordinal) FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id
         WHERE d.collection = '{collection}' GROUP BY d.id ORDER BY 1"
    ))
}

/// Waits until a collection has followed its table.
#[track_caller]
fn settle(session: &mut Session, collection: &str) {
    assert!(session.settles(&format!("SELECT rag_wait('{collection}', '10 min')")), "{:?}", state(session));
}

fn state(session: &mut Session) -> Vec<Vec<Option<String>>> {
    session.rows("SELECT source, collection, state, pass, rows, done, pending, failed, error FROM rag.attachment_status")
}
