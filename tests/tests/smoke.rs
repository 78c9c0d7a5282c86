//! The whole way on a fresh cluster: install, ingest, search, rerank, answer, restart. Short enough to run on
//! every major version.

#![allow(clippy::unwrap_used)]

use rag_tests::{Cluster, Database, Session, literal};
use serde_json::Value;

const MARKDOWN: &str = "\
# Tide tables

The harbour of Nordhavn publishes its tide tables every January.

## Spring tides

Spring tides occur shortly after full moon and new moon. At Nordhavn the spring range is 4.2 metres.

## Neap tides

Neap tides occur a week later and have the smallest range, about 1.1 metres.
";

const PLAIN: &str = "The lighthouse keeper Ida Brandt polished the lens every morning before sunrise. \
    She kept the log of the lighthouse for thirty-one years.";

const HTML: &str = "<!DOCTYPE html><html><head><title>Beekeeping</title></head><body><h1>Beekeeping</h1>\
    <h2>Winter feeding</h2><p>In winter a colony of honey bees needs about fifteen kilograms of stored honey &amp; \
    pollen.</p><script>var hidden = 'walrus';</script></body></html>";

fn ingest(session: &mut Session, content: &str, uri: &str) -> String {
    session.value(&format!("SELECT rag_ingest({}, uri => {})", literal(content), literal(uri)))
}

/// Every citation's quote stands where it says, and says what it should.
fn assert_cited(session: &mut Session, question: &str, uri: &str, words: &str) {
    let answer: Value = session.json(&format!("SELECT rag_answer({})", literal(question)));
    assert_eq!(answer["found"], true, "{answer:#}");
    let first = &answer["citations"][0];
    assert_eq!(first["uri"], uri, "{answer:#}");
    assert!(first["quote"].as_str().unwrap().contains(words), "{answer:#}");
    for citation in answer["citations"].as_array().unwrap() {
        let (from, to) = (citation["char_from"].as_i64().unwrap(), citation["char_to"].as_i64().unwrap());
        let id = citation["document_id"].as_str().unwrap();
        let stored = session.value(&format!(
            "SELECT substr(text, {from} + 1, {to} - {from}) FROM rag.document WHERE id = '{id}'"
        ));
        assert_eq!(stored, citation["quote"].as_str().unwrap(), "{answer:#}");
    }
}

fn assert_everything_is_found(session: &mut Session) {
    for mode in ["hybrid", "keyword", "vector"] {
        for (query, uri) in
            [("spring tides", "tides.md"), ("lighthouse keeper", "keeper.txt"), ("honey winter", "bees.html")]
        {
            let sql = format!("SELECT uri FROM rag_search({}, k => 1, mode => '{mode}')", literal(query));
            assert_eq!(session.value(&sql), uri, "{mode}: {query}");
        }
    }
    assert_eq!(session.count("SELECT count(*) FROM rag_search('walrus', mode => 'keyword')"), 0);

    let best = session.rows("SELECT index, score FROM rag_rerank('honey bees in winter', ARRAY['the tide', 'a colony of bees needs honey in winter'])");
    assert_eq!(best[0][0].as_deref(), Some("2"));
    assert!(
        best[0][1].as_ref().unwrap().parse::<f64>().unwrap() > best[1][1].as_ref().unwrap().parse().unwrap()
    );

    assert_cited(session, "What is the spring range at Nordhavn?", "tides.md", "4.2 metres");
    assert_cited(session, "Who polished the lens of the lighthouse?", "keeper.txt", "Ida Brandt");
    assert_cited(session, "How much honey does a colony need in winter?", "bees.html", "fifteen kilograms");
    let refused = session.json("SELECT rag_answer('What is the capital of Mongolia?')");
    assert_eq!(refused["found"], false, "{refused:#}");
    assert_eq!(refused["citations"], serde_json::json!([]), "{refused:#}");
}

