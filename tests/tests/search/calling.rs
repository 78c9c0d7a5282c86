//! How a search may be called, and with what.

use super::corpus;
use rag_tests::{Cluster, Database, Process, Random, literal, wait_until};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn nothing_that_a_user_types_is_a_syntax_error() {
    let database = Database::new("user_text");
    let mut ann = corpus(&database, "ann");
    let mut texts: Vec<String> = [
        "",
        " ",
        "\t\n",
        "!?.,;:",
        "\"",
        "\"\"",
        "\"unclosed",
        "'",
        "''",
        "\\",
        "(",
        ")))",
        "[a TO b]",
        "{x TO y}",
        "a:b",
        "title:x",
        "+",
        "-",
        "+-+-",
        "-water",
        "+\"\"",
        "a AND",
        "OR OR",
        "NOT",
        "AND OR NOT",
        "~2",
        "water~99",
        "water^",
        "water^1e400",
        "*",
        "wat*",
        "?",
        "/regex(/",
        "; DROP TABLE rag.document; --",
        "$1 %s {} \\x00",
        "🦉🦉🦉",
        "\u{200d}\u{feff}\u{202e}",
        "e\u{301}",
        "数据库",
        "\u{10ffff}",
        "a\u{1}b",
        "the of and",
        "IN: [1 2]",
        "body:\"x\"",
        "_exists_:title",
        "<script>",
        "1e999999",
        "\"a b\"~",
        "((((((((((((((((((((",
        "a && b || !c",
    ]
    .iter()
    .map(|text| (*text).to_owned())
    .collect();
    texts.push("water ".repeat(300));
    texts.push("\"".repeat(501));
    texts.push("+water ".repeat(200));
    let mut random = Random::announced("user_text");
    let alphabet: Vec<char> = "ab \"'+-()[]{}:^~*?\\/&|!<>=.,;#@$%_0é水🦊\n".chars().collect();
    texts.extend((0..150).map(|_| (0..random.below(30)).map(|_| *random.pick(&alphabet)).collect()));
    for text in texts {
        for mode in ["keyword", "hybrid"] {
            let found =
                ann.try_rows(&format!("SELECT rank FROM rag_search({}, mode => '{mode}')", literal(&text)));
            match found {
                Err(failure) if !text.contains(char::is_alphanumeric) => {
                    assert_eq!(failure.code, "22023", "{mode} {text:?}: {failure}");
                    assert!(failure.hint.contains("word"), "{failure}");
                }
                found => assert!(found.is_ok(), "{mode} {text:?}: {:?}", found.unwrap_err()),
            }
        }
    }
}

#[test]
fn what_says_nothing_finds_nothing_and_names_and_codes_do() {
    let database = Database::new("saying_nothing");
    let mut ann = corpus(&database, "ann");
    for nothing in ["", " ", "\t\n", "?", "?!…", "\u{200d}", "。"] {
        for call in [
            "SELECT * FROM rag_search({})",
            "SELECT * FROM rag_search({}, mode => 'vector')",
            "SELECT * FROM rag_rerank({}, ARRAY['x'])",
            "SELECT rag_answer({})",
            "SELECT rag_answer_text({})",
            "SELECT * FROM rag_cite({})",
        ] {
            let failure = ann.refuses("22023", &call.replace("{}", &literal(nothing)));
            assert!(!failure.hint.is_empty(), "{failure}");
        }
    }
    for vague in ["the", "What is", "how is it?"] {
        for mode in ["keyword", "vector", "hybrid"] {
            ann.notices();
            let call = format!("SELECT count(*) FROM rag_search({}, mode => '{mode}')", literal(vague));
            assert_eq!(ann.count(&call), 0, "{mode} {vague}");
            let notices = ann.notices();
            assert!(
                notices.iter().any(|n| n.message.contains("stop words") && n.hint.contains("quotes")),
                "{notices:?}"
            );
        }
        let answer =
            ann.json(&format!("SELECT rag_answer({}, options => '{{\"min_support\": 0}}')", literal(vague)));
        assert_eq!(
            (&answer["found"], &answer["reason"]),
            (&false.into(), &"below_threshold".into()),
            "{answer:#}"
        );
    }
    for query in ["C", "7", "IT", "\"the\"", "数", "FC-001"] {
        for mode in ["vector", "hybrid"] {
            let call = format!("SELECT count(*) FROM rag_search({}, mode => '{mode}')", literal(query));
            assert!(ann.count(&call) > 0, "{mode} {query}");
        }
    }
    // A collection that is indexed with all its words may be searched for any.
    ann.run("SELECT rag_create_collection('lyrics', language => 'simple')");
    ann.run("SELECT rag_ingest('To be, or not to be: that is the question.', collection => 'lyrics', options => '{\"sync\": true}')");
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_search('to be', collection => 'lyrics', mode => 'keyword')"),
        1
    );
    let follow_up = r#"[{"role": "user", "content": "Tell me about the magnetic needle."}]"#;
    let answer = ann.json(&format!("SELECT rag_answer('What is it?', history => '{follow_up}')"));
    assert!(answer["diagnostics"].to_string().contains("fusion"), "a follow-up is searched for: {answer:#}");
}

