//! Code of an attached table's owner that does not end: others' work goes on, and so does the server.

use rag_tests::{Cluster, Database, Session, Witness, wait_until};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// A role that may create tables, connected, and somebody else.
fn owner_and_other(database: &Database<'_>) -> (Session, Session) {
    let ann = database.role("ann");
    database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {ann}"));
    (database.connect(&ann), database.user("bob"))
}

/// A function of the owner's that gives the owner of a row, after `code` where a worker calls it.
fn define(owner: &mut Session, code: &str) {
    owner.run(&format!(
        "CREATE OR REPLACE FUNCTION public.owner_of_row() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('application_name') = 'rag_ext ingest' THEN {code} END IF;
             RETURN 'role:' || current_user;
         END $$"
    ));
}

fn attach(owner: &mut Session, table: &str) {
    owner.run(&format!(
        "SELECT rag_attach('{table}', content => ARRAY['body'], options => '{{\"owner\": \"public.owner_of_row()\"}}')"
    ));
}

/// Somebody else's line is done.
#[track_caller]
fn ingest(other: &mut Session, n: usize) {
    other.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('{n}', 'Note number {n}.')"));
    wait_until("another's document is done", LIMIT, || {
        other.count("SELECT count(*) FROM rag.document WHERE status = 'done'") == n as i64
    });
}

#[test]
fn code_that_cannot_be_cancelled_ends_its_worker_and_stops_its_table() {
    let cluster = Cluster::builder("endless").setting("rag_ext.attached_timeout", "300ms").start();
    let mut witness = Witness::of(&cluster);
    let database = cluster.database("endless");
    let (mut ann, mut bob) = owner_and_other(&database);
    ann.run(
        "CREATE TABLE endless (id int PRIMARY KEY, body text); INSERT INTO endless VALUES (1, 'An endless row.');
         CREATE TABLE plain (id int PRIMARY KEY, body text); INSERT INTO plain VALUES (1, 'A plain row.')",
    );
    define(
        &mut ann,
        "LOOP BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;",
    );
    attach(&mut ann, "endless");
    ann.run("SELECT rag_attach('plain')");
    let state = "SELECT state FROM rag.attachment_status WHERE collection = 'endless'";
    let mut documents = 0;
    wait_until("the table is followed no more", LIMIT, || {
        documents += 1;
        ingest(&mut bob, documents);
        ann.value(state) == "stopped"
    });
    let told = ann.rows("SELECT sqlstate, error FROM rag.attachment_status WHERE collection = 'endless'");
    assert_eq!(told[0][0].as_deref(), Some("57014"));
    assert!(told[0][1].as_deref().unwrap().contains("could not be cancelled"), "{told:?}");
    let ended = || cluster.log().matches("a worker ends because").count();
    assert_eq!(ended(), 1);

    // Their other table is followed, and this one not even when it changes.
    super::settle(&mut ann, "plain");
    assert_eq!(super::indexed(&mut ann, "plain"), ["A plain row."]);
    ann.run("INSERT INTO endless VALUES (2, 'Another row.')");
    ingest(&mut bob, documents + 1);
    assert_eq!(ann.value(state), "stopped");
    define(&mut ann, "");
    attach(&mut ann, "endless");
    super::settle(&mut ann, "endless");
    assert_eq!(super::indexed(&mut ann, "endless"), ["An endless row.", "Another row."]);
    assert_eq!(ended(), 1);
    assert_eq!(
        ann.count("SELECT count(*) FROM rag.attachment WHERE running_since IS NOT NULL OR lost > 0"),
        0
    );
    witness.assert_no_restart();
}

#[test]
fn tables_that_take_long_leave_half_of_the_workers_to_others() {
    let database = Database::new("slow_tables");
    let (mut ann, mut bob) = owner_and_other(&database);
    define(&mut ann, "PERFORM pg_sleep(100);");
    for table in ["one", "two", "three", "four"] {
        ann.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, body text); INSERT INTO {table} VALUES (1, 'A row.')"
        ));
        attach(&mut ann, table);
    }
    let mut admin = database.admin();
    let mut asleep = || {
        admin.count(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
        )
    };
    wait_until("a worker runs the owner's code", LIMIT, || asleep() > 0);
    for n in 1..=4 {
        ingest(&mut bob, n);
        assert_eq!(asleep(), 1, "one of the two workers");
    }
}

#[test]
fn a_table_whose_worker_is_ended_by_somebody_is_followed_all_the_same() {
    let database = Database::new("lost_runs");
    let (mut ann, mut bob) = owner_and_other(&database);
    define(&mut ann, "PERFORM pg_sleep(100);");
    ann.run("CREATE TABLE one (id int PRIMARY KEY, body text); INSERT INTO one VALUES (1, 'A row.')");
    attach(&mut ann, "one");
    let mut admin = database.admin();
    let asleep = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    wait_until("a worker runs the owner's code", LIMIT, || {
        admin.count(&format!("SELECT count(*) {asleep}")) == 1
    });
    define(&mut ann, "");
    admin.run(&format!("SELECT pg_terminate_backend(pid) {asleep}"));
    wait_until("it is let go of", LIMIT, || {
        admin.run("SELECT rag.wake_workers()");
        ann.count("SELECT lost FROM rag.attachment") == 1
    });
    assert_eq!(ann.value("SELECT state FROM rag.attachment_status"), "filling");
    ingest(&mut bob, 1);
    admin.run("UPDATE rag.attachment SET due_at = now(); SELECT rag.wake_workers()");
    super::settle(&mut ann, "one");
    assert_eq!(super::indexed(&mut ann, "one"), ["A row."]);
    assert_eq!(ann.count("SELECT lost FROM rag.attachment"), 0);
}
