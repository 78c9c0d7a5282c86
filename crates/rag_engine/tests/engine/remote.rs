//! Embedding models behind an endpoint, which a small HTTP server stands in for.

use crate::http::{Request, Server, TRICKLE, busy_then_too_large, http};
use crate::running::{EMBEDDING, Engine, settings};
use rag_wire::{FailureCode, Settings, TextRole};
use serde_json::{Value, json};

/// Six numbers that depend on the text, not normalised.
fn numbers(text: &str) -> Vec<f64> {
    (1..=6).map(|k| text.bytes().map(|b| f64::from(b) % (k as f64 + 1.5)).sum::<f64>() + k as f64).collect()
}

fn inputs(request: &Request) -> Vec<String> {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// As an endpoint answers, in an order of its own.
pub(crate) fn embeddings(request: &Request) -> Vec<u8> {
    let inputs = inputs(request);
    let item = |(index, text): (usize, &String)| json!({ "index": index, "embedding": numbers(text) });
    let data: Vec<Value> = inputs.iter().enumerate().rev().map(item).collect();
    http("200 OK", "", &json!({ "data": data, "model": "large" }).to_string()).into_bytes()
}

/// Settings with a model "remote" that is behind this server.
pub(crate) fn behind(server: &Server, folder: &tempfile::TempDir, more: Value) -> Settings {
    let model = folder.path().join("models/remote");
    std::fs::create_dir_all(&model).unwrap();
    std::fs::write(model.join("key"), "sesame-key\n").unwrap();
    let mut endpoint = json!({
        "url": format!("{}/v1", server.url), "model": "large", "api_key_file": "key", "batch": 4, "timeout_ms": 5000,
    });
    endpoint.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let ours = json!({
        "endpoint": endpoint, "dimension": 6, "max_tokens": 64, "query_prefix": "query: ", "license": "MIT",
    });
    std::fs::write(model.join("rag_model.json"), ours.to_string()).unwrap();
    let mut settings = settings();
    let tokenizer = format!("{}/{EMBEDDING}/tokenizer.json", settings.model_folders[0]);
    std::fs::copy(tokenizer, model.join("tokenizer.json")).unwrap();
    settings.model_folders.push(folder.path().join("models").to_str().unwrap().to_owned());
    settings
}

#[test]
fn texts_go_in_batches_and_vectors_come_back_in_order_and_normalised() {
    let server = Server::start(embeddings);
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server, &folder, json!({ "send_dimensions": true })));
    let texts = ["one", "two", "three", "four", "five", "two"];
    let found = engine.connect().embed(Some("remote"), TextRole::Passage, &texts).unwrap();
    assert_eq!((found.model.as_str(), found.dimension, found.values.len()), ("remote", 6, 36));
    for (text, vector) in texts.iter().zip(found.values.chunks(6)) {
        let expected = numbers(text);
        let length = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
        for (found, expected) in vector.iter().zip(expected) {
            assert!((f64::from(*found) - expected / length).abs() < 1e-6, "{text}");
        }
    }
    let requests = server.requests();
    assert_eq!(requests.iter().map(|r| inputs(r).len()).collect::<Vec<_>>(), [4, 1], "equal texts go once");
    assert!(requests[0].head.starts_with("POST /v1/embeddings HTTP/1.1"), "{}", requests[0].head);
    assert!(requests[0].head.to_lowercase().contains("authorization: bearer sesame-key"));
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!((&body["model"], &body["dimensions"]), (&json!("large"), &json!(6)));
    let model = engine.connect().models().into_iter().find(|model| model.name == "remote").unwrap();
    assert_eq!((model.dimension, model.max_tokens, model.problem), (6, 64, None));
    assert!(model.endpoint.unwrap().starts_with("large at 127.0.0.1:"));
    assert!(!engine.log().contains("sesame-key"));
}

