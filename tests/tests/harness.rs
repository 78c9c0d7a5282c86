//! The harness itself: a throw-away cluster starts, stops, survives nothing it should not, and leaves nothing.

#![allow(clippy::unwrap_used)]

use rag_tests::{Cluster, Database, Process, Shutdown, Witness, wait_until};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn cluster_starts_stops_and_leaves_no_file_and_no_process() {
    let cluster = Cluster::builder("plain").without_preload().start();
    let (data, tree) = (cluster.data().to_owned(), cluster.processes());
    assert!(tree.len() > 3, "{tree:#?}");
    cluster.connect("postgres", "postgres").run("CREATE TABLE kept AS SELECT 1 AS x");
    cluster.restart();
    assert_eq!(cluster.connect("postgres", "postgres").count("SELECT x FROM kept"), 1);
    cluster.stop(Shutdown::Immediate);
    cluster.start();
    assert_eq!(cluster.connect("postgres", "postgres").count("SELECT x FROM kept"), 1);
    drop(cluster);
    assert!(!data.exists());
    assert!(tree.iter().all(|process| !process.runs()));
}

#[test]
fn witness_notices_the_crash_of_a_backend_and_nothing_less() {
    let cluster = Cluster::builder("witness").without_preload().start();
    let mut witness = Witness::of(&cluster);
    let mut victim = cluster.connect("postgres", "postgres");
    cluster.connect("postgres", "postgres").run(&format!("SELECT pg_terminate_backend({})", victim.pid()));
    wait_until("the backend ended", Duration::from_secs(60), || !victim.lives());
    witness.assert_no_restart();

    let victim = cluster.connect("postgres", "postgres");
    Process::find(victim.pid()).unwrap().signal(Signal::KILL);
    let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wait_until("the crash is noticed", Duration::from_secs(60), || {
            witness.assert_no_restart();
            false
        });
    }));
    let message = *noticed.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("the server restarted"), "{message}");
}

#[test]
fn server_runs_as_pid_1_of_a_namespace_and_comes_back_after_a_kill() {
    let cluster = Cluster::builder("pid_1").without_preload().as_pid_1().start();
    let postmaster = Process::find(cluster.postmaster()).unwrap();
    assert_eq!(postmaster.inner_pid, 1);
    cluster.connect("postgres", "postgres").run("CREATE TABLE kept AS SELECT 1 AS x");
    cluster.kill9();
    cluster.start();
    assert_eq!(cluster.connect("postgres", "postgres").count("SELECT x FROM kept"), 1);
}

#[test]
fn standby_follows_its_primary() {
    let cluster = Cluster::builder("primary").without_preload().start();
    let standby = cluster.standby("standby");
    cluster.connect("postgres", "postgres").run("CREATE TABLE kept AS SELECT 1 AS x");
    cluster.wait_for(&standby);
    let mut session = standby.connect("postgres", "postgres");
    assert_eq!(session.count("SELECT x FROM kept"), 1);
    assert!(session.holds("SELECT pg_is_in_recovery()"));
}

#[test]
fn a_database_that_is_left_damaged_fails_its_test_unless_it_says_so() {
    let damaged = |test: &str| {
        let database = Database::new(test);
        database.user("ann").ingest("A note that loses its vector.", "note");
        database.admin().run("DELETE FROM rag.embedding");
        database
    };
    let database = damaged("damaged");
    let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(database)));
    let message = *noticed.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("have no vector"), "{message}");
    damaged("damaged").leave_damaged();
}