#[test]
fn a_collection_is_named_by_its_owner_or_by_owner_and_name() {
    let database = Database::new("naming");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    let owner = format!("role:{}", database.role_name("ann"));
    ann.run("SELECT rag_create_collection('birds')");
    for (collection, text) in [("birds", "The kingfisher dives."), ("default", "The kingfisher waits.")] {
        ann.run(&format!(
            "SELECT rag_ingest('{text}', collection => '{collection}', options => '{{\"sync\": true}}')"
        ));
    }
    let search = |collection: &str| {
        format!("SELECT count(*) FROM rag_search('kingfisher', collection => {collection})")
    };
    assert_eq!(ann.count(&search("NULL")), 2);
    assert_eq!(ann.count(&search("'birds'")), 1);
    assert_eq!(ann.count(&search(&literal(&format!("{owner}/birds")))), 1);
    assert_eq!(ann.value("SELECT collection FROM rag_search('kingfisher', collection => 'birds')"), "birds");

    let hidden = bob.refuses("42704", &search(&literal(&format!("{owner}/birds"))));
    let missing = bob.refuses("42704", &search(&literal(&format!("{owner}/bards"))));
    assert_eq!(hidden.message.replace("birds", "bards"), missing.message);
    assert_eq!(
        (hidden.detail.replace("birds", "bards"), hidden.hint.replace("birds", "bards")),
        (missing.detail, missing.hint)
    );
    bob.refuses("42704", &search("'birds'"));
    bob.refuses("42704", "SELECT rag_answer('what?', collection => 'birds')");
    assert_eq!(bob.count(&search("NULL")), 0);
}

#[test]
fn a_search_runs_wherever_a_table_function_may() {
    let database = Database::new("anywhere");
    let mut ann = corpus(&database, "ann");
    let lateral = ann.column(
        "SELECT q || '=' || s.uri FROM (VALUES ('coffee'), ('magnetic needle'), ('yeast')) v (q)
         CROSS JOIN LATERAL rag_search(q, k => 1, mode => 'keyword') s ORDER BY 1",
    );
    assert_eq!(lateral, ["coffee=espresso", "magnetic needle=compass", "yeast=sourdough"]);
    ann.run("PREPARE s (text, int) AS SELECT uri FROM rag_search($1, k => $2, mode => 'keyword')");
    for _ in 0..8 {
        assert_eq!(ann.column("EXECUTE s ('coffee', 1)"), ["espresso"]);
        assert_eq!(ann.column("EXECUTE s ('yeast', 5)"), ["sourdough"]);
    }
    ann.run("BEGIN READ ONLY");
    assert_eq!(ann.value("SELECT uri FROM rag_search('yeast', k => 1)"), "sourdough");
    let answer = ann.json("SELECT rag_answer('How is espresso brewed?')");
    assert_eq!(answer["found"], true, "{answer:#}");
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_cite('How is espresso brewed?') WHERE found"),
        answer["citations"].as_array().unwrap().len() as i64
    );
    ann.rows("SELECT * FROM rag_rerank('x', ARRAY['y']), rag_status(), rag.engine_status, rag.model");
    ann.run("COMMIT");

    ann.run("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT uri FROM rag_search('water', k => 8)");
    let first = ann.column("FETCH 3 FROM c");
    assert_eq!(ann.column("FETCH BACKWARD 2 FROM c"), [first[1].clone(), first[0].clone()]);
    assert_eq!(ann.column("FETCH ALL FROM c").len(), 7);
    ann.run("COMMIT");

    let mut admin = database.admin();
    let role = database.role_name("ann");
    admin.run("CREATE VIEW found WITH (security_invoker = true) AS SELECT uri, rank FROM rag_search('coffee', k => 3, mode => 'keyword')");
    admin.run(&format!("GRANT SELECT ON found TO {role}"));
    assert_eq!(ann.column("SELECT uri FROM found"), ["espresso"]);
    let counted = ann.count("SELECT count(*) FROM rag.document d JOIN rag_search('water', k => 8) s ON s.document_id = d.id WHERE d.uri <> s.title OR s.title IS NULL");
    assert_eq!(counted, 8);
    ann.run("SELECT 1 FROM rag_search('water', k => 8) LIMIT 1");
    ann.run("SET max_parallel_workers_per_gather = 4; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0");
    assert_eq!(
        ann.count("SELECT count(*) FROM rag.chunk c, rag_search('water', k => 8) s WHERE s.chunk_id = c.id"),
        8
    );
    assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), 8);
}

