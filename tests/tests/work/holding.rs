//! What one tenant holds in an open transaction: nobody else's work waits for it, and their own goes on afterwards.

use super::{LIMIT, long_text, put};
use rag_tests::{Cluster, Database, Session, wait_until};
use rustix::process::Signal;
use std::collections::HashSet;

/// A tenant with three collections, so that there is work to meet their locks for more workers than there are.
const COLLECTIONS: [&str; 3] = ["one", "two", "three"];

/// Bytes that are no document.
const BROKEN: &str = "decode('255044462d312e370a25e2e3cfd30a', 'hex')";

/// One tenant who holds something, and another who waits for nobody.
struct Scene {
    admin: Session,
    holder: Session,
    victim: Session,
    /// Documents of the other tenant.
    documents: usize,
}

impl Scene {
    fn new(database: &Database<'_>) -> Self {
        let role = database.role("holder");
        let mut admin = database.admin();
        admin.run(&format!("GRANT CREATE ON SCHEMA public TO {role}"));
        let mut holder = database.connect(&role);
        for collection in COLLECTIONS {
            holder.run(&format!("SELECT rag_create_collection('{collection}')"));
            put(&mut holder, collection, 2);
        }
        holder.settle();
        let mut victim = database.user("victim");
        put(&mut victim, "default", 1);
        victim.settle();
        Self { admin, holder, victim, documents: 1 }
    }

    /// Has the holder take `locks` in an open transaction, gives the workers `work` that meets them, and expects the
    /// other tenant's document to be done all the same; then ends the transaction, and expects the rest.
    #[track_caller]
    fn check(&mut self, locks: &str, work: &str, end: &str) {
        self.holder.run(&format!("BEGIN; {locks}"));
        self.admin.run(work);
        self.admin.run("SELECT rag.wake_workers()");
        // Again and again: whatever the workers come to first, they come to theirs as well.
        for _ in 0..4 {
            self.documents += 1;
            let n = self.documents;
            put(&mut self.victim, "default", n);
            wait_until(&format!("document {n} of the other tenant is done, whatever is held"), LIMIT, || {
                self.victim.count("SELECT count(*) FROM rag.document WHERE status = 'done'") == n as i64
            });
        }
        assert_eq!(self.admin.count(OPEN), 1, "the transaction is still open");
        self.holder.run(end);
        wait_until("the holder's work is done", LIMIT, || self.admin.count(UNFINISHED) == 0);
    }
}

const OPEN: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND usename LIKE 'holder%' AND state = 'idle in transaction'";
const UNFINISHED: &str = "SELECT (SELECT count(*) FROM rag.job WHERE state IN ('queued', 'running'))
    + (SELECT count(*) FROM rag.attached_change)";

/// Has all that the holder put into their collections processed once more.
const AGAIN: &str = "UPDATE rag.job j SET state = 'queued', due_at = now(), queued_at = now()
    FROM rag.domain d WHERE d.id = j.domain_id AND d.owner LIKE '%holder%'";

#[test]
fn a_pause_that_is_not_committed_stops_nobody() {
    let database = Database::new("hold_pause");
    let mut scene = Scene::new(&database);
    scene.check("SELECT rag_pause()", AGAIN, "ROLLBACK");
}

#[test]
fn a_deletion_that_is_not_committed_stops_nobody() {
    let database = Database::new("hold_deletion");
    let mut scene = Scene::new(&database);
    scene.check("DELETE FROM rag.collection", AGAIN, "ROLLBACK");
    scene.check("DELETE FROM rag.collection WHERE name = 'two'", AGAIN, "COMMIT");
}

#[test]
fn locked_documents_stop_nobody_not_even_where_they_fail() {
    let database = Database::new("hold_rows");
    let mut scene = Scene::new(&database);
    scene.holder.run("SELECT rag_pause()");
    for collection in COLLECTIONS {
        scene.holder.run(&format!(
            "SELECT rag_ingest_bytes({BROKEN}, uri => 'broken', collection => '{collection}')"
        ));
    }
    let resume = "UPDATE rag.collection SET paused_at = NULL";
    scene.check("SELECT FROM rag.document FOR UPDATE", &format!("{resume}; {AGAIN}"), "ROLLBACK");
    assert_eq!(scene.holder.count("SELECT count(*) FROM rag.failed_job"), 3);
    scene.check("SELECT FROM rag.document FOR SHARE", AGAIN, "COMMIT");
}

