//! Planner estimates, errors and caches must not tell of rows that the caller may not see.

use super::own_something;
use rag_tests::{Database, Session};

/// Estimated rows of every node of a plan.
fn estimates(session: &mut Session, sql: &str) -> Vec<String> {
    let plan = session.rows(&format!("EXPLAIN (FORMAT TEXT) {sql}"));
    plan.into_iter()
        .filter_map(|row| {
            let line = row[0].clone()?;
            let rows = line.split("rows=").nth(1)?.split(' ').next()?.to_owned();
            Some(rows)
        })
        .collect()
}

#[test]
fn estimates_do_not_tell_which_values_others_use() {
    let database = Database::new("estimates");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    own_something(&mut ann, "ann");
    bob.run(
        "INSERT INTO rag.document (title, uri, content, metadata)
         SELECT 'Secret merger', 'https://secret.example/' || n, 'Text ' || n, '{\"project\": \"secret\"}' FROM generate_series(1, 60) n",
    );
    bob.settle();
    database.admin().run("VACUUM ANALYZE");
    let pairs = [
        ("title = 'Secret merger'", "title = 'Public dinner'"),
        ("title LIKE 'Secret%'", "title LIKE 'Public%'"),
        ("uri = 'https://secret.example/1'", "uri = 'https://public.example/1'"),
        ("metadata @> '{\"project\": \"secret\"}'", "metadata @> '{\"project\": \"public\"}'"),
        ("content = 'Text 1'", "content = 'Nothing'"),
        ("error IS NULL", "error = 'x'"),
    ];
    for (used, unused) in &pairs[..5] {
        let [used, unused] =
            [used, unused].map(|c| estimates(&mut ann, &format!("SELECT 1 FROM rag.document WHERE {c}")));
        assert_eq!(used, unused);
    }
    for (used, unused) in
        [("text_value = 'secret'", "text_value = 'public'"), ("key = 'project'", "key = 'subject'")]
    {
        let [used, unused] = [used, unused]
            .map(|c| estimates(&mut ann, &format!("SELECT 1 FROM rag.metadata_value WHERE {c}")));
        assert_eq!(used, unused);
    }
    for table in ["chunk", "section", "segment", "job"] {
        let columns = database.admin().column(&format!(
            "SELECT attname FROM pg_stats WHERE schemaname = 'rag' AND tablename = '{table}'
               AND attname IN ('content', 'context', 'sha256', 'header_path', 'data', 'error') AND (most_common_vals IS NOT NULL OR histogram_bounds IS NOT NULL)"
        ));
        assert!(columns.is_empty(), "statistics of rag.{table}: {columns:?}");
    }
    assert_eq!(
        ann.column("SELECT tablename || '.' || attname FROM pg_stats WHERE schemaname = 'rag'"),
        Vec::<String>::new()
    );
}

#[test]
fn estimates_of_a_filter_do_not_change_when_others_add_rows() {
    let database = Database::new("before_after");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    own_something(&mut ann, "ann");
    own_something(&mut bob, "bob");
    let filters =
        ["uri = 'note of ann'", "title = 'Budget'", "uri LIKE 'note%'", "title IS NULL AND uri = 'x'"];
    let mut admin = database.admin();
    let mut look = |ann: &mut Session| {
        admin.run("VACUUM ANALYZE rag.document");
        filters.map(|filter| estimates(ann, &format!("SELECT 1 FROM rag.document WHERE {filter}")))
    };
    let before = look(&mut ann);
    bob.run("INSERT INTO rag.document (title, uri, content) SELECT 'Budget', 'note ' || n, 'Text ' || n FROM generate_series(1, 60) n");
    bob.settle();
    assert_eq!(look(&mut ann), before);
}

#[test]
fn the_status_views_count_only_what_the_caller_sees() {
    let database = Database::new("status_views");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    own_something(&mut ann, "ann");
    bob.run("INSERT INTO rag.document (content) SELECT 'text ' || n FROM generate_series(1, 10) n");
    bob.run("SELECT rag_ingest_bytes(decode('255044462d312e37', 'hex'), title => 'Secret')");
    bob.settle();
    assert_eq!(
        ann.rows("SELECT documents, documents_failed, chunks FROM rag.collection_status")[0],
        [Some("1".into()), Some("0".into()), Some("1".into())]
    );
    assert_eq!(ann.count("SELECT count(*) FROM rag.failed_job"), 0);
    assert!(ann.count("SELECT count(*) FROM rag.job_status") <= 1);
    assert!(!ann.value("SELECT rag_status()").contains("Secret"));
    let answer = ann.json("SELECT rag_answer('Which text is secret?')");
    assert!(!answer.to_string().contains("Secret"), "{answer:#}");
    assert_eq!(ann.count("SELECT rag_retry()"), 0);
    let own = ann.rows("SELECT usename, query FROM pg_stat_activity WHERE backend_type LIKE 'rag%'");
    assert!(own.iter().all(|row| row[1].as_deref().is_none_or(|query| !query.contains("text"))), "{own:?}");
}

#[test]
fn pending_work_of_others_is_nobodys_business() {
    let database = Database::new("pending");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    bob.run("INSERT INTO rag.document (content) SELECT repeat('many words of bob ', 4000)");
    let answer = ann.json("SELECT rag_answer('What is there?')");
    assert_eq!((&answer["found"], &answer["reason"]), (&false.into(), &"no_documents".into()), "{answer:#}");
    assert!(ann.holds("SELECT rag_wait(NULL, '0')"), "ann has nothing to wait for");
    assert_eq!(ann.count("SELECT count(*) FROM rag.job"), 0);
    bob.run("DELETE FROM rag.document");
}
