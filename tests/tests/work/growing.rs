//! Tables that grow from nothing: the planner is told, and need not be told by autovacuum.

use super::{LIMIT, put};
use rag_tests::{Cluster, wait_until};

#[test]
fn tables_that_were_filled_are_analysed_without_autovacuum_and_again_when_they_have_doubled() {
    let cluster = Cluster::builder("growing").setting("autovacuum", "off").start();
    let database = cluster.database("growing");
    let mut session = database.admin();
    let known = "SELECT min(reltuples) FROM pg_class
         WHERE oid IN ('rag.document'::regclass, 'rag.section'::regclass, 'rag.chunk'::regclass)";
    for documents in [150, 600] {
        put(&mut session, "default", documents);
        session.settle();
        // Not again for fewer changes than there were rows, and fifty.
        let enough = (documents as i64 - 50) / 2;
        wait_until("the tables are analysed", LIMIT, || session.count(known) >= enough);
    }
    // So the rows of hits are looked up by what they are known by.
    session.explain();
    assert_eq!(session.count("SELECT count(*) FROM rag_search('note 17', k => 5, mode => 'keyword')"), 5);
    let plans: Vec<String> = session.notices().into_iter().map(|notice| notice.message).collect();
    let shown = plans.iter().find(|plan| plan.contains("JOIN rag.section s")).unwrap();
    for table in ["chunk", "section", "document"] {
        let is_by = |index: &str| shown.contains(&format!("Index Scan using {table}_{index} "));
        assert!(is_by("pkey") || is_by("domain_id_id_key"), "{shown}");
    }
}
