//! Workers in several databases: found by themselves, seen at work, and gone when they are in the way.

use super::{LIMIT, assert_within, long_text, put, states, time};
use rag_tests::{Cluster, Database, Witness, eventually, wait_until};
use rustix::process::Signal;
use std::time::Duration;

/// What a worker says that is ended by SIGTERM, as by a shutdown.
const ENDED: &str = "FATAL:  terminating background worker \"rag_ext";

/// Workers that were ended instead of leaving by themselves.
fn ended(cluster: &Cluster) -> usize {
    cluster.log().matches(ENDED).count()
}

/// Other warnings and errors that workers logged, of any database.
fn complaints(cluster: &Cluster) -> Vec<String> {
    let is_complaint = |line: &&str| {
        ["WARNING", "ERROR", "FATAL", "PANIC"].iter().any(|word| line.contains(&format!("{word}: ")))
    };
    let log = cluster.log();
    let of_workers =
        log.lines().filter(is_complaint).filter(|line| line.contains("] @") || line.contains("rag_ext"));
    of_workers.filter(|line| !line.contains(ENDED)).map(str::to_owned).collect()
}

/// More documents than one worker claims at a time, so that there is some for a second.
const FOR_SEVERAL: usize = 12;

/// Gives the workers so many documents, each of which takes them long.
fn keep_busy(session: &mut rag_tests::Session, documents: usize) {
    for n in 0..documents {
        session.run(&format!(
            "INSERT INTO rag.document (content) VALUES ({})",
            long_text(400, &format!("surveyor{n}"))
        ));
    }
    wait_until("a worker is busy", LIMIT, || {
        session.count("SELECT count(*) FROM rag.job WHERE state = 'running'") > 0
    });
}

#[test]
fn new_databases_are_found_and_several_workers_share_each() {
    let cluster = Cluster::builder("databases").start();
    let databases = [cluster.database("one"), cluster.database("two")];
    let mut sessions: Vec<_> = databases.iter().map(Database::admin).collect();
    for session in &mut sessions {
        keep_busy(session, FOR_SEVERAL);
    }
    let mut admin = cluster.connect("postgres", "postgres");
    // As many as one owner may have, and the spare one.
    wait_until("three workers in each of the two", LIMIT, || {
        admin.column(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'rag_ext ingest' AND datname IS NOT NULL
             GROUP BY datname ORDER BY 1",
        ) == ["3", "3"]
    });
    let seen = admin.rows(
        "SELECT application_name, query FROM pg_stat_activity WHERE backend_type = 'rag_ext ingest' AND query LIKE '%document%'",
    );
    assert!(!seen.is_empty());
    for row in &seen {
        assert_eq!(row[0].as_deref(), Some("rag_ext ingest"));
        let activity = row[1].as_deref().unwrap();
        assert!(activity.starts_with("rag_ext: ") && !activity.contains("surveyor"), "{activity}");
    }
    for session in &mut sessions {
        assert_eq!(session.count("SELECT rag_cancel()"), FOR_SEVERAL as i64);
        put(session, "default", 3);
        session.settle();
        assert_eq!(states(session, "default"), ["done 3", &format!("failed 57014 {FOR_SEVERAL}")]);
    }
    wait_until("idle databases are left alone", LIMIT, || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'rag_ext ingest'") == 0
    });
    assert_eq!(ended(&cluster), 0);
    // What is paused stays so over a restart.
    sessions[0].run("SELECT rag_pause()");
    sessions[0].run("INSERT INTO rag.document (uri, content) VALUES ('later', 'Held back.')");
    drop(sessions);
    drop(admin);
    cluster.restart();
    let mut one = databases[0].admin();
    let mut two = databases[1].admin();
    two.run("INSERT INTO rag.document (content) VALUES ('Not held back.')");
    two.settle();
    assert_eq!(one.column("SELECT state FROM rag.job_status WHERE uri = 'later'"), ["queued"]);
    assert_eq!(one.count("SELECT rag_resume()"), 1);
    one.settle();
    assert_eq!(complaints(&cluster), Vec::<String>::new());
}

