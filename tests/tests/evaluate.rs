//! Measuring ways of searching: the numbers of `rag_evaluate`, whose rows it reads, and what it refuses.

#![allow(clippy::unwrap_used)]

#[path = "evaluate/answers.rs"]
mod answers;

use rag_tests::{Cluster, Database, Session};

/// Six notes, and queries with grades: the fourth finds nothing that was judged, the fifth was judged by nobody.
fn prepared(database: &Database<'_>, name: &str) -> Session {
    let mut session = database.user(name);
    for (uri, text) in [
        ("ferry.md", "The ferry crosses the harbour at nine. The ferry is blue."),
        ("harbour.md", "The harbour has a crane and a lighthouse."),
        ("crane.md", "A crane lifts containers from the ship onto the quay in the harbour."),
        ("bread.md", "Sourdough bread rises over night."),
        ("oven.md", "The oven bakes bread at high heat."),
        ("violin.md", "A violin has four strings."),
    ] {
        session.ingest(text, uri);
    }
    session.run(
        "CREATE TEMP TABLE asked (id int PRIMARY KEY, query text NOT NULL);
         INSERT INTO asked VALUES (1, 'ferry harbour'), (2, 'crane'), (3, 'bread oven'), (4, 'violin'), (5, 'quay');
         CREATE TEMP TABLE judged (query_id int, document text, relevance int, PRIMARY KEY (query_id, document));
         INSERT INTO judged VALUES (1, 'ferry.md', 3), (1, 'harbour.md', 1), (1, 'bread.md', 0), (1, 'gone.md', 2),
             (2, 'crane.md', 1), (2, 'harbour.md', 2), (3, 'bread.md', 1), (3, 'oven.md', -1), (4, 'oven.md', 1),
             (9, 'oven.md', 1)",
    );
    session
}

/// The measures of each judged query, by SQL over the rows of `rag_search`.
fn by_hand(mode: &str, k: usize) -> String {
    format!(
        "WITH found AS (
             SELECT a.id, s.rank, coalesce(j.relevance, 0) AS grade
             FROM asked a CROSS JOIN LATERAL rag_search(a.query, k => 100, mode => '{mode}') s
             LEFT JOIN judged j ON j.query_id = a.id AND j.document = s.uri
         ), best AS (
             SELECT query_id AS id, sum(relevance / log(2, 1 + place)) FILTER (WHERE place <= 10) AS gain, count(*) AS n
             FROM (SELECT *, row_number() OVER (PARTITION BY query_id ORDER BY relevance DESC) AS place
                   FROM judged WHERE relevance > 0) j GROUP BY query_id
         )
         SELECT b.id, round((count(*) FILTER (WHERE f.grade > 0 AND f.rank <= {k}))::numeric / b.n, 6),
                round((count(*) FILTER (WHERE f.grade > 0 AND f.rank <= {k}))::numeric / {k}, 6),
                round(coalesce(1.0 / min(f.rank) FILTER (WHERE f.grade > 0 AND f.rank <= {k}), 0), 6),
                round(coalesce(sum(f.grade / log(2, 1 + f.rank)) FILTER (WHERE f.grade > 0 AND f.rank <= 10), 0) / b.gain, 6)
         FROM best b JOIN asked a USING (id) LEFT JOIN found f USING (id) GROUP BY b.id, b.n, b.gain ORDER BY b.id"
    )
}

const ROUNDED: &str = "round(recall::numeric, 6), round(\"precision\"::numeric, 6), round(mrr::numeric, 6), round(ndcg::numeric, 6)";

#[test]
fn the_numbers_are_those_that_the_rows_of_searches_give() {
    let database = Database::new("evaluate");
    let mut ann = prepared(&database, "ann");
    for (mode, k) in [("keyword", 10), ("vector", 2), ("hybrid", 3), ("hybrid", 1)] {
        let call =
            format!("rag_evaluate(NULL, 'asked', 'judged', '{{{mode}}}', {k}, '{{\"per_query\": true}}')");
        let each = ann.rows(&format!("SELECT query_id, {ROUNDED} FROM {call} WHERE query_id IS NOT NULL"));
        let expected = ann.rows(&by_hand(mode, k));
        assert_eq!(expected.len(), 4);
        assert_eq!(each, expected, "{mode}, {k}");
        let mean = ann.rows(&format!("SELECT {ROUNDED} FROM {call} WHERE query_id IS NULL"));
        let of_each = ann.rows(&format!(
            "SELECT {} FROM {call} WHERE query_id IS NOT NULL",
            ROUNDED.replace("round(", "round(avg(").replace("::numeric", ")::numeric")
        ));
        assert_eq!(mean, of_each, "{mode}, {k}");
    }
    let sizes = ann.rows(
        "SELECT mode, queries, details->>'relevant', details->>'present', details->>'unjudged_queries', milliseconds > 0
         FROM rag_evaluate(NULL, 'asked', 'judged')",
    );
    for (row, mode) in sizes.iter().zip(["keyword", "vector", "hybrid"]) {
        let row: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap()).collect();
        // gone.md was judged relevant, and is nowhere; of query 9 nothing is known.
        assert_eq!(row, [mode, "4", "6", "5", "1", "t"]);
    }
    assert_eq!(sizes.len(), 3);
    ann.run("CREATE TEMP TABLE copy AS SELECT * FROM judged; BEGIN READ ONLY");
    assert_eq!(ann.count("SELECT count(*) FROM rag_evaluate(NULL, 'asked', 'copy')"), 3);
    ann.run("ROLLBACK");
}

