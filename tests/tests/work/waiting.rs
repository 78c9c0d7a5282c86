//! Waiting for documents.

use rag_tests::{Cluster, Session};

/// Rows and index entries of `rag.job` that this transaction has come by.
fn seen(session: &mut Session) -> i64 {
    session.count(
        "SELECT pg_stat_get_xact_tuples_returned('rag.job'::regclass)
                + (SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index WHERE indrelid = 'rag.job'::regclass)",
    )
}

#[test]
fn a_look_costs_the_same_however_many_documents_wait_and_they_are_counted_at_the_end() {
    let cluster = Cluster::builder("waiting").setting("rag_ext.ingest_workers", "0").start();
    let database = cluster.database("waiting");
    let role = database.role("ann");
    // Nothing is counted for others.
    database.admin().run(&format!("GRANT pg_read_all_stats TO {role}"));
    let mut ann = database.connect(&role);
    ann.run("INSERT INTO rag.document (content) SELECT 'Number ' || n FROM generate_series(1, 3000) n");
    ann.run("BEGIN");
    assert!(!ann.holds("SELECT rag_wait(NULL, '2 s')"));
    // They are counted once.
    let looked_at = seen(&mut ann);
    assert!((3000..6000).contains(&looked_at), "{looked_at} entries were looked at");
    assert!(ann.notices().iter().any(|notice| notice.message.contains("and 3000 documents are not done")));
    ann.run("COMMIT");

    ann.run("SELECT rag_pause('default')");
    assert!(!ann.holds("SELECT rag_wait(NULL, '10 min')"));
    assert!(ann.notices().iter().any(|notice| notice.message.contains("3000 documents are paused")));
    ann.run("SELECT rag_cancel('default')");
    assert!(!ann.holds("SELECT rag_wait(NULL, '10 min')"));
    assert!(ann.notices().iter().any(|notice| notice.message.contains("3000 documents failed")));
    ann.run("DELETE FROM rag.document");
    assert!(ann.holds("SELECT rag_wait(NULL, '10 min')"));
}
