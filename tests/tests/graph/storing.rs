//! What is written of the graph, with its documents and never without them.

use super::{NOTES, write_notes};
use rag_tests::{Database, Session};

const TABLES: [&str; 3] = ["entity_mention", "entity_relation", "document_link"];

fn counts(session: &mut Session) -> [i64; 3] {
    TABLES.map(|table| session.count(&format!("SELECT count(*) FROM rag.{table}")))
}

/// Rows whose document or chunk is not there.
fn orphans(admin: &mut Session) -> i64 {
    TABLES
        .iter()
        .map(|table| {
            admin.count(&format!(
                "SELECT count(*) FROM rag.{table} t
                 WHERE NOT EXISTS (SELECT FROM rag.chunk c WHERE c.domain_id = t.domain_id AND c.id = t.chunk_id AND c.document_id = t.document_id)"
            ))
        })
        .sum()
}

#[test]
fn entities_relations_and_links_come_with_the_document() {
    let database = Database::new("graph_written");
    let mut ann = database.user("ann");
    write_notes(&mut ann);
    let entities =
        ann.column("SELECT kind || ' ' || key || ' ' || documents FROM rag.graph_entity ORDER BY 1");
    for entity in ["hardware coolant pump 1", "hardware v-204 2", "document_code fc-001-234 2"] {
        assert!(entities.iter().any(|found| found == entity), "{entity}: {entities:?}");
    }
    assert_eq!(
        ann.rows("SELECT subject, relation, object, uri FROM rag.graph_relation"),
        [["coolant pump", "connects_to", "v-204", "plant/pump.md"].map(|s| Some(s.to_owned())).to_vec()]
    );
    assert_eq!(
        ann.column("SELECT kind || ' ' || target || ' ' || strength FROM rag.graph_link WHERE uri = 'plant/pump.md' ORDER BY 1"),
        ["address plans/cellar.md 0.8", "code fc-001-234 0.9"]
    );
    let related = ann.column(
        "SELECT uri || ' ' || relation || ' ' || direction FROM rag_related('plant/pump.md') WHERE kind = 'document' AND relation = 'links_to' ORDER BY 1",
    );
    assert_eq!(related, ["plans/cellar.md links_to out", "plant/FC-001-234.md links_to out"]);
    let back = ann
        .column("SELECT uri || ' ' || direction FROM rag_related('plans/cellar.md') WHERE kind = 'document'");
    assert_eq!(back, ["plant/pump.md in"]);
    let entity = ann.rows("SELECT name, relation, direction, depth, uri FROM rag_related('the Coolant Pump') UNION ALL SELECT name, relation, direction, depth, uri FROM rag_related('coolant pump') WHERE kind <> 'document'");
    assert_eq!(
        entity,
        [["V-204", "connects_to", "out", "1", "plant/pump.md"].map(|s| Some(s.to_owned())).to_vec()]
    );
    let id = ann.value("SELECT id FROM rag.document WHERE uri = 'plans/cellar.md'");
    assert_eq!(ann.count(&format!("SELECT count(*) FROM rag_related('{id}') WHERE kind = 'document'")), 1);
}

#[test]
fn nothing_is_left_of_what_was_changed_deleted_or_rolled_back() {
    let database = Database::new("graph_orphans");
    let (mut ann, mut admin) = (database.user("ann"), database.admin());
    ann.run("BEGIN");
    write_notes(&mut ann);
    assert!(counts(&mut ann).iter().all(|count| *count > 0));
    ann.run("ROLLBACK");
    assert_eq!(counts(&mut admin), [0; 3]);
    write_notes(&mut ann);
    let before = counts(&mut ann);
    ann.ingest("The Coolant Pump is gone. Nothing else is.", "plant/pump.md");
    assert_eq!(ann.count("SELECT count(*) FROM rag.entity_relation"), 0);
    assert_eq!(ann.count("SELECT count(*) FROM rag.document_link"), 0);
    assert_eq!(orphans(&mut admin), 0);
    ann.ingest(NOTES[0].1, "plant/pump.md");
    assert_eq!(counts(&mut ann), before);
    ann.run("SELECT rag_create_collection('other')");
    ann.run("UPDATE rag.document SET collection = 'other' WHERE uri = 'plant/pump.md'");
    ann.settle();
    assert_eq!(counts(&mut ann), before);
    assert_eq!(orphans(&mut admin), 0);
    ann.run("DELETE FROM rag.document");
    assert_eq!(counts(&mut admin), [0; 3]);
    write_notes(&mut ann);
    admin.run("TRUNCATE rag.document CASCADE");
    assert_eq!(counts(&mut admin), [0; 3]);
}

#[test]
fn arguments_are_checked() {
    let database = Database::new("graph_arguments");
    let mut ann = database.user("ann");
    for call in [
        "rag_search('x', options => '{\"graph\": \"maybe\"}')",
        "rag_search('x', options => '{\"graph\": true}')",
        "rag_search('x', options => '{\"hops\": 3}')",
        "rag_related('x', options => '{\"k\": 0}')",
        "rag_related('x', options => '{\"depth\": 3}')",
        "rag_related('x', options => '{\"unknown\": 1}')",
        "rag_related(' ')",
    ] {
        ann.refuses("22023", &format!("SELECT * FROM {call}"));
    }
    ann.refuses("22004", "SELECT * FROM rag_related(NULL)");
    ann.refuses("42704", "SELECT * FROM rag_related('x', 'nowhere')");
    assert_eq!(ann.count("SELECT count(*) FROM rag_related('what nobody names')"), 0);
}
