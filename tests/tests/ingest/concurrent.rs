//! Documents that change while they are processed, and what others see meanwhile.

use super::{assert_spans_are_exact, long_text, words_found};
use rag_tests::{Database, Session, literal, wait_until};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Stores a text that takes a while to embed, also on a fast machine, and waits until a worker has it in hand.
fn begin_long_work(session: &mut Session, chunks: usize, word: &str) -> String {
    let text = literal(&long_text(chunks, word));
    let id = session.value(&format!("SELECT rag_ingest({text}, uri => 'long')"));
    wait_until("a worker takes the document", LIMIT, || job_state(session, &id) == "running");
    id
}

fn job_state(session: &mut Session, id: &str) -> String {
    session.column(&format!("SELECT state FROM rag.job WHERE document_id = '{id}'")).pop().unwrap_or_default()
}

#[test]
fn work_in_progress_is_invisible_until_it_is_whole() {
    let database = Database::new("progress");
    let mut ann = database.user("ann");
    let id = begin_long_work(&mut ann, 80, "ferryman");
    let mut looks = 0;
    while job_state(&mut ann, &id) == "running" {
        let seen = ann.rows(
            "SELECT (SELECT count(*) FROM rag.chunk), (SELECT count(*) FROM rag.section), (SELECT count(*) FROM rag_vectors(ARRAY(SELECT id FROM rag.chunk))),
                    (SELECT count(*) FROM rag.segment), (SELECT count(*) FROM rag_search('ferryman', k => 1000, mode => 'keyword')),
                    (SELECT state FROM rag.job)",
        );
        // The job's end and the rest are one commit, so what this statement saw is all or nothing.
        if seen[0][5].as_deref() == Some("running") {
            assert!(seen[0][..5].iter().all(|count| count.as_deref() == Some("0")), "{seen:?}");
            looks += 1;
        }
    }
    assert!(looks >= 3, "only {looks} looks at running work");
    ann.settle();
    assert!(words_found(&mut ann, "ferryman") >= 60);
    assert_spans_are_exact(&mut ann);
}

#[test]
fn stale_work_does_not_overwrite_a_newer_form() {
    let database = Database::new("stale");
    let mut ann = database.user("ann");
    // More than any machine is done with before the update.
    let id = begin_long_work(&mut ann, 400, "bargeman");
    ann.run(&format!("UPDATE rag.document SET content = 'The otter sleeps.' WHERE id = '{id}'"));
    assert_eq!(words_found(&mut ann, "bargeman"), 0, "the update came while the work was running");
    ann.settle();
    assert_eq!((words_found(&mut ann, "bargeman"), words_found(&mut ann, "otter")), (0, 1));
    assert_eq!(ann.value("SELECT status || ' ' || text FROM rag.document"), "done The otter sleeps.");
    assert_eq!(ann.value("SELECT state || ' ' || version FROM rag.job"), "done 2");
    assert_spans_are_exact(&mut ann);
}

#[test]
fn a_document_deleted_while_it_is_processed_stays_deleted() {
    let database = Database::new("deleted");
    let mut ann = database.user("ann");
    begin_long_work(&mut ann, 400, "pilot");
    ann.run("DELETE FROM rag.document");
    ann.ingest("Something else.", "else");
    ann.settle();
    // A worker that comes late would write now.
    let mut admin = database.admin();
    wait_until("no worker is busy", LIMIT, || {
        admin.count(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND backend_type LIKE 'rag%' AND state <> 'idle'",
            database.name()
        )) == 0
    });
    assert_eq!(words_found(&mut ann, "pilot"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), 1);
    assert_eq!(ann.count("SELECT count(*) FROM rag.job WHERE state IN ('queued', 'running', 'failed')"), 0);
}

#[test]
fn the_earlier_form_stays_searchable_until_the_new_one_commits() {
    let database = Database::new("earlier");
    let mut ann = database.user("ann");
    let id = ann.ingest("The lockkeeper opens the gate.", "long");
    ann.value(&format!("SELECT rag_ingest({}, uri => 'long')", literal(&long_text(80, "dredger"))));
    wait_until("the new form is being processed", LIMIT, || job_state(&mut ann, &id) != "queued");
    let mut both_forms = 0;
    loop {
        let words = ann.rows(
            "SELECT (SELECT count(*) FROM rag_search('lockkeeper', k => 1000, mode => 'keyword')),
                    (SELECT count(*) FROM rag_search('dredger', k => 1000, mode => 'keyword')), (SELECT status FROM rag.document)",
        );
        let [old, new, status] = &words[0][..] else { panic!("three values") };
        let (old, new): (i64, i64) =
            (old.as_ref().unwrap().parse().unwrap(), new.as_ref().unwrap().parse().unwrap());
        assert_eq!(old == 1, new == 0, "one form, whole: {words:?}");
        assert_eq!(status.as_deref() == Some("pending"), old == 1, "{words:?}");
        if old == 0 {
            break;
        }
        both_forms += 1;
    }
    assert!(both_forms >= 2, "the earlier form was looked at {both_forms} times");
}

#[test]
fn two_sessions_ingesting_the_same_uri_make_one_document() {
    let database = Database::new("same_uri");
    let role = database.role("ann");
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let mut session = database.connect(&role);
            std::thread::spawn(move || {
                (0..15)
                    .map(|round| {
                        session.value(&format!("SELECT rag_ingest('Round {round} by {n}.', uri => 'same')"))
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    let mut ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let mut ann = database.connect(&role);
    ann.settle();
    assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), 1);
    assert!(ann.holds("SELECT (SELECT content FROM rag.chunk) = text AND text = content FROM rag.document"));
}

#[test]
fn views_tell_of_progress() {
    let database = Database::new("views");
    let mut ann = database.user("ann");
    let id = begin_long_work(&mut ann, 80, "rower");
    ann.run("INSERT INTO rag.document (content) VALUES ('short one'), ('short two')");
    let row = ann.rows("SELECT documents, documents_done, documents_pending, chunks, estimated_time_left FROM rag.collection_status");
    assert_eq!(row[0][0].as_deref(), Some("3"));
    let job = ann.rows(&format!(
        "SELECT state, started_at IS NOT NULL, finished_at FROM rag.job_status WHERE document_id = '{id}'"
    ));
    assert_eq!(job[0], [Some("running".into()), Some("t".into()), None]);
    ann.settle();
    let row = ann.rows(
        "SELECT documents_done, documents_pending, documents_failed, chunks >= 60, chunks_last_minute >= 60, estimated_time_left
         FROM rag.collection_status",
    );
    let values: Vec<_> = row[0].iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(values, ["3", "0", "0", "t", "t", "00:00:00"]);
}
