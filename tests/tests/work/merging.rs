//! Merging of keyword segments: few of them, none too large, and deleted entries counted exactly until they are gone.

use super::{LIMIT, measuring, put, vectors};
use rag_tests::{ChatReply, ChatStub, Cluster, Database, Session, wait_until};
use std::collections::HashSet;

#[test]
fn segments_stay_few_while_documents_keep_coming() {
    let cluster = Cluster::builder("merging").start();
    let database = cluster.database("merging");
    let mut session = database.admin();
    let (mut most, mut count) = (0, 0);
    for round in 1..=25 {
        // Never idle: the next documents are there before the last ones are done.
        put(&mut session, "default", round * 12);
        wait_until("most are done", LIMIT, || {
            most = most.max(session.count("SELECT count(*) FROM rag.segment WHERE part = 0"));
            count = session.count("SELECT count(*) FROM rag.job WHERE state = 'done'");
            count > (round as i64 - 1) * 12
        });
        // Deleted ones leave the index as well; the next round puts this one back.
        session.run(&format!("DELETE FROM rag.document WHERE uri = 'n{round}'"));
    }
    session.settle();
    // At most seven in each of three tiers, and what the two workers have just written.
    assert!(most <= 24, "{most} segments");
    assert_eq!(session.count("SELECT count(*) FROM rag_search('note', k => 1000, mode => 'keyword')"), 299);
}

/// Bytes of the largest segment that merging makes, in the test below.
const MAX_BYTES: i64 = 1 << 20;

/// Bytes of a segment before the ids of its entries.
const HEADER_BYTES: usize = 256;

/// Ids of the segments that are merged no more.
fn full(session: &mut Session) -> HashSet<String> {
    let sql = format!("SELECT id FROM rag.segment WHERE part = 0 AND bytes > {}", MAX_BYTES / 2);
    session.column(&sql).into_iter().collect()
}

/// Entries of deleted chunks in the index, by what is there and by what is counted.
fn deleted(session: &mut Session) -> (i64, i64) {
    let row = &session.rows(
        "SELECT (SELECT sum(entries) FROM rag.segment WHERE part = 0) - (SELECT count(*) FROM rag.chunk),
                (SELECT coalesce(sum(chunks), 0) FROM rag.deletion_count)",
    )[0];
    let number = |at: usize| row[at].as_ref().unwrap().parse().unwrap();
    (number(0), number(1))
}

#[track_caller]
fn assert_sound(session: &mut Session) {
    assert_eq!(session.column("SELECT kind || ': ' || problem FROM rag_verify()"), [""; 0]);
    let (are, counted) = deleted(session);
    assert_eq!(are, counted, "deleted entries, and what is counted of them");
}

/// Some of the documents are found by a word that only each of them has, those that are there.
#[track_caller]
fn assert_found(session: &mut Session) {
    let found = session.column(
        "SELECT r.uri FROM generate_series(1, 4000, 97) n,
             rag_search(left(md5(n || ' 1'), 12), k => 5, mode => 'keyword') r ORDER BY r.uri",
    );
    let there = "SELECT uri FROM rag.document
         WHERE uri IN (SELECT 'n' || n FROM generate_series(1, 4000, 97) n) ORDER BY uri";
    assert_eq!(found, session.column(there));
}

