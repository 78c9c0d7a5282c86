//! rag_cancel and rag_retry, for a document and for a collection, while work is queued and while it runs.

use super::{LIMIT, long_text, put, states};
use rag_tests::{Cluster, Database, wait_until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

#[test]
fn cancelled_work_is_failed_with_its_own_code_and_can_be_retried() {
    let database = Database::new("cancelled");
    let mut ann = database.user("ann");
    ann.run("SELECT rag_create_collection('notes'), rag_pause('notes')");
    put(&mut ann, "notes", 3);
    let id = ann.value("SELECT id FROM rag.document WHERE uri = 'n2'");
    assert_eq!(ann.count(&format!("SELECT rag_cancel('{id}'::uuid)")), 1);
    assert_eq!(ann.count(&format!("SELECT rag_cancel(id) FROM rag.document WHERE id = '{id}'")), 0, "once");
    assert_eq!(states(&mut ann, "notes"), ["failed 57014 1", "queued 2"]);
    assert_eq!(
        ann.rows(&format!("SELECT status, error FROM rag.document WHERE id = '{id}'")),
        [[Some("failed".to_owned()), Some("cancelled".to_owned())]]
    );
    assert_eq!(ann.column("SELECT sqlstate FROM rag.failed_job"), ["57014"]);
    assert_eq!(ann.count("SELECT rag_cancel('notes')"), 2);
    assert_eq!(ann.count("SELECT rag_cancel()"), 0);
    ann.run("SELECT rag_resume('notes')");
    ann.settle();
    assert_eq!(states(&mut ann, "notes"), ["failed 57014 3"], "cancelled work is not begun");

    assert_eq!(
        ann.column(&format!("SELECT rag_retry(document_id) FROM rag.failed_job WHERE document_id = '{id}'")),
        ["1"]
    );
    ann.settle();
    assert_eq!(states(&mut ann, "notes"), ["done 1", "failed 57014 2"]);
    assert_eq!(ann.count(&format!("SELECT rag_retry('{id}'::uuid)")), 0, "it has not failed");
    assert_eq!(ann.count("SELECT rag_retry('notes')"), 2);
    ann.settle();
    assert_eq!(states(&mut ann, "notes"), ["done 3"]);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('note', k => 10, mode => 'keyword')"), 3);
}

#[test]
fn running_work_stops_soon_after_it_is_cancelled_and_writes_nothing() {
    // A cluster of its own, for its engine is stopped: nobody else is to wait for it.
    let cluster = Cluster::builder("cancel_running").start();
    let database = cluster.database("cancel_running");
    let mut ann = database.user("ann");
    let engine = cluster.running_engine();
    ann.ingest("The lighthouse keeper sleeps.", "long");
    let id = ann.value(&format!("SELECT rag_ingest({}, uri => 'long')", long_text(400, "surveyor")));
    let mut admin = database.admin();
    let at_work = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND backend_type = 'rag_ext ingest'
         AND query LIKE 'rag_ext: embedding%'",
        database.name()
    );
    wait_until("it is being embedded", LIMIT, || admin.count(&at_work) == 1);
    // From here on the engine ends no wait for it.
    engine.signal(Signal::STOP);
    assert_eq!(admin.count(&at_work), 1);
    assert_eq!(ann.count(&format!("SELECT rag_cancel('{id}'::uuid)")), 1);
    let cancelled = Instant::now();
    wait_until("the worker lets go", LIMIT, || admin.count(&at_work) == 0);
    assert!(cancelled.elapsed() < Duration::from_secs(20), "{:?}", cancelled.elapsed());
    engine.signal(Signal::CONT);
    put(&mut ann, "default", 4);
    ann.settle();
    assert_eq!(states(&mut ann, "default"), ["done 4", "failed 57014 1"]);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('surveyor', k => 10, mode => 'keyword')"), 0);
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_search('lighthouse', k => 10, mode => 'keyword')"),
        1,
        "the earlier form"
    );
}

#[test]
fn work_that_is_cancelled_and_retried_at_once_is_done_once() {
    let database = Database::new("cancel_retry");
    let mut ann = database.user("ann");
    let id = ann.value(&format!("SELECT rag_ingest({}, uri => 'long')", long_text(100, "surveyor")));
    // Long enough to be seen, and cancelled, before it is done: only the last time it is worked on to the end.
    for _ in 0..5 {
        wait_until("it is running", LIMIT, || {
            ann.value(&format!("SELECT state FROM rag.job WHERE document_id = '{id}'")) == "running"
        });
        assert_eq!(ann.count(&format!("SELECT rag_cancel('{id}'::uuid)")), 1);
        assert_eq!(ann.count(&format!("SELECT rag_retry('{id}'::uuid)")), 1);
    }
    ann.settle();
    assert_eq!(states(&mut ann, "default"), ["done 1"]);
    let chunks = ann.count("SELECT count(*) FROM rag.chunk");
    assert_eq!(ann.count("SELECT count(DISTINCT char_from) FROM rag.chunk"), chunks);
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_search('surveyor', k => 1000, mode => 'keyword')"),
        chunks
    );
}

#[test]
fn cancelling_and_changing_the_same_documents_never_deadlocks() {
    let database = Database::new("cancel_race");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    put(&mut ann, "default", 60);
    let threads: Vec<_> = (0..3)
        .map(|n| {
            let mut session = database.connect(&role);
            std::thread::spawn(move || {
                for round in 0..12 {
                    match n {
                        0 => session.run("SELECT rag_cancel()"),
                        1 => session.run("SELECT rag_retry()"),
                        _ => session.run(&format!(
                            "UPDATE rag.document SET content = content || ' {round}' WHERE uri LIKE 'n{}%'",
                            round % 6 + 1
                        )),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    ann.run("SELECT rag_retry()");
    ann.settle();
    assert_eq!(states(&mut ann, "default"), ["done 60"]);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document WHERE status <> 'done' OR text <> content"), 0);
}
