//! What people say of chunks: whose it is, what becomes of it, and that it serves as judgements.

#![allow(clippy::unwrap_used)]

#[path = "feedback/boosting.rs"]
mod boosting;

use rag_tests::{Database, Session, wait_until};
use std::time::Duration;

fn prepared(database: &Database<'_>, name: &str) -> Session {
    let mut session = database.user(name);
    for (uri, text) in [
        ("ferry.md", "The ferry leaves the harbour at nine."),
        ("crane.md", "The crane in the harbour lifts boats."),
        ("bread.md", "Sourdough bread rises over night."),
    ] {
        session.ingest(text, uri);
    }
    session
}

/// Says something of the chunks of a document.
fn say(session: &mut Session, query: &str, uri: &str, verdict: i32) {
    let sql = format!(
        "SELECT rag_feedback('{query}', c.id, {verdict}) FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri = '{uri}'"
    );
    assert_eq!(session.rows(&sql).len(), 1, "{uri}");
}

const JUDGEMENTS: &str =
    "SELECT q.query || ' ' || j.document || ' ' || j.relevance || ' ' || j.collections::text
    FROM rag.feedback_judgement j JOIN rag.feedback_query q ON q.id = j.query_id ORDER BY 1";

#[test]
fn the_last_word_counts_and_becomes_a_judgement() {
    let database = Database::new("feedback");
    let mut ann = prepared(&database, "ann");
    say(&mut ann, "harbour", "ferry.md", 1);
    say(&mut ann, "harbour", "crane.md", 1);
    say(&mut ann, "harbour", "bread.md", 1);
    say(&mut ann, "harbour", "crane.md", -1);
    say(&mut ann, "harbour", "bread.md", 0);
    say(&mut ann, "sourdough", "bread.md", 1);
    assert_eq!(
        ann.column(JUDGEMENTS),
        ["harbour crane.md 0 {default}", "harbour ferry.md 1 {default}", "sourdough bread.md 1 {default}"]
    );
    let measured = ann.rows(
        "SELECT queries, recall, details->>'relevant' FROM rag_evaluate(NULL, 'rag.feedback_query', 'rag.feedback_judgement', '{keyword}')",
    );
    assert_eq!(measured, [["2", "1", "2"].map(|value| Some(value.to_owned()))]);
    let measured = ann.rows(
        "SELECT queries, recall, mrr > 0 FROM rag_evaluate(NULL, 'rag.feedback_query', 'rag.feedback_chunk_judgement', '{vector}', options => '{\"level\": \"chunk\"}')",
    );
    assert_eq!(measured, [["2", "1", "t"].map(|value| Some(value.to_owned()))]);

    // More chunks for it than against it: the document is relevant.
    let long: String = (0..3).map(|i| format!("## Part {i}\n\nRope number {i}.\n\n")).collect();
    ann.ingest(&long, "rope.md");
    ann.run(
        "SELECT rag_feedback('rope', c.id, CASE c.ordinal WHEN 0 THEN -1 ELSE 1 END)
         FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri = 'rope.md'",
    );
    let relevance = "SELECT relevance FROM rag.feedback_judgement WHERE document = 'rope.md'";
    assert_eq!(ann.column(relevance), ["1"]);
    ann.run("SELECT rag_feedback('rope', c.id, -1) FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri = 'rope.md'");
    assert_eq!(ann.column(relevance), ["0"]);

    // A document that changes keeps what was said of it; one that is moved or deleted takes it along.
    let of = |uri: &str| {
        format!("SELECT relevance || collections::text FROM rag.feedback_judgement WHERE document = '{uri}'")
    };
    ann.run(
        "UPDATE rag.document SET content = 'The ferry now leaves the harbour at ten.' WHERE uri = 'ferry.md'",
    );
    ann.settle();
    assert_eq!(ann.column(&of("ferry.md")), ["1{default}"]);
    assert_eq!(ann.count("SELECT count(*) FROM rag.feedback_chunk_judgement"), 5);
    ann.run("SELECT rag_create_collection('other'); UPDATE rag.document SET collection = 'other' WHERE uri = 'ferry.md'");
    ann.settle();
    assert!(ann.column(&of("ferry.md")).is_empty());
    say(&mut ann, "harbour", "ferry.md", 1);
    assert_eq!(ann.column(&of("ferry.md")), ["1{other}"]);
    ann.run("DELETE FROM rag.document WHERE uri = 'crane.md'");
    assert!(ann.column(&of("crane.md")).is_empty());
    ann.run("SELECT rag_drop_collection('other')");
    assert!(ann.column(&of("ferry.md")).is_empty());
    let mut admin = database.admin();
    wait_until("the collection is cleared away", Duration::from_secs(60), || {
        admin.count("SELECT count(*) FROM rag.feedback WHERE query = 'harbour'") == 0
    });
    ann.run("DELETE FROM rag.feedback WHERE query = 'rope'");
    assert_eq!(ann.column("SELECT query FROM rag.feedback"), ["sourdough"]);
    admin.run("TRUNCATE rag.document");
    assert_eq!(ann.count("SELECT count(*) FROM rag.feedback"), 0);
}