#[test]
fn documents_go_in_and_cited_answers_come_out_before_and_after_a_restart() {
    let cluster = Cluster::builder("smoke").start();
    let database = cluster.database("smoke");
    let role = database.role("reader");
    let mut session = database.connect(&role);

    let tides = ingest(&mut session, MARKDOWN, "tides.md");
    ingest(&mut session, PLAIN, "keeper.txt");
    session.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('bees.html', {})", literal(HTML)));
    session.settle();
    let states = session.column("SELECT DISTINCT status FROM rag.document");
    assert_eq!(states, ["done"], "{:?}", session.rows("SELECT * FROM rag.failed_job"));
    assert_eq!(session.value("SELECT title FROM rag_search('spring tides', k => 1)"), "Tide tables");
    let path = session.value("SELECT header_path FROM rag_search('spring tides', k => 1, mode => 'keyword')");
    assert!(path.contains("Spring tides"), "{path}");
    assert_everything_is_found(&mut session);

    assert_eq!(ingest(&mut session, MARKDOWN, "tides.md"), tides, "the same text under the same uri");
    assert_eq!(session.count("SELECT count(*) FROM rag.document"), 3);
    assert_eq!(session.count("SELECT vector_dims(rag_embed('dimension'))"), 384);

    let chunks = "SELECT string_agg(md5(c::text), ',' ORDER BY id) FROM rag.chunk c";
    let before = session.value(chunks);
    drop(session);
    cluster.restart();
    let mut session = database.connect(&role);
    assert_eq!(session.value(chunks), before);
    cluster.running_engine();
    assert_everything_is_found(&mut session);
}

#[test]
fn every_object_of_the_extension_says_what_it_is() {
    let cluster = Cluster::builder("comments").start();
    let database = cluster.database("comments");
    let mut admin = database.admin();
    let silent = admin.column(
        "SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
         FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
         WHERE e.extname = 'rag_ext' AND d.deptype = 'e'
           AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_namespace'::regclass)
           AND obj_description(d.objid, d.classid::regclass::name) IS NULL",
    );
    assert!(silent.is_empty(), "{silent:?}");

    let expected = [
        "rag_accept",
        "rag_add_policy",
        "rag_alter_collection",
        "rag_answer",
        "rag_answer_many",
        "rag_answer_stream",
        "rag_answer_text",
        "rag_attach",
        "rag_cancel",
        "rag_chunk",
        "rag_chunk_bytes",
        "rag_cite",
        "rag_create_collection",
        "rag_detach",
        "rag_disable",
        "rag_drop_acronym",
        "rag_drop_collection",
        "rag_drop_policy",
        "rag_embed",
        "rag_enable",
        "rag_evaluate",
        "rag_evaluate_answers",
        "rag_explain",
        "rag_extract_metadata",
        "rag_feedback",
        "rag_grant",
        "rag_ingest",
        "rag_ingest_bytes",
        "rag_ingest_file",
        "rag_log_reader",
        "rag_parse",
        "rag_pause",
        "rag_record_policy",
        "rag_reextract",
        "rag_register_gateway",
        "rag_related",
        "rag_rerank",
        "rag_rerank_chunks",
        "rag_restore_policies",
        "rag_resume",
        "rag_retry",
        "rag_revoke",
        "rag_search",
        "rag_set_acronym",
        "rag_set_priority",
        "rag_set_prompt",
        "rag_status",
        "rag_unregister_gateway",
        "rag_vectors",
        "rag_verify",
        "rag_wait",
    ];
    let functions = admin.column(
        "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname ~ '^rag_' ORDER BY 1",
    );
    assert_eq!(functions, expected);

    let status = admin.value("SELECT rag_status()");
    assert!(status.lines().count() >= 3, "{status}");

    admin.run("DROP EXTENSION rag_ext CASCADE");
    let left = admin.column("SELECT oid::regclass FROM pg_class WHERE relnamespace = to_regnamespace('rag')");
    assert!(left.is_empty(), "left after DROP EXTENSION: {left:?}");
    admin.run("CREATE EXTENSION rag_ext CASCADE");
    let id = admin.ingest("Once more, from the beginning.", "again");
    assert_eq!(admin.value("SELECT document_id FROM rag_search('beginning', k => 1, mode => 'keyword')"), id);
}

/// A user for whom Postgres counts what statements go over: for others it counts nothing.
fn counted(database: &Database<'_>) -> Session {
    let role = database.role("ann");
    database.admin().run(&format!("GRANT pg_read_all_stats TO {role}"));
    database.connect(&role)
}

/// Indexes of these tables that a search of theirs goes to, which finds so many: how many times, and how many entries it gets of
/// each. What was counted before counts, too, as long as the server has not been told of it.
fn indexes_of(user: &mut Session, search: &str, found: i64, tables: &str) -> Vec<(String, i64, i64)> {
    user.run("BEGIN");
    assert_eq!(user.count(search), found, "{search}");
    let indexes = user.rows(&format!(
        "SELECT indexrelid::regclass, pg_stat_get_xact_numscans(indexrelid), pg_stat_get_xact_tuples_returned(indexrelid)
         FROM pg_index WHERE indrelid = ANY ('{{{tables}}}'::regclass[])"
    ));
    user.run("COMMIT");
    let count = |value: &Option<String>| value.as_ref().unwrap().parse().unwrap();
    indexes.iter().map(|row| (row[0].clone().unwrap(), count(&row[1]), count(&row[2]))).collect()
}