#[test]
fn a_document_stands_where_its_first_chunk_stands_and_is_counted_once() {
    let database = Database::new("evaluate_chunks");
    let mut ann = database.user("ann");
    let long: String = (0..70).map(|i| format!("## Part {i}\n\nRope rope rope, number {i}.\n\n")).collect();
    ann.ingest(&long, "long.md");
    let filler = "Other words stand here, and there are many of them in this text about something else. ";
    for name in ["a.md", "b.md"] {
        ann.ingest(&format!("A rope. {}", filler.repeat(20)), name);
    }
    ann.run(
        "CREATE TEMP TABLE asked AS SELECT 'q' AS id, 'rope' AS query;
         CREATE TEMP TABLE judged AS SELECT 'q' AS query_id, unnest('{a.md,b.md}'::text[]) AS document, 1 AS relevance",
    );
    let first = ann.column("SELECT DISTINCT uri FROM rag_search('rope', mode => 'keyword', k => 60)");
    assert_eq!(first, ["long.md"], "the others come late");
    let found = ann.rows("SELECT recall, mrr FROM rag_evaluate(NULL, 'asked', 'judged', '{keyword}', 3)");
    assert_eq!(found, [[Some("1".to_owned()), Some("0.5".to_owned())]]);

    ann.run(
        "CREATE TEMP TABLE judged_chunk AS SELECT 'q' AS query_id, chunk_id AS document, 1 AS relevance
         FROM rag_search('rope', mode => 'keyword', k => 4) WHERE rank IN (2, 4)",
    );
    let chunks = "rag_evaluate(NULL, 'asked', 'judged_chunk', '{keyword}', 3, '{\"level\": \"chunk\"}')";
    let found = ann.rows(&format!("SELECT recall, mrr, details->>'present' FROM {chunks}"));
    assert_eq!(found, [["0.5", "0.5", "2"].map(|value| Some(value.to_owned()))]);

    // A document without a uri goes by its id.
    ann.run("SELECT rag_ingest('A hawser is no line.', options => '{\"sync\": true}')");
    ann.run(
        "CREATE TEMP TABLE asked_too AS SELECT 1 AS id, 'hawser' AS query;
         CREATE TEMP TABLE judged_too AS SELECT 1 AS query_id, id AS document, 1 AS relevance FROM rag.document WHERE uri IS NULL",
    );
    let found = ann.rows(
        "SELECT recall, details->>'present' FROM rag_evaluate(NULL, 'asked_too', 'judged_too', '{keyword}')",
    );
    assert_eq!(found, [["1", "1"].map(|value| Some(value.to_owned()))]);
}

