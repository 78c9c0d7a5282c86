//! Steps without a model: decomposition by rules, and spelling.

use super::{found, stage};
use rag_tests::{Database, Session};

fn corpus(database: &Database<'_>, name: &str) -> Session {
    let mut session = database.user(name);
    for (uri, text) in [
        ("arrays", "The limits of arrays: six dimensions, and no more than a gigabyte of elements in all."),
        ("ranges", "Ranges have limits, too: what they contain has an order, and they are stored whole."),
        ("glacier", "A glacier moves downhill and grinds the rock beneath it."),
        ("river", "A river carries sand down to the sea."),
    ] {
        session.ingest(text, uri);
    }
    session
}

#[test]
fn compound_questions_come_apart_and_are_fused() {
    let database = Database::new("compound");
    let mut ann = corpus(&database, "ann");
    let question = "What are the limits of arrays and ranges?";
    for (options, mode) in [
        (r#"{"decompose": "on"}"#, "hybrid"),
        (r#"{"decompose": "auto"}"#, "keyword"),
        (r#"{"decompose": "auto", "fusion": "rrf"}"#, "vector"),
    ] {
        let told = stage(&mut ann, question, mode, options, "decompose").unwrap();
        assert_eq!(told["method"], "rules: limits of arrays; limits of ranges", "{told}");
        let fused = stage(&mut ann, question, mode, options, "queries").unwrap();
        assert!(fused["method"].as_str().unwrap().ends_with("of 3 queries"), "{fused}");
        let mut uris = found(&mut ann, question, mode, options);
        uris.truncate(2);
        uris.sort();
        assert_eq!(uris, ["arrays", "ranges"], "{mode}");
    }
    // As many as are wanted, from 0 to 1, in falling order.
    let scores = ann.column(&format!(
        "SELECT score FROM rag_search('{question}', k => 4, options => '{{\"decompose\": \"on\"}}')"
    ));
    let scores: Vec<f64> = scores.iter().map(|score| score.parse().unwrap()).collect();
    assert_eq!(scores.len(), 4);
    assert!(
        scores.windows(2).all(|pair| pair[0] >= pair[1]) && scores[0] <= 1.0 && scores[3] >= 0.0,
        "{scores:?}"
    );

    // What is not compound is run as it is.
    let plain = |session: &mut Session, options: &str| {
        session.rows(&format!(
            "SELECT uri, score FROM rag_search('How does a glacier move?', k => 4, options => '{options}')"
        ))
    };
    let as_ever = plain(&mut ann, "{}");
    for step in ["on", "auto"] {
        let options = format!(r#"{{"decompose": "{step}"}}"#);
        assert_eq!(plain(&mut ann, &options), as_ever);
        let told = stage(&mut ann, "How does a glacier move?", "hybrid", &options, "decompose").unwrap();
        assert_eq!((&told["method"], &told["out"]), (&"rules: one question".into(), &0.into()), "{told}");
        assert_eq!(stage(&mut ann, "How does a glacier move?", "hybrid", &options, "queries"), None);
    }
}

#[test]
fn misspelt_words_find_what_was_meant_and_nothing_of_others() {
    let database = Database::new("spelling");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let mut owner = database.connect(&ann);
    let mut other = corpus(&database, "carl");
    owner.ingest("A glacier moves downhill.", "glacier");
    owner.ingest("A river carries sand.", "river");
    let on = r#"{"spelling": "on"}"#;
    assert!(found(&mut owner, "glaceir", "keyword", "{}").is_empty());
    assert_eq!(found(&mut owner, "glaceir", "keyword", on), ["glacier"]);
    let told = |session: &mut Session, query: &str, options: &str| {
        stage(session, query, "hybrid", options, "spelling").unwrap()
    };
    let corrected = told(&mut owner, "the glaceir", on);
    assert_eq!(
        (&corrected["method"], &corrected["in"]),
        (&"glaceir = glacier".into(), &1.into()),
        "{corrected}"
    );
    // Known words, names of several parts, and what is quoted stay.
    for query in ["glacier river", "\"glaceir\" river", "FC-001 river", "the river"] {
        assert_eq!(told(&mut owner, query, on)["method"], serde_json::Value::Null, "{query}");
    }
    // The gate of auto: at least as many words are known as are not.
    let auto = r#"{"spelling": "auto"}"#;
    assert_eq!(told(&mut owner, "glaceir river", auto)["method"], "glaceir = glacier");
    assert_eq!(told(&mut owner, "glaceir rivre", auto)["method"], serde_json::Value::Null);

    // Somebody else's dictionary is none.
    let mut stranger = database.connect(&bob);
    stranger.ingest("A bakery sells sourdough bread.", "bread");
    assert_eq!(told(&mut stranger, "glaceir bread", on)["method"], serde_json::Value::Null);
    assert!(found(&mut stranger, "glaceir", "keyword", on).is_empty());
    other.ingest("Dimensoins are misspelt here.", "misspelt");
    assert_eq!(told(&mut other, "dimensoins", on)["method"], serde_json::Value::Null);

    // Where policies may hide parts of documents, nothing is corrected.
    database.admin().run(
        "SELECT rag_add_policy('rag.chunk', 'no_rivers', command => 'select', using_expression => $$content NOT LIKE '%river%'$$)",
    );
    let left_out = told(&mut owner, "glaceir moves", on);
    assert!(left_out["method"].as_str().unwrap().starts_with("left out"), "{left_out}");
    assert!(found(&mut owner, "glaceir", "keyword", on).is_empty());
}
