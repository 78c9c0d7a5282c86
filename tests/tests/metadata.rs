//! What is found out about documents, by which rules, for whom; and filters over it.

#![allow(clippy::unwrap_used)]

use rag_tests::{Database, Session, Witness, literal, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

const LETTER: &str = "Zürich, 3. März 2024\n\nDie Muster & Söhne GmbH & Co. KG hat der Beispiel AG am 01.02.2024 geschrieben, \
dass der Vertrag FC-001-234 und das Urteil des Gerichts vorliegen. Der Vertrag gilt bis 2025-12-31. \
Frau Anna von Arnim hat den Vertrag geprüft.";

fn extracted(session: &mut Session, uri: &str) -> Value {
    session.json(&format!("SELECT extracted FROM rag.document WHERE uri = {}", literal(uri)))
}

fn found(session: &mut Session, filter: &Value) -> Vec<String> {
    session.column(&format!(
        "SELECT uri FROM rag_search('letter', k => 1000, mode => 'keyword', filter => {}) ORDER BY uri",
        literal(&filter.to_string())
    ))
}

#[test]
fn a_document_gets_metadata_from_its_text_its_file_and_its_address() {
    let database = Database::new("extracted");
    let mut ann = database.user("ann");
    ann.ingest(LETTER, "https://www.example.org/in/FC-001-234_2024-03-05.md");
    let found = extracted(&mut ann, "https://www.example.org/in/FC-001-234_2024-03-05.md");
    assert_eq!(found["publication_id"], "FC-001-234");
    assert_eq!(found["codes"], json!(["FC-001-234"]));
    assert_eq!(found["date"], "2024-03-05");
    assert_eq!(found["dates"], json!(["2024-03-03", "2024-02-01", "2025-12-31"]));
    assert_eq!(found["companies"], json!(["Muster & Söhne GmbH & Co. KG", "Beispiel AG"]));
    assert_eq!(found["names"], json!(["Anna von Arnim"]));
    assert_eq!(found["topics"], json!(["law"]));
    assert_eq!(found["language"], "de");
    assert_eq!(found["source"], "example.org");
    assert_eq!(found["file_name"], "FC-001-234_2024-03-05.md");
    assert_eq!(found["words"], 44);
    for key in ["uploaded_at", "extracted_at"] {
        let sql = format!(
            "SELECT (extracted ->> '{key}')::timestamp - (now() AT TIME ZONE 'UTC') BETWEEN interval '-5 min' AND interval '5 min' FROM rag.document"
        );
        assert!(ann.holds(&sql), "{key}: {found}");
    }

    let html = "<html lang='en'><head><title>A letter</title><meta name='author' content='Bo Writer'></head><body><p>Short letter.</p></body></html>";
    ann.run(&format!("SELECT rag_ingest_bytes(convert_to({}, 'UTF8'), uri => 'letter.html', options => '{{\"sync\": true}}')", literal(html)));
    let found = extracted(&mut ann, "letter.html");
    assert_eq!((&found["author"], &found["language"]), (&json!("Bo Writer"), &json!("en")));
    assert_eq!(
        ann.json("SELECT file_metadata -> 'author' FROM rag.document WHERE uri = 'letter.html'"),
        "Bo Writer"
    );
}

#[test]
fn what_the_owner_says_wins_in_filters_and_both_are_kept() {
    let database = Database::new("layers");
    let mut ann = database.user("ann");
    for (uri, metadata) in [
        ("a.md", json!({})),
        ("b.md", json!({"language": "rm", "codes": null})),
        ("c.md", json!({"title": "Mine"})),
    ] {
        ann.run(&format!(
            "SELECT rag_ingest({}, 'Letter', {}, metadata => {}, options => '{{\"sync\": true}}')",
            literal(&format!("{LETTER} letter {uri}")),
            literal(uri),
            literal(&metadata.to_string())
        ));
    }
    assert_eq!(found(&mut ann, &json!({"language": "de"})), ["a.md", "c.md"]);
    assert_eq!(found(&mut ann, &json!({"language": "rm"})), ["b.md"]);
    assert_eq!(found(&mut ann, &json!({"codes": "FC-001-234"})), ["a.md", "c.md"]);
    assert_eq!(found(&mut ann, &json!({"codes": {"exists": false}})), ["b.md"]);
    assert_eq!(extracted(&mut ann, "b.md")["language"], "de");
    // The document's own fields are there where neither says anything.
    assert_eq!(found(&mut ann, &json!({"title": "Letter"})), ["a.md", "b.md"]);
    assert_eq!(found(&mut ann, &json!({"title": "Mine"})), ["c.md"]);
    assert_eq!(found(&mut ann, &json!({"uri": {"prefix": "b."}})), ["b.md"]);
    assert_eq!(
        found(&mut ann, &json!({"collection": "default", "created_at": {"gte": "2020-01-01"}})).len(),
        3
    );
    assert_eq!(found(&mut ann, &json!({"created_at": {"lt": "2020-01-01"}})).len(), 0);
    // A changed field or statement is a changed row.
    ann.run("UPDATE rag.document SET uri = 'z.md', metadata = '{\"language\": \"xx\"}' WHERE uri = 'a.md'");
    assert_eq!(found(&mut ann, &json!({"uri": "z.md", "language": "xx", "words": {"gt": 10}})), ["z.md"]);
    assert_eq!(found(&mut ann, &json!({"uri": "a.md"})).len(), 0);
    ann.run("DELETE FROM rag.document");
    assert_eq!(ann.count("SELECT count(*) FROM rag.metadata_value"), 0);
}

#[test]
fn rules_are_ones_own_and_changed_ones_reach_old_documents_without_embedding() {
    let database = Database::new("rules");
    let mut ann = database.user("ann");
    let mut bob = database.user("bob");
    for session in [&mut ann, &mut bob] {
        session.run(&format!(
            "SELECT rag_ingest({}, uri => 'a.md')",
            literal(&format!("{LETTER} Order 4711, letter"))
        ));
        session.settle();
    }
    ann.run(r"INSERT INTO rag.metadata_rule (name, key, pattern, type) VALUES ('order', 'order', 'Order (\d+)', 'number')");
    ann.run(
        "INSERT INTO rag.metadata_rule (name, key, kind, enabled) VALUES ('names', 'names', 'name', false)",
    );
    assert_eq!(extracted(&mut ann, "a.md")["order"], Value::Null);
    let before = ann.rows("SELECT id, ordinal FROM rag.chunk ORDER BY id");
    assert_eq!(ann.count("SELECT rag_reextract()"), 1);
    ann.settle();
    let found_now = extracted(&mut ann, "a.md");
    assert_eq!((&found_now["order"], &found_now["names"]), (&json!(4711), &Value::Null));
    assert_eq!(found_now["companies"].as_array().unwrap().len(), 2);
    assert_eq!(found(&mut ann, &json!({"order": {"between": [4000, 5000]}})), ["a.md"]);
    assert_eq!(ann.rows("SELECT id, ordinal FROM rag.chunk ORDER BY id"), before, "chunks are left alone");
    assert_eq!(ann.value("SELECT state || embedded FROM rag.job"), "done0");
    // New content after that is processed as a whole.
    ann.run("UPDATE rag.document SET content = 'A letter about Order 99 that replaces the other one.'");
    ann.settle();
    assert_eq!(extracted(&mut ann, "a.md")["order"], 99);
    assert_ne!(ann.rows("SELECT id, ordinal FROM rag.chunk ORDER BY id"), before);

    assert_eq!(bob.count("SELECT rag_reextract()"), 1);
    bob.settle();
    let of_bob = extracted(&mut bob, "a.md");
    assert_eq!((&of_bob["order"], &of_bob["names"]), (&Value::Null, &json!(["Anna von Arnim"])));
    assert_eq!(
        bob.count("SELECT count(*) FROM rag.metadata_rule WHERE NOT builtin"),
        0,
        "Ann's rules are hers"
    );
}

/// What is queued again is done by the stronger of the two kinds, whichever was asked for first.
#[test]
fn a_new_chunking_is_not_lost_behind_a_re_extraction() {
    let database = Database::new("kinds");
    let mut ann = database.user("ann");
    let text = "One sentence of some words stands here. ".repeat(60);
    ann.ingest(&text, "a.md");
    let sized = |size: usize| {
        format!(
            "SELECT rag_alter_collection('default', options => '{{\"chunking\": {{\"size\": {size}, \"overlap\": 0}}}}')"
        )
    };
    ann.run(&sized(400));
    ann.settle();
    let chunks = ann.count("SELECT count(*) FROM rag.chunk");
    let (smaller, extraction) = (sized(40), "SELECT rag_reextract()".to_owned());
    for asked in [[&extraction, &smaller], [&smaller, &extraction]] {
        ann.run("SELECT rag_pause()");
        for sql in asked {
            ann.run(sql);
        }
        assert_eq!(ann.value("SELECT state || ' ' || kind FROM rag.job"), "queued process");
        ann.run("SELECT rag_resume()");
        ann.settle();
        assert!(ann.count("SELECT count(*) FROM rag.chunk") > chunks, "{asked:?}");
        ann.run(&sized(400));
        ann.settle();
        assert_eq!(ann.count("SELECT count(*) FROM rag.chunk"), chunks);
    }
    ann.run(&extraction);
    ann.settle();
    assert_eq!(ann.value("SELECT state || ' ' || kind FROM rag.job"), "done extract");
}

#[test]
fn the_rules_of_a_collection_are_its_owners() {
    let database = Database::new("ownersrules");
    let mut ann = database.user("ann");
    let mut bob = database.user("bob");
    let (ann_role, bob_role) = (database.role_name("ann"), database.role_name("bob"));
    ann.run("SELECT rag_create_collection('pool', shared => true)");
    ann.run(&format!("SELECT rag_grant('pool', 'role:{bob_role}', 'write')"));
    ann.run("INSERT INTO rag.metadata_rule (name, collection, key, pattern, value) VALUES ('kind', 'pool', 'kind', '(?i)letter', 'letter')");
    bob.run(&format!("SELECT rag_ingest('A letter from Bob.', uri => 'b.md', collection => 'role:{ann_role}/pool', options => '{{\"sync\": true}}')"));
    bob.ingest("Another letter from Bob.", "own.md");
    assert_eq!(extracted(&mut ann, "b.md")["kind"], "letter");
    assert_eq!(extracted(&mut bob, "own.md")["kind"], Value::Null);
    ann.ingest("A letter elsewhere.", "elsewhere.md");
    assert_eq!(extracted(&mut ann, "elsewhere.md")["kind"], Value::Null, "the rule is of one collection");
}

#[test]
fn bad_rules_and_rules_of_others_are_refused() {
    let database = Database::new("badrules");
    let mut ann = database.user("ann");
    let bob = database.role("bob");
    let insert = "INSERT INTO rag.metadata_rule (name, key, pattern) VALUES";
    assert!(ann.refuses("22023", &format!("{insert} ('x', 'k', '(')")).hint.contains("regex"));
    ann.refuses("22023", &format!("{insert} ('x', 'k', '(?=a)')"));
    ann.refuses("22023", &format!("{insert} ('x', 'a b', 'a')"));
    ann.refuses("22023", "INSERT INTO rag.metadata_rule (name, key, kind) VALUES ('x', 'k', 'magic')");
    ann.refuses("54000", &format!("{insert} ('x', 'k', '{}')", "a".repeat(1001)));
    ann.refuses("54000", &format!(r"{insert} ('x', 'k', '(\w{{100}}){{100}}')"));
    ann.run(&format!("{insert} ('x', 'k', 'a')"));
    ann.refuses("22023", "UPDATE rag.metadata_rule SET pattern = '[' WHERE name = 'x'");
    ann.refuses("23505", &format!("{insert} ('x', 'other', 'b')"));
    ann.refuses(
        "42501",
        &format!(
            "INSERT INTO rag.metadata_rule (name, owner, key, pattern) VALUES ('y', 'role:{bob}', 'k', 'a')"
        ),
    );
    ann.refuses(
        "42501",
        "INSERT INTO rag.metadata_rule (name, owner, key, pattern) VALUES ('y', 'public', 'k', 'a')",
    );
    ann.refuses("42501", "UPDATE rag.metadata_rule SET builtin = true");
    ann.run("UPDATE rag.metadata_rule SET enabled = false");
    assert_eq!(
        ann.count("SELECT count(*) FROM rag.metadata_rule WHERE NOT enabled"),
        1,
        "built-in rules are not theirs"
    );
    ann.run("DELETE FROM rag.metadata_rule");
    assert!(ann.count("SELECT count(*) FROM rag.metadata_rule WHERE builtin") > 10);
    let mut admin = database.admin();
    admin.refuses("0A000", "UPDATE rag.metadata_rule SET enabled = false WHERE name = 'codes'");
    admin.run("INSERT INTO rag.metadata_rule (name, owner, key, pattern, multiple) VALUES ('codes', 'public', 'codes', 'X-\\d+', true)");
    assert_eq!(ann.json("SELECT rag_extract_metadata('FC-001-234 X-1') -> 'codes'"), json!(["X-1"]));
    ann.refuses(
        "54000",
        "INSERT INTO rag.metadata_rule (name, key, pattern) SELECT 'r' || n, 'k', 'a' FROM generate_series(1, 300) n",
    );
}

#[test]
fn rules_can_be_tried_out() {
    let database = Database::new("tryout");
    let mut ann = database.user("ann");
    let text = literal("Order 4711 of 3 May 2021.");
    let rules = literal(r#"{"rules": [{"key": "order", "pattern": "Order (\\d+)", "type": "number"}]}"#);
    let found = ann.json(&format!("SELECT rag_extract_metadata({text}, options => {rules})"));
    assert_eq!(found, json!({"words": 6, "order": 4711}));
    let found = ann.json(&format!("SELECT rag_extract_metadata({text}, uri => 'x/FC-1-2.md')"));
    assert_eq!((&found["date"], &found["source"]), (&json!("2021-05-03"), &json!("x")));
    assert_eq!(ann.count("SELECT count(*) FROM rag.document"), 0);
    ann.refuses("22023", &format!("SELECT rag_extract_metadata({text}, options => '{{\"rules\": [{{\"key\": \"k\", \"pattern\": \"(\"}}]}}')"));
    ann.refuses(
        "22023",
        &format!("SELECT rag_extract_metadata({text}, options => '{{\"rules\": [{{\"kez\": \"k\"}}]}}')"),
    );
    ann.refuses("22023", &format!("SELECT rag_extract_metadata({text}, options => '{{\"rule\": []}}')"));
    ann.refuses("42704", &format!("SELECT rag_extract_metadata({text}, collection => 'nowhere')"));
    ann.refuses("22004", "SELECT rag_extract_metadata(NULL)");
}

#[test]
fn a_slow_pattern_is_cancelled_and_terminated_and_gives_up_by_itself() {
    let database = Database::new("slowpattern");
    let mut ann = database.user("ann");
    // Each search looks as far ahead as it is let, with hundreds of states.
    let mut admin = database.admin();
    // Digests are as good as chance, and the same each time.
    admin.run("CREATE TABLE text AS SELECT string_agg(translate(md5(n::text), '0123456789abcdef', 'aaaaaaaabbbbbbbb'), '') AS text FROM generate_series(1, 8000) n");
    admin.run("GRANT SELECT ON text TO PUBLIC");
    let slow = "rag_extract_metadata((SELECT text FROM text), options => \
        '{\"rules\": [{\"key\": \"k\", \"pattern\": \"(?:[ab]*a[ab]{500}c)|b\", \"multiple\": true}]}')";
    ann.run("SET statement_timeout = '300ms'");
    ann.refuses("57014", &format!("SELECT {slow}"));
    ann.run("RESET statement_timeout");
    let found = ann.json(&format!("SELECT {slow}"));
    assert_eq!((&found["k"], &found["extraction_incomplete"]), (&json!(["b"]), &json!(true)));

    let mut witness = Witness::of(database.cluster());
    let bob = database.role("bob");
    for (function, sqlstate) in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")] {
        let mut session = database.connect(&bob);
        let pid = session.pid();
        let running = std::thread::spawn({
            let sql = format!("SELECT count({slow}) FROM generate_series(1, 1000)");
            move || session.error(&sql).code
        });
        // What the session did when it began was active, too.
        let is_active = format!(
            "SELECT count(*) FROM pg_stat_activity
             WHERE pid = {pid} AND state = 'active' AND query LIKE 'SELECT count(rag_extract_metadata%'"
        );
        wait_until("the pattern is being looked for", Duration::from_secs(60), || {
            admin.count(&is_active) == 1
        });
        admin.run(&format!("SELECT {function}({pid})"));
        let ended = running.join().unwrap();
        if function == "pg_cancel_backend" {
            assert_eq!(ended, sqlstate);
            continue;
        }
        // A client that finds the connection closed as it is told why keeps the former alone; the server's log has both.
        assert!([sqlstate, "closed"].contains(&ended.as_str()), "{ended}");
        wait_until("the log says why the session ended", Duration::from_secs(60), || {
            let log = database.cluster().log();
            let mut of_session = log.lines().filter(|line| line.contains(&format!("[{pid}] ")));
            of_session.any(|line| line.contains("terminating connection due to administrator command"))
        });
    }
    witness.assert_no_restart();
}

#[test]
fn filters_refuse_what_they_do_not_know_and_have_limits() {
    let database = Database::new("badfilters");
    let mut ann = database.user("ann");
    let search =
        |filter: &Value| format!("SELECT * FROM rag_search('x', filter => {})", literal(&filter.to_string()));
    assert!(ann.refuses("22023", &search(&json!({"a": {"like": "x"}}))).hint.contains("prefix"));
    ann.refuses("22023", &search(&json!([])));
    ann.refuses("22023", &search(&json!({"a": {"between": [1, 2, 3]}})));
    let wide: Vec<Value> = (0..300).map(|n| json!({"a": n})).collect();
    ann.refuses("54000", &search(&json!({"or": wide})));
    let deep = (0..20).fold(json!({"a": 1}), |inner, _| json!({"not": inner}));
    ann.refuses("54000", &search(&deep));
}

#[test]
fn a_filter_uses_indexes_under_row_level_security_and_leaves_k_results() {
    let database = Database::new("indexed");
    let mut ann = database.user("ann");
    let mut bob = database.user("bob");
    for (session, documents) in [(&mut ann, 20_000), (&mut bob, 2_000)] {
        // Rows as the workers leave them, without the engine's part.
        session.run(&format!(
            "INSERT INTO rag.document (uri, content, metadata)
             SELECT 'u' || n, 'x', jsonb_build_object('n', n, 'tag', 't' || n % 1000, 'day', date '2000-01-01' + n % 5000, 'flag', n % 2 = 0)
             FROM generate_series(1, {documents}) n"
        ));
    }
    let role = database.role_name("ann");
    database.admin().run(&format!(
        "ANALYZE rag.document; ANALYZE rag.metadata_value;
         ALTER ROLE {role} SET session_preload_libraries = 'auto_explain';
         ALTER ROLE {role} SET auto_explain.log_min_duration = 0;
         ALTER ROLE {role} SET auto_explain.log_analyze = on;
         ALTER ROLE {role} SET auto_explain.log_timing = off;
         ALTER ROLE {role} SET auto_explain.log_nested_statements = on;
         ALTER ROLE {role} SET auto_explain.log_level = notice"
    ));
    let mut ann = database.connect(&role);
    let mut plan = |filter: &Value| -> String {
        ann.notices();
        ann.run(&format!(
            "SELECT * FROM rag_search('x', mode => 'keyword', filter => {})",
            literal(&filter.to_string())
        ));
        let plans = ann.notices().into_iter().map(|notice| notice.message);
        let mut filters: Vec<String> =
            plans.filter(|plan| plan.contains("FROM rag.document d WHERE")).collect();
        assert_eq!(filters.len(), 1, "one statement for {filter}");
        filters.swap_remove(0)
    };
    for (filter, index, rows) in [
        (json!({"tag": "t7"}), "metadata_value_text", 20),
        (json!({"tag": {"prefix": "t99"}}), "metadata_value_text", 220),
        (json!({"n": {"gt": 100, "lte": 130}}), "metadata_value_number", 30),
        (json!({"n": {"in": [1, 2, 3]}}), "metadata_value_number", 3),
        (json!({"day": {"between": ["2000-02-01", "2000-02-03T12:00Z"]}}), "metadata_value_time", 12),
        (json!({"tag": "t7", "n": {"lt": 3000}}), "metadata_value_", 3),
    ] {
        let plan = plan(&filter);
        assert!(plan.contains(index), "{filter} without {index}:\n{plan}");
        assert!(!plan.contains("Seq Scan on metadata_value"), "{filter}:\n{plan}");
        // The first line of the plan tells how many documents pass.
        let passed = [format!("(actual rows={rows} "), format!("(actual rows={rows}.00 ")];
        let top = plan.lines().find(|line| line.contains("(actual")).unwrap_or_default();
        assert!(passed.iter().any(|passed| top.contains(passed)), "{filter} lets {rows} through:\n{plan}");
    }
}

#[test]
fn the_examples_of_the_documentation_run_and_find_something() {
    let database = Database::new("filterdocs");
    let mut ann = database.user("ann");
    let text = std::fs::read_to_string(rag_tests::repository().join("docs/filters.md")).unwrap();
    let blocks: Vec<&str> =
        text.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 4, "{} blocks", blocks.len());
    let (mut searches, mut found) = (0, 0);
    for statement in blocks.iter().flat_map(|block| block.split_inclusive(";\n")) {
        let rows = ann.rows(statement);
        if statement.contains("rag_search(") {
            searches += 1;
            found += usize::from(!rows.is_empty());
        }
    }
    assert!(searches >= 4 && found >= searches - 1, "{found} of {searches} searches found something");
}
