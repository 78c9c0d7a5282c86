//! Re-ingesting: what stays the same keeps its id, its row, its vector and its place in the index.

use super::{assert_spans_are_exact, chunks, sections, work};
use rag_tests::{Database, Session, literal, wait_until};
use std::time::Duration;

const ANIMALS: [&str; 6] = ["badger", "heron", "otter", "lynx", "marten", "adder"];

/// Rows of the vectors of a document's chunks, as they stand on the disk.
fn vector_rows(session: &mut Session, uri: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT c.id || ' ' || e.ctid || ' ' || e.xmin FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id
         JOIN rag.embedding e ON e.domain_id = c.domain_id AND e.chunk_id = c.id
         WHERE d.uri = {} ORDER BY 1",
        literal(uri)
    ))
}

#[test]
fn one_changed_paragraph_costs_one_embedding() {
    let database = Database::new("one_changed");
    let mut ann = database.user("ann");
    let text = sections(&ANIMALS);
    ann.ingest(&text, "animals");
    assert_eq!(work(&mut ann, "animals"), (6, 6));
    let (before, vectors) = (chunks(&mut ann, "animals"), vector_rows(&mut database.admin(), "animals"));

    ann.ingest(&text.replace("of the otter was written", "of the otter was never written"), "animals");
    assert_eq!(work(&mut ann, "animals"), (6, 1));
    let after = chunks(&mut ann, "animals");
    for (old, new) in before.iter().zip(&after) {
        assert_eq!(old == new, !new.2.contains("otter"), "{old:?} {new:?}");
    }
    assert_ne!(before[2].0, after[2].0, "another text has another id");
    let kept: Vec<String> = vector_rows(&mut database.admin(), "animals")
        .into_iter()
        .filter(|row| !row.starts_with(&after[2].0))
        .collect();
    assert!(kept.len() == 5 && kept.iter().all(|row| vectors.contains(row)), "{kept:?} {vectors:?}");
    assert_spans_are_exact(&mut ann);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('otter', mode => 'keyword')"), 1);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('never', mode => 'keyword')"), 1);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('keeper', k => 100, mode => 'keyword')"), 6);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('keeper', k => 100, mode => 'vector')"), 6);
}

#[test]
fn what_is_put_before_them_moves_chunks_and_leaves_them_the_same() {
    let database = Database::new("moved");
    let mut ann = database.user("ann");
    let text = sections(&ANIMALS);
    ann.ingest(&text, "animals");
    let before = chunks(&mut ann, "animals");
    ann.ingest(&format!("{}{text}", sections(&["wölf 🐺"])), "animals");
    assert_eq!(work(&mut ann, "animals"), (7, 1));
    let after = chunks(&mut ann, "animals");
    assert_eq!(
        before.iter().map(|chunk| &chunk.0).collect::<Vec<_>>(),
        after[1..].iter().map(|chunk| &chunk.0).collect::<Vec<_>>()
    );
    assert_spans_are_exact(&mut ann);

    let moved: Vec<&str> = ANIMALS.iter().rev().copied().collect();
    ann.ingest(&sections(&moved), "animals");
    assert_eq!(work(&mut ann, "animals"), (6, 0), "another order is no new text");
    assert_spans_are_exact(&mut ann);
    let top = ann.rows("SELECT char_from, content FROM rag_search('adder', k => 1, mode => 'keyword')");
    assert_eq!(top[0][0].as_deref(), Some("0"), "a hit shows where its text stands now");
}

#[test]
fn equal_texts_of_a_document_are_chunks_of_their_own() {
    let database = Database::new("equal_texts");
    let mut ann = database.user("ann");
    ann.ingest(&sections(&["owl", "owl", "owl", "crow"]), "owls");
    assert_eq!(work(&mut ann, "owls"), (4, 2));
    let before = chunks(&mut ann, "owls");
    ann.ingest(&sections(&["owl", "owl", "crow"]), "owls");
    let after = chunks(&mut ann, "owls");
    assert_eq!(work(&mut ann, "owls"), (3, 0));
    assert_eq!(before[0].0, after[0].0);
    assert_eq!(before[1].0, after[1].0);
    assert_eq!(before[3].0, after[2].0);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('owl', mode => 'keyword')"), 2);
    assert_spans_are_exact(&mut ann);
}

#[test]
fn a_copy_embeds_nothing() {
    let database = Database::new("copy_embeds");
    let mut ann = database.user("ann");
    let text = sections(&ANIMALS);
    ann.ingest(&text, "first");
    ann.ingest(&text, "second");
    assert_eq!(work(&mut ann, "second"), (6, 0));
    let (first, second) = (chunks(&mut ann, "first"), chunks(&mut ann, "second"));
    assert!(first.iter().zip(&second).all(|(a, b)| a.0 != b.0 && a.2 == b.2), "ids belong to a document");
    assert_spans_are_exact(&mut ann);
}

#[test]
fn a_new_title_is_searched_and_the_old_one_is_not() {
    let database = Database::new("new_title");
    let mut ann = database.user("ann");
    let id = ann.ingest(&sections(&ANIMALS), "animals");
    ann.run(&format!("UPDATE rag.document SET title = 'Bestiary' WHERE id = '{id}'"));
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('bestiary', k => 100, mode => 'keyword')"), 6);
    ann.run(&format!("UPDATE rag.document SET title = 'Fauna' WHERE id = '{id}'"));
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('bestiary', k => 100, mode => 'keyword')"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('fauna', k => 100, mode => 'keyword')"), 6);
    assert_spans_are_exact(&mut ann);
}

#[test]
fn text_that_comes_back_counts_once() {
    let database = Database::new("comes_back");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let (all, some) = (sections(&ANIMALS), sections(&ANIMALS[..2]));
    ann.ingest(&all, "animals");
    let first = chunks(&mut ann, "animals");
    for _ in 0..3 {
        ann.ingest(&some, "animals");
        assert_eq!(ann.count("SELECT count(*) FROM rag_search('lynx', mode => 'keyword')"), 0);
        ann.ingest(&all, "animals");
        assert_eq!(chunks(&mut ann, "animals"), first, "the same text has the same ids");
        assert_eq!(ann.count("SELECT count(*) FROM rag_search('lynx', mode => 'keyword')"), 1);
        assert_eq!(ann.count("SELECT count(*) FROM rag_search('keeper', k => 100, mode => 'keyword')"), 6);
        assert_spans_are_exact(&mut ann);
    }
    // Bob has the same text, and never had another.
    bob.ingest(&all, "animals");
    bob.ingest("Something else.", "nudge");
    let scores = "SELECT string_agg(keyword_score || ' ' || content, E'\\n' ORDER BY content)
                  FROM rag_search('otter lynx keeper', k => 100, mode => 'keyword')";
    let fresh = bob.value(scores);
    // As most entries are dead by now, the background merges them as soon as it has anything to do.
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('nudge', 'Something else.')");
    ann.settle();
    wait_until("the scores are those of a fresh index", Duration::from_secs(60), || {
        ann.value(scores) == fresh
    });
    assert_eq!(ann.count("SELECT sum(entries) FROM rag.segment WHERE part = 0"), 7);
}