#[test]
fn a_query_gets_its_prefix_and_is_asked_for_once() {
    let server = Server::start(embeddings);
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server, &folder, json!({})));
    let mut client = engine.connect();
    let ask = |client: &mut crate::running::Client| {
        client.embed(Some("remote"), TextRole::Query, &["where is it?"]).unwrap().values
    };
    let first = ask(&mut client);
    assert_eq!(ask(&mut client), first);
    let requests = server.requests();
    assert_eq!((requests.len(), inputs(&requests[0])), (1, vec!["query: where is it?".to_owned()]));
}

#[test]
fn a_text_beyond_the_limit_is_refused_and_not_sent() {
    let server = Server::start(embeddings);
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server, &folder, json!({})));
    let long = "river ".repeat(100);
    let failure = engine.connect().embed(Some("remote"), TextRole::Passage, &[&long]).unwrap_err();
    assert_eq!((failure.code, server.requests().len()), (FailureCode::LimitExceeded, 0), "{failure}");
}

#[test]
fn a_busy_endpoint_is_asked_again_and_one_that_finds_a_batch_too_large_with_less() {
    let server = Server::start(busy_then_too_large(|request| inputs(request).len(), embeddings));
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server, &folder, json!({})));
    let found = engine.connect().embed(Some("remote"), TextRole::Passage, &["one", "two", "three"]).unwrap();
    assert_eq!(found.values.len(), 18);
    assert_eq!(server.requests().iter().map(|r| inputs(r).len()).collect::<Vec<_>>(), [3, 3, 3, 1, 1, 1]);
}

#[test]
fn an_answer_that_does_not_fit_is_a_failure_in_words() {
    for (answer, code, words) in [
        (
            json!({ "data": [{ "index": 0, "embedding": [1, 2, 3] }] }),
            FailureCode::NotLoaded,
            "3 numbers per text, not 6",
        ),
        (json!({ "data": [] }), FailureCode::Provider, "no list of embeddings"),
        (
            json!({ "data": [
                { "index": 0, "embedding": [1, 2, 3, 4, 5, 6] },
                { "index": 0, "embedding": [6, 5, 4, 3, 2, 1] },
            ] }),
            FailureCode::Provider,
            "no list of",
        ),
        (
            json!({ "data": [{ "index": 7, "embedding": [1, 2, 3, 4, 5, 6] }] }),
            FailureCode::Provider,
            "no list of",
        ),
        (
            json!({ "data": [{ "index": 0, "embedding": [0, 0, 0, 0, 0, 0] }] }),
            FailureCode::Provider,
            "no list of",
        ),
        (json!({ "error": "sesame-key is wrong" }), FailureCode::Provider, "no list of embeddings"),
    ] {
        let body = answer.to_string();
        let server = Server::start(move |_| http("200 OK", "", &body).into_bytes());
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::with(behind(&server, &folder, json!({})));
        let failure = engine.connect().embed(Some("remote"), TextRole::Passage, &["one"]).unwrap_err();
        assert!(failure.code == code && failure.message.contains(words), "{failure:?}");
        assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
    }
}

#[test]
fn an_answer_that_trickles_in_is_given_up_as_a_whole() {
    let server = Server::start(|request| [TRICKLE, &embeddings(request)].concat());
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server, &folder, json!({ "timeout_ms": 1000, "retries": 0 })));
    let failure = engine.connect().embed(Some("remote"), TextRole::Passage, &["one"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::Provider, "{failure:?}");
    assert!(failure.message.contains("did not answer within 1000 ms"), "{failure:?}");
}

#[test]
fn nothing_is_sent_beyond_this_machine_unless_the_settings_allow_it() {
    let server = Server::start(embeddings);
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server, &folder, json!({ "url": "http://192.0.2.1/v1" })));
    let failure = engine.connect().embed(Some("remote"), TextRole::Passage, &["one"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotAllowed, "{failure}");
    assert!(failure.hint.unwrap().contains("rag_ext.allow_remote"));
    let model = engine.connect().models().into_iter().find(|model| model.name == "remote").unwrap();
    assert!(model.problem.unwrap().contains("beyond this machine"));
}
