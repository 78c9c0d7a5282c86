//! Another embedding model, or another way of cutting, for a collection that is in use.

use rag_tests::{Database, Session, wait_until};
use std::time::{Duration, Instant};

const OTHER: &str = "all-MiniLM-L6-v2";

fn fill(session: &mut Session, documents: u32) {
    session.run(&format!(
        "INSERT INTO rag.document (uri, content)
         SELECT 'note ' || n, 'Note ' || n || ': the surveyor measured bridge number ' || n || ' over the river.'
         FROM generate_series(1, {documents}) AS n"
    ));
    session.run("SELECT rag_wait()");
}

fn vector_hits(session: &mut Session) -> i64 {
    session.count("SELECT count(*) FROM rag_search('Which bridge was measured?', k => 10, mode => 'vector')")
}

fn wait_for_switch(session: &mut Session) {
    let end = Instant::now() + Duration::from_secs(120);
    while session.count("SELECT count(*) FROM rag.model_change") > 0 {
        let status = session.column("SELECT to_jsonb(s)::text FROM rag.model_change_status s");
        assert!(Instant::now() < end, "no switch: {status:?}");
        assert_eq!(vector_hits(session), 10, "during the change");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_collection_switches_to_another_model_and_is_searchable_all_the_while() {
    let database = Database::new("switch");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    fill(&mut ann, 150);
    let scores = "SELECT string_agg(round(vector_score::numeric, 6)::text, ',' ORDER BY rank)
                  FROM rag_search('Which bridge was measured?', k => 5, mode => 'vector')";
    let before = ann.column(scores);
    ann.run(&format!("SELECT rag_alter_collection('default', model => '{OTHER}')"));
    // Written in between: by the old model, and there after the switch.
    ann.run(
        "INSERT INTO rag.document (uri, content) VALUES ('late', 'A late note about the lighthouse keeper.')",
    );
    wait_for_switch(&mut ann);
    assert_eq!(ann.column("SELECT model FROM rag.collection"), [OTHER]);
    ann.run("SELECT rag_wait()");
    assert_ne!(ann.column(scores), before, "another model scores otherwise");
    let missing = "SELECT count(*) FROM rag.chunk c WHERE NOT EXISTS (
                       SELECT FROM rag_vectors(ARRAY[c.id]) v WHERE v.model = 'all-MiniLM-L6-v2')";
    assert_eq!(ann.count(missing), 0);
    let found = "SELECT uri FROM rag_search('Who keeps the lighthouse?', k => 1, mode => 'vector')";
    assert_eq!(ann.column(found), ["late"]);
    // What the old model made is cleared away.
    let end = Instant::now() + Duration::from_secs(60);
    let left = "SELECT count(*) FROM rag.embedding e JOIN rag.vector_space s ON s.id = e.vector_space_id WHERE s.model <> 'all-MiniLM-L6-v2'";
    while database.admin().count(left) > 0 {
        assert!(Instant::now() < end, "old vectors are left");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn chunks_too_long_for_the_new_model_are_cut_anew() {
    let database = Database::new("too_long");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    fill(&mut ann, 10);
    ann.run(
        "INSERT INTO rag.document (uri, content)
         SELECT 'long', string_agg('Sentence ' || n || ' tells of the canal and its locks.', ' ') FROM generate_series(1, 300) n",
    );
    ann.run("SELECT rag_wait()");
    assert!(ann.count("SELECT max(tokens) FROM rag.chunk") > 256);
    ann.run(&format!("SELECT rag_alter_collection('default', model => '{OTHER}')"));
    wait_for_switch(&mut ann);
    ann.run("SELECT rag_wait()");
    assert!(ann.count("SELECT max(tokens) FROM rag.chunk") < 256);
    assert_eq!(ann.count("SELECT count(*) FROM rag.failed_job"), 0);
    let covered =
        "SELECT count(*) FROM rag_vectors(ARRAY(SELECT id FROM rag.chunk)) WHERE model = 'all-MiniLM-L6-v2'";
    assert_eq!(ann.count(covered), ann.count("SELECT count(*) FROM rag.chunk"));
}

#[test]
fn another_way_of_cutting_applies_to_what_is_there() {
    let database = Database::new("recut");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.ingest(&"The clerk copied the ledger of the harbour. ".repeat(100), "ledger");
    let before = ann.count("SELECT count(*) FROM rag.chunk");
    ann.run(
        "SELECT rag_alter_collection('default', options => '{\"chunking\": {\"size\": 50, \"overlap\": 0}}')",
    );
    ann.run("SELECT rag_wait()");
    assert!(ann.count("SELECT count(*) FROM rag.chunk") > 3 * before);
    assert!(ann.count("SELECT max(tokens) FROM rag.chunk") <= 50);
    ann.refuses(
        "22023",
        "SELECT rag_alter_collection('default', options => '{\"chunking\": {\"sise\": 50}}')",
    );
}

#[test]
fn documents_that_come_while_options_are_changed_are_cut_by_the_new_ones() {
    let database = Database::new("recut_meanwhile");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    let text = "The clerk copied the ledger of the harbour. ".repeat(100);
    ann.ingest(&text, "ledger");
    ann.run(
        "BEGIN; SELECT rag_alter_collection('default', options => '{\"chunking\": {\"size\": 50, \"overlap\": 0}}')",
    );
    let mut other = database.connect(&role);
    other.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('meanwhile', '{text}')"));
    wait_until("a worker is at it", Duration::from_secs(120), || {
        other.count("SELECT count(*) FROM rag.job WHERE started_at IS NOT NULL") == 2
    });
    // Who processes a document at once waits, and finds out.
    let at_once = format!("SELECT rag_ingest('{text}', uri => 'at once', options => '{{\"sync\": true}}')");
    let mut third = database.connect(&role);
    let refused = std::thread::spawn({
        let at_once = at_once.clone();
        move || third.error(&at_once).code
    });
    let mut admin = database.admin();
    wait_until("it waits", Duration::from_secs(120), || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND backend_type = 'client backend'") == 1
    });
    ann.run("COMMIT");
    assert_eq!(refused.join().ok().as_deref(), Some("55P03"));
    other.run(&at_once);
    ann.settle();
    assert_eq!(ann.count("SELECT count(DISTINCT document_id) FROM rag.chunk"), 3);
    assert!(ann.count("SELECT max(tokens) FROM rag.chunk") <= 50);
}

#[test]
fn a_change_of_options_waits_for_nobody_who_writes_for_long_and_holds_nobody_up_meanwhile() {
    let database = Database::new("options_locked");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.ingest("A ledger.", "ledger");
    let mut writer = database.connect(&role);
    writer.run("BEGIN");
    writer.ingest("Another ledger.", "other");
    let alter =
        "SELECT rag_alter_collection('default', options => '{\"chunking\": {\"size\": 50, \"overlap\": 0}}')";
    ann.refuses("55P03", alter);
    writer.run("UPDATE rag.document SET content = 'A longer ledger.' WHERE uri = 'ledger'; COMMIT");
    ann.run(alter);
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), 2);
}

