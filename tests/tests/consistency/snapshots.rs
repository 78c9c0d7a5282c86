//! Snapshots taken while others write, and while one's own transaction writes.

use super::{RETRIEVERS, WORD, assert_retrievers_agree};
use rag_tests::{Database, Random, Session, literal, wait_until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const SNAPSHOTS: usize = 1000;
/// Where reading is much faster than writing there are more snapshots, until so many changes were made.
const CHANGES: usize = 200;
const MOST_SNAPSHOTS: usize = 20 * SNAPSHOTS;
const URIS: usize = 25;

/// One random change; texts are short, so that there are many commits.
fn change(session: &mut Session, random: &mut Random, writer: usize) {
    let uri = format!("w{writer}-{}", random.below(URIS));
    let text = format!(
        "{WORD} number {} of writer {writer}, {}.",
        random.below(1000),
        random.pick(&["red", "green", "blue"])
    );
    let sync = literal("{\"sync\": true}");
    let ingest = format!("SELECT rag_ingest('{text}', uri => '{uri}'");
    match random.below(10) {
        0..=2 => session.run(&format!("{ingest}, options => {sync})")),
        3..=4 => session.run(&format!("{ingest})")),
        5 => session.run(&format!("UPDATE rag.document SET content = '{text}' WHERE uri = '{uri}'")),
        6 => session.run(&format!("DELETE FROM rag.document WHERE uri = '{uri}'")),
        7 => session.run(&format!("BEGIN; {ingest}, options => {sync}); ROLLBACK")),
        8 => session.run(&format!(
            "BEGIN; {ingest}, options => {sync}); SAVEPOINT s; DELETE FROM rag.document WHERE uri LIKE 'w{writer}-%'; ROLLBACK TO s; COMMIT"
        )),
        _ => session.run(&format!(
            "BEGIN; DELETE FROM rag.document WHERE uri LIKE 'w{writer}-1%'; {ingest}, options => {sync}); COMMIT"
        )),
    }
}

#[test]
fn a_thousand_snapshots_agree_while_four_writers_change_and_merges_run() {
    let mut seeds = Random::announced("snapshots");
    let database = Database::new("snapshots");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    for n in 0..30 {
        ann.ingest(&format!("{WORD} from the beginning, number {n}."), &format!("start{n}"));
    }
    let (stop, taken, changes) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let distinct = std::sync::Mutex::new(std::collections::HashSet::new());
    let failures: Vec<String> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..4 {
            let mut random = Random::seeded(seeds.bits());
            let (database, role, stop, changes) = (&database, &role, &stop, &changes);
            threads.push(scope.spawn(move || {
                let mut session = database.connect(role);
                while !stop.load(Ordering::Relaxed) {
                    change(&mut session, &mut random, writer);
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for reader in 0..2 {
            let (database, role, stop, taken, changes, distinct) =
                (&database, &role, &stop, &taken, &changes, &distinct);
            threads.push(scope.spawn(move || {
                // Whatever happens, the others have to come to an end.
                struct Stop<'a>(&'a AtomicBool);
                impl Drop for Stop<'_> {
                    fn drop(&mut self) {
                        self.0.store(true, Ordering::Relaxed);
                    }
                }
                let _stop = Stop(stop);
                let mut session = database.connect(role);
                loop {
                    let (before, calm) =
                        (taken.fetch_add(1, Ordering::Relaxed), changes.load(Ordering::Relaxed) < CHANGES);
                    if before >= MOST_SNAPSHOTS || before >= SNAPSHOTS && !calm {
                        break;
                    }
                    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
                    // Three statements, one snapshot: between them others commit.
                    let table = session.column("SELECT id FROM rag.chunk ORDER BY id");
                    let keyword = session.column(&format!(
                        "SELECT chunk_id FROM rag_search('{WORD}', k => 1000, mode => 'keyword') ORDER BY 1"
                    ));
                    let vector = session.column(&format!(
                        "SELECT chunk_id FROM rag_search('{WORD}', k => 1000, mode => 'vector') ORDER BY 1"
                    ));
                    session.run("COMMIT");
                    assert_eq!(keyword, table, "reader {reader}: keyword retriever");
                    assert_eq!(vector, table, "reader {reader}: vector retriever");
                    assert!(table.len() < 1000, "the corpus outgrew k");
                    assert_retrievers_agree(&mut session, "in one statement");
                    distinct.lock().unwrap().insert(table);
                }
            }));
        }
        threads
            .into_iter()
            .filter_map(|thread| thread.join().err())
            .map(|panic| {
                panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a thread panicked".into())
            })
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n---\n"));
    let (changes, distinct) = (changes.into_inner(), distinct.into_inner().unwrap().len());
    assert!(
        changes >= CHANGES && distinct > 50,
        "too calm: {changes} changes, {distinct} different snapshots"
    );

    ann.settle();
    let chunks = assert_retrievers_agree(&mut ann, "at the end");
    assert_eq!(chunks as i64, ann.count("SELECT count(*) FROM rag.document"), "one chunk per document");
    // Merging goes on after the last document is done.
    let mut merged = 0;
    wait_until("most segments are merged", Duration::from_secs(60), || {
        merged = ann.count("SELECT count(DISTINCT id) FROM rag.segment");
        merged < changes as i64 / 4
    });
    eprintln!("{changes} changes, {distinct} different snapshots, {merged} segments left");
}

#[test]
fn a_transaction_that_has_written_sees_its_own_state_in_both_retrievers() {
    let database = Database::new("own_writes");
    let role = database.role("ann");
    let (mut ann, mut other) = (database.connect(&role), database.connect(&role));
    for n in 0..5 {
        ann.ingest(&format!("{WORD} before, number {n}."), &format!("b{n}"));
    }
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        ann.run(&format!("BEGIN ISOLATION LEVEL {isolation}"));
        assert_eq!(assert_retrievers_agree(&mut ann, "at first"), 5);
        ann.ingest(&format!("{WORD} new one in {isolation}."), "new1");
        assert_eq!(assert_retrievers_agree(&mut ann, "after an insert"), 6);
        ann.run("SAVEPOINT a");
        ann.run("DELETE FROM rag.document WHERE uri IN ('b0', 'b1')");
        assert_eq!(assert_retrievers_agree(&mut ann, "after a delete"), 4);
        ann.run("SAVEPOINT b");
        ann.ingest(&format!("{WORD} new two in {isolation}."), "new2");
        ann.ingest(&format!("{WORD} changed in {isolation}."), "b2");
        assert_eq!(assert_retrievers_agree(&mut ann, "after an update"), 5);
        ann.run("ROLLBACK TO b");
        assert_eq!(assert_retrievers_agree(&mut ann, "after the inner rollback"), 4);
        ann.ingest(&format!("{WORD} new three in {isolation}."), "new3");
        assert_eq!(assert_retrievers_agree(&mut ann, "after another insert"), 5);
        ann.run("ROLLBACK TO a");
        assert_eq!(assert_retrievers_agree(&mut ann, "after the outer rollback"), 6);
        assert_eq!(assert_retrievers_agree(&mut other, "seen by another session"), 5);
        ann.run("ROLLBACK");
        assert_eq!(assert_retrievers_agree(&mut ann, "after the end"), 5);
    }
    ann.run("BEGIN");
    ann.ingest(&format!("{WORD} to be kept."), "kept");
    ann.run("SAVEPOINT a");
    ann.ingest(&format!("{WORD} not to be kept."), "not kept");
    ann.run("ROLLBACK TO a; RELEASE a; DELETE FROM rag.document WHERE uri = 'b0'; COMMIT");
    for session in [&mut ann, &mut other] {
        assert_eq!(assert_retrievers_agree(session, "committed"), 5);
        assert_eq!(
            session.column("SELECT uri FROM rag.document ORDER BY 1"),
            ["b1", "b2", "b3", "b4", "kept"]
        );
    }
}

#[test]
fn a_function_that_writes_between_its_searches_sees_each_state_whole() {
    let database = Database::new("in_function");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    admin.run(&format!(
        "CREATE FUNCTION write_and_look(n integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
         BEGIN
             FOR i IN 1..n LOOP
                 PERFORM rag_ingest('{WORD} in a loop, number ' || i, uri => 'loop' || i, options => '{{\"sync\": true}}');
                 RETURN QUERY SELECT concat_ws(' ', a.t = a.k, a.t = a.v) FROM ({}) a (t, k, v);
             END LOOP;
         END $$",
        RETRIEVERS
    ));
    assert_eq!(ann.column("SELECT write_and_look(6)"), ["t t"; 6]);
    assert_eq!(assert_retrievers_agree(&mut ann, "afterwards"), 6);
}

#[test]
fn rows_deleted_by_every_way_disappear_from_both_retrievers_at_once() {
    let database = Database::new("ways");
    let mut ann = database.user("ann");
    let mut admin = database.admin();
    ann.run("SELECT rag_create_collection('other')");
    for n in 0..6 {
        let collection = if n < 3 { "other" } else { "default" };
        ann.run(&format!("SELECT rag_ingest('{WORD} number {n}', uri => '{n}', collection => '{collection}', options => '{{\"sync\": true}}')"));
    }
    assert_eq!(assert_retrievers_agree(&mut ann, "all"), 6);
    ann.run("UPDATE rag.document SET collection = 'default' WHERE uri = '0'");
    ann.settle();
    assert_eq!(assert_retrievers_agree(&mut ann, "moved"), 6);
    assert_eq!(
        ann.count(&format!(
            "SELECT count(*) FROM rag_search('{WORD}', k => 100, collection => 'default', mode => 'keyword')"
        )),
        4
    );
    ann.run("DELETE FROM rag.collection WHERE name = 'other'");
    assert_eq!(assert_retrievers_agree(&mut ann, "collection deleted"), 4);
    admin.run("DELETE FROM rag.document WHERE uri = '5'");
    assert_eq!(assert_retrievers_agree(&mut ann, "deleted by the superuser"), 3);
    admin.run("TRUNCATE rag.document");
    assert_eq!(assert_retrievers_agree(&mut ann, "truncated"), 0);
    ann.ingest(&format!("{WORD} once more."), "again");
    assert_eq!(assert_retrievers_agree(&mut ann, "begun again"), 1);
}
