//! Vector indexes and merges beside steady ingestion: neither waits for the other.

use super::{LIMIT, put};
use rag_tests::{Cluster, wait_until};

#[test]
fn a_vector_index_is_built_while_ingestion_goes_on() {
    // A build that was ended is begun again when the launcher looks, once per nap.
    let cluster = Cluster::builder("index")
        .setting("rag_ext.exact_search_limit", "40")
        // Rows are told from pages, of which workers that wait for each other take more than they need.
        .setting("rag_ext.ingest_workers", "1")
        // Which is about keyword segments alone.
        .setting("rag_ext.merge_enabled", "off")
        .setting("rag_ext.launcher_naptime", "5")
        .start();
    let database = cluster.database("index");
    let mut session = database.admin();
    put(&mut session, "default", 20);
    session.settle();
    let index = "SELECT count(*) FILTER (WHERE i.indisvalid) || ' of ' || count(*) FROM pg_index i
                 JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname LIKE 'embedding%hnsw'";
    assert_eq!(session.value(index), "0 of 0", "there are too few rows");
    cluster.configure("rag_ext.ingest_workers = 2");
    cluster.reload();

    // An old snapshot holds the build up in its last phase.
    let mut holder = database.admin();
    holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rag.embedding");
    put(&mut session, "default", 80);
    session.settle();
    let at_work = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'rag_ext index' AND query = 'rag_ext: building a vector index'";
    wait_until("the index is being built", LIMIT, || {
        session.count(at_work) == 1 && session.value(index) == "0 of 1"
    });
    put(&mut session, "default", 120);
    session.settle();
    assert_eq!(session.value(index), "0 of 1", "documents were written while the index was being built");

    // Whoever ends the build leaves half an index, which is replaced.
    session
        .run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'rag_ext index'");
    wait_until("the builder is gone", LIMIT, || session.count(at_work) == 0);
    holder.run("COMMIT");
    wait_until("the index is there", LIMIT, || session.value(index) == "1 of 1");
    put(&mut session, "default", 130);
    session.settle();
    let nearest =
        session.column("SELECT title IS NULL FROM rag_search('note number 125', k => 5, mode => 'vector')");
    assert_eq!(nearest.len(), 5);
    wait_until("the index worker has left", LIMIT, || {
        session.count("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'rag_ext index'") == 0
    });
}

#[test]
fn segments_stay_few_while_documents_keep_coming() {
    let cluster = Cluster::builder("merging").start();
    let database = cluster.database("merging");
    let mut session = database.admin();
    let (mut most, mut count) = (0, 0);
    for round in 1..=25 {
        // Never idle: the next documents are there before the last ones are done.
        put(&mut session, "default", round * 12);
        wait_until("most are done", LIMIT, || {
            most = most.max(session.count("SELECT count(*) FROM rag.segment WHERE part = 0"));
            count = session.count("SELECT count(*) FROM rag.job WHERE state = 'done'");
            count > (round as i64 - 1) * 12
        });
        // Deleted ones leave the index as well; the next round puts this one back.
        session.run(&format!("DELETE FROM rag.document WHERE uri = 'n{round}'"));
    }
    session.settle();
    // At most seven in each of three tiers, and what the two workers have just written.
    assert!(most <= 24, "{most} segments");
    assert_eq!(session.count("SELECT count(*) FROM rag_search('note', k => 1000, mode => 'keyword')"), 299);
}
