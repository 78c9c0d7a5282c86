//! What a session keeps of the caller's rights from one statement to the next: it is what a session would find that has kept
//! nothing, whatever others write meanwhile and however their transactions end.
//!
//! `RAG_TEST_SEED` draws the same steps again.

#![allow(clippy::unwrap_used)]

#[path = "../../src/pg/write_log.rs"]
#[allow(dead_code, reason = "the extension uses what these tests do not")]
mod write_log;

use rag_tests::{Cluster, Database, Random, Session, literal};
use std::collections::{BTreeMap, BTreeSet};
use write_log::{ENTRIES, Subject, View, WriteLog};

const DATABASE: u32 = 5;

/// A cluster's transactions as they were, and what each has written.
#[derive(Default)]
struct History {
    next_xid: u64,
    running: BTreeSet<u64>,
    written: BTreeMap<u64, BTreeSet<u64>>,
}

impl History {
    fn view(&self, own: Option<u64>) -> View {
        let others: Vec<u64> = self.running.iter().copied().filter(|xid| own != Some(*xid)).collect();
        let oldest = self.running.first().copied().unwrap_or(self.next_xid);
        View::new((oldest, self.next_xid), others, own)
    }

    /// Transactions that a snapshot taken now shows, among those that have written about a subject.
    fn shown(&self, subject: u64, own: Option<u64>) -> BTreeSet<u64> {
        let is_shown = |xid: &u64| own == Some(*xid) || !self.running.contains(xid);
        let wrote = self.written.iter().filter(|(xid, of)| of.contains(&subject) && is_shown(xid));
        wrote.map(|(xid, _)| *xid).collect()
    }

    /// The transaction of whoever takes a snapshot, or none that has an id. They may be back while it runs: it is prepared.
    fn taker(&self, random: &mut Random) -> Option<u64> {
        let running: Vec<u64> = self.running.iter().copied().filter(|xid| *xid != 90).collect();
        (!running.is_empty() && random.below(2) == 0).then(|| *random.pick(&running))
    }
}

#[test]
fn what_is_called_the_same_is_the_same() {
    let mut random = Random::announced("what_is_called_the_same_is_the_same");
    let (mut same, mut different) = (0, 0);
    for _ in 0..200 {
        let mut history = History { next_xid: 100, ..History::default() };
        let mut log = Box::new(WriteLog::EMPTY);
        if random.below(2) == 0 {
            // Prepared before the server started: nothing of it is remembered.
            history.running.insert(90);
            history.written.insert(90, BTreeSet::from([1, 2, 3]));
        }
        log.begin(history.next_xid);
        let mut kept: Vec<(u64, View, BTreeSet<u64>)> = Vec::new();
        for _ in 0..120 {
            match random.below(6) {
                0 => {
                    history.running.insert(history.next_xid);
                    history.next_xid += 1;
                }
                1 | 2 => {
                    let writers: Vec<u64> =
                        history.running.iter().copied().filter(|xid| *xid != 90).collect();
                    if !writers.is_empty() {
                        let (xid, subject) = (*random.pick(&writers), 1 + random.below(4) as u64);
                        log.note(DATABASE, xid, Subject::new(subject));
                        history.written.entry(xid).or_default().insert(subject);
                    }
                }
                3 => {
                    let running: Vec<u64> = history.running.iter().copied().collect();
                    if !running.is_empty() {
                        history.running.remove(random.pick(&running));
                    }
                }
                4 => {
                    let subject = 1 + random.below(4) as u64;
                    let own = history.taker(&mut random);
                    kept.push((subject, history.view(own), history.shown(subject, own)));
                }
                _ => {
                    for (subject, then, shown) in &kept {
                        let own = history.taker(&mut random);
                        let now = history.view(own);
                        let is_same = log.is_same(DATABASE, &[Subject::new(*subject)], then, &now);
                        if is_same {
                            assert_eq!(*shown, history.shown(*subject, own));
                        }
                        same += usize::from(is_same);
                        different += usize::from(!is_same);
                    }
                }
            }
        }
    }
    assert!(same > 1000 && different > 1000, "{same} and {different}");
}

