//! Answers as data: what is logged of them, who sees it, what becomes of citations, and questions asked by the dozen.

#![allow(clippy::unwrap_used)]

#[path = "answer_log/many.rs"]
mod many;

use rag_tests::{Cluster, Database, Session, wait_until};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// A cluster whose answers are logged.
fn logging(name: &str) -> Cluster {
    Cluster::builder(name)
        .setting("rag_ext.launcher_naptime", "1")
        .setting("rag_ext.answer_log", "on")
        .start()
}

/// Waits until a caller sees so many logged answers.
#[track_caller]
fn logged(session: &mut Session, count: i64) {
    wait_until("the answers are logged", LIMIT, || {
        session.count("SELECT count(*) FROM rag.answer_log") >= count
    });
    assert_eq!(session.count("SELECT count(*) FROM rag.answer_log"), count);
}

/// What a caller is told of the only citation of a document.
fn stale(session: &mut Session, document: &str) -> Option<String> {
    let rows = session
        .rows(&format!("SELECT DISTINCT stale FROM rag.answer_citation WHERE document_id = '{document}'"));
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0][0].clone()
}

fn told(value: &str) -> Option<String> {
    Some(value.to_owned())
}

const FERRY: &str = "SELECT rag_answer('When does the ferry leave?')";

#[test]
fn an_answer_is_logged_with_all_that_a_dashboard_needs() {
    let cluster = Cluster::builder("answer_log").setting("rag_ext.launcher_naptime", "1").start();
    let database = cluster.database("logged");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let document = ann.ingest("The ferry leaves at nine.", "ferry.md");
    ann.value(FERRY);
    ann.refuses("42501", "SET rag_ext.answer_log = on");
    let mut admin = database.admin();
    admin.run(&format!("ALTER DATABASE {} SET rag_ext.answer_log = on", database.name()));
    let mut ann = database.connect(&role);
    let answer = ann.json("SELECT rag_answer('When does the ferry leave?', 'default')");
    ann.rows("SELECT * FROM rag_cite('Who owns the moon?', options => '{\"min_support\": 1}')");
    logged(&mut ann, 2);
    let row = ann.rows(
        "SELECT owner, question, collection, answer, found, reason, method, citations->0->>'n', citations->0->>'quote',
                models->>'chat', models->>'reranker', models->>'embedding', prompt_tokens, milliseconds > 0,
                stages @> '[{\"stage\": \"support\"}]', shortened, answered_at BETWEEN now() - interval '5 min' AND clock_timestamp()
         FROM rag.answer_log WHERE found",
    );
    let expected = [
        Some(format!("role:{role}")),
        told("When does the ferry leave?"),
        told("default"),
        answer["answer"].as_str().map(str::to_owned),
        told("t"),
        None,
        told("extractive"),
        told("1"),
        told("The ferry leaves at nine."),
        None,
        told("ms-marco-MiniLM-L-12-v2"),
        told("bge-small-en-v1.5"),
        None,
        told("t"),
        told("t"),
        told("{}"),
        told("t"),
    ];
    assert_eq!(row, [expected]);
    assert_eq!(
        ann.rows("SELECT answer <> '', reason, citations FROM rag.answer_log WHERE NOT found"),
        [[told("t"), told("below_threshold"), told("[]")]]
    );
    // The citation as a row, with the document's content as it was.
    assert!(ann.holds(&format!(
        "SELECT c.document_id = '{document}' AND c.uri = 'ferry.md' AND c.sha256 = d.sha256 AND NOT c.stale
                AND substr(d.text, c.char_from + 1, c.char_to - c.char_from) = c.quote
         FROM rag.answer_citation c JOIN rag.document d ON d.id = c.document_id"
    )));
    assert_eq!(
        ann.rows("SELECT answers, refusals, mean_confidence BETWEEN 0.5 AND 1, mean_milliseconds > 0 FROM rag.answers_per_day"),
        [[told("1"), told("1"), told("t"), told("t")]]
    );
    assert_eq!(
        ann.rows(
            "SELECT runs, p50_milliseconds <= p95_milliseconds FROM rag.stage_latency WHERE stage = 'support'"
        ),
        [[told("2"), told("t")]]
    );
    assert_eq!(
        ann.rows("SELECT document_id, uri, citations, answers FROM rag.cited_document"),
        [[told(&document), told("ferry.md"), told("1"), told("1")]]
    );

    // A transaction that must not write answers all the same, leaves nothing behind, and is counted.
    assert!(
        admin
            .value("SET rag_ext.answer_log = on; SELECT rag_status()")
            .contains("answers: on, none left out")
    );
    ann.run("BEGIN READ ONLY");
    assert_eq!(ann.json(FERRY)["answer"], answer["answer"]);
    ann.run("COMMIT");
    assert!(admin.value("SELECT rag_status()").contains("answers: on, 1 left out"));
    // What is rolled back was answered.
    ann.run(&format!("BEGIN; CREATE TEMP TABLE kept AS {FERRY}; ROLLBACK"));
    logged(&mut ann, 3);

    ann.refuses("42501", "INSERT INTO rag.answer_log SELECT * FROM rag.answer_log");
    ann.run("DELETE FROM rag.answer_log WHERE NOT found");
    logged(&mut ann, 2);
    // Old rows go when a worker comes by.
    admin.run("UPDATE rag.answer_log SET answered_at = now() - interval '31 days'");
    ann.value("SELECT rag_answer('Who owns the moon?')");
    wait_until("the old rows are gone", LIMIT, || {
        ann.column("SELECT question FROM rag.answer_log") == ["Who owns the moon?"]
    });
}