#[test]
fn work_of_a_worker_that_is_gone_and_that_somebody_holds_stops_nobody() {
    let database = Database::new("hold_orphans");
    let mut scene = Scene::new(&database);
    let lost = AGAIN.replace("'queued', due_at", "'running', worker_pid = 1, worker_start = now(), due_at");
    scene.admin.run(&lost);
    let hold = "SELECT rag_set_priority(document_id, 7) FROM rag.job";
    scene.check(hold, "SELECT", "COMMIT");
    scene.admin.run(AGAIN);
    scene.check("SELECT rag_cancel()", "SELECT", "ROLLBACK");
}

#[test]
fn locked_attached_tables_stop_nobody_and_can_be_dropped() {
    let database = Database::new("hold_tables");
    let mut scene = Scene::new(&database);
    for table in COLLECTIONS {
        scene.holder.run(&format!(
            "CREATE TABLE t_{table} (id int PRIMARY KEY, body text);
             INSERT INTO t_{table} VALUES (1, 'A row of {table}.');
             SELECT rag_attach('t_{table}')"
        ));
    }
    scene.holder.settle();
    let changed = "INSERT INTO rag.attached_change (collection_id) SELECT collection_id FROM rag.attachment";
    scene.check("LOCK TABLE t_one, t_two, t_three IN ACCESS EXCLUSIVE MODE", changed, "COMMIT");
    assert_eq!(scene.holder.count("SELECT count(*) FROM rag.attachment WHERE state = 'current'"), 3);
    scene.holder.run("INSERT INTO t_one VALUES (2, 'A second row.')");
    scene.holder.settle();
    assert_eq!(scene.holder.count("SELECT count(*) FROM rag.document WHERE collection = 't_one'"), 2);

    // A worker that waits for the table with the attachment in its hands, and an owner who drops the one and waits for
    // the other, would be a deadlock, of which Postgres ends one.
    scene.check(
        "LOCK TABLE t_one, t_two, t_three IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(0.1)",
        changed,
        "DROP TABLE t_one, t_two, t_three; COMMIT",
    );
    assert_eq!(scene.holder.count("SELECT count(*) FROM rag.attachment"), 0);
}

/// Modes of LOCK TABLE that writers, and so workers, wait for, or that do not go together with themselves.
const STRONG: [&str; 5] =
    ["SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"];

#[test]
fn nobody_but_its_owner_locks_a_table_of_the_extension() {
    let database = Database::new("locking");
    let role = database.role("ann");
    let mut admin = database.admin();
    admin.run(&format!("GRANT CREATE ON SCHEMA public TO {role}"));
    let (mut ann, mut writer) = (database.connect(&role), database.connect(&role));
    ann.run(
        "CREATE VIEW mine AS SELECT id FROM rag.document WHERE id IN (SELECT document_id FROM rag.chunk);
         CREATE VIEW below AS SELECT m.id FROM mine m, (SELECT 1) one;
         CREATE TABLE plain (id uuid);
         CREATE TABLE parts (LIKE rag.document) PARTITION BY LIST (id)",
    );
    // Whoever only asked for a table alone would wait here, and everybody behind them.
    writer.run("BEGIN; INSERT INTO rag.document (content) VALUES ('Not committed.'); SELECT FROM rag.domain");
    ann.run("SET statement_timeout = '20s'");
    let relations = "SELECT oid::regclass FROM pg_class
                     WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p', 'v')";
    let relations = admin.column(relations);
    assert!(relations.len() > 20, "{relations:?}");
    for relation in relations.iter().map(String::as_str).chain(["mine", "below", "plain, below"]) {
        for mode in STRONG {
            let failure =
                ann.refuses("42501", &format!("DO 'BEGIN LOCK TABLE {relation} IN {mode} MODE; END'"));
            assert!(failure.message.starts_with("must be owner of rag."), "{failure}");
            assert!(!failure.hint.is_empty(), "{failure}");
        }
    }
    for statement in [
        "CREATE RULE r AS ON INSERT TO rag.document DO ALSO NOTHING",
        "CREATE TRIGGER t AFTER INSERT ON rag.document EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "ALTER TABLE parts ATTACH PARTITION rag.document DEFAULT",
        "ALTER TABLE parts DETACH PARTITION rag.document",
    ] {
        ann.refuses("42501", statement);
    }
    for statement in [
        "CREATE TABLE refers (id uuid REFERENCES rag.document (id))",
        "ALTER TABLE plain ADD FOREIGN KEY (id) REFERENCES rag.document (id)",
        "ALTER TABLE plain ADD COLUMN document uuid REFERENCES rag.document (id)",
    ] {
        let failure = ann.refuses("42501", statement);
        assert!(failure.hint.contains("GRANT REFERENCES ON rag.document"), "{failure}");
    }
    // What dumps and queries do, and what is their own.
    for mode in ["ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE"] {
        ann.run(&format!("BEGIN; LOCK TABLE rag.document IN {mode} MODE; ROLLBACK"));
    }
    ann.run("BEGIN; LOCK TABLE plain IN ACCESS EXCLUSIVE MODE; ROLLBACK");
    writer.run("ROLLBACK");
    admin.run("BEGIN; LOCK TABLE rag.document IN ACCESS EXCLUSIVE MODE; ROLLBACK");
    admin.run(&format!("GRANT REFERENCES (id) ON rag.document TO {role}"));
    ann.run("ALTER TABLE plain ADD FOREIGN KEY (id) REFERENCES rag.document (id)");
}