#[test]
fn no_segment_outgrows_the_bound_and_those_with_deleted_entries_alone_are_written_anew() {
    let stub = ChatStub::start(ChatReply::StatusBy(vectors));
    let (_models, cluster) = measuring("bounded", &stub);
    let cluster = cluster.setting("rag_ext.max_segment_size", "1MB").start();
    let database = cluster.database("bounded");
    let mut session = database.admin();
    // Each with words of its own, so that they take room.
    session.run(
        "INSERT INTO rag.document (uri, content)
         SELECT 'n' || n, 'River ' || (SELECT string_agg(left(md5(n || ' ' || m), 12), ' ') FROM generate_series(1, 60) m)
         FROM generate_series(1, 4000) n",
    );
    session.settle();
    // Merging goes on when the documents are done.
    wait_until("at most seven of each of four tiers are left", LIMIT, || {
        let sql = format!("SELECT count(*) FROM rag.segment WHERE part = 0 AND bytes <= {}", MAX_BYTES / 2);
        session.count(&sql) <= 7 * 4
    });
    assert_eq!(session.count("SELECT max(bytes) FROM rag.segment") / MAX_BYTES, 0);
    let before = full(&mut session);
    let sizes =
        session.column("SELECT entries || chr(32) || bytes FROM rag.segment WHERE part = 0 ORDER BY bytes");
    assert!(before.len() > 1, "{sizes:?}");
    assert_sound(&mut session);
    assert_found(&mut session);

    // Documents of one segment: few enough of all for nothing to be due, then enough.
    let worn = before.iter().next().unwrap();
    session.run(&format!(
        "CREATE TABLE doomed AS SELECT c.document_id FROM rag.chunk c JOIN rag.segment s ON s.id = '{worn}'
         WHERE position(uuid_send(c.id) IN substr(s.data, 1, {HEADER_BYTES} + 16 * s.entries)) > 0"
    ));
    assert!(
        session.count("SELECT count(*) FROM doomed") * 20 > session.count("SELECT count(*) FROM rag.chunk")
    );
    session.run("DELETE FROM rag.document WHERE id IN (SELECT document_id FROM doomed LIMIT 40)");
    session.settle();
    assert_sound(&mut session);
    assert_found(&mut session);
    assert!(before.is_subset(&full(&mut session)), "nothing is due");
    session.run("DELETE FROM rag.document WHERE id IN (SELECT document_id FROM doomed)");
    wait_until("it is written anew", LIMIT, || !full(&mut session).contains(worn));
    session.settle();
    assert_sound(&mut session);
    assert_found(&mut session);
    assert!(deleted(&mut session).1 < 100);
    let kept = full(&mut session);
    assert!(before.iter().all(|id| id == worn || kept.contains(id)), "the others are left alone");

    // Counts that are too high, as a version before left them, come right.
    session.run("INSERT INTO rag.deletion_count (domain_id, chunks) SELECT domain_id, 100000 FROM rag.document LIMIT 1");
    session.run("INSERT INTO rag.document (uri, content) VALUES ('drift', 'Some wood in the river.')");
    wait_until("deleted entries are counted anew", LIMIT, || deleted(&mut session).1 < 1000);
    session.settle();
    assert_sound(&mut session);
    assert_found(&mut session);

    // As after an update of the analyser: one after the other is built anew, with what was deleted left out.
    session.run("DELETE FROM rag.document WHERE uri IN (SELECT 'n' || n FROM generate_series(3990, 4000) n)");
    session.run("UPDATE rag.segment SET analyser_version = 0");
    session.run("INSERT INTO rag.document (uri, content) VALUES ('last', 'River of no return.')");
    wait_until("all are of this version", LIMIT, || {
        session.count("SELECT count(*) FROM rag.segment WHERE analyser_version = 0") == 0
    });
    session.settle();
    assert_sound(&mut session);
    assert_found(&mut session);
}

#[test]
fn a_small_domain_gets_rid_of_all_that_is_deleted_and_of_what_is_counted_wrongly() {
    let database = Database::new("worn");
    let mut session = database.admin();
    put(&mut session, "default", 60);
    session.settle();
    for sql in [
        "DELETE FROM rag.document WHERE uri IN (SELECT 'n' || n FROM generate_series(1, 20) n)",
        "INSERT INTO rag.deletion_count (domain_id, chunks) SELECT domain_id, 1000 FROM rag.document LIMIT 1",
    ] {
        session.run(sql);
        // What was taken away comes back under its old ids.
        put(&mut session, "default", 60);
        session.run("DELETE FROM rag.document WHERE uri IN (SELECT 'n' || n FROM generate_series(21, 40) n)");
        wait_until("nothing deleted is left", LIMIT, || deleted(&mut session) == (0, 0));
        session.settle();
        assert_sound(&mut session);
    }
}