#[test]
fn a_search_sees_what_its_own_statement_sees() {
    let database = Database::new("snapshot");
    let mut ann = corpus(&database, "ann");
    let mut other = database.connect(&database.role_name("ann"));
    ann.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    other.run("DELETE FROM rag.document WHERE uri = 'tide'");
    other.ingest("A second espresso.", "second");
    assert_eq!(ann.column("SELECT uri FROM rag_search('espresso', mode => 'keyword')"), ["espresso"]);
    assert_eq!(ann.column("SELECT uri FROM rag_search('tide', mode => 'keyword')"), ["tide"]);
    ann.run("COMMIT");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('espresso', mode => 'keyword')"), 2);
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('tide', mode => 'keyword')"), 0);
}

#[test]
fn without_the_engine_keywords_still_answer_and_say_so() {
    let cluster =
        Cluster::builder("engine_down").setting("rag_ext.engine_path", "/nonexistent/rag-engine").start();
    let working = Cluster::builder("engine_up").start();
    let database = working.database("up");
    let mut ann = corpus(&database, "ann");
    let engine = working.running_engine();
    // Stopped, it neither answers nor is restarted at once.
    engine.signal(Signal::STOP);
    ann.run("SET statement_timeout = '1s'");
    ann.refuses("57014", "SELECT * FROM rag_search('a query that nobody asked before', mode => 'vector')");
    ann.run("RESET statement_timeout");
    engine.signal(Signal::CONT);

    working
        .connect("postgres", "postgres")
        .run("ALTER SYSTEM SET rag_ext.engine_path = '/nonexistent/rag-engine'");
    // It is the reload that ends the engine: killed before that, it could come back once more.
    working.reload();
    wait_until("the engine is gone", Duration::from_secs(60), || {
        Process::find(engine.pid).is_none() && working.engine().is_none()
    });
    ann.notices();
    let rows = ann.rows("SELECT uri, vector_score, details FROM rag_search('espresso coffee', k => 8)");
    assert_eq!(rows.len(), 1, "the keyword retriever's hits: {rows:?}");
    assert_eq!((rows[0][0].as_deref(), &rows[0][1]), (Some("espresso"), &None));
    let details = rows[0][2].as_ref().unwrap().to_lowercase();
    assert!(details.contains("fallback") && details.contains("engine"), "{details}");
    let warnings = ann.notices();
    assert!(warnings.iter().any(|w| w.message.contains("engine")), "{warnings:?}");
    let rows = ann.rows("SELECT uri, rerank_score, details FROM rag_search('espresso', mode => 'keyword', options => '{\"rerank\": true}')");
    assert_eq!((rows[0][0].as_deref(), &rows[0][1]), (Some("espresso"), &None));
    assert!(rows[0][2].as_ref().unwrap().contains("fused order"), "{rows:?}");
    ann.refuses("58000", "SELECT * FROM rag_search('espresso', mode => 'vector')");
    ann.refuses("58000", "SELECT rag_embed('espresso')");
    ann.refuses("58000", "SELECT * FROM rag_rerank('espresso', ARRAY['x'])");
    let answer = ann.json("SELECT rag_answer('How is espresso brewed?')");
    let diagnostics = answer["diagnostics"].to_string().to_lowercase();
    assert!(diagnostics.contains("engine"), "{answer:#}");
    // Shared words are no measure of support.
    assert_eq!((&answer["found"], &answer["method"]), (&true.into(), &"degraded".into()), "{answer:#}");
    assert!(answer["confidence"].is_null() && answer["citations"][0]["support"].is_null(), "{answer:#}");
    let warnings = answer["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|w| w.as_str().unwrap().starts_with("support stage unavailable")),
        "{answer:#}"
    );
    assert_eq!(
        ann.count("SELECT count(*) FROM rag_cite('How is espresso brewed?') WHERE found AND confidence IS NULL AND support IS NULL"),
        answer["citations"].as_array().unwrap().len() as i64
    );
    let refused = ann.json("SELECT rag_answer('How high does the zeppelin espresso fly at night?')");
    assert_eq!((&refused["found"], &refused["method"]), (&false.into(), &"degraded".into()), "{refused:#}");
    assert!(refused["confidence"].is_null(), "{refused:#}");
    let status = database.admin().value("SELECT rag_status()");
    assert!(status.contains("/nonexistent/rag-engine"), "{status}");
    assert!(!ann.value("SELECT rag_status()").contains("/nonexistent"), "paths are for superusers");
    assert_eq!(ann.value("SELECT running FROM rag.engine_status"), "f");

    let broken = cluster.database("broken");
    let status = broken.admin().value("SELECT rag_status()");
    assert!(status.contains("/nonexistent/rag-engine"), "{status}");
}
