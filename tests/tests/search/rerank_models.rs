//! Rerankers that a search names: one behind an endpoint, the chat model, and what becomes of the search where they fail or
//! hang.

use super::{TOPICS, corpus};
use rag_tests::{ChatReply, ChatStub, Cluster, Session, model_folder};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// All topics, by the names of their documents.
const QUERY: &str = "water bread coffee glacier volcano violin compass beehive";

/// Beyond any deadline that is set here, and far from how long a stub hangs.
const SOON: Duration = Duration::from_secs(60);

/// A folder of models with the reranker "remote", which is behind this stub.
fn models(stub: &ChatStub) -> TempDir {
    let endpoint = json!({ "url": stub.url(), "model": "acme", "api": "jina", "retries": 0 });
    let model = json!({ "kind": "reranker", "max_tokens": 128, "tokenizer": "ms-marco-MiniLM-L-12-v2", "endpoint": endpoint });
    model_folder("remote", &model)
}

fn cluster(name: &str, stub: &ChatStub, models: &TempDir) -> Cluster {
    let folders = format!("{}:$sharedir/rag_ext/models", models.path().display());
    Cluster::builder(name)
        .setting("rag_ext.model_path", &folders)
        .setting("rag_ext.llm_url", &stub.url())
        .setting("rag_ext.llm_model", "stub")
        .setting("rag_ext.llm_retries", "0")
        .setting("rag_ext.cache_size", "0")
        .start()
}

/// Uris in their order, the rerank scores, and the stage "rerank".
fn search(session: &mut Session, options: Value) -> (Vec<String>, Vec<Option<f64>>, Value) {
    let rows = session.rows(&format!(
        "SELECT uri, rerank_score, details FROM rag_search('{QUERY}', k => 8, options => '{options}')"
    ));
    let details: Value = serde_json::from_str(rows[0][2].as_ref().unwrap()).unwrap();
    let stages = details["stages"].as_array().unwrap();
    let stage = stages.iter().find(|stage| stage["stage"] == "rerank").cloned().unwrap_or_default();
    let uris = rows.iter().map(|row| row[0].clone().unwrap()).collect();
    (uris, rows.iter().map(|row| row[1].as_ref().map(|score| score.parse().unwrap())).collect(), stage)
}

/// Scores of an endpoint that finds later passages better.
fn rising(count: usize) -> ChatReply {
    let results: Vec<Value> =
        (0..count).map(|i| json!({ "index": i, "relevance_score": 0.1 + i as f64 / 100.0 })).collect();
    ChatReply::Status(200, json!({ "results": results }).to_string())
}

/// Scores of a chat model that finds later passages better.
fn chat_scores(scores: impl IntoIterator<Item = u32>) -> ChatReply {
    let scores: Vec<Value> =
        scores.into_iter().enumerate().map(|(i, score)| json!({ "n": i + 1, "score": score })).collect();
    ChatReply::Message(json!({ "scores": scores }).to_string())
}

#[track_caller]
fn falls_back(session: &mut Session, options: Value, fused: &[String], reason: &str) {
    session.notices();
    let started = Instant::now();
    let (found, scores, stage) = search(session, options);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    assert_eq!(found, fused, "the order from before the stage: {stage}");
    assert!(scores.iter().all(Option::is_none), "never a part of the scores: {scores:?}");
    assert_eq!(stage["fallback"], "fused order", "{stage}");
    assert!(stage["reason"].as_str().unwrap().contains(reason), "{stage}");
    let warnings = session.notices();
    assert!(warnings.iter().any(|w| w.message.contains("rerank stage unavailable")), "{warnings:?}");
}

