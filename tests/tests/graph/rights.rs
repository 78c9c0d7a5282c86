//! What a caller may not see adds nothing to what the graph gives them.

use super::NOTES;
use rag_tests::{Database, Session};

/// Everything that the graph gives a caller, but for ids and times.
fn given(session: &mut Session) -> Vec<Vec<Option<String>>> {
    let mut rows = session.rows("SELECT kind, name, relation, direction, strength, depth, uri FROM rag_related('coolant pump') ORDER BY 1, 2, 3, 7");
    rows.extend(session.rows("SELECT kind, name, relation, direction, strength, depth, uri FROM rag_related('plant/FC-001-234.md') ORDER BY 1, 2, 3, 7"));
    for question in ["coolant", "Which part is V-204 connected to?"] {
        for mode in ["keyword", "hybrid"] {
            rows.extend(session.rows(&format!(
                "SELECT rank, uri, score, keyword_rank, vector_rank,
                        (SELECT jsonb_agg(stage - 'ms') FROM jsonb_array_elements(details -> 'stages') stage)
                 FROM rag_search('{question}', mode => '{mode}', options => '{{\"graph\": \"on\", \"hops\": 2}}') ORDER BY rank"
            )));
        }
    }
    rows.extend(session.rows("SELECT key, kind, name, documents, chunks FROM rag.graph_entity ORDER BY 1"));
    rows.extend(
        session.rows("SELECT subject, relation, object, uri FROM rag.graph_relation ORDER BY 1, 2, 3, 4"),
    );
    rows.extend(session.rows("SELECT uri, kind, target FROM rag.graph_link ORDER BY 1, 2, 3"));
    rows
}

#[test]
fn who_does_not_see_the_linking_document_gets_nothing_from_it() {
    let database = Database::new("graph_hidden");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
    owner.run("SELECT rag_create_collection('open'), rag_create_collection('closed')");
    let put = |session: &mut Session, collection: &str, (uri, text): (&str, &str)| {
        session.run(&format!(
            "INSERT INTO rag.document (collection, uri, content) VALUES ('{collection}', '{uri}', $text${text}$text$)"
        ));
        session.settle();
    };
    for note in &NOTES[1..] {
        put(&mut owner, "open", *note);
    }
    owner.run(&format!("SELECT rag_grant('open', 'role:{bob}', 'read')"));
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'open')"));
    put(&mut reader, "default", ("bob.md", "Coolant is blue."));
    let before = given(&mut reader);
    put(&mut owner, "closed", NOTES[0]);
    assert_eq!(given(&mut reader), before);
    let linked = "SELECT count(*) FROM rag_related('plant/FC-001-234.md') WHERE uri = 'plant/pump.md'";
    assert_eq!(reader.count(linked), 0);
    assert!(owner.count(linked) > 0);
    let found = "SELECT count(*) FROM rag_search('coolant', mode => 'keyword', options => '{\"graph\": \"on\"}') WHERE uri = 'plant/FC-001-234.md'";
    assert_eq!((reader.count(found), owner.count(found)), (0, 1));
}

#[test]
fn a_policy_on_chunks_hides_what_they_name() {
    let database = Database::new("graph_policy");
    let (ann, bob) = (database.role("ann"), database.role("bob"));
    let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
    super::write_notes(&mut owner);
    owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
    reader.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
    let named = "SELECT count(*) FROM rag_related('coolant pump')";
    assert!(reader.count(named) > 0);
    database.admin().run(&format!(
        "SELECT rag_add_policy('rag.chunk', 'no_pumps', command => 'select',
             using_expression => $$current_user <> '{bob}' OR content !~ 'Pump'$$)"
    ));
    assert!(owner.count(named) > 0);
    assert_eq!(reader.count(named), 0);
    for table in [
        "entity_mention WHERE key = 'coolant pump'",
        "entity_relation",
        "document_link WHERE target = 'fc-001-234'",
    ] {
        assert_eq!(reader.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "{table}");
        assert!(owner.count(&format!("SELECT count(*) FROM rag.{table}")) > 0, "{table}");
    }
    assert!(reader.count("SELECT count(*) FROM rag.entity_mention WHERE key = 'v-204'") > 0);
}

#[test]
fn equal_names_of_two_owners_are_two_entities() {
    let database = Database::new("graph_owners");
    let (mut ann, mut bob) = (database.user("ann"), database.user("bob"));
    super::write_notes(&mut ann);
    let before = given(&mut ann);
    for (uri, text) in NOTES {
        bob.ingest(text, uri);
    }
    bob.ingest("The Coolant Pump depends on V-204 and on FC-001-234. See FC-001-234.", "more.md");
    assert_eq!(given(&mut ann), before);
    assert_eq!(ann.value("SELECT documents FROM rag.graph_entity WHERE key = 'coolant pump'"), "1");
    assert_eq!(bob.value("SELECT documents FROM rag.graph_entity WHERE key = 'coolant pump'"), "2");
    let mut admin = database.admin();
    let rows = "SELECT count(*) FROM rag.graph_entity WHERE key = 'coolant pump'";
    assert_eq!((admin.count(rows), ann.count(rows)), (2, 1));
}

#[test]
fn what_added_policies_hide_gives_nothing_to_a_search() {
    for (name, table, condition) in [
        ("graph_hidden_document", "rag.document", "uri IS DISTINCT FROM 'plant/pump.md'"),
        ("graph_hidden_chunk", "rag.chunk", "content !~ 'Pump'"),
    ] {
        let database = Database::new(name);
        let (ann, bob) = (database.role("ann"), database.role("bob"));
        let (mut owner, mut reader) = (database.connect(&ann), database.connect(&bob));
        for (uri, text) in &NOTES[1..] {
            owner.ingest(text, uri);
        }
        owner.run(&format!("SELECT rag_grant('default', 'role:{bob}', 'read')"));
        reader.run(&format!("SELECT rag_accept('role:{ann}', 'default')"));
        database.admin().run(&format!(
            "SELECT rag_add_policy('{table}', 'no_pumps', command => 'select',
                 using_expression => $$current_user <> '{bob}' OR {condition}$$)"
        ));
        let before = given(&mut reader);
        owner.ingest(NOTES[0].1, NOTES[0].0);
        assert_eq!(given(&mut reader), before, "{table}");
        assert!(owner.count("SELECT count(*) FROM rag_related('coolant pump')") > 0);
    }
}
