//! The postmaster killed in the middle of ingestion: what was acknowledged is there, and comes to its end.

use super::{WORD, assert_retrievers_agree};
use rag_tests::{Cluster, Shutdown, Witness, eventually, literal, wait_until};
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let cluster = Cluster::builder("crash").start();
    let database = cluster.database("crash");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.ingest(&format!("{WORD} before everything."), "first");
    let acknowledged = Mutex::new(vec!["first".to_owned()]);
    for round in 0..3 {
        let killed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let (database, role, acknowledged, killed) = (&database, &role, &acknowledged, &killed);
                scope.spawn(move || {
                    let mut session = database.connect(role);
                    for n in 0.. {
                        let uri = format!("{round}-{writer}-{n}");
                        let options = if n % 4 == 0 { "{\"sync\": true}" } else { "{}" };
                        let text = format!("{WORD} of round {round}, writer {writer}, number {n}.");
                        let sql = format!(
                            "SELECT rag_ingest('{text}', uri => '{uri}', options => {})",
                            literal(options)
                        );
                        match session.try_run(&sql) {
                            Ok(()) => acknowledged.lock().unwrap().push(uri),
                            Err(failure) if killed.load(Ordering::SeqCst) => {
                                // The engine may be gone before the backend is.
                                assert!(
                                    ["closed", "57P01", "57P02", "58000"].contains(&failure.code.as_str()),
                                    "{failure}"
                                );
                                break;
                            }
                            Err(failure) => panic!("before the kill: {failure}"),
                        }
                    }
                });
            }
            let enough = (round + 1) * 40;
            wait_until("writers get going", Duration::from_secs(60), || {
                acknowledged.lock().unwrap().len() >= enough
            });
            killed.store(true, Ordering::SeqCst);
            cluster.kill9();
        });
        cluster.start();
        // A backend waits for it a few seconds only, and a busy machine may take longer to start it.
        cluster.running_engine();
        let mut ann = database.connect(&role);
        let right_after = assert_retrievers_agree(&mut ann, "right after the crash");
        assert!(right_after > 0);
        ann.settle();
        assert_retrievers_agree(&mut ann, "when all is done");
        let done = ann.column("SELECT uri FROM rag.document WHERE status = 'done' AND chunks = 1 ORDER BY 1");
        let mut expected = acknowledged.lock().unwrap().clone();
        expected.sort();
        let lost: Vec<_> = expected.iter().filter(|uri| done.binary_search(uri).is_err()).collect();
        assert!(lost.is_empty(), "acknowledged, but not done: {lost:?}");
        // A commit whose acknowledgement did not arrive is fine; half a document is not.
        assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE status <> 'done'"), 0);
        assert_eq!(ann.count("SELECT count(*) FROM rag.job WHERE state NOT IN ('done')"), 0);
        assert_eq!(
            ann.rows("SELECT count(*) FROM rag.document")[0],
            ann.rows("SELECT count(*) FROM rag.chunk")[0]
        );
    }
}

#[test]
fn prepared_transactions_and_crashes_go_together() {
    let cluster = Cluster::builder("prepared")
        .setting("max_prepared_transactions", "5")
        .setting("rag_ext.launcher_naptime", "1")
        .start();
    let database = cluster.database("prepared");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run(&format!("BEGIN; INSERT INTO rag.document (uri, content) VALUES ('p', '{WORD} prepared.'); PREPARE TRANSACTION 'kept'"));
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
    cluster.kill9();
    cluster.start();
    let mut ann = database.connect(&role);
    ann.run("COMMIT PREPARED 'kept'");
    ann.settle();
    assert_eq!(assert_retrievers_agree(&mut ann, "after the second phase"), 1);
}

/// Files of the keyword cache, biggest first.
pub(crate) fn cache_files(cluster: &Cluster) -> Vec<PathBuf> {
    let mut folders = vec![cluster.data().to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let in_cache = path.iter().any(|part| part.to_string_lossy().contains("rag_ext"));
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(path),
                kind if kind.is_file() && in_cache => found.push((entry.metadata().unwrap().len(), path)),
                _ => {}
            }
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// As its owner or root can, who may make it writable.
fn cut_short(file: &Path, length: u64) {
    std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    File::options().write(true).open(file).unwrap().set_len(length).unwrap();
}

#[test]
fn files_of_the_cache_that_a_power_cut_or_a_person_has_left_empty_or_short_do_no_harm() {
    let cluster = Cluster::builder("cache_files").start();
    let database = cluster.database("cache_files");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    // Enough different words for a segment that is kept in a file, and not on the heap.
    ann.run(&format!(
        "INSERT INTO rag.document (uri, content)
         SELECT 'd' || n, '{WORD} ' || (SELECT string_agg((n * 1000 + m)::text, ' ') FROM generate_series(1, 45) m) FROM generate_series(1, 320) n"
    ));
    ann.settle();
    // Many deletions make one segment of all.
    ann.run("DELETE FROM rag.document WHERE uri IN (SELECT 'd' || n FROM generate_series(1, 80) n)");
    wait_until("the segments are merged", Duration::from_secs(60), || {
        ann.count("SELECT count(DISTINCT id) FROM rag.segment") == 1
    });
    let query = format!("SELECT chunk_id, score FROM rag_search('{WORD}', k => 1000, mode => 'keyword')");
    let expected = ann.rows(&query);
    assert_eq!(expected.len(), 240);
    // Under a session that has it mapped, where a read past the end would be the end of the server. A worker that has
    // just looked may take a file away once; whoever wants it next writes it anew.
    let mut mapped = database.connect(&role);
    let mut witness = Witness::of(&cluster);
    for length in [0, 1000] {
        let files = eventually("a file that is mapped", Duration::from_secs(60), || {
            assert_eq!(mapped.rows(&query), expected);
            Some(cache_files(&cluster)).filter(|files| !files.is_empty())
        });
        files.iter().for_each(|file| cut_short(file, length));
        assert_eq!(mapped.rows(&query), expected, "cut short to {length}");
        witness.assert_no_restart();
    }
    for file in cache_files(&cluster) {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o400, "{file:?}");
    }
    for damage in ["empty", "short", "gone"] {
        cluster.stop(Shutdown::Immediate);
        for file in cache_files(&cluster) {
            let length = std::fs::metadata(&file).unwrap().len();
            match damage {
                "empty" => cut_short(&file, 0),
                "short" => cut_short(&file, length / 2),
                _ => std::fs::remove_file(&file).unwrap(),
            }
        }
        cluster.start();
        let mut session = database.connect(&role);
        assert_eq!(session.rows(&query), expected, "{damage}");
        assert!(session.lives());
    }
}