#[test]
fn a_named_reranker_orders_the_hits_and_one_that_fails_leaves_them_as_they_were() {
    let stub = ChatStub::start(rising(TOPICS.len()));
    let models = models(&stub);
    let cluster = cluster("named", &stub, &models);
    let database = cluster.database("named");
    let mut ann = corpus(&database, "ann");
    let (fused, _, stage) = search(&mut ann, json!({}));
    assert_eq!((fused.len(), stage), (TOPICS.len(), Value::Null));

    let (found, scores, stage) = search(&mut ann, json!({ "rerank_model": "remote" }));
    let reversed: Vec<String> = fused.iter().rev().cloned().collect();
    assert_eq!((found, &stage["method"]), (reversed, &json!("remote")), "{stage}");
    assert!((scores[0].unwrap() - 0.17).abs() < 1e-6, "{scores:?}");
    let off = search(&mut ann, json!({ "rerank_model": "remote", "rerank": false }));
    assert_eq!((off.0, off.2), (fused.clone(), Value::Null));
    let (_, _, stage) = search(&mut ann, json!({ "rerank": true }));
    assert_eq!(stage["method"], "ms-marco-MiniLM-L-12-v2", "{stage}");

    stub.reply(ChatReply::Status(500, String::new()));
    falls_back(&mut ann, json!({ "rerank_model": "remote" }), &fused, "the rerank endpoint");
    stub.reply(ChatReply::Status(200, "{\"results\": [".into()));
    falls_back(&mut ann, json!({ "rerank_model": "remote" }), &fused, "no list of scores");
    stub.reply(rising(TOPICS.len() - 1));
    falls_back(&mut ann, json!({ "rerank_model": "remote" }), &fused, "no list of scores");
    stub.reply(ChatReply::Hang);
    ann.run("SET rag_ext.rerank_timeout = '300ms'");
    falls_back(&mut ann, json!({ "rerank_model": "remote" }), &fused, "rag_ext.rerank_timeout, 300 ms");
    ann.run("RESET rag_ext.rerank_timeout");
    falls_back(
        &mut ann,
        json!({ "rerank_model": "none-such" }),
        &fused,
        "model \"none-such\" does not exist",
    );
    let wrong = "SELECT * FROM rag_search('bread', options => '{\"rerank_model\": \"bge-small-en-v1.5\"}')";
    ann.refuses("22023", wrong);

    // An answer's search takes the same options, and goes on in the same way.
    let answer = ann.json("SELECT rag_answer('How is espresso brewed?', options => '{\"rerank_model\": \"none-such\", \"generate\": false}')");
    assert!(answer["warnings"].to_string().contains("none-such"), "{answer:#}");
    assert!(answer["answer"].as_str().unwrap().contains("hot water"), "{answer:#}");
}

#[test]
fn a_stopped_engine_costs_a_search_its_reranking_and_no_more_than_the_deadline() {
    let cluster = Cluster::builder("stopped").start();
    let database = cluster.database("stopped");
    let mut ann = corpus(&database, "ann");
    let engine = cluster.running_engine();
    let sql = "SELECT uri, rerank_score, details->'stages' FROM rag_search('the glacier', k => 8, mode => 'keyword', options => '{\"rerank\": true}')";
    assert!(ann.rows(sql)[0][1].is_some());
    ann.run("SET rag_ext.rerank_timeout = '300ms'");
    engine.signal(Signal::STOP);
    let started = Instant::now();
    let rows = ann.rows("SELECT uri, rerank_score, details->'stages' FROM rag_search('a moving glacier', k => 8, mode => 'keyword', options => '{\"rerank\": true}')");
    engine.signal(Signal::CONT);
    assert!(started.elapsed() < SOON);
    assert_eq!((rows[0][0].as_deref(), &rows[0][1]), (Some("glacier"), &None));
    assert!(rows[0][2].as_ref().unwrap().contains("fused order"), "{rows:?}");
}

