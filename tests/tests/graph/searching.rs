//! What a search makes of the graph: further chunks, the same number of rows, and a row of the diagnostics.

use super::{stage, write_notes};
use rag_tests::{Database, Session, literal};

const QUESTION: &str = "At which pressure does the part open that the Coolant Pump is connected to?";

fn call(question: &str, options: &str) -> String {
    format!("rag_search({}, k => 3, mode => 'keyword', options => '{options}')", literal(question))
}

fn found(session: &mut Session, question: &str, options: &str) -> Vec<String> {
    session.column(&format!("SELECT uri FROM {} ORDER BY rank", call(question, options)))
}

#[test]
fn chunks_of_related_entities_and_linked_documents_are_found() {
    let database = Database::new("graph_found");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    let question = "What else has to do with the coolant?";
    assert_eq!(found(&mut ann, question, "{}"), ["plant/pump.md"]);
    let with = found(&mut ann, question, r#"{"graph": "on"}"#);
    assert_eq!(with[..2], ["plant/pump.md", "plant/FC-001-234.md"]);
    assert!(!with.iter().any(|uri| uri == "plant/canteen.md"), "{with:?}");
    let (out, method) = stage(&mut ann, &call(question, r#"{"graph": "on"}"#), "graph").unwrap();
    assert_eq!((out, method.contains("entities")), (2, true), "{method}");
    assert_eq!(stage(&mut ann, &call(question, r#"{"graph": "off"}"#), "graph"), None);
}

#[test]
fn auto_goes_by_the_question() {
    let database = Database::new("graph_auto");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    let auto = r#"{"graph": "auto"}"#;
    assert!(stage(&mut ann, &call(QUESTION, auto), "graph").is_some());
    assert!(stage(&mut ann, &call("Coolant Pump cellar", auto), "graph").is_none());
}

#[test]
fn as_many_rows_come_each_once_and_filters_hold() {
    let database = Database::new("graph_rows");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    for mode in ["keyword", "vector", "hybrid"] {
        for (k, options) in [
            (1, r#"{"graph": "on"}"#),
            (2, r#"{"graph": "on", "hops": 2}"#),
            (1000, r#"{"hops": 2, "graph": "on"}"#),
        ] {
            let call = format!(
                "rag_search({}, k => {k}, mode => '{mode}', options => '{options}')",
                literal(QUESTION)
            );
            let ids = ann.column(&format!("SELECT chunk_id FROM {call}"));
            let mut once = ids.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), ids.len(), "{mode} {k}");
            assert!(ids.len() <= k, "{mode} {k}");
            assert_eq!(
                ann.column(&format!("SELECT chunk_id FROM {call}")),
                ids,
                "the same call gives the same rows"
            );
            if mode != "keyword" {
                assert_eq!(ids.len(), k.min(4), "{mode} {k}");
            }
        }
    }
    let filtered = ann.column(&format!(
        "SELECT uri FROM rag_search({}, filter => '{{\"uri\": \"plant/pump.md\"}}', options => '{{\"graph\": \"on\", \"hops\": 2}}')",
        literal(QUESTION)
    ));
    assert_eq!(filtered, ["plant/pump.md"]);
}

#[test]
fn a_second_hop_searches_for_what_the_first_has_found() {
    let database = Database::new("graph_hop");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    let hop = r#"{"hops": 2}"#;
    assert_eq!(found(&mut ann, "coolant", "{}"), ["plant/pump.md"]);
    assert!(found(&mut ann, "coolant", hop).contains(&"plant/FC-001-234.md".to_owned()));
    assert_eq!(stage(&mut ann, &call("coolant", hop), "hop").unwrap().1, "entity");
    assert_eq!(stage(&mut ann, &call("soup", hop), "hop").unwrap().1, "none");
}

#[test]
fn a_search_goes_on_without_a_graph_that_fails() {
    let database = Database::new("graph_fails");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    let both = r#"{"graph": "on", "hops": 2}"#;
    let plain = found(&mut ann, "coolant", "{}");
    let role = database.role_name("ann");
    database.admin().run(&format!("REVOKE SELECT ON rag.entity_mention FROM {role}"));
    assert_eq!(found(&mut ann, "coolant", both), plain);
    for name in ["graph", "hop"] {
        let (_, fallback) = stage(&mut ann, &call("coolant", both), name).unwrap();
        assert!(fallback.starts_with("hits"), "{name}: {fallback}");
    }
    database.admin().run(&format!("GRANT SELECT ON rag.entity_mention TO {role}"));
    assert_ne!(found(&mut ann, "coolant", both), plain);
    ann.run("BEGIN READ ONLY");
    assert_ne!(found(&mut ann, "coolant", both), plain);
    ann.run("COMMIT");
}