#[test]
fn two_sessions_that_change_different_options_change_both() {
    let database = Database::new("options_of_two");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.ingest("A ledger.", "ledger");
    ann.run("BEGIN; SELECT rag_alter_collection('default', options => '{\"feedback_boost\": 0.5}')");
    let mut other = database.connect(&role);
    let alter = std::thread::spawn(move || {
        other.run("SELECT rag_alter_collection('default', options => '{\"remote\": false}')")
    });
    let mut admin = database.admin();
    wait_until("the other waits", Duration::from_secs(60), || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
    });
    ann.run("COMMIT");
    assert!(alter.join().is_ok());
    assert_eq!(
        ann.column("SELECT options FROM rag.collection"),
        ["{\"remote\": false, \"feedback_boost\": 0.5}"]
    );
}

#[test]
fn a_change_can_be_withdrawn_and_is_the_owners_alone() {
    let database = Database::new("withdrawn");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let mut owner = database.connect(&ann);
    fill(&mut owner, 10);
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'write')"));
    let mut other = database.connect(&bob);
    other.refuses("42501", &format!("SELECT rag_alter_collection('role:{ann}/default', model => '{OTHER}')"));
    other.refuses("42704", "SELECT rag_alter_collection('missing', model => 'bge-small-en-v1.5')");
    owner.refuses("42704", "SELECT rag_alter_collection('default', model => 'no-such-model')");
    owner.refuses("22023", "SELECT rag_alter_collection('default', model => 'ms-marco-MiniLM-L-12-v2')");
    owner.run("BEGIN");
    owner.run(&format!("SELECT rag_alter_collection('default', model => '{OTHER}')"));
    owner.run("SELECT rag_alter_collection('default', model => 'bge-small-en-v1.5')");
    assert_eq!(owner.count("SELECT count(*) FROM rag.model_change"), 0);
    owner.run("COMMIT");
    assert_eq!(owner.column("SELECT model FROM rag.collection"), ["bge-small-en-v1.5"]);
}
