//! Beside very many rows of another owner, a caller's reads go over their own rows and no others.

use super::own_something;
use rag_tests::{Database, Session, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Rows of another owner in each table.
const FOREIGN: usize = 50_000;

/// What ann reads: tables and views, as a whole and by what foreign rows have too.
const READS: [&str; 28] = [
    "SELECT count(*) FROM rag.feedback",
    "SELECT count(*) FROM rag.feedback WHERE query = 'whose is it'",
    "SELECT count(*) FROM rag.feedback WHERE chunk_id = ANY (SELECT id FROM rag.chunk)",
    "SELECT * FROM rag.feedback_query",
    "SELECT * FROM rag.feedback_judgement",
    "SELECT * FROM rag.feedback_chunk_judgement",
    "SELECT count(*) FROM rag.query_log",
    "SELECT max(searched_at) FROM rag.query_log",
    "SELECT count(*) FROM rag.query_log WHERE searched_at > now() - interval '1 day' AND mode = 'keyword'",
    "SELECT count(*) FROM rag.answer_log",
    "SELECT count(*) FROM rag.answer_log WHERE answered_at > now() - interval '1 day' AND method = 'extractive'",
    "SELECT * FROM rag.answers_per_day",
    "SELECT * FROM rag.stage_latency",
    "SELECT document_id, citations FROM rag.cited_document",
    "SELECT count(*) FROM rag.acronym WHERE short_key = 'SLA'",
    "SELECT count(*) FROM rag.mined_acronym WHERE short_key = 'SLA'",
    "SELECT count(*) FROM rag.mined_acronym WHERE long_key = 'service level agreement'",
    "SELECT count(*) FROM rag.entity_mention",
    "SELECT count(*) FROM rag.entity_mention WHERE key = 'wal_level'",
    "SELECT count(*) FROM rag.entity_relation WHERE subject = 'max_wal_size' AND object = 'wal_level'",
    "SELECT count(*) FROM rag.document_link WHERE kind = 'code' AND target = 'fc-001-234'",
    "SELECT * FROM rag.graph_entity WHERE key = 'wal_level'",
    "SELECT count(*) FROM rag.graph_entity",
    "SELECT * FROM rag.graph_relation WHERE object = 'wal_level'",
    "SELECT * FROM rag.graph_link WHERE target = 'fc-001-234'",
    "DELETE FROM rag.feedback WHERE query = 'nobody asked this'",
    "DELETE FROM rag.query_log WHERE query = 'nobody asked this'",
    "DELETE FROM rag.answer_log WHERE question = 'nobody asked this'",
];

/// What ann calls, whose statements are the extension's own.
const CALLS: [&str; 6] = [
    r#"SELECT count(*) FROM rag_search('whose SLA is it', options => '{"feedback_boost": 1, "graph": "on", "hops": 2}')"#,
    r#"SELECT count(*) FROM rag_explain('whose is it', mode => 'keyword', options => '{"feedback_boost": 1, "per_candidate": true}')"#,
    "SELECT count(*) FROM rag_related('wal_level')",
    "SELECT count(*) FROM rag_related('mine')",
    "SELECT count(*) FROM rag_evaluate(NULL, 'rag.feedback_query', 'rag.feedback_judgement', '{keyword}')",
    "SELECT rag_feedback('whose is it', id, 1) FROM rag.chunk",
];

/// Rows that the nodes of a plan went over, those that they left out included.
fn rows_of(node: &Value) -> f64 {
    let number = |key: &str| node[key].as_f64().unwrap_or(0.0);
    let own = number("Actual Rows")
        + number("Rows Removed by Filter")
        + number("Rows Removed by Index Recheck")
        + number("Rows Removed by Join Filter");
    own * number("Actual Loops").max(1.0)
        + node["Plans"].as_array().into_iter().flatten().map(rows_of).sum::<f64>()
}

/// Rows that a statement goes over, and the kinds of scans by which.
fn gone_over(session: &mut Session, sql: &str) -> (f64, String) {
    session.run("BEGIN");
    let plan =
        session.json(&format!("EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF, BUFFERS OFF) {sql}"));
    session.run("ROLLBACK");
    let text = plan.to_string();
    assert!(!text.contains("Seq Scan"), "{sql}\n{plan:#}");
    (rows_of(&plan[0]["Plan"]), text)
}

/// What the indexes and tables of the extension were read for by a call, as counters tell.
fn counted(session: &mut Session, sql: &str) -> Vec<Vec<Option<String>>> {
    session.run("SELECT pg_stat_force_next_flush()");
    session.run(&format!("BEGIN; {sql}"));
    let counts = session.rows(
        "SELECT c.relname, sum(pg_stat_get_xact_tuples_returned(coalesce(i.indexrelid, c.oid)))::text
         FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid
         WHERE c.relnamespace = 'rag'::regnamespace AND c.relname IN ('feedback', 'query_log', 'answer_log', 'acronym', 'mined_acronym',
               'entity_mention', 'entity_relation', 'document_link')
         GROUP BY 1 ORDER BY 1",
    );
    session.run("ROLLBACK");
    counts
}

#[test]
fn reads_go_over_no_foreign_row() {
    let database = Database::new("beside_many");
    let (ann_role, bob_role) = (database.role("ann"), database.role("bob"));
    let (mut ann, mut bob) = (database.connect(&ann_role), database.connect(&bob_role));
    let mut admin = database.admin();
    for session in [&mut ann, &mut bob] {
        own_something(session, "somebody");
        session.ingest(
            "A service level agreement (SLA): max_wal_size depends on wal_level, see FC-001-234.",
            "mine",
        );
        session.run("SELECT rag_set_acronym('default', 'SLA', 'second language acquisition')");
        session.run("SELECT rag_feedback('whose is it', id, 1) FROM rag.chunk");
    }
    let logged = |role: &str, count: usize| {
        format!(
            "INSERT INTO rag.query_log (owner, owner_role, searched_at, query, mode, k, hits, milliseconds, chunk_ids, stages)
             SELECT 'role:{role}', '{role}'::regrole, now() - n * interval '1 second', 'query ' || n, 'keyword', 10, 0, 1, '{{}}', '[]'
             FROM generate_series(1, {count}) n;
             INSERT INTO rag.answer_log (owner, owner_role, answered_at, question, answer, found, method, citations, models, milliseconds, stages, shortened)
             SELECT 'role:{role}', '{role}'::regrole, now() - n * interval '1 second', 'question ' || n, 'x', true, 'extractive',
                    jsonb_build_array(jsonb_build_object('n', 1, 'document_id', gen_random_uuid())), '{{}}', 1, '[{{\"stage\": \"support\", \"ms\": 1}}]', '{{}}'
             FROM generate_series(1, {count}) n"
        )
    };
    admin.run(&logged(&ann_role, 3));
    // One that may look at counters; it is planned for in the same way.
    admin.run(&format!("GRANT pg_read_all_stats TO {ann_role}"));
    wait_until("the workers have left", Duration::from_secs(120), || {
        admin.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'rag_ext%'") == 0
    });
    admin.run("VACUUM ANALYZE");
    let look = |ann: &mut Session| {
        let rows: Vec<f64> = READS.iter().map(|sql| gone_over(ann, sql).0).collect();
        let counts: Vec<_> = CALLS.iter().map(|sql| counted(ann, sql)).collect();
        (rows, counts)
    };
    // The first calls also read what is kept for the session.
    look(&mut ann);
    admin.run("VACUUM");
    let before = look(&mut ann);
    assert!(before.0.iter().all(|rows| *rows < 200.0), "{before:?}");

    let domain = admin.value(&format!("SELECT id FROM rag.domain WHERE owner = 'role:{bob_role}'"));
    let collection = admin.value(&format!("SELECT collection_id FROM rag.domain WHERE id = '{domain}'"));
    admin.run(&format!(
        "CREATE TEMP TABLE many AS SELECT n, '{domain}'::uuid AS d, gen_random_uuid() AS i, gen_random_uuid() AS c FROM generate_series(1, {FOREIGN}) n;
         INSERT INTO rag.feedback (domain_id, document_id, chunk_id, owner, owner_role, query_sha256, query, verdict)
         SELECT d, i, c, 'role:{bob_role}', '{bob_role}'::regrole, sha256('whose is it'), 'whose is it', -1 FROM many;
         INSERT INTO rag.acronym SELECT '{collection}', 'SLA', 'word ' || n, 'SLA', 'Word ' || n FROM many;
         INSERT INTO rag.mined_acronym SELECT d, i, 'SLA', 'service level agreement', 'SLA', 'service level agreement' FROM many;
         INSERT INTO rag.entity_mention SELECT d, i, c, 'wal_level', 'configuration', 'wal_level', 0.5 FROM many;
         INSERT INTO rag.entity_relation SELECT d, i, c, 'max_wal_size', 'depends_on', 'wal_level' FROM many;
         INSERT INTO rag.document_link SELECT d, i, c, 'code', 'fc-001-234', NULL, 0.9 FROM many"
    ));
    // Of ann's own chunks too, which bob sees: what is said of them is bob's all the same.
    admin.run(&format!(
        "INSERT INTO rag.feedback (domain_id, document_id, chunk_id, owner, owner_role, query_sha256, query, verdict)
         SELECT c.domain_id, c.document_id, c.id, 'role:{bob_role}', '{bob_role}'::regrole, sha256(n::text::bytea), 'whose is it ' || n, -1
         FROM rag.chunk c JOIN rag.domain d ON d.id = c.domain_id, generate_series(1, 10000) n WHERE d.owner = 'role:{ann_role}'"
    ));
    admin.run(&logged(&bob_role, FOREIGN));
    admin.run("VACUUM ANALYZE");
    let after = look(&mut ann);
    for (sql, (before, after)) in READS.iter().zip(before.0.iter().zip(&after.0)) {
        assert_eq!(before, after, "rows that are gone over\n{sql}\n{}", gone_over(&mut ann, sql).1);
    }
    for (sql, (before, after)) in CALLS.iter().zip(before.1.iter().zip(&after.1)) {
        assert_eq!(before, after, "{sql}");
    }
    // Bob's own go over his.
    assert_eq!(bob.count("SELECT count(*) FROM rag.query_log"), FOREIGN as i64);
    admin.run(&format!(
        "DELETE FROM rag.mined_acronym WHERE document_id IN (SELECT i FROM many); DELETE FROM rag.entity_mention WHERE document_id IN (SELECT i FROM many);
         DELETE FROM rag.entity_relation WHERE document_id IN (SELECT i FROM many); DELETE FROM rag.document_link WHERE document_id IN (SELECT i FROM many);
         DELETE FROM rag.feedback WHERE owner = 'role:{bob_role}'"
    ));
}

/// The column that a condition of an index finds in the list of a policy, where it finds it by something else as well.
fn found_twice(condition: &str) -> Option<&str> {
    let (before, _) = condition.split_once(" = ANY (rag.")?;
    let column = before.rsplit('(').next()?;
    (condition.matches(&format!("({column} = ")).count() > 1).then_some(column)
}

/// Indexes by ids, which are digests: what a caller of one domain sees is scattered among the rows of others there.
const BY_ID: [&str; 3] = ["using chunk_pkey", "using section_pkey", "using document_pkey"];

/// Statements that list what a filter lets through, and the index that has all they ask for.
const LISTS: [(&str, &str); 2] = [
    ("SELECT d.domain_id, d.id FROM rag.document d WHERE", "document_domain_id_id_key"),
    ("JOIN rag.chunk t ON", "chunk_document"),
];

/// A list of thousands is gone through by each look into an index.
#[test]
fn our_own_statements_search_an_index_by_what_they_name_alone() {
    let database = Database::new("one_list");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    own_something(&mut ann, "ann");
    ann.settle();
    let mut explained = database.explained(&role);
    let more = [
        r#"SELECT count(*) FROM rag_search('whose is it', mode => 'keyword', filter => '{"title": {"exists": true}}')"#,
        r#"SELECT count(*) FROM rag_search('whose is it', mode => 'keyword', filter => '{"not": {"title": {"exists": true}}}')"#,
        r#"SELECT count(*) FROM rag_search('whose is it', mode => 'vector', options => '{"context": "section"}')"#,
        "SELECT rag_answer('whose is it')",
        "SELECT rag_wait()",
        "SELECT count(*) FROM rag_status()",
    ];
    let (mut plans, mut looked_up, mut listed) = (0, 0, BTreeSet::new());
    for call in CALLS.into_iter().rev().chain(more) {
        explained.notices();
        explained.run(call);
        for notice in explained.notices().iter().filter(|notice| notice.message.contains("rag.")) {
            plans += 1;
            let conditions = notice.message.lines().filter(|line| line.contains("Index Cond: "));
            let twice: Vec<&str> = conditions.filter(|condition| found_twice(condition).is_some()).collect();
            assert!(twice.is_empty(), "{call}\n{}", notice.message);
            let looks_up = [" h (id) JOIN ", " h (id)\n", " h (domain_id, first, last)"]
                .iter()
                .any(|rows| notice.message.contains(rows));
            looked_up += usize::from(looks_up);
            let is_by_id = looks_up && BY_ID.iter().any(|index| notice.message.contains(index));
            assert!(!is_by_id, "{call}\n{}", notice.message);
            for (list, index) in LISTS {
                if notice.message.contains(list) {
                    listed.insert(list);
                    let scan = format!("Index Only Scan using {index} ");
                    assert!(notice.message.contains(&scan), "{call}\n{}", notice.message);
                }
            }
            let of_each_domain = notice.message.contains(" h (domain_id, first, last)");
            let is_searched = |line: &str| line.contains("Index Cond: ") && line.contains("[h.first:h.last]");
            let searched = !of_each_domain || notice.message.lines().any(is_searched);
            assert!(searched, "{call}\n{}", notice.message);
        }
    }
    let seen = format!("{plans} plans were seen, {looked_up} of which look up ids; lists: {listed:?}");
    assert!(plans > 20 && looked_up > 5 && listed.len() == LISTS.len(), "{seen}");
}

/// Thousands of domains would be gone through for each row. Only whoever is told what an index is searched for has them
/// listed: they are not to learn of rows by their ids.
#[test]
fn rows_of_several_domains_are_looked_up_by_their_ids() {
    let database = Database::new("several");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    own_something(&mut ann, "ann");
    ann.run(
        "SELECT rag_create_collection('second');
         INSERT INTO rag.document (collection, content) VALUES ('second', 'Whose it is, a second note says: ann.')",
    );
    ann.settle();
    let calls = [
        r#"SELECT count(*) FROM rag_search('whose is it', options => '{"context": "section", "graph": "on", "hops": 2}')"#,
        r#"SELECT count(*) FROM rag_search('whose is it', mode => 'keyword', filter => '{"title": {"exists": false}}')"#,
        "SELECT count(*) FROM rag_rerank_chunks('whose is it', ARRAY(SELECT id FROM rag.chunk))",
        "SELECT count(*) FROM rag_vectors(ARRAY(SELECT id FROM rag.chunk))",
    ];
    for (reads_counters, index) in [(false, "using chunk_pkey"), (true, "using chunk_domain_id_id_key")] {
        if reads_counters {
            database.admin().run(&format!("GRANT pg_read_all_stats TO {role}"));
        }
        let mut explained = database.explained(&role);
        explained.run("SET rag_ext.filter_list_limit = 0");
        for call in calls {
            explained.notices();
            explained.run(call);
            let notices = explained.notices();
            let plans = notices.iter().map(|notice| notice.message.as_str());
            let looked_up: Vec<&str> = plans.filter(|plan| plan.contains(" h (id)")).collect();
            assert!(!looked_up.is_empty(), "{call}");
            for plan in looked_up {
                assert!(plan.contains(index), "{call}\n{plan}");
                assert_eq!(plan.contains(" = ANY ($1)"), reads_counters, "{call}\n{plan}");
            }
        }
    }
}
