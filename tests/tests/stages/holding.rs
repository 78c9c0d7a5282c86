//! Whoever holds a table that a search does not read holds up no search, not even the first one of a session.

use super::{Place, cluster, search};
use rag_tests::{ChatReply, ChatStub};
use serde_json::json;

/// What a plain search reads: documents and what is made of them, and who may see what.
const NEEDED: [&str; 14] = [
    "accepted_collection",
    "added_policy",
    "attachment",
    "builtin_policy",
    "chunk",
    "collection",
    "collection_grant",
    "document",
    "domain",
    "embedding",
    "gateway",
    "section",
    "segment",
    "vector_space",
];

#[test]
fn a_search_waits_for_no_table_that_it_does_not_read() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("held", &stub);
    let place = Place::of(&cluster, "held");
    let plain = search(&mut place.session(), "hybrid", &json!({})).0;
    let mut admin = place.database.admin();
    let tables = admin.column(
        "SELECT relname FROM pg_class WHERE relnamespace = 'rag'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition",
    );
    for needed in NEEDED {
        assert!(tables.iter().any(|table| table == needed), "{needed}");
    }
    let others: Vec<&String> = tables.iter().filter(|table| !NEEDED.contains(&table.as_str())).collect();
    for named in [
        "feedback",
        "query_log",
        "answer_log",
        "acronym",
        "mined_acronym",
        "job",
        "entity_mention",
        "metadata_value",
    ] {
        assert!(others.iter().any(|table| *table == named), "{named}");
    }
    let mut waited = Vec::new();
    for table in others {
        admin.run(&format!("BEGIN; LOCK TABLE rag.{table} IN ACCESS EXCLUSIVE MODE"));
        // A new session knows nothing yet.
        let mut session = place.session();
        session.run("SET rag_ext.query_deadline = '500ms'");
        let found = session.try_rows(&super::call("hybrid", &json!({})));
        match found {
            Err(failure) => waited.push(format!("rag.{table}: {failure}")),
            Ok(rows) => {
                let found: Vec<String> =
                    rows.into_iter().map(|mut row| row.swap_remove(0).unwrap()).collect();
                assert_eq!(found, plain, "rag.{table} is held");
            }
        }
        admin.run("ROLLBACK");
    }
    assert!(waited.is_empty(), "{waited:#?}");
}

#[test]
fn where_added_policies_cannot_be_compared_a_search_refuses_in_time() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("compared", &stub);
    let place = Place::of(&cluster, "compared");
    let mut admin = place.database.admin();
    admin.run("SELECT rag_add_policy('rag.feedback', 'extra', 'owner IS NOT NULL', command => 'select')");
    let plain = search(&mut place.session(), "hybrid", &json!({})).0;
    let mut knowing = place.session();
    search(&mut knowing, "hybrid", &json!({}));
    for table in ["feedback", "added_policy"] {
        admin.run(&format!("BEGIN; LOCK TABLE rag.{table} IN ACCESS EXCLUSIVE MODE"));
        let mut session = place.session();
        session.run("SET rag_ext.query_deadline = '500ms'");
        let refused = session.refuses("55000", &super::call("hybrid", &json!({})));
        assert!(refused.message.contains("rag_ext.query_deadline, 500 ms"), "{refused}");
        assert!(refused.detail.contains("lock") && !refused.hint.is_empty(), "{refused}");
        // Who has compared them does not ask again.
        assert_eq!(search(&mut knowing, "hybrid", &json!({})).0, plain);
        admin.run("ROLLBACK");
        assert_eq!(search(&mut session, "hybrid", &json!({})).0, plain);
    }
}