#[test]
fn own_writes_and_forgotten_ones_are_never_the_same() {
    let subject = [Subject::new(7)];
    let mut log = Box::new(WriteLog::EMPTY);
    let view = |xmin, xmax, own| View::new((xmin, xmax), [], own);
    assert!(
        !log.is_same(DATABASE, &subject, &view(100, 100, None), &view(100, 100, None)),
        "before it begins"
    );
    log.begin(100);
    assert!(log.is_same(DATABASE, &subject, &view(100, 100, None), &view(100, 100, None)));
    assert!(
        !log.is_same(DATABASE, &subject, &view(99, 100, None), &view(100, 100, None)),
        "an older one ran"
    );
    // Somebody who has an id, but is in no snapshot of their own.
    log.note(DATABASE, 104, Subject::new(7));
    let (inside, after) = (view(103, 110, Some(104)), view(110, 110, None));
    assert!(!log.is_same(DATABASE, &subject, &inside, &inside), "it has written");
    assert!(!log.is_same(DATABASE, &subject, &inside, &after), "it has ended");
    let prepared = View::new((104, 110), [104], None);
    assert!(!log.is_same(DATABASE, &subject, &inside, &prepared), "it has written, and nobody sees it yet");
    assert!(log.is_same(DATABASE, &[Subject::new(8)], &inside, &after), "about something else");
    assert!(log.is_same(DATABASE + 1, &subject, &inside, &after), "in another database");
    log.note(DATABASE, 105, Subject::ALL);
    assert!(!log.is_same(DATABASE, &[Subject::new(8)], &view(104, 105, None), &after), "about everything");
    // The newest push the oldest out, and with it all that is as old.
    for xid in 0..ENTRIES as u64 {
        log.note(DATABASE, 200 + xid, Subject::new(9));
    }
    assert!(!log.is_same(DATABASE, &subject, &view(103, 103, None), &view(105, 105, None)), "forgotten");
    assert!(log.is_same(DATABASE, &subject, &view(106, 106, None), &view(150, 150, None)), "since then");
}

/// All that the lists say, and what is found with them.
const SEEN: &str = "SELECT concat_ws(' | ', rag.readable_domain_ids(), rag.writable_domain_ids(), rag.visible_collection_ids(),
    rag.own_collection_ids(), rag.granted_domain_ids(),
    (SELECT string_agg(s.collection, ',' ORDER BY s.collection) FROM rag_search('owned', k => 100, mode => 'keyword') s))";

const STEPS: usize = 250;

fn cluster(name: &str) -> Cluster {
    Cluster::builder(name)
        .setting("max_prepared_transactions", "8")
        .setting("shared_preload_libraries", "rag_ext,pg_stat_statements")
        .setting("pg_stat_statements.track", "all")
        .start()
}

/// Ann's collections, each with a document.
fn fill(database: &Database<'_>, ann: &str) {
    let mut session = database.connect(ann);
    for n in 0..3 {
        session.run(&format!("SELECT rag_create_collection('c{n}')"));
        session.run(&format!(
            "INSERT INTO rag.document (collection, content, uri) VALUES ('c{n}', 'This is owned, number {n}.', 'u{n}')"
        ));
    }
    session.settle();
}

/// Something that somebody writes, in a transaction or on its own.
fn write(random: &mut Random, session: &mut Session, (ann, bob): (&str, &str), is_ann: bool, n: usize) {
    let collection = format!("c{}", random.below(3));
    let to = *random.pick(&[bob, "other_of_all"]);
    let sql = match (is_ann, random.below(9)) {
        (true, 0 | 1) => {
            format!("SELECT rag_grant('{collection}', 'role:{to}', '{}')", random.pick(&["read", "write"]))
        }
        (true, 2 | 3) => {
            format!("SELECT rag_revoke('{collection}', 'role:{to}', '{}')", random.pick(&["read", "write"]))
        }
        (true, 4) => format!("SELECT rag_create_collection('x{n}')"),
        (true, 5) => "DELETE FROM rag.collection WHERE name LIKE 'x%'".to_owned(),
        (false, 0..=2) => format!("SELECT rag_accept('role:{ann}', '{collection}')"),
        (false, 3) => "DELETE FROM rag.accepted_collection".to_owned(),
        (false, 4) => format!("SELECT rag_create_collection('x{n}')"),
        (false, 5) => "DELETE FROM rag.collection WHERE name LIKE 'x%'".to_owned(),
        (_, 6) => "SAVEPOINT s".to_owned(),
        (_, 7) => "ROLLBACK TO s".to_owned(),
        _ => "SELECT 1".to_owned(),
    };
    // What is not there, or held by somebody, is refused; then the transaction has failed and is rolled back below.
    let _ = session.try_run(&sql);
}

