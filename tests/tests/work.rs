//! Background work that can be watched and steered: pausing, ordering, cancelling, retrying, deleting collections.

#![allow(clippy::unwrap_used)]

#[path = "work/cancelling.rs"]
mod cancelling;
#[path = "work/databases.rs"]
mod databases;
#[path = "work/dropping.rs"]
mod dropping;
#[path = "work/growing.rs"]
mod growing;
#[path = "work/holding.rs"]
mod holding;
#[path = "work/indexing.rs"]
mod indexing;
#[path = "work/merging.rs"]
mod merging;
#[path = "work/ordering.rs"]
mod ordering;
#[path = "work/pausing.rs"]
mod pausing;
#[path = "work/together.rs"]
mod together;
#[path = "work/waiting.rs"]
mod waiting;

use rag_tests::{Builder, ChatStub, Cluster, Session, model_folder};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// For what takes a moment where nobody is in the way.
const LIMIT: Duration = Duration::from_secs(180);

/// Times an action up to three times, until it was over within the limit: in one try, the machine may be busy with
/// something else.
#[track_caller]
fn assert_within(limit: Duration, what: &str, mut time: impl FnMut() -> Duration) {
    let mut tries = Vec::new();
    while tries.last().is_none_or(|took| *took >= limit) {
        assert!(tries.len() < 3, "{what}: {tries:?}");
        tries.push(time());
    }
}

/// Runs statements and says how long they took.
#[track_caller]
fn time(session: &mut Session, sql: &str) -> Duration {
    let start = Instant::now();
    session.run(sql);
    start.elapsed()
}

/// An expression for a text of about this many chunks, none like another: each is to be embedded.
fn long_text(chunks: usize, word: &str) -> String {
    format!(
        "(SELECT string_agg('The {word} measured river number ' || n || ' again and wrote its depth down. ', '')
          FROM generate_series(1, {}) n)",
        chunks * 26
    )
}

/// Has a collection hold this many short documents: those that it has not are put into it in one commit.
fn put(session: &mut Session, collection: &str, count: usize) {
    session.run(&format!(
        "INSERT INTO rag.document (collection, uri, content)
         SELECT '{collection}', 'n' || n, 'Note number ' || n || ' of {collection}.' FROM generate_series(1, {count}) n
         ON CONFLICT (collection, owner, uri) DO NOTHING"
    ));
}

/// `state` and SQLSTATE of the work on each document of a collection, with how many there are of each.
fn states(session: &mut Session, collection: &str) -> Vec<String> {
    session.column(&format!(
        "SELECT state || coalesce(' ' || sqlstate, '') || ' ' || count(*) FROM rag.job_status
         WHERE collection LIKE '%{collection}' GROUP BY state, sqlstate ORDER BY 1"
    ))
}

/// A vector that tells how long the text is.
fn vectors(request: &Value) -> (u16, String) {
    let vector = |(index, text): (usize, &Value)| json!({"index": index, "embedding": [1.0, text.as_str().unwrap().len()]});
    let data: Vec<Value> = request["input"].as_array().unwrap().iter().enumerate().map(vector).collect();
    (200, json!({ "data": data }).to_string())
}

/// A cluster whose embedding model is a stub that makes [`vectors`], and the folder of that model.
fn measuring(name: &str, stub: &ChatStub) -> (TempDir, Builder) {
    let models = model_folder(
        "measuring",
        &json!({
            "endpoint": {"url": stub.url(), "model": "measuring", "retries": 0},
            "dimension": 2, "max_tokens": 512, "tokenizer": "bge-small-en-v1.5",
        }),
    );
    let path = format!("{}:$sharedir/rag_ext/models", models.path().display());
    let cluster = Cluster::builder(name)
        .setting("rag_ext.embedding_model", "measuring")
        .setting("rag_ext.model_path", &path);
    (models, cluster)
}