#[test]
fn a_note_that_is_too_large_says_what_it_lost() {
    let cluster = logging("answer_log_large");
    let database = cluster.database("large");
    let mut ann = database.user("ann");
    for n in 0..10 {
        ann.ingest(&format!("The ferry number {n} leaves at nine."), &format!("{n}{}", "x".repeat(2000)));
    }
    let question = format!("When does the ferry leave? {}", "Really? ".repeat(300));
    let options = "{\"max_sentences\": 10, \"min_support\": 0}";
    ann.value(&format!("SELECT rag_answer('{question}', options => '{options}')"));
    logged(&mut ann, 1);
    let row =
        ann.rows("SELECT length(question), shortened, jsonb_array_length(citations) FROM rag.answer_log");
    assert_eq!(row, [[told("2000"), told("{question,quotes,stages,headings}"), told("10")]]);
    // The rest stands.
    assert!(ann.holds(
        "SELECT bool_and(quote IS NULL AND uri IS NULL AND char_to > char_from AND NOT stale) FROM rag.answer_citation"
    ));
    assert!(ann.count("SELECT count(*) FROM rag.stage_latency") > 3);
}

/// Asks as somebody who has a document of their own.
fn asked_by(session: &mut Session) -> String {
    let document = session.ingest("The ferry leaves at nine.", "ferry.md");
    session.value(FERRY);
    document
}

