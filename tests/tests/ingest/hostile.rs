//! Documents that are odd, empty, broken or meant to do harm: each comes to an end, and the others go on.

use super::{assert_spans_are_exact, words_found};
use rag_tests::{Database, Session, Witness, literal};

fn states(session: &mut Session) -> Vec<Vec<Option<String>>> {
    session.rows("SELECT uri, status, error FROM rag.document WHERE status <> 'done' ORDER BY uri")
}

#[test]
fn hostile_documents_come_to_an_end_and_harm_nobody() {
    let database = Database::new("hostile");
    let mut witness = Witness::of(database.cluster());
    let mut ann = database.user("ann");
    let hostile = [
        ("nested tags", "repeat('<div>', 60000) || 'deep'"),
        ("open tags", "'<html>' || repeat('<a href=\"', 30000)"),
        ("nested quotes", "repeat('> ', 20000) || 'deep'"),
        (
            "nested lists",
            "(SELECT string_agg(repeat(' ', n) || '- item', E'\\n') FROM generate_series(1, 1500) n)",
        ),
        ("brackets", "repeat('[', 50000)"),
        ("stars", "repeat('*a', 30000)"),
        ("headings", "repeat(E'# heading\\n', 5000)"),
        ("table", "repeat('|', 60000) || E'\\n' || repeat('|-', 30000)"),
        ("one word", "repeat('x', 200000)"),
        ("no spaces", "repeat('漢', 60000)"),
        ("combining", "'a' || repeat(U&'\\0301', 50000)"),
        ("entities", "'<p>' || repeat('&amp;lt;', 30000)"),
        ("script", "'<script>' || repeat('x', 100000)"),
        ("bell", "repeat(E'\\x07\\x1b[31m', 10000)"),
        ("bidi", "repeat(U&'\\202e\\2066', 10000) || 'text'"),
    ];
    for (uri, text) in hostile {
        ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ({}, {text})", literal(uri)));
    }
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('harmless', 'The wagtail bobs its tail.')");
    ann.settle();
    assert_eq!(words_found(&mut ann, "wagtail"), 1);
    for row in states(&mut ann) {
        assert_eq!(row[1].as_deref(), Some("failed"), "{row:?}");
        assert!(row[2].as_ref().is_some_and(|error| error.len() > 5 && error.len() < 1000), "{row:?}");
    }
    assert_spans_are_exact(&mut ann);
    assert!(ann.holds("SELECT coalesce(bool_and(tokens <= 512), true) FROM rag.chunk"));
    witness.assert_no_restart();
}

#[test]
fn odd_bytes_are_read_or_refused_with_a_reason() {
    let database = Database::new("odd_bytes");
    let mut ann = database.user("ann");
    for (uri, hex) in [
        ("latin1", "63616665cc20e9e8e0"),
        ("utf8 bom", "efbbbf48656c6c6f20626f6d"),
        ("utf16le", "fffe480065006c006c006f00"),
        ("truncated utf8", "48656c6c6f20e282"),
        ("nul inside", "48656c6c6f0020776f726c64"),
        ("gzip", "1f8b0800000000000003"),
        ("png", "89504e470d0a1a0a0000000d49484452"),
        ("elf", "7f454c4602010100"),
    ] {
        ann.run(&format!("SELECT rag_ingest_bytes(decode('{hex}', 'hex'), uri => '{uri}')"));
    }
    ann.settle();
    for row in states(&mut ann) {
        assert_eq!(row[1].as_deref(), Some("failed"), "{row:?}");
        assert!(row[2].is_some(), "{row:?}");
    }
    let done = ann.column("SELECT uri FROM rag.document WHERE status = 'done'");
    assert!(done.contains(&"utf8 bom".to_owned()), "{done:?}");
    for binary in ["gzip", "png", "elf"] {
        assert!(!done.contains(&binary.to_owned()), "{binary} was taken for text");
    }
    assert_spans_are_exact(&mut ann);
}

#[test]
fn a_document_without_words_is_done_and_has_no_chunks() {
    let database = Database::new("empty");
    let mut ann = database.user("ann");
    for (uri, text) in
        [("empty", "''"), ("blank", "E' \\n\\t \\r\\n'"), ("tags", "'<html><body></body></html>'")]
    {
        ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('{uri}', {text})"));
        ann.run(&format!("SELECT rag_ingest({text}, uri => 'sync {uri}', options => '{{\"sync\": true}}')"));
    }
    ann.settle();
    let odd =
        ann.rows("SELECT uri, status, chunks, error FROM rag.document WHERE status <> 'done' OR chunks <> 0");
    assert!(odd.is_empty(), "{odd:?}");
    assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('anything')"), 0);
    let answer = ann.json("SELECT rag_answer('Is there anything?')");
    assert_eq!(answer["found"], false, "{answer:#}");
}

#[test]
fn sessions_that_process_the_same_uri_at_once_leave_one_whole_document() {
    let database = Database::new("sync_race");
    let role = database.role("ann");
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let mut session = database.connect(&role);
            std::thread::spawn(move || {
                for round in 0..10 {
                    let sql = format!(
                        "SELECT rag_ingest('Raced words of {n} in round {round}.', uri => 'same', options => '{{\"sync\": true}}')"
                    );
                    if let Err(failure) = session.try_run(&sql) {
                        // To be tried again, and said so: nothing else may go wrong.
                        assert!(["40P01", "55P03", "40001"].contains(&failure.code.as_str()), "{failure}");
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut ann = database.connect(&role);
    ann.settle();
    assert_eq!(
        ann.rows("SELECT count(*), sum(chunks) FROM rag.document")[0],
        [Some("1".into()), Some("1".into())]
    );
    assert_eq!(words_found(&mut ann, "raced"), 1);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('raced', k => 100, mode => 'vector')"), 1);
    assert_spans_are_exact(&mut ann);
}
