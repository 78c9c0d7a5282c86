//! The log of searches: what is noted, whose it is, how long it stays, and what is left out.

#![allow(clippy::unwrap_used)]

#[path = "../../src/pg/query_queue.rs"]
#[allow(dead_code, reason = "the extension uses what these tests do not")]
mod query_queue;

use query_queue::{NOTE_BYTES, PLACES, Pushed, QueryQueue};
use rag_tests::{Cluster, Session, wait_until};
use std::time::Duration;

const SECOND: i64 = 1_000_000;

#[test]
fn notes_come_out_by_database_in_their_order() {
    let mut queue = Box::new(QueryQueue::EMPTY);
    assert_eq!(queue.push(5, b"first", 1), Pushed::First);
    assert_eq!(queue.push(6, b"of another", 2), Pushed::First);
    assert_eq!(queue.push(5, b"second", 3), Pushed::Behind);
    assert_eq!(queue.push(5, b"third", 4), Pushed::Behind);
    assert_eq!(queue.take(5, 2), [b"first".to_vec(), b"second".to_vec()]);
    // A place that is free again is no reason for another order.
    assert_eq!(queue.push(5, b"fourth", 5), Pushed::Behind);
    assert_eq!(queue.take(5, 9), [b"third".to_vec(), b"fourth".to_vec()]);
    assert!(queue.take(5, 9).is_empty());
    assert_eq!(queue.push(5, b"later", 6), Pushed::First);
    assert_eq!(queue.take(6, 9), [b"of another".to_vec()]);
    assert_eq!(queue.dropped(), 0);
}

#[test]
fn what_finds_no_place_is_dropped_and_counted() {
    let mut queue = Box::new(QueryQueue::EMPTY);
    assert_eq!(queue.push(5, &vec![b'x'; NOTE_BYTES + 1], 1), Pushed::Dropped);
    for i in 0..PLACES {
        assert_ne!(queue.push(5, &vec![b'x'; NOTE_BYTES], i as i64), Pushed::Dropped);
    }
    assert_eq!(queue.push(6, b"late", SECOND), Pushed::Dropped);
    assert_eq!(queue.dropped(), 2);
    // Nobody came for the notes of 5: they make room, and somebody is called once more.
    assert_eq!(queue.push(6, b"much later", 1000 * SECOND), Pushed::First);
    assert_eq!(queue.push(5, b"too", 1000 * SECOND), Pushed::First);
    assert_eq!(queue.dropped(), 4);
    assert_eq!(queue.take(6, 9), [b"much later".to_vec()]);
    assert_eq!(queue.take(5, 1000).len(), PLACES - 1);
}

fn logged(session: &mut Session, count: i64) {
    wait_until("the searches are logged", Duration::from_secs(60), || {
        session.count("SELECT count(*) FROM rag.query_log") >= count
    });
    assert_eq!(session.count("SELECT count(*) FROM rag.query_log"), count);
}

#[test]
fn each_sees_their_own_searches_and_nobody_those_that_were_not_to_be_logged() {
    let cluster = Cluster::builder("query_log").setting("rag_ext.launcher_naptime", "1").start();
    let database = cluster.database("logged");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    ann.ingest("The ferry leaves at nine.", "ferry.md");
    ann.rows("SELECT * FROM rag_search('never logged')");
    ann.refuses("42501", "SET rag_ext.query_log = on");
    let mut admin = database.admin();
    admin.run(&format!("ALTER DATABASE {} SET rag_ext.query_log = on", database.name()));
    let (ann_role, bob_role) = (ann.value("SELECT current_user"), bob.value("SELECT current_user"));
    (ann, bob) = (database.connect(&ann_role), database.connect(&bob_role));
    let found = ann.value("SELECT chunk_id FROM rag_search('when does the ferry leave', 'default', k => 3)");
    bob.rows("SELECT * FROM rag_search('a secret of bob', mode => 'keyword')");
    logged(&mut ann, 1);
    logged(&mut bob, 1);
    let row = ann.rows(
        "SELECT owner, query, collection, mode, k, hits, chunk_ids[1], milliseconds > 0, stages->0->>'stage',
                searched_at BETWEEN now() - interval '5 min' AND clock_timestamp()
         FROM rag.query_log",
    );
    let owner = format!("role:{ann_role}");
    let expected =
        [&owner, "when does the ferry leave", "default", "hybrid", "3", "1", &found, "t", "keyword", "t"];
    assert_eq!(row, [expected.map(|value| Some(value.to_owned()))]);
    assert_eq!(bob.column("SELECT query FROM rag.query_log"), ["a secret of bob"]);

    // As a function of a statement that writes, and though the transaction is rolled back.
    ann.run("BEGIN; CREATE TEMP TABLE found AS SELECT * FROM rag_search('rolled back'); ROLLBACK");
    logged(&mut ann, 2);
    // A transaction that must not write leaves nothing behind, and is counted; so is a standby's.
    assert!(admin.value("SET rag_ext.query_log = on; SELECT rag_status()").contains("on, none left out"));
    ann.run("BEGIN READ ONLY");
    ann.rows("SELECT * FROM rag_search('read only')");
    ann.run("COMMIT");
    assert!(admin.value("SELECT rag_status()").contains("on, 1 left out"));
    assert!(!ann.value("SELECT rag_status()").contains("left out"), "counts are for who may monitor");
    let long = "long ".repeat(1000);
    ann.rows(&format!("SELECT * FROM rag_search('{long}', mode => 'keyword')"));
    logged(&mut ann, 3);
    assert_eq!(ann.count("SELECT max(length(query)) FROM rag.query_log"), 400);

    ann.refuses("42501", "INSERT INTO rag.query_log SELECT * FROM rag.query_log");
    ann.run("DELETE FROM rag.query_log");
    logged(&mut bob, 1);

    // Old rows go when a worker comes by.
    admin.run("UPDATE rag.query_log SET searched_at = now() - interval '31 days'");
    bob.rows("SELECT * FROM rag_search('something new', mode => 'keyword')");
    wait_until("the old row is gone", Duration::from_secs(60), || {
        bob.column("SELECT query FROM rag.query_log") == ["something new"]
    });
}

#[test]
fn a_standby_leaves_its_searches_out() {
    let cluster = Cluster::builder("query_log_primary").setting("rag_ext.query_log", "on").start();
    let database = cluster.database("followed");
    let mut ann = database.user("ann");
    ann.ingest("The ferry leaves at nine.", "ferry.md");
    let role = ann.value("SELECT current_user");
    let standby = cluster.standby("query_log_standby");
    cluster.wait_for(&standby);
    let mut reader = standby.connect(&role, database.name());
    assert_eq!(reader.count("SELECT count(*) FROM rag_search('ferry', mode => 'keyword')"), 1);
    assert_eq!(reader.count("SELECT count(*) FROM rag.query_log"), 0);
    let said = standby.connect("postgres", database.name()).value("SELECT rag_status()");
    assert!(said.contains("on, 1 left out"), "{said}");
}
