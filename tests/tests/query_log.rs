//! The log of searches: what is noted, whose it is, how long it stays, and what is left out.

#![allow(clippy::unwrap_used)]

#[path = "../../src/pg/note_queue.rs"]
#[allow(dead_code, reason = "the extension uses what these tests do not")]
mod note_queue;

use note_queue::{Holder, Pushed, QUERIES as PLACES, QUERY_BYTES as NOTE_BYTES, QueryQueue, has_room};
use rag_tests::{Cluster, Session, wait_until};
use std::time::Duration;

const SECOND: i64 = 1_000_000;

/// An owner of a role of their own.
fn holder(database: u32, owner: u32) -> Holder {
    Holder { database, role: owner, owner: owner.into() }
}

#[test]
fn notes_come_out_by_database_in_their_order() {
    let mut queue = Box::new(QueryQueue::EMPTY);
    assert_eq!(queue.push(holder(5, 1), b"first", 1), Pushed::First);
    assert_eq!(queue.push(holder(6, 1), b"of another", 2), Pushed::First);
    assert_eq!(queue.push(holder(5, 2), b"second", 3), Pushed::Behind);
    assert_eq!(queue.push(holder(5, 1), b"third", 4), Pushed::Behind);
    assert_eq!(queue.take(5, 2), [b"first".to_vec(), b"second".to_vec()]);
    // A place that is free again is no reason for another order.
    assert_eq!(queue.push(holder(5, 1), b"fourth", 5), Pushed::Behind);
    assert_eq!(queue.take(5, 9), [b"third".to_vec(), b"fourth".to_vec()]);
    assert!(queue.take(5, 9).is_empty());
    assert_eq!(queue.push(holder(5, 1), b"later", 6), Pushed::First);
    assert_eq!(queue.take(6, 9), [b"of another".to_vec()]);
    assert_eq!(queue.dropped(), 0);
}

#[test]
fn whoever_holds_nothing_finds_a_place() {
    // Free places, and how many of the others database, role and owner hold.
    for (free, held, expected) in [
        (1, [0, 0, 0], true),
        (0, [0, 0, 0], false),
        (256, [0, 0, 0], true),
        // Of their own database, role and owner: a quarter, and no more.
        (193, [63, 63, 63], true),
        (192, [64, 64, 64], false),
        // Another owner of the role, another role of the database, and another database find more.
        (192, [64, 64, 0], true),
        (171, [85, 85, 0], true),
        (170, [86, 86, 0], false),
        (170, [86, 0, 0], true),
        (129, [127, 0, 0], true),
        (128, [128, 0, 0], false),
        (128, [0, 0, 0], true),
        (1, [1, 0, 0], false),
    ] {
        assert_eq!(has_room(free, held), expected, "{free} free, held {held:?}");
    }
}

/// All who write without end, until nobody finds a place.
#[track_caller]
fn filled(queue: &mut QueryQueue, hogs: &[Holder]) -> Vec<usize> {
    let mut taken = vec![0; hogs.len()];
    loop {
        let before: usize = taken.iter().sum();
        for (count, hog) in taken.iter_mut().zip(hogs) {
            *count += usize::from(queue.push(*hog, b"x", 1) != Pushed::Dropped);
        }
        if taken.iter().sum::<usize>() == before {
            return taken;
        }
    }
}

#[test]
fn nobody_crowds_others_out() {
    let user = |owner: u64| Holder { database: 5, role: 9, owner };
    for (hogs, share, newcomers) in [
        (vec![holder(5, 1)], 64, vec![holder(5, 2), holder(6, 1)]),
        // Two databases, two roles of one, and two users of a gateway.
        (vec![holder(5, 1), holder(6, 1)], 51, vec![holder(7, 1), holder(6, 2)]),
        (vec![holder(5, 1), holder(5, 2)], 42, vec![holder(5, 3), holder(6, 1)]),
        (vec![user(1), user(2)], 36, vec![user(3), holder(5, 1), holder(6, 1)]),
        ((1..=100).map(user).collect(), 0, vec![holder(5, 1), holder(6, 1)]),
        ((1..=100).map(|owner| holder(5, owner)).collect(), 1, vec![holder(5, 200), holder(6, 1)]),
        ((1..=20).map(|database| holder(database, 1)).collect(), 11, vec![holder(21, 1), holder(20, 2)]),
    ] {
        let mut queue = Box::new(QueryQueue::EMPTY);
        let taken = filled(&mut queue, &hogs);
        assert!(taken.iter().all(|count| (share..=share + 2).contains(count)), "{hogs:?}: {taken:?}");
        for newcomer in newcomers {
            assert_ne!(
                queue.push(newcomer, b"x", 1),
                Pushed::Dropped,
                "{newcomer:?} beside {hogs:?}: {taken:?}"
            );
        }
    }
}

#[test]
fn what_finds_no_place_is_dropped_and_counted() {
    let mut queue = Box::new(QueryQueue::EMPTY);
    assert_eq!(queue.push(holder(5, 1), &vec![b'x'; NOTE_BYTES + 1], 1), Pushed::Dropped);
    for i in 0..PLACES / 4 {
        assert_ne!(queue.push(holder(5, 1), &vec![b'x'; NOTE_BYTES], i as i64), Pushed::Dropped);
    }
    assert_eq!(queue.push(holder(5, 1), b"late", SECOND), Pushed::Dropped);
    assert_eq!(queue.dropped(), 2);
    // Nobody came for these notes: they make room, and somebody is called once more.
    assert_eq!(queue.push(holder(6, 1), b"much later", 1000 * SECOND), Pushed::First);
    assert_eq!(queue.push(holder(5, 1), b"too", 1000 * SECOND), Pushed::First);
    assert_eq!(queue.dropped(), 4);
    assert_eq!(queue.take(6, 9), [b"much later".to_vec()]);
    assert_eq!(queue.take(5, 1000).len(), PLACES / 4 - 1);
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

    // Answers, in each of their shapes, and those that are refused.
    let answer = ann.json("SELECT rag_answer('When does the ferry leave?', 'default')");
    ann.value("SELECT rag_answer_text('When does the ferry leave?')");
    ann.rows("SELECT * FROM rag_cite('Who owns the moon?', options => '{\"min_support\": 1}')");
    logged(&mut ann, 6);
    let rows = ann.rows(
        "SELECT query, collection, k, hits, chunk_ids[1], milliseconds > 0, stages @> '[{\"stage\": \"support\"}]'
         FROM rag.query_log WHERE mode = 'answer' ORDER BY searched_at",
    );
    let cited = answer["citations"][0]["chunk_id"].as_str().unwrap().to_owned();
    let row = |query: &str, collection: Option<&str>, hits: &str, chunk: Option<&str>| {
        [Some(query), collection, Some("10"), Some(hits), chunk, Some("t"), Some("t")]
            .map(|value| value.map(str::to_owned))
    };
    let asked = "When does the ferry leave?";
    assert_eq!(
        rows,
        [
            row(asked, Some("default"), "1", Some(&cited)),
            row(asked, None, "1", Some(&cited)),
            row("Who owns the moon?", None, "0", None)
        ]
    );
    assert_eq!(bob.column("SELECT query FROM rag.query_log"), ["a secret of bob"]);

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