#[test]
fn collections_and_options_are_compared_in_one_call() {
    let database = Database::new("evaluate_variants");
    let mut ann = prepared(&database, "ann");
    ann.run(
        "SELECT rag_create_collection('short', options => '{\"chunking\": {\"size\": 32, \"overlap\": 0}}')",
    );
    ann.run("SELECT rag_ingest(content, uri => uri, collection => 'short', options => '{\"sync\": true}') FROM rag.document");
    let options = r#"{"keyword_weight": 0.4, "variants": [
        {"name": "rrf", "fusion": "rrf"}, {"name": "reranked", "mode": "hybrid", "rerank": true},
        {"name": "short", "collection": "short", "mode": "keyword"}]}"#;
    let rows = ann.rows(&format!(
        "SELECT collection, variant, mode FROM rag_evaluate('default', 'asked', 'judged', '{{vector,hybrid}}', options => '{options}')"
    ));
    let rows: Vec<String> = rows
        .iter()
        .map(|row| row.iter().map(|v| v.as_deref().unwrap()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        rows,
        ["default rrf vector", "default rrf hybrid", "default reranked hybrid", "short short keyword"]
    );
    // A variant's own word comes before that of all.
    let ndcg = |ann: &mut Session, options: &str| {
        ann.column(&format!("SELECT ndcg FROM rag_evaluate('default', 'asked', 'judged', '{{hybrid}}', options => '{options}')"))
    };
    let only = ndcg(&mut ann, r#"{"keyword_weight": 1.0}"#);
    assert_eq!(
        ndcg(&mut ann, r#"{"keyword_weight": 0.0, "variants": [{"name": "k", "keyword_weight": 1.0}]}"#),
        only
    );
    assert_eq!(ndcg(&mut ann, r#"{"keyword_weight": 1.0, "variants": []}"#), only);
    // The rows of several collections, as any function's.
    let crossed = ann.count(
        "SELECT count(*) FROM unnest('{default,short}'::text[]) c, rag_evaluate(c, 'asked', 'judged') WHERE ndcg > 0",
    );
    assert_eq!(crossed, 6);
}

#[test]
fn a_stage_that_falls_back_is_reported() {
    let cluster = Cluster::builder("evaluate_fallback").setting("rag_ext.rerank_model", "none-such").start();
    let database = cluster.database("fallback");
    let mut ann = prepared(&database, "ann");
    let said = ann.value(
        "SELECT details->'fallbacks' FROM rag_evaluate(NULL, 'asked', 'judged', '{hybrid}', options => '{\"rerank\": true}')",
    );
    assert_eq!(said, r#"{"rerank: fused order": 4}"#);
    assert_eq!(
        ann.value("SELECT details ? 'fallbacks' FROM rag_evaluate(NULL, 'asked', 'judged', '{hybrid}')"),
        "f"
    );
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    let database = Database::new("evaluate_refusals");
    let mut ann = prepared(&database, "ann");
    ann.run(
        "CREATE TEMP TABLE half AS SELECT 1 AS id, 2 AS query; CREATE TEMP TABLE words AS SELECT 1 AS query_id, 'x' AS document, '1' AS relevance;
         CREATE TEMP TABLE twice AS SELECT 1 AS id, 'ferry' AS query FROM generate_series(1, 2);
         CREATE TEMP TABLE judged_twice AS SELECT 1 AS query_id, 'x' AS document, 1 AS relevance FROM generate_series(1, 2);
         CREATE TEMP TABLE gaps AS SELECT 1 AS id, NULL::text AS query; CREATE TEMP TABLE others AS SELECT 77 AS query_id, 'x' AS document, 1 AS relevance;
         CREATE TEMP TABLE signs AS SELECT 1 AS id, '?!' AS query; CREATE TEMP SEQUENCE numbers;
         CREATE TEMP TABLE big AS SELECT 1 AS query_id, 'x' AS document, 5000000000 AS relevance;
         CREATE TEMP VIEW many AS SELECT i AS id, 'ferry'::text AS query FROM generate_series(1, 10001) i;
         CREATE TEMP VIEW large AS SELECT 1 AS query_id, i || repeat('x', 1000000) AS document, 1 AS relevance FROM generate_series(1, 140) i;
         CREATE TEMP VIEW long AS SELECT i AS id, repeat('x', 1000000) AS query FROM generate_series(1, 140) i;
         CREATE TEMP VIEW wordy AS SELECT 1 AS id, repeat('ferry ', 600) AS query",
    );
    let mut refused = |code: &str, queries: &str, judgements: &str, what: &str| {
        let failure =
            ann.refuses(code, &format!("SELECT * FROM rag_evaluate(NULL, '{queries}', '{judgements}')"));
        assert!(
            failure.to_string().contains(what) || failure.detail.contains(what),
            "{failure} {}",
            failure.detail
        );
    };
    refused("22023", "half", "judged", "\"query\" is pg_catalog.int4, not a text");
    refused("22023", "judged", "judged", "\"id\" is missing, \"query\" is missing");
    refused("22023", "asked", "words", "\"relevance\" is pg_catalog.text, not an integer");
    refused("22023", "asked", "big", "5000000000");
    refused("22023", "twice", "judged", "two rows of id \"1\"");
    refused("22023", "asked", "judged_twice", "two rows of document \"x\" of query \"1\"");
    refused("22004", "gaps", "judged", "query");
    refused("22023", "asked", "others", "none of 5 queries");
    refused("22023", "signs", "judged", "Its id is \"1\"");
    refused("42809", "numbers", "judged", "no table or view");
    refused("54000", "many", "judged", "10000");
    refused("54000", "asked", "large", "134217728 bytes");
    refused("54000", "long", "judged", "134217728 bytes");
    refused("54000", "wordy", "judged", "about query \"1\"");
    for (code, arguments) in [
        ("22004", "NULL, NULL, 'judged'"),
        ("22004", "NULL, 'asked', NULL"),
        ("22004", "NULL, 'asked', 'judged', NULL"),
        ("22004", "NULL, 'asked', 'judged', ARRAY[NULL::text]"),
        ("22023", "NULL, 'asked', 'judged', '{}'"),
        ("22023", "NULL, 'asked', 'judged', '{keywords}'"),
        ("22023", "NULL, 'asked', 'judged', k => 0"),
        ("22023", "NULL, 'asked', 'judged', options => '{\"levels\": 1}'"),
        ("22023", "NULL, 'asked', 'judged', options => '{\"variants\": [1]}'"),
        ("22023", "NULL, 'asked', 'judged', options => '{\"variants\": [{\"rerank\": true}]}'"),
        (
            "22023",
            "NULL, 'asked', 'judged', options => '{\"variants\": [{\"name\": \"a\", \"per_query\": true}]}'",
        ),
        ("42704", "'no such collection', 'asked', 'judged'"),
        ("42704", "NULL, 4294967295::oid, 'judged'"),
    ] {
        ann.refuses(code, &format!("SELECT * FROM rag_evaluate({arguments})"));
    }
    let many = format!("[{}]", vec!["{\"name\": \"a\"}"; 34].join(", "));
    ann.refuses(
        "54000",
        &format!(
            "SELECT * FROM rag_evaluate(NULL, 'asked', 'judged', options => '{{\"variants\": {many}}}')"
        ),
    );
}

/// Nothing of another's documents or tables shows, neither as a number nor as an error.
#[test]
fn others_documents_and_tables_are_as_if_they_were_not_there() {
    let database = Database::new("evaluate_isolation");
    let mut ann = prepared(&database, "ann");
    let mut bob = database.user("bob");
    bob.ingest("Bob waits for the ferry in the harbour.", "bob.md");
    bob.run("SELECT rag_create_collection('secret')");
    let role = bob.value("SELECT current_user");
    let mut admin = database.admin();
    admin.run(&format!(
        "CREATE SCHEMA lab; GRANT USAGE, CREATE ON SCHEMA lab TO PUBLIC; SET ROLE {role};
         CREATE TABLE lab.asked AS SELECT 1 AS id, 'ferry harbour' AS query, 'bob'::text AS who;
         CREATE TABLE lab.judged AS SELECT 1 AS query_id, 'bob.md' AS document, 1 AS relevance;
         RESET ROLE"
    ));
    let mine = "SELECT ndcg, details->>'present' FROM rag_evaluate(NULL, 'asked', 'judged', '{keyword}')";
    let before = ann.rows(mine);
    // The same documents are judged, and bob's are not there for ann.
    ann.run("CREATE TEMP TABLE of_bob AS SELECT 1 AS query_id, 'bob.md' AS document, 1 AS relevance");
    let of_bob = "SELECT recall, ndcg, details->>'present' FROM rag_evaluate(NULL, 'asked', 'of_bob')";
    for row in ann.rows(of_bob) {
        assert_eq!(row, ["0", "0", "0"].map(|value| Some(value.to_owned())));
    }
    bob.run("DELETE FROM rag.document");
    assert_eq!(ann.rows(mine), before);

    // Tables that the caller may not read, wholly or in part.
    let failure = ann.refuses("42501", "SELECT * FROM rag_evaluate(NULL, 'lab.asked', 'judged')");
    assert!(failure.message.contains("lab.asked"), "{failure}");
    ann.refuses("42501", "SELECT * FROM rag_evaluate(NULL, 'asked', 'lab.judged')");
    bob.run("GRANT SELECT (id) ON lab.asked TO PUBLIC");
    ann.refuses("42501", "SELECT * FROM rag_evaluate(NULL, 'lab.asked', 'judged')");
    bob.run("GRANT SELECT (id, query) ON lab.asked TO PUBLIC");
    assert_eq!(ann.count("SELECT count(*) FROM rag_evaluate(NULL, 'lab.asked', 'judged')"), 3);
    // And rows that their policies hide.
    bob.run("ALTER TABLE lab.asked ENABLE ROW LEVEL SECURITY");
    let failure = ann.refuses("22023", "SELECT * FROM rag_evaluate(NULL, 'lab.asked', 'judged')");
    assert!(failure.message.contains("none of 0 queries"), "{failure}");

    let hidden =
        ann.refuses("42704", &format!("SELECT * FROM rag_evaluate('role:{role}/secret', 'asked', 'judged')"));
    let missing = ann
        .refuses("42704", &format!("SELECT * FROM rag_evaluate('role:{role}/nothing', 'asked', 'judged')"));
    assert_eq!(hidden.message.replace("secret", "nothing"), missing.message);
}
