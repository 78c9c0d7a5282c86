//! Documents on their way in: by ordinary SQL, by functions, twice, badly, and while others change them.

#![allow(clippy::unwrap_used)]

#[path = "ingest/concurrent.rs"]
mod concurrent;
#[path = "ingest/failing.rs"]
mod failing;
#[path = "ingest/filtering.rs"]
mod filtering;
#[path = "ingest/hostile.rs"]
mod hostile;
#[path = "ingest/many_rows.rs"]
mod many_rows;
#[path = "ingest/synchronous.rs"]
mod synchronous;
#[path = "ingest/whole_rows.rs"]
mod whole_rows;
#[path = "ingest/writing.rs"]
mod writing;

use rag_tests::Session;

/// A text of about this many chunks, whose words come from nowhere else. None is like another: equal ones would be
/// embedded once, and the work done in a moment.
fn long_text(chunks: usize, word: &str) -> String {
    // A chunk holds at most 480 tokens, and a sentence has about 18.
    (0..chunks * 26)
        .map(|n| {
            format!("The {word} measured river {n} again and wrote the depth into the book of records. ")
        })
        .collect()
}

/// What a search would find of this document.
fn words_found(session: &mut Session, word: &str) -> i64 {
    session.count(&format!("SELECT count(*) FROM rag_search('{word}', k => 1000, mode => 'keyword')"))
}

/// Every position of every chunk and section points to what it says it does.
fn assert_spans_are_exact(session: &mut Session) {
    let wrong = session.rows(
        "SELECT c.id, c.content, substr(d.text, c.char_from + 1, c.char_to - c.char_from)
         FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id
         WHERE c.content IS DISTINCT FROM substr(d.text, c.char_from + 1, c.char_to - c.char_from)
            OR c.char_from < 0 OR c.char_to <= c.char_from OR c.char_to > length(d.text)",
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    let outside = session.rows(
        "SELECT c.id, s.id FROM rag.chunk c LEFT JOIN rag.section s ON s.id = c.section_id
         WHERE s.id IS NULL OR s.document_id <> c.document_id OR c.char_from < s.char_from OR c.char_to > s.char_to",
    );
    assert!(outside.is_empty(), "chunks outside of their sections: {outside:?}");
    let gaps = session.rows(
        "SELECT s.id FROM rag.section s JOIN rag.document d ON d.id = s.document_id
         WHERE s.char_from < 0 OR s.char_to > length(d.text) OR s.char_to <= s.char_from",
    );
    assert!(gaps.is_empty(), "{gaps:?}");
    let vectors = session.rows(
        "SELECT c.id, count(e.chunk_id) FROM rag.chunk c
         LEFT JOIN rag_vectors(ARRAY(SELECT id FROM rag.chunk)) e ON e.chunk_id = c.id
         GROUP BY c.id HAVING count(e.chunk_id) <> 1",
    );
    assert!(vectors.is_empty(), "chunks without their one vector: {vectors:?}");
}
