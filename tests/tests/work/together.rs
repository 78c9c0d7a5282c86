//! Short documents, whose texts go to the model together.

use super::{LIMIT, measuring, vectors};
use rag_tests::{ChatReply, ChatStub, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;

/// Documents, and the text of the one that the model refuses.
const DOCUMENTS: usize = 7;
const REFUSED: &str = "This one is poison.";

fn vectors_but_of_one(request: &Value) -> (u16, String) {
    if request["input"].to_string().contains(REFUSED) { (422, "{}".into()) } else { vectors(request) }
}

#[test]
fn short_documents_are_embedded_together_and_one_that_is_refused_holds_up_no_other() {
    let stub = ChatStub::start(ChatReply::StatusBy(vectors_but_of_one));
    let (_models, cluster) = measuring("together", &stub);
    let cluster = cluster.start();
    let database = cluster.database("together");
    let mut ann = database.user("ann");
    let text = |n: usize| if n == 3 { REFUSED.to_owned() } else { format!("A note{}.", " more".repeat(n)) };
    let values: Vec<String> = (0..DOCUMENTS).map(|n| format!("('{}')", text(n))).collect();
    ann.run(&format!("INSERT INTO rag.document (content) VALUES {}", values.join(", ")));
    let done = "SELECT count(*) FROM rag.document WHERE status = 'done'";
    wait_until("all but one are done", LIMIT, || ann.count(done) == DOCUMENTS as i64 - 1);
    let together = |stub: &ChatStub| {
        let inputs = |request: &Value| request["input"].as_array().map_or(0, Vec::len);
        stub.requests().iter().map(inputs).max().unwrap_or(0)
    };
    assert!(together(&stub) > 1, "each went alone");

    stub.reply(ChatReply::StatusBy(vectors));
    wait_until("the last one is done", LIMIT, || ann.count(done) == DOCUMENTS as i64);
    let found: BTreeMap<String, f64> = database
        .admin()
        .rows(
            "SELECT c.content, (e.vector::real[])[2] / (e.vector::real[])[1]
             FROM rag.chunk c JOIN rag.embedding e ON e.chunk_id = c.id",
        )
        .into_iter()
        .map(|row| (row[0].clone().unwrap(), row[1].as_ref().unwrap().parse().unwrap()))
        .collect();
    assert_eq!(found.len(), DOCUMENTS);
    for (text, length) in found {
        // Vectors are kept in half precision.
        assert!((length / text.len() as f64 - 1.0).abs() < 0.01, "{text}: {length}");
    }
}