#[test]
fn the_budget_of_pairs_is_that_of_the_call_then_the_setting_then_the_device() {
    let stub = ChatStub::start(rising(50));
    let models = models(&stub);
    let cluster = cluster("budget", &stub, &models);
    let database = cluster.database("budget");
    let mut ann = database.user("ann");
    ann.run("INSERT INTO rag.document (uri, content) SELECT 'd' || n, 'Ferry number ' || n || ' leaves the harbour.' FROM generate_series(1, 60) n");
    ann.settle();
    let mut scored = |options: Value, k: u32| {
        ann.count(&format!(
            "SELECT count(rerank_score) FROM rag_search('ferry harbour', k => {k}, options => '{options}')"
        ))
    };
    assert_eq!(scored(json!({ "rerank": true }), 60), 10, "on a CPU");
    assert_eq!(scored(json!({ "rerank_model": "remote" }), 60), 50, "elsewhere");
    assert_eq!(scored(json!({ "rerank": true, "rerank_limit": 12 }), 60), 12);
    stub.reply(chat_scores((0..15).map(|n| n % 11)));
    assert_eq!(scored(json!({ "rerank_model": "chat", "rerank_limit": 40 }), 60), 15, "of one prompt");
    ann.run("SET rag_ext.rerank_limit = 7");
    let mut scored = |options: &str| {
        ann.count(&format!(
            "SELECT count(rerank_score) FROM rag_search('ferry harbour', k => 60, options => '{options}')"
        ))
    };
    assert_eq!(scored("{\"rerank\": true}"), 7);
    assert_eq!(scored("{\"rerank\": true, \"rerank_limit\": 3}"), 3);
}

#[test]
fn a_chat_model_reranks_by_scores_that_are_checked() {
    let bad = ChatReply::Message("Passage 3 is the best.".into());
    let good = chat_scores([1, 2, 3, 10, 4, 4, 0, 5]);
    let stub = ChatStub::start(ChatReply::Turns(vec![bad.clone(), good]));
    let models = models(&stub);
    let cluster = cluster("chatting", &stub, &models);
    let database = cluster.database("chatting");
    let mut ann = corpus(&database, "ann");
    let (fused, ..) = search(&mut ann, json!({}));

    let (found, scores, stage) = search(&mut ann, json!({ "rerank_model": "chat" }));
    // Equal scores keep their order.
    let expected: Vec<String> = [3, 7, 4, 5, 2, 1, 0, 6].map(|place: usize| fused[place].clone()).to_vec();
    assert_eq!((found, &stage["method"], &stage["in"]), (expected, &json!("chat"), &json!(8)), "{stage}");
    assert!(scores[0].unwrap() > 0.9 && scores[7].unwrap() < 0.1, "{scores:?}");
    let requests = stub.requests();
    assert_eq!(requests.len(), 2, "one bad reply is asked for again");
    let schema = &requests[0]["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["required"], json!(["scores"]), "{:#}", requests[0]);
    let prompt = requests[0]["messages"][1]["content"].as_str().unwrap();
    assert_eq!(prompt.matches("<passage n=").count(), 8, "{prompt}");
    assert!(requests[1]["messages"][2]["content"].as_str().unwrap().contains("no JSON object"));

    stub.reply(bad);
    falls_back(&mut ann, json!({ "rerank_model": "chat" }), &fused, "the chat model's scores cannot be used");
    assert_eq!(stub.requests().len(), 4, "and only once again");
    stub.reply(ChatReply::Status(500, String::new()));
    falls_back(&mut ann, json!({ "rerank_model": "chat" }), &fused, "the chat endpoint");
    stub.reply(ChatReply::Hang);
    ann.run("SET rag_ext.rerank_timeout = '300ms'");
    falls_back(&mut ann, json!({ "rerank_model": "chat" }), &fused, "rag_ext.rerank_timeout, 300 ms");

    stub.reply(chat_scores([2, 9]));
    let rows = ann.column("SELECT index FROM rag_rerank('x', ARRAY['a', 'b'], '{\"model\": \"chat\"}')");
    assert_eq!(rows, ["2", "1"]);
    ann.refuses(
        "54000",
        "SELECT * FROM rag_rerank('x', array_fill('x'::text, ARRAY[16]), '{\"model\": \"chat\"}')",
    );
}