#[test]
fn each_sees_their_own_answers_and_a_log_reader_everybodys() {
    let cluster = logging("answer_log_readers");
    let database = cluster.database("readers");
    let [ann, bob, board, member] = ["ann", "bob", "board", "member"].map(|name| database.role(name));
    let gateway = database.gateway("app");
    let mut admin = database.admin();
    let sessions = |database: &Database<'_>| [&ann, &bob].map(|role| database.connect(role));
    let [mut of_ann, mut of_bob] = sessions(&database);
    let document = asked_by(&mut of_ann);
    asked_by(&mut of_bob);
    let mut user = database.connect(&gateway);
    user.run("SET rag_ext.user_id = '7'");
    asked_by(&mut user);
    for session in [&mut of_ann, &mut of_bob, &mut user] {
        logged(session, 1);
    }
    user.run("SET rag_ext.user_id = '8'");
    logged(&mut user, 0);
    user.run("SET rag_ext.user_id = ''");
    assert_eq!(user.count("SELECT count(*) FROM rag.answer_citation"), 0);

    let mut reader = database.connect(&board);
    let views = ["answer_log", "answer_citation", "answers_per_day", "stage_latency", "cited_document"];
    for view in views {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.{view}")), 0, "{view}");
    }
    for (code, call) in [
        ("42704", "rag_log_reader('nobody at all')".to_owned()),
        ("42704", "rag_log_reader('public')".to_owned()),
        ("22004", "rag_log_reader(NULL)".to_owned()),
        ("22004", format!("rag_log_reader('{board}', NULL)")),
        ("22023", format!("rag_log_reader('{gateway}')")),
    ] {
        admin.refuses(code, &format!("SELECT {call}"));
    }
    let allow = format!("SELECT rag_log_reader('{board}')");
    of_ann.refuses("42501", &allow);
    admin.run(&allow);
    admin.run(&allow);
    admin.run(&format!("GRANT {board} TO {member}"));
    // Who reads all, and who inherits from them: at once, in sessions that were there before.
    for session in [&mut reader, &mut database.connect(&member)] {
        logged(session, 3);
        assert_eq!(session.count("SELECT count(DISTINCT owner) FROM rag.answer_citation WHERE NOT stale"), 3);
        assert_eq!(session.count("SELECT sum(answers) FROM rag.answers_per_day"), 3);
        assert_eq!(session.count("SELECT count(*) FROM rag.cited_document"), 3);
        assert!(session.count("SELECT min(runs) FROM rag.stage_latency") >= 3);
        // The log, and nothing else: no document, no chunk, no search, and nobody's row to delete.
        for table in ["document", "chunk", "query_log", "domain", "collection"] {
            assert_eq!(session.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "{table}");
        }
        session.refuses("42501", "SELECT * FROM rag.log_reader");
        session.run("DELETE FROM rag.answer_log");
        logged(session, 3);
    }
    // Who asks for one owner's rows goes by the index all the same.
    assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.answer_log WHERE owner = 'role:{bob}'")), 1);
    // Others' rights are as they were.
    logged(&mut of_ann, 1);

    // What has changed is stale, and what is gone, for both.
    of_bob.run("DELETE FROM rag.document");
    of_ann.run("UPDATE rag.document SET content = 'The ferry leaves at ten.'");
    of_ann.settle();
    for session in [&mut of_ann, &mut reader] {
        assert_eq!(stale(session, &document), told("t"));
    }
    assert!(of_bob.holds("SELECT bool_and(stale) FROM rag.answer_citation"));
    assert_eq!(reader.count("SELECT count(*) FROM rag.answer_citation WHERE stale"), 2);
    // Another form of the same content is not: what counts is what was cited.
    of_ann.run("UPDATE rag.document SET content = 'The ferry leaves at nine.'");
    of_ann.settle();
    assert_eq!(stale(&mut of_ann, &document), told("f"));

    admin.run(&format!("SELECT rag_log_reader('{board}', false)"));
    logged(&mut reader, 0);
    admin.run(&format!("SELECT rag_log_reader('{board}', false)"));
    // A role that becomes a gateway reads for its users alone.
    admin.run(&format!("{allow}; SELECT rag_register_gateway('{board}')"));
    reader.run("SET rag_ext.user_id = '7'");
    logged(&mut reader, 0);
}

