//! The main job on real input: 500 pages of the PostgreSQL manual, 20 questions with the page and the words
//! that answer them, and 5 that the manual does not answer.
//!
//! `RAG_TEST_MANUAL` is the folder of the manual's HTML pages; `make test` fetches it and sets it.

#![allow(clippy::unwrap_used)]

use rag_tests::{Cluster, Session, literal};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

const PAGES: usize = 500;
const MOST_CITATIONS: usize = 3;
const LEAST_RIGHT: usize = 17;

/// Question, page that answers it, words that the first quote must contain.
const QUESTIONS: [(&str, &str, &str); 20] = [
    ("Does VACUUM FULL lock the table?", "sql-vacuum.html", "exclusively locks the table"),
    (
        "What does the server do after it receives SIGTERM?",
        "server-shutdown.html",
        "disallows new connections",
    ),
    ("On which TCP port does the server listen by default?", "runtime-config-connection.html", "5432"),
    ("What is the maximum length of an identifier?", "sql-syntax-lexical.html", "63 bytes"),
    ("How many bits does a UUID have?", "datatype-uuid.html", "128"),
    (
        "What does pg_isready return if the server is rejecting connections?",
        "app-pg-isready.html",
        "rejecting connections",
    ),
    (
        "How does peer authentication obtain the client's operating system user name?",
        "auth-peer.html",
        "from the kernel",
    ),
    ("On which operating system is BSD Authentication available?", "auth-bsd.html", "OpenBSD"),
    ("What is the default of checkpoint_timeout?", "runtime-config-wal.html", "five minutes"),
    (
        "Is a TRUNCATE rolled back if the transaction does not commit?",
        "sql-truncate.html",
        "safely rolled back",
    ),
    (
        "Can CREATE INDEX CONCURRENTLY be used inside a transaction block?",
        "sql-createindex.html",
        "transaction block",
    ),
    (
        "Which module pauses before it reports an authentication failure to slow down brute-force attacks on passwords?",
        "auth-delay.html",
        "brute-force",
    ),
    ("What does the citext module provide?", "citext.html", "case-insensitive character string type"),
    ("When is a bloom index most useful?", "bloom.html", "many attributes"),
    ("Do hash indexes support uniqueness checking?", "hash-intro.html", "uniqueness checking"),
    ("For which kind of tables is BRIN designed?", "brin-intro.html", "very large tables"),
    (
        "Which setting determines the fractional precision of the money type?",
        "datatype-money.html",
        "lc_monetary",
    ),
    (
        "Must the server be shut down before running pg_checksums?",
        "app-pgchecksums.html",
        "shut down cleanly",
    ),
    ("Which text search dictionary removes accents from lexemes?", "unaccent.html", "removes accents"),
    ("How long may the payload of NOTIFY be?", "sql-notify.html", "8000 bytes"),
];

const UNANSWERABLE: [&str; 5] = [
    "What is the boiling point of nitrogen?",
    "Who painted the ceiling of the Sistine Chapel?",
    "How do I replace the brake pads of a bicycle?",
    "How many members does the Swiss Federal Council have?",
    "Which wine goes well with grilled salmon?",
];

/// The pages that are asked about, and then the shortest that have something to say: the same ones each time.
fn chosen_pages(folder: &str) -> Vec<PathBuf> {
    let mut pages: Vec<(u64, PathBuf)> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("RAG_TEST_MANUAL is {folder}: {e}"))
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "html"))
        .map(|entry| (entry.metadata().unwrap().len(), entry.path()))
        // Shorter ones are tables of contents and redirections.
        .filter(|(bytes, _)| *bytes > 3_500)
        .collect();
    pages.sort();
    let asked: BTreeSet<&str> = QUESTIONS.iter().map(|(_, page, _)| *page).collect();
    let is_asked = |path: &PathBuf| asked.contains(path.file_name().unwrap().to_str().unwrap());
    let (first, rest): (Vec<PathBuf>, Vec<PathBuf>) =
        pages.into_iter().map(|(_, path)| path).partition(is_asked);
    assert_eq!(first.len(), asked.len(), "not all pages asked about are in {folder}");
    first.into_iter().chain(rest).take(PAGES).collect()
}

fn ingest(session: &mut Session, folder: &str) {
    let start = Instant::now();
    for page in chosen_pages(folder) {
        let html = std::fs::read(&page).unwrap();
        let uri = page.file_name().unwrap().to_str().unwrap().to_owned();
        session.run(&format!(
            "INSERT INTO rag.document (uri, content) VALUES ({}, {})",
            literal(&uri),
            literal(&String::from_utf8_lossy(&html))
        ));
    }
    assert!(session.holds("SELECT rag_wait(NULL, '40 min')"), "not ingested within 40 minutes");
    let row = session.rows("SELECT documents_done, documents_failed, chunks FROM rag.collection_status");
    eprintln!("ingested in {:?}: {:?}", start.elapsed(), row[0]);
    assert_eq!(
        row[0][0].as_deref(),
        Some("500"),
        "{:?}",
        session.rows("SELECT uri, error FROM rag.failed_job")
    );
}

/// Markup in the middle of a quote does not matter to what it says.
fn plain(text: &str) -> String {
    text.replace(['`', '*', '_', '\\'], "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_manual_answers_what_it_knows_and_refuses_the_rest() {
    let folder = std::env::var("RAG_TEST_MANUAL").unwrap_or_else(|_| {
        panic!("RAG_TEST_MANUAL is not set: run `make test`, which fetches the manual and sets it")
    });
    let cluster = Cluster::builder("manual").start();
    let database = cluster.database("manual");
    let mut ann = database.user("ann");
    ingest(&mut ann, &folder);

    let (mut right, mut report) = (0, Vec::new());
    for (question, page, words) in QUESTIONS {
        let answer: Value = ann.json(&format!("SELECT rag_answer({})", literal(question)));
        let citations = answer["citations"].as_array().unwrap();
        assert!(citations.len() <= MOST_CITATIONS, "{answer:#}");
        for citation in citations {
            let (from, to) = (citation["char_from"].as_i64().unwrap(), citation["char_to"].as_i64().unwrap());
            let stored = ann.value(&format!(
                "SELECT substr(text, {from} + 1, {to} - {from}) FROM rag.document WHERE id = '{}'",
                citation["document_id"].as_str().unwrap()
            ));
            assert_eq!(stored, citation["quote"].as_str().unwrap(), "{answer:#}");
        }
        let quote = answer["citations"][0]["quote"].as_str().unwrap_or_default();
        if answer["citations"][0]["uri"] == page && plain(quote).contains(&plain(words)) {
            right += 1;
        } else {
            report.push(format!(
                "{question}\n  wanted {page}: {words}\n  got {}: {quote} (confidence {})",
                answer["citations"][0]["uri"], answer["confidence"]
            ));
        }
    }
    eprintln!("{right} of {} first citations right\n{}", QUESTIONS.len(), report.join("\n"));
    let answered: Vec<String> = UNANSWERABLE
        .iter()
        .map(|question| (question, ann.json(&format!("SELECT rag_answer({})", literal(question)))))
        .filter(|(_, answer)| answer["found"] != false)
        .map(|(question, answer)| {
            format!("{question}\n  {} (confidence {})", answer["answer"], answer["confidence"])
        })
        .collect();
    assert!(answered.is_empty(), "not refused:\n{}", answered.join("\n"));
    assert!(right >= LEAST_RIGHT, "only {right} first citations are right:\n{}", report.join("\n"));
}
