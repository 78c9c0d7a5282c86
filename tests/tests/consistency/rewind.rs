//! Postgres' own tools that read or copy a data directory: nothing of ours in it is in their way.

use super::WORD;
use rag_tests::{Cluster, Database, Session, Shutdown, wait_until};
use std::path::Path;
use std::time::Duration;

fn prepared(name: &str) -> Cluster {
    Cluster::builder(name).setting("wal_log_hints", "on").setting("wal_keep_size", "256MB").start()
}

/// Takes in a document whose keyword segment is kept in a file, and searches, so that the file is there. Its words are
/// long: much to the keyword index, and a token each to the model, which takes time.
fn fill_the_cache(cluster: &Cluster, ann: &mut Session) {
    ann.run(&format!(
        "INSERT INTO rag.document (uri, content)
         SELECT 'big', '{WORD} ' || string_agg(
             (SELECT string_agg(md5(n || '-' || m), '') FROM generate_series(1, 7) m), ' ') FROM generate_series(1, 600) n"
    ));
    ann.settle();
    wait_for_cache_files(cluster, ann);
}

fn wait_for_cache_files(cluster: &Cluster, session: &mut Session) {
    wait_until("a file of the cache", Duration::from_secs(30), || {
        assert!(session.count(&format!("SELECT count(*) FROM rag_search('{WORD}', mode => 'keyword')")) > 0);
        !super::cache::cache_files(cluster).is_empty()
    });
}

/// A backup that Postgres' own verification accepts, and in which nothing of ours is.
fn back_up(cluster: &Cluster, name: &str) {
    let backup = cluster.data().with_file_name(name);
    cluster.call(cluster.program("pg_basebackup").args(["--checkpoint=fast", "--pgdata"]).arg(&backup));
    cluster.call(cluster.installation().command("pg_verifybackup").arg(&backup));
    assert_eq!(ours_in(&backup), Vec::<String>::new(), "in the backup");
}

/// Files and folders that bear our name.
fn ours_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().contains("rag_ext") {
            found.push(path.display().to_string());
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(ours_in(&path));
        }
    }
    found
}

/// Makes a stopped server a standby of another that has gone its own way since.
fn rewind(target: &Cluster, source: &Cluster) {
    let folder = source.data().parent().unwrap().display();
    target.call(
        target
            .installation()
            .command("pg_rewind")
            .args(["--write-recovery-conf", "--no-sync", "--target-pgdata"])
            .arg(target.data())
            .arg("--source-server")
            .arg(format!("host={folder} port=5432 user=postgres dbname=postgres")),
    );
    target.start();
    source.wait_for(target);
}

fn documents(cluster: &Cluster, role: &str, database: &Database<'_>) -> i64 {
    cluster.connect(role, database.name()).count(&format!(
        "SELECT count(DISTINCT document_id) FROM rag_search('{WORD}', k => 1000, mode => 'keyword')"
    ))
}

#[test]
fn a_server_that_was_overtaken_is_rewound_and_backed_up_with_everything_of_ours_in_its_place() {
    let first = prepared("rewind_first");
    let database = first.database("rewind");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    fill_the_cache(&first, &mut ann);
    back_up(&first, "backup");
    let second = first.standby("rewind_second");
    second.running_engine();
    first.wait_for(&second);
    second.connect("postgres", "postgres").run("SELECT pg_promote()");

    // The first server writes what will be lost, and dies with its engine's socket and its cache in place.
    ann.ingest(&format!("{WORD} that will be forgotten."), "lost");
    first.kill9();
    let mut there = second.connect(&role, database.name());
    wait_until("the second server takes writes", Duration::from_secs(30), || {
        there
            .try_run(&format!(
                "SELECT rag_ingest('{WORD} of the second.', uri => 'kept', options => '{{\"sync\": true}}')"
            ))
            .is_ok()
    });
    wait_for_cache_files(&second, &mut there);
    rewind(&first, &second);
    assert_eq!(documents(&first, &role, &database), 2, "big and kept");

    // And back again, after a clean stop.
    first.connect("postgres", "postgres").run("SELECT pg_promote()");
    second.connect(&role, database.name()).ingest(&format!("{WORD} that will be forgotten too."), "lost");
    second.stop(Shutdown::Fast);
    let sockets = ours_in(second.data()).into_iter().filter(|path| path.ends_with(".sock"));
    assert_eq!(sockets.count(), 0, "a clean stop leaves no socket");
    // Both read all of the data directory; before 18, checksums are off by default.
    let checksums = if second.installation().major() >= 18 { "--check" } else { "--enable" };
    second.call(
        second.installation().command("pg_checksums").arg(checksums).arg("--pgdata").arg(second.data()),
    );
    rewind(&second, &first);
    assert_eq!(documents(&second, &role, &database), 2);
    second.running_engine();
}