#[test]
fn of_what_a_caller_does_not_see_nobody_learns_whether_it_changed() {
    let cluster = logging("answer_log_hidden");
    let database = cluster.database("hidden");
    let [ann, bob] = ["ann", "bob"].map(|name| database.role(name));
    let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
    owner.run("SELECT rag_create_collection('times')");
    owner.run("INSERT INTO rag.document (collection, uri, content) VALUES ('times', 'ferry.md', 'The ferry leaves at nine.')");
    owner.settle();
    owner.run(&format!("SELECT rag_grant('times', 'role:{bob}', 'read')"));
    let document = owner.value("SELECT id FROM rag.document");
    reader.value(&format!("SELECT rag_answer('When does the ferry leave?', 'role:{ann}/times')"));
    logged(&mut reader, 1);
    assert_eq!(stale(&mut reader, &document), told("f"));
    owner.run(&format!("SELECT rag_revoke('times', 'role:{bob}', 'read')"));
    assert_eq!(stale(&mut reader, &document), None);
    owner.run("UPDATE rag.document SET content = 'The ferry leaves at ten.'");
    owner.settle();
    assert_eq!(stale(&mut reader, &document), None);
    owner.run("DELETE FROM rag.document");
    assert_eq!(stale(&mut reader, &document), None);

    // One's own collection is gone when it is gone.
    owner.run("INSERT INTO rag.document (collection, uri, content) VALUES ('times', 'ferry.md', 'The ferry leaves at nine.')");
    owner.settle();
    let own = owner.value("SELECT id FROM rag.document");
    owner.value(FERRY);
    logged(&mut owner, 1);
    assert_eq!(stale(&mut owner, &own), told("f"));
    owner.run("SELECT rag_drop_collection('times')");
    assert_eq!(stale(&mut owner, &own), told("t"));

    // A row of an attached table: seen by who names its collection, and not in a view, which is no reason to call it stale.
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    owner.run(
        "CREATE TABLE notes (id int PRIMARY KEY, body text); INSERT INTO notes VALUES (1, 'The bus leaves at noon.');
         GRANT SELECT ON notes TO public; SELECT rag_attach('notes', content => ARRAY['body'])",
    );
    assert!(owner.settles("SELECT rag_wait('notes', '10 min')"));
    let attached = owner.value("SELECT document_id FROM rag.attached_document");
    for session in [&mut owner, &mut reader] {
        let answer =
            session.json(&format!("SELECT rag_answer('When does the bus leave?', 'role:{ann}/notes')"));
        assert_eq!(answer["citations"][0]["document_id"], attached.as_str(), "{answer:#}");
        logged(session, 2);
    }
    assert_eq!(stale(&mut owner, &attached), told("f"));
    assert_eq!(stale(&mut reader, &attached), None);
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'notes')"));
    assert_eq!(stale(&mut reader, &attached), told("f"));
    owner.run("UPDATE notes SET body = 'The bus leaves at one.'");
    assert!(owner.settles("SELECT rag_wait('notes', '10 min')"));
    for session in [&mut owner, &mut reader] {
        assert_eq!(stale(session, &attached), told("t"));
    }
}

#[test]
fn a_dump_takes_log_readers_along_and_leaves_the_log() {
    let cluster = logging("answer_log_dump");
    let database = cluster.database("dumped");
    let [ann, board, gone] = ["ann", "board", "gone"].map(|name| database.role(name));
    let mut admin = database.admin();
    for role in [&board, &gone] {
        admin.run(&format!("SELECT rag_log_reader('{role}')"));
    }
    let mut of_ann = database.connect(&ann);
    asked_by(&mut of_ann);
    logged(&mut of_ann, 1);
    admin.run(&format!("DROP OWNED BY {gone}; DROP ROLE {gone}"));
    assert_eq!(admin.count("SELECT count(*) FROM rag.log_reader"), 2);
    let file = cluster.file("answers.sql");
    cluster.call(cluster.program("pg_dump").arg("--file").arg(&file).arg(database.name()));
    cluster.connect("postgres", "postgres").run("CREATE DATABASE answers_restored");
    let mut psql = cluster.program("psql");
    psql.args(["--set", "ON_ERROR_STOP=1", "--quiet", "--dbname", "answers_restored", "--file"]).arg(&file);
    cluster.call(&mut psql);
    let mut restored = cluster.connect("postgres", "answers_restored");
    assert_eq!(restored.column("SELECT role FROM rag.log_reader"), std::slice::from_ref(&board));
    assert_eq!(restored.count("SELECT count(*) FROM rag.answer_log"), 0);
    let mut of_ann = cluster.connect(&ann, "answers_restored");
    of_ann.value(FERRY);
    logged(&mut of_ann, 1);
    logged(&mut cluster.connect(&board, "answers_restored"), 1);
}

#[test]
fn a_standby_answers_and_leaves_its_answers_out() {
    let cluster = logging("answer_log_primary");
    let database = cluster.database("followed");
    let role = database.role("ann");
    database.connect(&role).ingest("The ferry leaves at nine.", "ferry.md");
    let standby = cluster.standby("answer_log_standby");
    cluster.wait_for(&standby);
    let mut reader = standby.connect(&role, database.name());
    assert_eq!(reader.json(FERRY)["found"], true);
    assert_eq!(
        reader
            .count("SELECT count(*) FROM rag_answer_many('{When does the ferry leave?, \"\"}') WHERE found"),
        1
    );
    assert_eq!(reader.count("SELECT count(*) FROM rag.answer_citation"), 0);
    let said = standby.connect("postgres", database.name()).value("SELECT rag_status()");
    assert!(said.contains("answers: on, 2 left out"), "{said}");
}