#[test]
fn a_database_can_be_dropped_renamed_and_copied_while_workers_are_busy_in_it() {
    let cluster = Cluster::builder("dropping").start();
    let mut witness = Witness::of(&cluster);
    let mut admin = cluster.connect("postgres", "postgres");
    for statement in [
        "DROP DATABASE $",
        "DROP DATABASE $ WITH (FORCE)",
        "ALTER DATABASE $ RENAME TO renamed_$",
        "CREATE DATABASE copy_of_$ TEMPLATE $",
    ] {
        assert_within(Duration::from_secs(4), statement, || {
            let database = cluster.database("busy");
            let mut session = database.admin();
            keep_busy(&mut session, 4);
            drop(session);
            let before = ended(&cluster);
            let took = time(&mut admin, &statement.replace('$', database.name()));
            let all_left = ended(&cluster) == before;
            if statement.starts_with("CREATE") {
                // The work goes on in the original, and begins in the copy.
                let mut original = database.admin();
                wait_until("work goes on", LIMIT, || {
                    original.count("SELECT count(*) FROM rag.job WHERE state = 'running'") > 0
                });
                let mut copy = cluster.connect("postgres", &format!("copy_of_{}", database.name()));
                assert_eq!(copy.count("SELECT count(*) FROM rag.document"), 4);
                copy.run("SELECT rag_cancel()");
            }
            if all_left { took } else { Duration::MAX }
        });
    }
    witness.assert_no_restart();
    assert_eq!(complaints(&cluster), Vec::<String>::new());
}

#[test]
fn the_extension_can_be_dropped_and_created_again_while_workers_are_busy() {
    let cluster = Cluster::builder("extension").start();
    let mut witness = Witness::of(&cluster);
    let database = cluster.database("busy");
    let mut session = database.admin();
    for _ in 0..3 {
        keep_busy(&mut session, 4);
        assert_within(Duration::from_secs(6), "DROP EXTENSION", || {
            let before = ended(&cluster);
            let took = time(&mut session, "BEGIN; DROP EXTENSION rag_ext CASCADE");
            let all_left = ended(&cluster) == before;
            session.run("ROLLBACK");
            wait_until("work goes on", LIMIT, || {
                session.count("SELECT count(*) FROM rag.job WHERE state = 'running'") > 0
            });
            if all_left { took } else { Duration::MAX }
        });
        session.run("DROP EXTENSION rag_ext CASCADE; CREATE EXTENSION rag_ext CASCADE");
        put(&mut session, "default", 2);
        session.settle();
        assert_eq!(states(&mut session, "default"), ["done 2"]);
        session.run("DELETE FROM rag.document");
    }
    witness.assert_no_restart();
    assert_eq!(complaints(&cluster), Vec::<String>::new());
}

