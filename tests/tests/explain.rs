//! How a search came to its rows: `rag_explain` tells of the same search as `rag_search`, and of nothing that is another's.

#![allow(clippy::unwrap_used)]

use rag_tests::{Cluster, Database, Session};
use std::collections::BTreeMap;

/// Twelve notes about boats, in falling number of words that match, and some about bread.
fn prepared(database: &Database<'_>, name: &str) -> Session {
    let mut session = database.user(name);
    for i in 0..12 {
        let text = format!("Note {i} of a harbour. {}A boat leaves.", "The ferry waits. ".repeat(12 - i));
        session.ingest(&text, &format!("boat{i:02}.md"));
    }
    for i in 0..6 {
        session.ingest(&format!("Bread number {i} rises over night in the oven."), &format!("bread{i}.md"));
    }
    session
}

const CANDIDATES: &str = "'{\"per_candidate\": true}'";

#[test]
fn stages_are_those_of_the_search() {
    let database = Database::new("explain_stages");
    let mut ann = prepared(&database, "ann");
    let arguments = "'ferry harbour', k => 3, options => '{\"rerank\": true, \"rerank_limit\": 5}', filter => '{\"language\": \"en\"}'";
    let stages = ann.rows(&format!(
        "SELECT stage, input, output, method, details FROM rag_explain({arguments}) WHERE milliseconds >= 0 AND kind = 'stage'"
    ));
    let of_search =
        ann.json(&format!("SELECT details->'stages' FROM rag_search({arguments}) WHERE rank = 1"));
    let of_search = of_search.as_array().unwrap();
    let names: Vec<&str> = stages.iter().map(|row| row[0].as_deref().unwrap()).collect();
    assert_eq!(names, ["filter", "keyword", "vector", "fusion", "near_duplicates", "rerank"]);
    assert_eq!(of_search.len(), names.len());
    for (row, stage) in stages.iter().zip(of_search) {
        assert_eq!(row[0].as_deref(), stage["stage"].as_str());
        assert_eq!(row[1], Some(stage["in"].to_string()));
        assert_eq!(row[2], Some(stage["out"].to_string()));
        assert_eq!(row[3].as_deref(), stage["method"].as_str());
    }
    assert!(stages[3][4].as_ref().unwrap().contains("\"keyword_weight\": 0.5"), "{:?}", stages[3]);
    assert_eq!(of_search[3]["details"]["keyword_weight"], 0.5);
    assert_eq!(ann.count(&format!("SELECT count(*) FROM rag_explain({arguments}) WHERE kind <> 'stage'")), 0);
    // What stops a search is said in its row.
    let stopped = ann.value("SELECT stage || ': ' || reason FROM rag_explain('the of and')");
    assert!(stopped.starts_with("query: no word of the query"), "{stopped}");
}

