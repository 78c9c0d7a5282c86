//! Ten questions about relations on pages of the PostgreSQL manual. The page that answers does not name what is asked about;
//! another page does, and names or links what is answered.
//!
//! `RAG_TEST_MANUAL` is the folder of the manual's HTML pages; `make test` fetches it and sets it.

use rag_tests::{Cluster, Session, literal};
use std::collections::BTreeSet;

/// Pages beside those that are asked about: the shortest that have something to say.
const OTHERS: usize = 280;

/// Pages that the questions are about, and others on the same matters, among which they have to be found.
const PAGES: &str = "\
    auth-delay auto-explain runtime-config-client pgstatstatements runtime-config-statistics app-pgrewind runtime-config-wal \
    oldsnapshot runtime-config-resource pgprewarm runtime-config-replication app-pgbasebackup app-pgreceivewal \
    basic-archive basebackup-to-shell passwordcheck sslinfo runtime-config-connection citext postgres-fdw dblink \
    logical-replication-config test-decoding logicaldecoding-explanation app-pgchecksums app-initdb pgvisibility \
    storage-vm sql-vacuum runtime-config-autovacuum pgfreespacemap storage-fsm sql-notify sql-listen unaccent \
    textsearch-dictionaries hstore gin-intro pgtrgm earthdistance cube sepgsql sql-security-label lo largeobjects seg \
    uuid-ossp app-pg-isready libpq-envars app-vacuumdb app-clusterdb sql-cluster app-reindexdb sql-reindex app-createdb \
    sql-createdatabase manage-ag-templatedbs sql-set-constraints sql-lock explicit-locking tsm-system-rows sql-select \
    tablefunc btree-gist ltree intarray adminpack pgbuffercache amcheck app-pgamcheck pgstattuple file-fdw sql-copy";

/// Question, page that answers it, words of the chunk that does.
const QUESTIONS: [(&str, &str, &str); 10] = [
    (
        "What is the default of the setting that the auth_delay module depends on?",
        "runtime-config-client.html",
        "shared_preload_libraries` (",
    ),
    (
        "Who can change the setting that passwordcheck depends on?",
        "runtime-config-client.html",
        "shared_preload_libraries` (",
    ),
    (
        "Is a restart needed for the setting that pg_rewind depends on?",
        "runtime-config-wal.html",
        "wal_log_hints",
    ),
    (
        "What does the server write because of the setting that pg_rewind requires?",
        "runtime-config-wal.html",
        "wal_log_hints",
    ),
    (
        "Which values can the setting take that pg_stat_statements requires beside being preloaded?",
        "runtime-config-statistics.html",
        "compute_query_id",
    ),
    (
        "On what does the setting act that pg_receivewal --synchronous is related to?",
        "runtime-config-wal.html",
        "synchronous_commit` (",
    ),
    (
        "What does the setting cost that pg_stat_statements depends on for blk_read_time?",
        "runtime-config-statistics.html",
        "track_io_timing` (",
    ),
    ("What does the command remove that vacuumdb is a wrapper around?", "sql-vacuum.html", "dead tuples"),
    (
        "Which statistics are updated by the command that vacuumdb is a wrapper around?",
        "sql-vacuum.html",
        "Updates statistics",
    ),
    (
        "Which lock does the command acquire that clusterdb is a wrapper around?",
        "sql-cluster.html",
        "ACCESS EXCLUSIVE",
    ),
];

fn ingest(session: &mut Session, folder: &str) {
    let named: BTreeSet<String> = PAGES.split_whitespace().map(|page| format!("{page}.html")).collect();
    let mut others: Vec<(u64, String)> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("RAG_TEST_MANUAL is {folder}: {e}"))
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.metadata().unwrap().len(), entry.file_name().into_string().unwrap()))
        .filter(|(bytes, name)| *bytes > 3_500 && name.ends_with(".html") && !named.contains(name))
        .collect();
    others.sort();
    for page in named.into_iter().chain(others.into_iter().take(OTHERS).map(|(_, name)| name)) {
        let html = std::fs::read(format!("{folder}/{page}")).unwrap();
        session.run(&format!(
            "INSERT INTO rag.document (uri, content) VALUES ({}, {})",
            literal(&page),
            literal(&String::from_utf8_lossy(&html))
        ));
    }
    assert!(session.holds("SELECT rag_wait(NULL, '30 min')"), "not ingested within 30 minutes");
}

/// Rank of the chunk that answers each question among the first 30.
fn ranks(session: &mut Session, options: &str) -> Vec<Option<i64>> {
    QUESTIONS
        .iter()
        .map(|(question, page, words)| {
            let found = session.column(&format!(
                "SELECT rank FROM rag_search({}, k => 30, options => '{options}')
                 WHERE uri = '{page}' AND strpos(content, {}) > 0 ORDER BY rank LIMIT 1",
                literal(question),
                literal(words)
            ));
            found.first().map(|rank| rank.parse().unwrap())
        })
        .collect()
}

#[test]
fn the_graph_finds_what_flat_search_does_not() {
    let folder = std::env::var("RAG_TEST_MANUAL").unwrap_or_else(|_| {
        panic!("RAG_TEST_MANUAL is not set: run `make test`, which fetches the manual and sets it")
    });
    let cluster = Cluster::builder("graph_manual").start();
    let database = cluster.database("graph_manual");
    let mut ann = database.user("ann");
    ingest(&mut ann, &folder);
    let first_ten =
        |ranks: &[Option<i64>]| ranks.iter().filter(|rank| rank.is_some_and(|rank| rank <= 10)).count();
    let ways = [
        ("flat", "{}"),
        ("graph", r#"{"graph": "auto"}"#),
        ("hops", r#"{"hops": 2}"#),
        ("both", r#"{"graph": "auto", "hops": 2}"#),
    ];
    let found: Vec<usize> = ways
        .iter()
        .map(|(name, options)| {
            let ranks = ranks(&mut ann, options);
            eprintln!("{name}: {} of 10 in the first ten, ranks {ranks:?}", first_ten(&ranks));
            first_ten(&ranks)
        })
        .collect();
    let [flat, graph, hops, both] = found[..] else { panic!("{found:?}") };
    assert!(flat <= 2, "flat search finds {flat}");
    assert!(graph >= 7, "the graph finds {graph}");
    assert!(hops > flat && both > hops, "hops find {hops}, both {both}");
}
