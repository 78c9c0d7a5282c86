//! What is made of ranked chunks: lists weighed, near-duplicates removed, sources preferred, chunks widened.

use super::corpus;
use rag_tests::{Database, Session};
use serde_json::Value;

const BOILER: &str = "Drain the boiler before the first frost, close the valve behind the pump, and leave the tap of the \
    garden open until spring, so that what is left in the pipe may expand without harm to the brass.";

/// The stage of a name in the diagnostics of a search, which must have found something.
fn stage(session: &mut Session, search: &str, name: &str) -> Value {
    let details = session.json(&format!("SELECT details FROM {search} LIMIT 1"));
    let stages = details["stages"].as_array().unwrap();
    stages
        .iter()
        .find(|stage| stage["stage"] == name)
        .unwrap_or_else(|| panic!("no {name} in {details}"))
        .clone()
}

#[test]
fn near_duplicates_give_way_to_the_next_ones() {
    let database = Database::new("near_duplicates");
    let mut ann = corpus(&database, "ann");
    for n in 0..130 {
        // Ends and commas differ, words with digits do not.
        let text = if n % 2 == 0 { BOILER.to_owned() } else { BOILER.replace("the brass", "any brass") };
        ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('copy{n}', '{text}')"));
    }
    ann.run("INSERT INTO rag.document (uri, content) VALUES ('other', 'The boiler of the ship is fired with coal.')");
    ann.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('code', '{BOILER} See FC-001-234.')"));
    ann.settle();
    for mode in ["keyword", "vector", "hybrid"] {
        let search = |k: i32, options: &str| {
            format!("rag_search('boiler', k => {k}, mode => '{mode}', options => '{options}')")
        };
        let found = ann.column(&format!("SELECT uri FROM {} ORDER BY rank", search(3, "{}")));
        assert_eq!(found.iter().filter(|uri| uri.starts_with("copy")).count(), 1, "{mode}: {found:?}");
        for uri in ["other", "code"] {
            assert!(found.iter().any(|found| found == uri), "{mode}: {found:?}");
        }
        // Where there is nothing else they make up the number: ten documents and the 129 other copies.
        let removed = stage(&mut ann, &search(20, "{}"), "near_duplicates");
        assert_eq!(removed["out"], 20, "{mode}: {removed}");
        assert!(removed["in"].as_u64() > removed["out"].as_u64(), "{mode}: {removed}");
        let stages = ann.json(&format!(
            "SELECT details FROM {} WHERE rank = 1",
            search(3, r#"{"near_duplicates": "keep"}"#)
        ));
        assert!(!stages.to_string().contains("near_duplicates"), "{mode}: {stages}");
    }
}

/// What removes a near-duplicate must be the caller's to see.
#[test]
fn a_hidden_text_removes_nothing() {
    let database = Database::new("hidden_duplicates");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    for session in [&mut ann, &mut bob] {
        session.ingest(BOILER, "boiler");
    }
    for mode in ["keyword", "vector", "hybrid"] {
        let search = format!("rag_search('boiler', mode => '{mode}')");
        assert_eq!(ann.count(&format!("SELECT count(*) FROM {search}")), 1);
        let stage = stage(&mut ann, &search, "near_duplicates");
        assert_eq!((&stage["in"], &stage["out"]), (&1.into(), &1.into()), "{mode}");
    }
}

#[test]
fn fusion_says_by_which_rule_the_lists_were_weighed() {
    let database = Database::new("weights");
    let mut ann = corpus(&database, "ann");
    ann.run("SELECT rag_create_collection('geigen', language => 'german')");
    ann.run("INSERT INTO rag.document (collection, uri, content) VALUES ('geigen', 'geige', 'Eine Geige hat vier Saiten.')");
    ann.settle();
    let mut method = |query: &str, arguments: &str| {
        stage(&mut ann, &format!("rag_search('{query}'{arguments})"), "fusion")["method"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(method("strings of a violin", ""), "weighted, by agreement");
    assert_eq!(method("Geige", ", collection => 'geigen'"), "weighted, by language");
    assert_eq!(
        method("Wie viele Saiten hat die Geige, und womit werden sie gestrichen?", ""),
        "weighted, by language"
    );
    assert_eq!(method("strings", r#", options => '{"keyword_weight": 0.3}'"#), "weighted, as given");
    assert_eq!(method("strings", r#", options => '{"fusion": "rrf"}'"#), "rrf");
}

#[test]
fn a_source_that_is_named_in_the_query_is_preferred_if_asked_for() {
    let database = Database::new("source_boost");
    let mut ann = database.user("ann");
    ann.ingest("Valves are closed before the first frost of the year.", "https://host/manuals/heating.md");
    ann.ingest("Valves are closed in winter, before the first frost.", "https://host/heating/garden.md");
    let search = |boost: f64| {
        format!(
            "rag_search('valves heating frost', mode => 'keyword', options => '{{\"source_boost\": {boost}, \"near_duplicates\": \"keep\"}}')"
        )
    };
    let first = ann.value(&format!("SELECT uri FROM {} WHERE rank = 1", search(0.5)));
    assert_eq!(first, "https://host/manuals/heating.md");
    assert_eq!(stage(&mut ann, &search(0.5), "source_boost")["out"], 1);
    let score = ann.float(&format!("SELECT score FROM {} WHERE rank = 1", search(0.5)));
    assert!(score > 1.0 && score <= 1.5, "{score}");
}

#[test]
fn parents_are_returned_once_and_are_what_the_document_says() {
    let database = Database::new("small_to_big");
    let mut ann = database.user("ann");
    ann.run(
        r#"SELECT rag_create_collection('small', options => '{"chunking": {"size": 24, "overlap": 0}}')"#,
    );
    let section = |name: &str, n: usize| {
        let sentence =
            |at: usize| format!("The {name} of house {at} has a valve that is closed in winter number {at}.");
        format!("# {name}\n\n{}\n\n", (0..n).map(sentence).collect::<Vec<_>>().join(" "))
    };
    let text = format!("{}{}", section("Boiler", 8), section("Pump", 8));
    ann.run(&format!(
        "INSERT INTO rag.document (collection, uri, content) VALUES ('small', 'house', '{text}')"
    ));
    ann.settle();
    let search = |context: &str, more: &str| {
        format!(
            "rag_search('closed valve', 'small', k => 20, options => '{{\"context\": \"{context}\"{more}}}')"
        )
    };
    let rows = |ann: &mut Session, search: &str| ann.count(&format!("SELECT count(*) FROM {search}"));
    let chunks = rows(&mut ann, &search("chunk", ""));
    assert!(chunks > 6, "{chunks}");
    assert_eq!(rows(&mut ann, &search("section", "")), 2);
    let windows = rows(&mut ann, &search("window", ""));
    assert!(windows > 2 && windows < chunks, "{windows} of {chunks}");
    for context in ["section", "window"] {
        let wrong = ann.count(&format!(
            "SELECT count(*) FROM {} r JOIN rag.document d ON d.id = r.document_id
             WHERE r.content <> substr(d.text, r.char_from + 1, r.char_to - r.char_from)",
            search(context, "")
        ));
        assert_eq!(wrong, 0, "{context}");
    }
    let found = ann.column(&format!("SELECT content FROM {}", search("section", "")));
    assert!(
        found.iter().all(|content| content.starts_with("# ") && content.contains("house 7")),
        "{found:?}"
    );
    // One section has some 170 tokens.
    assert_eq!(rows(&mut ann, &search("section", ", \"context_tokens\": 1")), 1);
    assert_eq!(rows(&mut ann, &search("section", ", \"context_tokens\": 10000")), 2);
    assert_eq!(stage(&mut ann, &search("section", ""), "context")["method"], "section");
}

/// Three hundred copies come before what differs, in each mode; so do sections of many chunks.
#[test]
fn what_comes_behind_many_near_duplicates_makes_up_k() {
    let database = Database::new("refill");
    let mut ann = database.user("ann");
    ann.run(&format!(
        "INSERT INTO rag.document (uri, content)
         SELECT 'copy' || n, CASE n % 2 WHEN 0 THEN '{BOILER}' ELSE replace('{BOILER}', 'the brass', 'any brass') END FROM generate_series(1, 300) n;
         INSERT INTO rag.document (uri, content)
         SELECT 'other' || n, 'Number ' || n || ': ' || w || ' is stored far away from any boiler, together with ' || n * 17 || ' other things.'
         FROM unnest(ARRAY['wool', 'flour', 'paint', 'paper', 'glass', 'sugar', 'cork', 'timber', 'leather', 'chalk', 'honey', 'linen']) WITH ORDINALITY t (w, n)"
    ));
    ann.settle();
    let query = "Drain the boiler before the first frost, close the valve behind the pump";
    for mode in ["keyword", "vector", "hybrid"] {
        for candidates in [5, 100] {
            let search = |k: usize| {
                format!(
                    "SELECT uri FROM rag_search('{query}', k => {k}, mode => '{mode}', options => '{{\"candidates\": {candidates}}}')"
                )
            };
            // One copy and all the others; then copies, where nothing else makes up the number.
            for k in [1, 5, 13] {
                let found = ann.column(&search(k));
                let copies = found.iter().filter(|uri| uri.starts_with("copy")).count();
                assert_eq!((found.len(), copies), (k, 1), "{mode}, {candidates}: {found:?}");
            }
            for k in [20, 400] {
                let found = ann.column(&search(k));
                let others = found.iter().filter(|uri| uri.starts_with("other")).count();
                assert_eq!((found.len(), others), (k.min(312), 12), "{mode}, {candidates}: {found:?}");
            }
        }
    }
    let answer = ann.json(&format!(
        "SELECT rag_answer('{query}?', options => '{{\"k\": 13, \"min_support\": 0, \"generate\": false}}')"
    ));
    let context =
        answer["diagnostics"].as_array().unwrap().iter().find(|stage| stage["stage"] == "context").unwrap();
    assert_eq!(context["out"], 13, "{answer:#}");
}

#[test]
fn sections_of_many_chunks_leave_room_for_the_next_ones() {
    let database = Database::new("refill_sections");
    let mut ann = database.user("ann");
    ann.run(
        "SELECT rag_create_collection('cut', options => '{\"chunking\": {\"size\": 32, \"overlap\": 0}}')",
    );
    let long: String = (0..120)
        .map(|n| {
            format!("The boiler of berth {n} is fired with coal number {}, and the boiler steams. ", n * 13)
        })
        .collect();
    ann.run(&format!(
        "INSERT INTO rag.document (collection, uri, content) VALUES ('cut', 'long', '# Boilers\n\n{long}');
         INSERT INTO rag.document (collection, uri, content)
         SELECT 'cut', 'short' || n, 'Store ' || n || ' of wood number ' || n * 7 || ' is far from a boiler.' FROM generate_series(1, 6) n"
    ));
    ann.settle();
    for mode in ["keyword", "vector", "hybrid"] {
        let search = format!(
            "SELECT uri FROM rag_search('boiler', 'cut', k => 5, mode => '{mode}', options => '{{\"context\": \"section\"}}')"
        );
        let found = ann.column(&search);
        assert_eq!(found.len(), 5, "{mode}: {found:?}");
        let mut distinct = found.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 5, "{mode}: {found:?}");
    }
}
