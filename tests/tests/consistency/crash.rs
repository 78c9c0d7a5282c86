//! The postmaster killed in the middle of ingestion: what was acknowledged is there, and comes to its end.

use super::{WORD, assert_retrievers_agree};
use rag_tests::{Cluster, literal, wait_until};
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
            // Connected before the others may have written enough.
            let sessions: Vec<_> = (0..3).map(|_| database.connect(&role)).collect();
            for (writer, mut session) in sessions.into_iter().enumerate() {
                let (acknowledged, killed) = (&acknowledged, &killed);
                scope.spawn(move || {
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