#[test]
fn documents_of_a_worker_that_is_terminated_are_taken_up_again() {
    let cluster = Cluster::builder("terminated").start();
    let mut witness = Witness::of(&cluster);
    let database = cluster.database("terminated");
    let mut session = database.admin();
    let engine = cluster.running_engine();
    // Whoever takes documents waits for the engine with them, and none is done before that goes on.
    engine.signal(Signal::STOP);
    put(&mut session, "default", 6);
    for _ in 0..2 {
        let worker = eventually("a worker has documents in hand", LIMIT, || {
            session
                .column(
                    "SELECT pid FROM pg_stat_activity a JOIN rag.job j ON j.worker_pid = a.pid AND j.worker_start = a.backend_start
                     WHERE j.state = 'running' LIMIT 1",
                )
                .pop()
        });
        session.run(&format!("SELECT pg_terminate_backend({worker})"));
        wait_until("it is gone", LIMIT, || {
            session.count(&format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {worker}")) == 0
        });
    }
    assert_eq!(session.count("SELECT count(*) FROM rag.job WHERE state NOT IN ('queued', 'running')"), 0);
    engine.signal(Signal::CONT);
    session.settle();
    assert_eq!(states(&mut session, "default"), ["done 6"]);
    assert_eq!(session.count("SELECT count(*) FROM rag.job WHERE tries > 0"), 0, "it was not their fault");
    witness.assert_no_restart();
}

#[test]
fn settings_of_a_database_do_not_end_the_work() {
    let database = Database::new("database_settings");
    let mut session = database.user("ann");
    let mut admin = database.admin();
    let name = database.name();
    admin.run(&format!("ALTER DATABASE {name} SET role = '{}'", database.role_name("ann")));
    if database.cluster().installation().major() >= 17 {
        admin.run(&format!("ALTER DATABASE {name} SET transaction_timeout = '1ms'"));
    }
    put(&mut session, "default", 3);
    session.settle();
    assert_eq!(states(&mut session, "default"), ["done 3"]);
    admin.run(&format!("ALTER DATABASE {name} RESET ALL"));
}

#[test]
fn pgvector_may_move_to_another_schema_under_open_sessions() {
    let database = Database::new("moved_vector");
    let mut session = database.user("ann");
    let mut admin = database.admin();
    let mut look = |n: i64| {
        session.ingest(&format!("The lighthouse keeper, page {n}."), &format!("page {n}"));
        session.run("INSERT INTO rag.document (content) VALUES ('In the background.')");
        session.settle();
        assert_eq!(
            session.count("SELECT count(*) FROM rag_search('lighthouse', k => 50, mode => 'vector')"),
            2 * n
        );
    };
    look(1);
    admin.run("CREATE SCHEMA \"else where\"; GRANT USAGE ON SCHEMA \"else where\" TO PUBLIC");
    admin.run("ALTER EXTENSION vector SET SCHEMA \"else where\"");
    look(2);
    admin.run("ALTER SCHEMA \"else where\" RENAME TO moved");
    look(3);
}

#[test]
fn the_schema_keeps_its_name_and_everything_is_indexed_anew_under_load() {
    let database = Database::new("reindexed");
    let mut admin = database.admin();
    let failure = admin.refuses("0A000", "ALTER SCHEMA rag RENAME TO docs");
    assert!(failure.to_string().contains("schema rag cannot be renamed"), "{failure}");
    let mut ann = database.user("ann");
    for round in 0..5 {
        ann.run(&format!("INSERT INTO rag.document (content) SELECT 'Note ' || n || ' of round {round}.' FROM generate_series(1, 20) n"));
        admin.run(&format!("REINDEX DATABASE {}", database.name()));
    }
    ann.settle();
    assert_eq!(ann.column("SELECT DISTINCT status FROM rag.document"), ["done"]);
}

#[test]
fn workers_leave_where_there_are_to_be_none() {
    let cluster = Cluster::builder("no_workers").start();
    let database = cluster.database("no_workers");
    let mut session = database.admin();
    keep_busy(&mut session, 4);
    cluster.configure("rag_ext.ingest_workers = 0\n");
    cluster.reload();
    session.run("SELECT rag_cancel()");
    let workers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'rag_ext ingest'";
    wait_until("they have left", LIMIT, || session.count(workers) == 0);
    put(&mut session, "default", 1);
    assert_eq!(states(&mut session, "default"), ["failed 57014 4", "queued 1"]);
    cluster.configure("rag_ext.ingest_workers = 1\n");
    cluster.reload();
    session.settle();
    assert_eq!(states(&mut session, "default"), ["done 1", "failed 57014 4"]);
}

#[test]
fn tables_of_another_version_are_left_alone() {
    let cluster = Cluster::builder("versions").start();
    let database = cluster.database("versions");
    let mut session = database.admin();
    session.ingest("A note from before.", "before");
    let version =
        |version: &str| format!("UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'rag_ext'");
    let current = session.value("SELECT extversion FROM pg_extension WHERE extname = 'rag_ext'");
    for other in ["99.0.0", "0.0.9"] {
        session.run(&version(other));
        // As after an update of the package: sessions and workers are new.
        session = database.admin();
        for sql in
            ["SELECT * FROM rag_search('note')", "SELECT rag_answer('Which note?')", "SELECT rag_ingest('x')"]
        {
            let refused = session.refuses("55000", sql);
            assert!(
                refused.message.contains(other) && refused.hint.contains("ALTER EXTENSION rag_ext UPDATE"),
                "{refused}"
            );
        }
    }
    session.run("INSERT INTO rag.document (uri, content) VALUES ('after', 'A note from after.')");
    wait_until("a worker has said so", LIMIT, || {
        cluster.log().contains("nothing is ingested: rag_ext is of version 0.0.9")
    });
    assert_eq!(session.value("SELECT status FROM rag.document WHERE uri = 'after'"), "pending");
    session.run(&version(&current));
    session.settle();
    assert_eq!(session.count("SELECT count(*) FROM rag_search('note')"), 2);
}
