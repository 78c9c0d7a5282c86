//! Logical replication of everything: the publisher works, the subscriber reads.

use super::{WORD, assert_retrievers_agree};
use rag_tests::{Cluster, Session, wait_until};
use std::process::Stdio;
use std::time::Duration;

/// A subscriber as docs/operations.md makes one.
fn subscriber_of(publisher: &Cluster, database: &str) -> Cluster {
    let subscriber = Cluster::builder("subscriber").start();
    let schema = publisher.file("schema.sql");
    publisher.call(
        publisher
            .program("pg_dump")
            .args(["--schema-only", "--no-publications", "--file"])
            .arg(&schema)
            .arg(database),
    );
    subscriber.connect("postgres", "postgres").run(&format!("CREATE DATABASE {database}"));
    let restored = subscriber
        .program("psql")
        .args(["--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", database, "--file"])
        .arg(&schema)
        .stdout(Stdio::null())
        .status();
    assert!(restored.unwrap().success());
    let mut there = subscriber.connect("postgres", database);
    there.run("TRUNCATE rag.metadata_rule, rag.builtin_policy, rag.allowed");
    let at = publisher.connect("postgres", database).value(
        "SELECT format('host=%s port=%s user=postgres dbname=%s', current_setting('unix_socket_directories'), current_setting('port'), current_database())",
    );
    there.run(&format!("CREATE SUBSCRIPTION everything CONNECTION '{at}' PUBLICATION everything"));
    subscriber
}

/// Waits until the subscriber has all that the publisher has written.
fn wait_for(publisher: &mut Session, subscriber: &mut Session) {
    wait_until("all tables are copied", Duration::from_secs(120), || {
        subscriber.holds("SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel")
    });
    let written = publisher.value("SELECT pg_current_wal_lsn()");
    wait_until("all changes are applied", Duration::from_secs(120), || {
        publisher.holds(&format!(
            "SELECT coalesce(bool_and(replay_lsn >= '{written}'), false) FROM pg_stat_replication"
        ))
    });
}

#[test]
fn a_subscriber_of_all_tables_finds_what_the_publisher_processed_and_works_on_none_of_it() {
    for published in ["FOR TABLES IN SCHEMA rag", "FOR ALL TABLES"] {
        let publisher = Cluster::builder("publisher").setting("wal_level", "logical").start();
        let database = publisher.database("logical");
        let mut here = database.admin();
        here.ingest(&format!("{WORD}, there before."), "before");
        here.run(&format!("CREATE PUBLICATION everything {published}"));
        let subscriber = subscriber_of(&publisher, database.name());
        let mut there = subscriber.connect("postgres", database.name());
        wait_for(&mut here, &mut there);
        assert_eq!(assert_retrievers_agree(&mut there, "after the copy"), 1);

        for n in 0..20 {
            here.run(&format!(
                "INSERT INTO rag.document (uri, content) VALUES ('t{n}', '{WORD}, number {n}.')"
            ));
        }
        here.run("UPDATE rag.document SET content = content || ' Changed.' WHERE uri IN ('t1', 't2')");
        here.settle();
        // Jobs that wait are seen by the subscriber's launcher, and left alone.
        drop(here);
        publisher.configure("rag_ext.ingest_workers = 0\n");
        publisher.restart();
        let mut here = database.admin();
        here.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('late', '{WORD}, late.')"));
        wait_for(&mut here, &mut there);
        // The publisher's restart was one.
        let errors = "SELECT apply_error_count + sync_error_count FROM pg_stat_subscription_stats";
        let known_errors = there.count(errors);
        subscriber.configure("rag_ext.launcher_naptime = 1s\n");
        subscriber.reload();
        for n in 0..3 {
            let beside = subscriber.database(&format!("beside{n}"));
            let mut beside = beside.admin();
            beside.run("INSERT INTO rag.document (content) VALUES ('Workers are at work.')");
            beside.settle();
            assert_eq!(there.column("SELECT state FROM rag.job WHERE state <> 'done'"), ["queued"]);
        }
        publisher.configure("rag_ext.ingest_workers = 2\n");
        publisher.reload();
        here.run("DELETE FROM rag.document WHERE uri = 't3'");
        here.settle();
        wait_for(&mut here, &mut there);
        assert_eq!(assert_retrievers_agree(&mut here, "on the publisher"), 21);
        assert_eq!(assert_retrievers_agree(&mut there, "on the subscriber"), 21);
        assert_eq!(there.count(errors), known_errors, "{}", subscriber.log());
        assert!(there.value("SELECT rag_status()").contains("logical subscriber"));

        // Once it is no subscriber any more it works by itself.
        there.run("DROP SUBSCRIPTION everything");
        there.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('own', '{WORD} of its own.')"));
        there.settle();
        assert_eq!(assert_retrievers_agree(&mut there, "on its own"), 22);
    }
}