/// Before Postgres 17 an index that is to find one column in two lists is searched for all pairs of them: of domains that a
/// search names and those that its caller sees there may be thousands.
#[test]
fn a_search_of_many_domains_goes_to_each_once() {
    const DOMAINS: i64 = 40;
    let database = Database::new("many_domains");
    let mut ann = counted(&database);
    ann.run(&format!(
        "SELECT rag_create_collection('c' || n) FROM generate_series(1, {DOMAINS}) n;
         INSERT INTO rag.document (collection, content, metadata)
         SELECT 'c' || n, kind || i || ' of boiler ' || n, jsonb_build_object('kind', kind)
         FROM generate_series(1, {DOMAINS}) n, unnest('{{manual, note, note}}'::text[]) WITH ORDINALITY k (kind, i)"
    ));
    ann.settle();
    for filter in [r#"{"kind": "manual"}"#, r#"{"not": {"kind": "note"}}"#] {
        ann.run("SELECT pg_stat_force_next_flush()");
        let search = format!(
            "SELECT count(*) FROM rag_search('boiler', k => 100, mode => 'keyword', filter => {})",
            literal(filter)
        );
        let searched = indexes_of(&mut ann, &search, DOMAINS, "rag.chunk, rag.document, rag.metadata_value");
        // Whoever may look at such counts is shown chunks by their domains, of which there are many.
        let most = searched.iter().filter(|(index, ..)| index != "rag.chunk_domain_id_id_key");
        let most = most.map(|(_, times, _)| *times).max();
        assert!(most.is_some_and(|times| (1..DOMAINS * 5).contains(&times)), "{filter}: {searched:?}");
        let listed = searched.iter().find(|(index, ..)| index == "rag.chunk_document");
        assert!(listed.is_some_and(|(.., entries)| *entries == DOMAINS), "{filter}: {searched:?}");
    }
    for mode in ["keyword", "hybrid"] {
        ann.run("SELECT pg_stat_force_next_flush()");
        let search = format!("SELECT count(*) FROM rag_search('boiler', k => 200, mode => '{mode}')");
        let searched = indexes_of(&mut ann, &search, 3 * DOMAINS, "rag.segment, rag.section, rag.document");
        let most = searched.iter().map(|(_, times, _)| *times).max();
        assert!(most.is_some_and(|times| (1..DOMAINS * 5).contains(&times)), "{mode}: {searched:?}");
    }
}

/// An index by value holds the rows of all documents that pass, which may be most.
#[test]
fn whether_a_filter_lets_a_document_through_is_asked_of_its_rows_alone() {
    const DOCUMENTS: i64 = 300;
    let database = Database::new("asked");
    let mut ann = counted(&database);
    ann.run(&format!(
        "INSERT INTO rag.document (content, metadata)
         SELECT 'boiler ' || n, jsonb_build_object('size', n, 'kind', 'k' || n, 'day', date '2020-01-01' + n, 'is', true)
         FROM generate_series(1, {DOCUMENTS}) n"
    ));
    ann.settle();
    ann.run("SET rag_ext.filter_list_limit = 0");
    for filter in [
        r#"{"size": {"gt": 5}}"#,
        r#"{"size": {"gt": 5}, "kind": {"gte": "k2"}}"#,
        r#"{"kind": {"prefix": "k"}}"#,
        r#"{"day": {"gt": "2020-02-01"}}"#,
        r#"{"is": true}"#,
        r#"{"size": {"exists": true}}"#,
        r#"{"size": {"nin": [1, 2, 3]}}"#,
    ] {
        ann.run("SELECT pg_stat_force_next_flush()");
        let search = format!(
            "SELECT count(*) FROM rag_search('boiler', k => 5, mode => 'keyword', filter => {})",
            literal(filter)
        );
        let searched = indexes_of(&mut ann, &search, 5, "rag.metadata_value");
        let (by_document, by_value): (Vec<_>, Vec<_>) =
            searched.iter().partition(|(index, ..)| index == "rag.metadata_value_pkey");
        assert!(by_value.iter().all(|(_, times, _)| *times == 0), "{filter}: {searched:?}");
        let entries: i64 = by_document.iter().map(|(.., entries)| entries).sum();
        assert!((1..DOCUMENTS).contains(&entries), "{filter}: {searched:?}");
    }
}
