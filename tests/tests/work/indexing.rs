//! Codes of vectors, beside steady ingestion.

use super::{LIMIT, long_text, measuring, put, vectors};
use rag_tests::{ChatReply, ChatStub, Cluster, Session, wait_until};

/// Segments that are large enough for codes of their vectors, and those that have some.
const CODED: &str = "SELECT count(*) || ' ' || count(k.segment_id)
     FROM rag.segment s LEFT JOIN rag.segment_codes k ON k.segment_id = s.id AND k.part = 0 WHERE s.part = 0 AND s.entries >= 64";

/// Codes of segments that are gone, and those that are not as long as their segment.
const WRONG: &str = "SELECT count(*) FROM rag.segment_codes k
     LEFT JOIN rag.segment s ON s.id = k.segment_id AND s.part = 0
     CROSS JOIN rag.vector_space v
     WHERE s.id IS NULL OR v.id <> k.vector_space_id
        OR k.bytes <> 40 + 4 * v.dimension + (s.entries + 7) / 8 * 8 * (8 + 8 * ((v.dimension + 63) / 64))
                 + s.entries * (4 + (v.dimension + 1) / 2)";

fn method(session: &mut Session) -> String {
    session.value(
        "SELECT jsonb_path_query_first(details, '$.stages[*] ? (@.stage == \"vector\").method') #>> '{}'
         FROM rag_search('note number 125', k => 5, mode => 'vector') WHERE rank = 1",
    )
}

#[test]
fn codes_come_and_go_with_their_segments_and_are_made_where_they_are_missing() {
    let cluster = Cluster::builder("codes")
        .setting("rag_ext.exact_search_limit", "40")
        .setting("rag_ext.launcher_naptime", "2")
        .start();
    let database = cluster.database("codes");
    let mut session = database.admin();
    session.ingest_book();
    for round in 1..=10 {
        put(&mut session, "default", round * 25);
        session.settle();
    }
    let complete = |session: &mut Session| {
        let coded = session.value(CODED);
        let (segments, codes) = coded.split_once(' ').unwrap_or_default();
        assert_ne!(segments, "0", "no segment is large enough");
        segments == codes
    };
    assert!(complete(&mut session), "{}", session.value(CODED));
    assert_eq!(session.count(WRONG), 0);
    assert_eq!(method(&mut session), "rabitq");
    let nearest = "SELECT uri FROM rag_search('note number 125', k => 5, mode => 'vector')";
    let before = session.column(nearest);
    assert_eq!(before.len(), 5);

    // As after a restore: all vectors are compared until a worker has made them, which whoever searches asks for.
    session.run("BEGIN; DELETE FROM rag.segment_codes");
    assert_eq!(method(&mut session), "exact");
    assert_eq!(session.column(nearest), before);
    session.run("COMMIT");
    wait_until("a search has had them made", LIMIT, || method(&mut session) == "rabitq");
    assert!(complete(&mut session));
    assert_eq!((session.count(WRONG), session.column(nearest)), (0, before.clone()));

    // Damaged ones are used by nobody, and rag_verify has them made anew.
    session.run("UPDATE rag.segment_codes SET data = set_byte(data, 100, 255 - get_byte(data, 100))");
    assert_eq!(method(&mut session), "rabitq", "what this session has opened is what was written");
    let mut other = database.admin();
    assert_eq!(method(&mut other), "exact");
    assert_eq!(other.column(nearest), before);
    let damaged = "SELECT count(*) FROM rag_verify(repair => true) WHERE kind = 'vector' AND repaired";
    assert!(session.count(damaged) > 0);
    wait_until("they are made anew", LIMIT, || method(&mut other) == "rabitq");
    assert_eq!((session.count(WRONG), session.column(nearest)), (0, before));

    // What is merged away or deleted takes them along.
    session.run("DELETE FROM rag.document WHERE uri <> 'n125'");
    wait_until("the deleted are merged away", LIMIT, || {
        session.count("SELECT count(*) FROM rag.deletion_count") == 0
    });
    assert_eq!(session.value(CODED), "0 0");
    assert_eq!(session.count("SELECT count(*) FROM rag.segment_codes"), 0);
    wait_until("the index worker has left", LIMIT, || {
        session.count("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'rag_ext index'") == 0
    });
}

#[test]
fn codes_are_made_beside_ingestion_which_waits_for_neither() {
    let cluster = Cluster::builder("coding").setting("rag_ext.launcher_naptime", "2").start();
    let database = cluster.database("coding");
    let mut session = database.admin();
    put(&mut session, "default", 150);
    session.settle();
    // Somebody holds a segment: its codes wait, and nothing else does.
    session.run("DELETE FROM rag.segment_codes");
    let mut holder = database.admin();
    holder.run("BEGIN; SELECT FROM rag.segment FOR UPDATE");
    put(&mut session, "default", 300);
    session.settle();
    assert_eq!(session.count("SELECT count(*) FROM rag_search('note', k => 1000, mode => 'keyword')"), 300);
    holder.run("COMMIT");
    session.run("SET rag_ext.exact_search_limit = 0");
    wait_until("the codes are there", LIMIT, || method(&mut session) == "rabitq");
    assert_eq!(session.count(WRONG), 0);
}

#[test]
fn codes_of_a_large_segment_are_made_in_a_file_that_is_gone_then() {
    let stub = ChatStub::start(ChatReply::StatusBy(vectors));
    let (_models, cluster) = measuring("many_codes", &stub);
    let cluster = cluster.start();
    let database = cluster.database("many_codes");
    let mut session = database.admin();
    session.run(&format!(
        "INSERT INTO rag.document (uri, content) VALUES ('long', {})",
        long_text(2_100, "Mur")
    ));
    session.settle();
    let chunks = session.count("SELECT count(*) FROM rag.chunk");
    assert!(chunks > 2_000, "{chunks}");
    assert_eq!(session.value(CODED), "1 1");
    assert_eq!(session.count(WRONG), 0);
    assert_eq!(session.column("SELECT kind || ': ' || problem FROM rag_verify()"), [""; 0]);
    let left =
        "SELECT count(*) FROM pg_ls_dir('base/pgsql_tmp', true, false) f WHERE f LIKE 'pgsql_tmp_rag_ext.%'";
    assert_eq!(session.count(left), 0);
    // Texts of one length are alike to the stub.
    let scores =
        "SELECT round(score::numeric, 5) FROM rag_search('river number 125', k => 20, mode => 'vector')";
    session.run("SET rag_ext.exact_search_limit = 10000");
    let exact = session.column(scores);
    assert_eq!((exact.len(), method(&mut session).as_str()), (20, "exact"));
    session.run("SET rag_ext.exact_search_limit = 0");
    assert_eq!((session.column(scores), method(&mut session).as_str()), (exact, "rabitq"));
}