/// A session that has kept its lists, and one that has just come, under the same snapshot.
fn assert_kept_is_right(database: &Database<'_>, keeper: &mut Session, role: &str, step: usize) -> String {
    keeper.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let snapshot = keeper.value("SELECT pg_export_snapshot()");
    let kept = keeper.value(SEEN);
    let mut fresh = database.connect(role);
    fresh.run(&format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{snapshot}'"));
    assert_eq!(kept, fresh.value(SEEN), "step {step}, {role}");
    keeper.run("COMMIT");
    kept
}

#[test]
fn kept_lists_are_those_of_a_session_that_keeps_nothing() {
    let cluster = cluster("kept");
    let database = cluster.database("kept");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    database.admin().run(&format!(
        "CREATE ROLE other_of_all; SELECT rag_enable('other_of_all'); GRANT other_of_all TO {bob}"
    ));
    fill(&database, &ann);
    let mut random = Random::announced("kept_lists_are_those_of_a_session_that_keeps_nothing");
    let mut keepers = [(database.connect(&ann), &ann), (database.connect(&bob), &bob)];
    let mut writers: Vec<(Session, bool)> = [true, true, false]
        .into_iter()
        .map(|is_ann| (database.connect(if is_ann { &ann } else { &bob }), is_ann))
        .collect();
    for (writer, _) in &mut writers {
        writer.run("SET lock_timeout = '100ms'");
    }
    let mut prepared = 0;
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    for step in 0..STEPS {
        let place = random.below(writers.len());
        let (writer, is_ann) = &mut writers[place];
        match random.below(10) {
            0 | 1 => drop(writer.try_run("BEGIN")),
            2 | 3 => drop(writer.try_run("COMMIT")),
            4 => drop(writer.try_run("ROLLBACK")),
            5 if writer.try_run(&format!("PREPARE TRANSACTION 'p{step}'")).is_ok() => {
                prepared += 1;
                let mut admin = database.admin();
                if prepared > 3 || random.below(2) == 0 {
                    for name in admin.column("SELECT gid FROM pg_prepared_xacts") {
                        let end = *random.pick(&["COMMIT", "ROLLBACK"]);
                        admin.run(&format!("{end} PREPARED '{name}'"));
                    }
                    prepared = 0;
                }
            }
            _ => write(&mut random, writer, (&ann, &bob), *is_ann, step),
        }
        // A transaction that has written: before and after another caller's lists have taken the place of its own.
        if let Ok(rows) = writer.try_rows(SEEN) {
            let kept = rows[0][0].clone();
            if !*is_ann {
                writer.run(&format!("SET ROLE other_of_all; {SEEN}; RESET ROLE"));
                assert_eq!(kept.as_deref(), Some(writer.value(SEEN).as_str()), "step {step}, a writer");
            }
        } else {
            writer.run("ROLLBACK");
        }
        let place = random.below(2);
        let (keeper, role) = &mut keepers[place];
        seen[place].insert(assert_kept_is_right(&database, keeper, role, step));
    }
    let mut admin = database.admin();
    for name in admin.column("SELECT gid FROM pg_prepared_xacts") {
        admin.run(&format!("ROLLBACK PREPARED {}", literal(&name)));
    }
    let changed = seen.iter().all(|lists| lists.len() > 1);
    assert!(changed, "the steps have changed nothing: {seen:?}");
}

#[test]
fn lists_are_made_again_for_whom_a_write_concerns() {
    let cluster = cluster("kept_again");
    let database = cluster.database("again");
    let (ann, bob, carl) = (database.role("ann"), database.role("bob"), database.role("carl"));
    fill(&database, &ann);
    let mut admin = database.admin();
    admin.run("CREATE EXTENSION pg_stat_statements");
    let (mut owner, mut caller) = (database.connect(&ann), database.connect(&bob));
    owner.run(&format!("SELECT rag_grant('c0', 'role:{bob}', 'read')"));
    caller.run(&format!("SELECT rag_accept('role:{ann}', 'c0')"));
    let mut made = |caller: &mut Session| {
        admin.run("SELECT pg_stat_statements_reset()");
        for _ in 0..3 {
            assert_eq!(caller.count("SELECT count(*) FROM rag_search('owned', mode => 'keyword')"), 1);
        }
        admin.count(
            "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query LIKE 'SELECT d.id, c.id, c.name%'",
        )
    };
    made(&mut caller);
    assert_eq!(made(&mut caller), 0, "kept");
    owner.run(&format!("SELECT rag_grant('c1', 'role:{carl}', 'read'); SELECT rag_create_collection('c4')"));
    assert_eq!(made(&mut caller), 0, "what others have among themselves");
    owner.run(&format!("BEGIN; SELECT rag_grant('c1', 'role:{bob}', 'read')"));
    assert_eq!(made(&mut caller), 0, "not committed");
    owner.run("COMMIT");
    assert_eq!(made(&mut caller), 1, "committed");
    let own = "SELECT cardinality(rag.own_collection_ids())";
    let before = owner.count(own);
    owner.run(&format!(
        "BEGIN; SELECT rag_revoke('c1', 'role:{bob}', 'read'); SELECT rag_create_collection('c5')"
    ));
    assert_eq!(owner.count(own), before + 1, "written");
    owner.run("PREPARE TRANSACTION 'later'");
    assert_eq!((owner.count(own), made(&mut caller)), (before, 0), "prepared");
    owner.run("COMMIT PREPARED 'later'");
    assert_eq!(owner.count(own), before + 1, "committed after it was prepared");
    assert_eq!(made(&mut caller), 1, "committed after it was prepared");
    owner.run(&format!("BEGIN; SELECT rag_grant('c1', 'role:{bob}', 'read'); ROLLBACK"));
    made(&mut caller);
    assert_eq!(made(&mut caller), 0, "rolled back");
    caller.run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(made(&mut caller), 3, "what a serializable transaction reads is kept track of");
    caller.run("COMMIT");
    made(&mut caller);
    // Without the trigger nobody would be told.
    database.admin().run("ALTER TABLE rag.collection_grant DISABLE TRIGGER note_write");
    assert_eq!(made(&mut caller), 3, "not to be relied on");
    database.admin().run("ALTER TABLE rag.collection_grant ENABLE ALWAYS TRIGGER note_write");
    made(&mut caller);
    assert_eq!(made(&mut caller), 0);
}