#[test]
fn dropping_waits_for_nobody_who_holds_tables_of_the_extension() {
    let database = Database::new("hold_extension");
    let role = database.role("ann");
    let mut admin = database.admin();
    admin.run(&format!("GRANT CREATE ON SCHEMA public TO {role}"));
    let mut ann = database.connect(&role);
    ann.run(
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql RETURN 1; CREATE TABLE plain (id int PRIMARY KEY);
         CREATE TABLE attached (id int PRIMARY KEY, body text); INSERT INTO attached VALUES (1, 'A row.');
         SELECT rag_attach('attached')",
    );
    ann.settle();
    admin.run(
        "BEGIN; LOCK TABLE rag.collection, rag.attachment, rag.attached_change IN ACCESS EXCLUSIVE MODE",
    );
    ann.run("SET statement_timeout = '20s'; DROP FUNCTION one(); DROP TABLE plain; DROP TABLE attached");
    admin.run("ROLLBACK");
    wait_until("the collection of the dropped table is gone", LIMIT, || {
        ann.count("SELECT count(*) FROM rag.collection WHERE name = 'attached'") == 0
    });
}

/// Documents that somebody holds cost the engine nothing, and one that is held while the engine is at it costs it once.
#[test]
fn a_document_that_somebody_holds_is_embedded_once() {
    // A cluster of its own: what its engine does is counted.
    let cluster = Cluster::builder("held_once").start();
    let database = cluster.database("held_once");
    let engine = cluster.running_engine();
    let role = database.role("ann");
    let mut admin = database.admin();
    let (mut ann, mut holder) = (database.connect(&role), database.connect(&role));
    let mut watcher = database.admin();
    let mut embedded = || admin.count("SELECT texts_embedded FROM rag.engine_status");
    ann.run("SELECT rag_create_collection('notes'), rag_pause('notes')");
    put(&mut ann, "notes", 2);
    holder.run("BEGIN; UPDATE rag.document SET metadata = '{\"seen\": true}'");
    let before = embedded();
    ann.run("SELECT rag_resume('notes')");
    // Each time that a worker takes a document, its job begins anew.
    let mut begun: HashSet<String> = HashSet::new();
    wait_until("workers looked several times", LIMIT, || {
        begun.extend(
            ann.column("SELECT document_id || ' ' || started_at FROM rag.job WHERE started_at IS NOT NULL"),
        );
        begun.len() >= 6
    });
    assert_eq!(embedded(), before, "nothing was asked of the engine for what cannot be written");
    assert_eq!(ann.count("SELECT count(*) FROM rag.job WHERE tries > 0 OR error IS NOT NULL"), 0);
    holder.run("COMMIT");
    ann.settle();
    assert_eq!(embedded(), before + 2);

    // Held from when the engine has it in hand.
    let before = embedded();
    let text = long_text(20, "surveyor");
    let chunks = ann.count(&format!("SELECT count(*) FROM rag_chunk({text})"));
    engine.signal(Signal::STOP);
    ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('long', {text})"));
    wait_until("the engine is asked for it", LIMIT, || {
        watcher.count(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'rag_ext: parsing%'",
        ) == 1
    });
    holder.run("BEGIN; UPDATE rag.document SET metadata = '{\"seen\": true}' WHERE uri = 'long'");
    engine.signal(Signal::CONT);
    wait_until("it is embedded", LIMIT, || embedded() == before + chunks);
    // The worker that has it in hand goes on with others.
    let mut bob = database.user("bob");
    for n in 1..=4 {
        put(&mut bob, "default", n);
        bob.settle();
    }
    holder.run("COMMIT");
    ann.settle();
    assert_eq!(embedded(), before + chunks + 4, "it was embedded once");
    assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE status = 'done'"), 3);
    assert!(ann.holds("SELECT metadata = '{\"seen\": true}' FROM rag.document WHERE uri = 'long'"));
}
