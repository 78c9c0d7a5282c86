//! Chunks: what previews show, what re-ingesting keeps, and the methods of cutting.

#![allow(clippy::unwrap_used)]

#[path = "chunking/keeping.rs"]
mod keeping;
#[path = "chunking/methods.rs"]
mod methods;
#[path = "chunking/preview.rs"]
mod preview;

use rag_tests::{Session, literal};

/// A document of so many sections, each about something of its own.
fn sections(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| {
            format!("## The {word}\n\nWhat is known of the {word} was written down here by its keeper.\n\n")
        })
        .collect()
}

/// Chunks of a document in order: id, ordinal, content.
fn chunks(session: &mut Session, uri: &str) -> Vec<(String, String, String)> {
    let rows = session.rows(&format!(
        "SELECT c.id, c.ordinal, c.content FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id
         WHERE d.uri = {} ORDER BY c.ordinal",
        literal(uri)
    ));
    rows.into_iter()
        .map(|row| {
            let mut values = row.into_iter().map(Option::unwrap);
            (values.next().unwrap(), values.next().unwrap(), values.next().unwrap())
        })
        .collect()
}

/// Chunks and computed vectors of the latest work on a document.
fn work(session: &mut Session, uri: &str) -> (i64, i64) {
    let row = session.rows(&format!(
        "SELECT j.chunks, j.embedded FROM rag.job j JOIN rag.document d ON d.id = j.document_id WHERE d.uri = {}",
        literal(uri)
    ));
    (row[0][0].as_ref().unwrap().parse().unwrap(), row[0][1].as_ref().unwrap().parse().unwrap())
}

/// Positions of all chunks and sections of the caller's documents hold what they say.
fn assert_spans_are_exact(session: &mut Session) {
    let wrong = session.rows(
        "SELECT c.id FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id
         LEFT JOIN rag.section s ON s.id = c.section_id AND s.document_id = c.document_id
         WHERE c.content IS DISTINCT FROM substr(d.text, c.char_from + 1, c.char_to - c.char_from)
            OR s.id IS NULL OR c.char_from < s.char_from OR c.char_to > s.char_to
            OR c.sha256 <> sha256(convert_to(CASE c.context WHEN '' THEN '' ELSE c.context || E'\\n' END || c.content, 'UTF8'))",
    );
    assert!(wrong.is_empty(), "{wrong:?}");
    let vectors = session.rows(
        "SELECT c.id FROM rag.chunk c LEFT JOIN rag_vectors(ARRAY(SELECT id FROM rag.chunk)) e ON e.chunk_id = c.id
         GROUP BY c.id HAVING count(e.chunk_id) <> 1",
    );
    assert!(vectors.is_empty(), "chunks without their one vector: {vectors:?}");
    let ordinals = session.rows(
        "SELECT d.uri FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id GROUP BY d.id, d.uri, d.chunks
         HAVING count(*) <> d.chunks OR min(c.ordinal) <> 0 OR max(c.ordinal) <> d.chunks - 1
             OR count(DISTINCT c.ordinal) <> d.chunks",
    );
    assert!(ordinals.is_empty(), "ordinals with gaps: {ordinals:?}");
}