#[test]
fn what_cannot_be_said_is_refused() {
    let database = Database::new("feedback_refusals");
    let mut ann = prepared(&database, "ann");
    let chunk = ann.value("SELECT id FROM rag.chunk LIMIT 1");
    for (code, arguments) in [
        ("22004", format!("NULL, '{chunk}', 1")),
        ("22004", "'x', NULL, 1".to_owned()),
        ("22004", format!("'x', '{chunk}', NULL")),
        ("22023", format!("'x', '{chunk}', 2")),
        ("22023", format!("'?', '{chunk}', 1")),
        ("22023", format!("'x', '{chunk}', 1, '{{\"boost\": 1}}'")),
        ("42704", "'x', rag.new_id(), 1".to_owned()),
    ] {
        ann.refuses(code, &format!("SELECT rag_feedback({arguments})"));
    }
    ann.refuses("42501", "INSERT INTO rag.feedback SELECT * FROM rag.feedback");
    ann.refuses("42501", "UPDATE rag.feedback SET verdict = -1");
    ann.run("BEGIN READ ONLY");
    ann.refuses("25006", &format!("SELECT rag_feedback('x', '{chunk}', 1)"));
    ann.run("ROLLBACK");
}

/// Two people say the opposite of the same chunk: each has their own word, and neither sees the other's.
#[test]
fn feedback_is_its_owners_alone() {
    let database = Database::new("feedback_isolation");
    let mut ann = prepared(&database, "ann");
    let mut bob = database.user("bob");
    let (ann_role, bob_role) = (ann.value("SELECT current_user"), bob.value("SELECT current_user"));
    let chunk = ann.value(
        "SELECT c.id FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id WHERE d.uri = 'ferry.md'",
    );
    // Hidden is as missing.
    let hidden = bob.refuses("42704", &format!("SELECT rag_feedback('ferry', '{chunk}', 1)"));
    let none = "01234567-89ab-7def-8123-456789abcdef";
    let missing = bob.refuses("42704", &format!("SELECT rag_feedback('ferry', '{none}', 1)"));
    assert_eq!(hidden.message.replace(&chunk, none), missing.message);

    ann.run(&format!("SELECT rag_grant('default', 'role:{bob_role}', 'read')"));
    bob.run(&format!("SELECT rag_feedback('ferry', '{chunk}', -1)"));
    say(&mut ann, "ferry", "ferry.md", 1);
    let shown = |session: &mut Session| session.column("SELECT owner || ' ' || verdict FROM rag.feedback");
    assert_eq!(shown(&mut ann), [format!("role:{ann_role} 1")]);
    assert_eq!(shown(&mut bob), [format!("role:{bob_role} -1")]);
    assert_eq!(ann.column("SELECT relevance FROM rag.feedback_judgement"), ["1"]);
    assert_eq!(bob.column("SELECT relevance FROM rag.feedback_judgement"), ["0"]);
    ann.run("DELETE FROM rag.feedback");
    assert_eq!(shown(&mut bob), [format!("role:{bob_role} -1")]);
    // Nor do counters tell whoever deletes a document what others said of it. Those of earlier transactions are handed over.
    ann.run("SELECT pg_stat_force_next_flush()");
    ann.run("BEGIN; DELETE FROM rag.document WHERE uri = 'ferry.md'");
    let counted = "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch + n_tup_del), 0) FROM pg_stat_xact_all_tables WHERE relid = 'rag.%'::regclass";
    assert_eq!(ann.value(&counted.replace('%', "feedback")), "0");
    assert_ne!(ann.value(&counted.replace('%', "chunk")), "0");
    ann.run("ROLLBACK");

    // What they may no longer see, their judgements do not name.
    ann.run(&format!("SELECT rag_revoke('default', 'role:{bob_role}', 'read')"));
    for view in ["feedback_judgement", "feedback_chunk_judgement"] {
        assert_eq!(bob.count(&format!("SELECT count(*) FROM rag.{view}")), 0, "{view}");
    }
    assert_eq!(bob.column("SELECT query FROM rag.feedback_query"), ["ferry"]);
    bob.refuses("42704", &format!("SELECT rag_feedback('ferry', '{chunk}', 0)"));

    // A gateway's users are told apart, and a role that is made again inherits nothing.
    let gateway = database.gateway("app");
    let mut app = database.connect(&gateway);
    for id in ["7", "8"] {
        app.run(&format!("SET rag_ext.user_id = '{id}'"));
        app.ingest("The ferry of a user.", "mine.md");
        say(&mut app, "ferry", "mine.md", 1);
        assert_eq!(shown(&mut app), [format!("user:{gateway}/{id} 1")]);
    }
    drop(bob);
    let mut admin = database.admin();
    admin.run(&format!(
        "SELECT rag_disable('{bob_role}'); DROP OWNED BY {bob_role}; DROP ROLE {bob_role}; CREATE ROLE {bob_role} LOGIN; SELECT rag_enable('{bob_role}')"
    ));
    let mut bob = database.connect(&bob_role);
    assert_eq!(bob.count("SELECT count(*) FROM rag.feedback"), 0);
    // One that is renamed keeps what it said.
    say(&mut ann, "ferry", "ferry.md", 1);
    drop(ann);
    let new_name = format!("{ann_role}_new");
    admin.run(&format!("ALTER ROLE {ann_role} RENAME TO {new_name}; SELECT rag_enable('{new_name}')"));
    let mut ann = database.connect(&new_name);
    assert_eq!(shown(&mut ann), [format!("role:{new_name} 1")]);
    drop(ann);
    admin.run(&format!("ALTER ROLE {new_name} RENAME TO {ann_role}; SELECT rag_enable('{ann_role}')"));
}