#[test]
fn candidates_have_the_ranks_and_scores_of_the_search() {
    let database = Database::new("explain_candidates");
    let mut ann = prepared(&database, "ann");
    for (mode, options) in [
        ("hybrid", "{}"),
        ("hybrid", r#"{"fusion": "rrf", "rerank": true, "rerank_limit": 6}"#),
        ("hybrid", r#"{"min_score": 0.4}"#),
        ("vector", "{}"),
        ("keyword", "{}"),
    ] {
        let asked = options.replace('{', "{\"per_candidate\": true, ").replace(", }", "}");
        let columns =
            "rank, chunk_id, score, keyword_rank, keyword_score, vector_rank, vector_score, rerank_score";
        let explained = ann.rows(&format!(
            "SELECT {columns} FROM rag_explain('ferry harbour', k => 4, mode => '{mode}', options => '{asked}')
             WHERE kind = 'candidate' AND dropped IS NULL"
        ));
        let found = ann.rows(&format!(
            "SELECT {columns} FROM rag_search('ferry harbour', k => 4, mode => '{mode}', options => '{options}')"
        ));
        assert_eq!(explained, found, "{mode} {options}");
        assert_eq!(found.len(), 4);
    }
}

/// What a further search finds has the places that the caller's own query gave it.
#[test]
fn ranks_of_further_searches_are_not_those_of_the_query() {
    let database = Database::new("explain_further");
    let mut ann = database.user("ann");
    for (text, uri) in [
        ("The Coolant Pump is connected to valve V-204.", "pump.md"),
        ("Valve V-204 opens at nine bar.", "valve.md"),
        ("The ferry leaves at nine.", "ferry.md"),
    ] {
        ann.ingest(text, uri);
    }
    for (query, options) in
        [("Coolant Pump", r#"{"hops": 2}"#), ("compare the pump with the ferry", r#"{"decompose": "on"}"#)]
    {
        let columns = "uri, score, keyword_rank, keyword_score, vector_rank, vector_score";
        let asked = options.replace('{', "{\"per_candidate\": true, ");
        let found = ann.rows(&format!("SELECT {columns} FROM rag_search('{query}', options => '{options}')"));
        let explained = ann.rows(&format!(
            "SELECT {columns} FROM rag_explain('{query}', options => '{asked}') WHERE kind = 'candidate' AND dropped IS NULL"
        ));
        assert_eq!(explained, found, "{options}");
        assert!(found.iter().any(|row| row[2].is_none()), "{found:?}");
    }
}

#[test]
fn what_was_dropped_says_why() {
    let database = Database::new("explain_dropped");
    let mut ann = prepared(&database, "ann");
    let mut reasons = |mode: &str, options: &str| -> BTreeMap<String, String> {
        let rows = ann.rows(&format!(
            "SELECT coalesce(dropped, 'hit'), count(*) FROM rag_explain('ferry harbour', k => 4, mode => '{mode}',
                 options => '{{\"per_candidate\": true{options}}}')
             WHERE kind = 'candidate' AND (rank IS NULL) = (dropped IS NOT NULL) GROUP BY 1"
        ));
        rows.into_iter().map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap())).collect()
    };
    let expected = |reasons: &[(&str, &str)]| -> BTreeMap<String, String> {
        reasons.iter().map(|(reason, count)| ((*reason).to_owned(), (*count).to_owned())).collect()
    };
    // All 18 have a vector, 12 have the words.
    assert_eq!(reasons("hybrid", ""), expected(&[("hit", "4"), ("beyond k", "14")]));
    assert_eq!(reasons("keyword", ""), expected(&[("hit", "4"), ("beyond k", "8")]));
    assert_eq!(reasons("vector", r#", "candidates": 6"#), expected(&[("hit", "4"), ("beyond k", "2")]));
    assert_eq!(
        reasons("hybrid", r#", "rerank": true, "rerank_limit": 7"#),
        expected(&[("hit", "4"), ("beyond k", "3"), ("beyond rerank_limit", "11")])
    );
    // The worst of each list has a score of 0.
    let of_threshold = reasons("hybrid", r#", "min_score": 1.0"#);
    assert!(of_threshold["below min_score"].parse::<i32>().unwrap() >= 16, "{of_threshold:?}");

    // Those that are hits come first, and each row is one chunk.
    let ranks = ann.column(&format!(
        "SELECT coalesce(rank::text, '-') FROM rag_explain('ferry harbour', k => 4, options => {CANDIDATES}) WHERE kind = 'candidate'"
    ));
    assert_eq!(ranks[..5], ["1", "2", "3", "4", "-"]);
    assert_eq!(
        ann.count(&format!(
            "SELECT count(DISTINCT chunk_id) FROM rag_explain('ferry harbour', options => {CANDIDATES})"
        )),
        18
    );
    let fused = ann.rows(&format!(
        "SELECT count(fusion_rank), min(fusion_rank), max(fusion_rank), count(uri), count(document_id)
         FROM rag_explain('ferry harbour', options => {CANDIDATES}) WHERE kind = 'candidate'"
    ));
    assert_eq!(fused, [["18", "1", "18", "18", "18"].map(|value| Some(value.to_owned()))]);
}

#[test]
fn a_stage_that_fails_is_named_with_its_fallback() {
    let cluster = Cluster::builder("explain_fallback").setting("rag_ext.rerank_model", "none-such").start();
    let database = cluster.database("fallback");
    let mut ann = prepared(&database, "ann");
    let row = ann.rows("SELECT fallback, reason FROM rag_explain('ferry', options => '{\"rerank\": true}') WHERE stage = 'rerank'");
    assert_eq!(row[0][0].as_deref(), Some("fused order"));
    assert!(row[0][1].as_ref().unwrap().contains("none-such"), "{row:?}");
}

#[test]
fn others_chunks_are_never_candidates() {
    let database = Database::new("explain_isolation");
    let mut ann = prepared(&database, "ann");
    let all = format!(
        "SELECT kind, stage, input, output, method, rank, score, chunk_id, uri, keyword_rank, keyword_score, vector_rank,
                vector_score, fusion_rank, fusion_score, dropped, details
         FROM rag_explain('ferry harbour', k => 5, options => {CANDIDATES})"
    );
    let before = ann.rows(&all);
    let mut bob = database.user("bob");
    for i in 0..20 {
        bob.ingest(&format!("The ferry of bob waits in the harbour, ferry {i}."), &format!("bob{i}.md"));
    }
    assert_eq!(ann.rows(&all), before);
    // Of a collection that is shared, the rows that a policy hides are no candidates either.
    bob.run("SELECT rag_create_collection('open')");
    bob.run("INSERT INTO rag.document (uri, content, collection, metadata)
             SELECT format('open%s.md', i), format('An open ferry in the harbour, number %s.', i), 'open', jsonb_build_object('hidden', i % 2)
             FROM generate_series(1, 6) i");
    bob.settle();
    let (ann_role, bob_role) = (ann.value("SELECT current_user"), bob.value("SELECT current_user"));
    bob.run(&format!("SELECT rag_grant('open', 'role:{ann_role}', 'read')"));
    let shared = format!(
        "SELECT count(*) FROM rag_explain('ferry harbour', 'role:{bob_role}/open', k => 2, options => {CANDIDATES}) WHERE kind = 'candidate'"
    );
    assert_eq!(ann.count(&shared), 6);
    database.admin().run(&format!(
        "SELECT rag_add_policy('rag.document', 'no_hidden', $$metadata->>'hidden' = '0'$$, command => 'select', roles => '{{{ann_role}}}')"
    ));
    assert_eq!(ann.count(&shared), 3);
    assert_eq!(bob.count(&shared), 6);
    let hidden =
        ann.refuses("42704", &format!("SELECT * FROM rag_explain('ferry', 'role:{bob_role}/default')"));
    let missing =
        ann.refuses("42704", &format!("SELECT * FROM rag_explain('ferry', 'role:{bob_role}/nothing')"));
    assert_eq!(hidden.message.replace("default", "nothing"), missing.message);
    ann.run("BEGIN READ ONLY");
    assert!(ann.count(&shared) == 3);
    ann.run("ROLLBACK");
}
