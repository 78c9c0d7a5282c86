//! Rerankers behind an endpoint, which a small HTTP server stands in for, in each of the ways to ask for scores.

use crate::http::{Request, Server, busy_then_too_large, http};
use crate::running::{Client, Engine, RERANKER, settings};
use rag_wire::{Call, Failure, FailureCode, Reply, Settings};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const QUERY: &str = "which port?";
pub(crate) const APIS: [&str; 4] = ["cohere", "jina", "tei", "deepinfra"];

/// A score that depends on the passage, from 0 to 1.
fn score(passage: &str) -> f64 {
    (passage.bytes().map(u64::from).sum::<u64>() % 89 + 5) as f64 / 100.0
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn passages(request: &Request) -> Vec<String> {
    let body = body(request);
    let passages = body.get("documents").or(body.get("texts")).unwrap();
    passages.as_array().unwrap().iter().map(|passage| passage.as_str().unwrap().to_owned()).collect()
}

/// As an endpoint answers: the best first, where the answer has indices.
pub(crate) fn answer(api: &str, request: &Request) -> Vec<u8> {
    let mut scored: Vec<(usize, f64)> =
        passages(request).iter().map(|passage| score(passage)).enumerate().collect();
    let answer = match api {
        "deepinfra" => {
            json!({ "scores": scored.iter().map(|(_, s)| *s).collect::<Vec<_>>(), "input_tokens": 9 })
        }
        _ => {
            scored.sort_by(|a, b| b.1.total_cmp(&a.1));
            let name = if api == "tei" { "score" } else { "relevance_score" };
            let raw =
                |s: f64| if body(request)["raw_scores"] == json!(true) { (s / (1.0 - s)).ln() } else { s };
            let items = scored.iter().map(|(index, s)| json!({ "index": index, name: raw(*s) })).collect();
            if api == "tei" {
                Value::Array(items)
            } else {
                json!({ "id": "x", "results": Value::Array(items) })
            }
        }
    };
    http("200 OK", "", &answer.to_string()).into_bytes()
}

/// Settings with a reranker "remote" that is behind this server.
pub(crate) fn behind(url: &str, folder: &tempfile::TempDir, more: Value) -> Settings {
    let model = folder.path().join("models/remote");
    std::fs::create_dir_all(&model).unwrap();
    std::fs::write(model.join("key"), "sesame-key\n").unwrap();
    let mut endpoint = json!({
        "url": format!("{url}/v1"), "model": "acme/large", "api_key_file": "key", "batch": 4, "timeout_ms": 5000,
    });
    endpoint.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    // The tokenizer is in another folder of models.
    let ours = json!({ "kind": "reranker", "endpoint": endpoint, "max_tokens": 64, "tokenizer": RERANKER });
    std::fs::write(model.join("rag_model.json"), ours.to_string()).unwrap();
    let mut settings = settings();
    settings.model_folders.push(folder.path().join("models").to_str().unwrap().to_owned());
    settings.rerank_model = "remote".into();
    // What is asked of an endpoint needs no library.
    settings.onnxruntime = "/nonexistent".into();
    settings
}

fn rerank(client: &mut Client, passages: &[&str]) -> Result<Vec<f32>, Failure> {
    client.rerank(QUERY, passages)
}

/// Logits that come back for passages, as numbers from 0 to 1.
fn probabilities(client: &mut Client, passages: &[&str]) -> Vec<f64> {
    let sigmoid = |logit: f32| 1.0 / (1.0 + (-f64::from(logit)).exp());
    rerank(client, passages).unwrap().into_iter().map(sigmoid).collect()
}

#[test]
fn scores_come_back_as_logits_in_the_order_of_the_passages() {
    for api in APIS {
        let server = Server::start(move |request| answer(api, request));
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::with(behind(&server.url, &folder, json!({ "api": api })));
        let mut client = engine.connect();
        let texts = ["one", "two", "three", "four", "five", "two"];
        for (text, found) in texts.iter().zip(probabilities(&mut client, &texts)) {
            assert!((found - score(text)).abs() < 1e-5, "{api} {text}: {found}, not {}", score(text));
        }
        let requests = server.requests();
        assert_eq!(
            requests.iter().map(|r| passages(r).len()).collect::<Vec<_>>(),
            [4, 1],
            "{api}: equal passages go once"
        );
        assert!(requests[0].head.to_lowercase().contains("authorization: bearer sesame-key"));
        assert_eq!(client.counters().pairs_scored, 5);
        let model = client.models().into_iter().find(|model| model.name == "remote").unwrap();
        assert_eq!((model.is_default, model.loaded, model.problem), (true, false, None));
        assert!(model.endpoint.unwrap().starts_with("acme/large at 127.0.0.1:"));
        // Again: from the cache, and only for the same caller.
        probabilities(&mut client, &texts);
        assert_eq!(server.requests().len(), 2);
        probabilities(&mut engine.connect().named("role:other"), &["one"]);
        assert_eq!(server.requests().len(), 3);
        assert!(!engine.log().contains("sesame-key"));
    }
}

#[test]
fn each_api_is_asked_in_its_own_words() {
    let cases = [
        (
            "cohere",
            "POST /v1/rerank ",
            json!({ "model": "acme/large", "query": QUERY, "documents": ["a", "b"], "top_n": 2,
                "return_documents": false }),
        ),
        (
            "jina",
            "POST /v1/rerank ",
            json!({ "model": "acme/large", "query": QUERY, "documents": ["a", "b"], "top_n": 2,
                "return_documents": false }),
        ),
        (
            "tei",
            "POST /v1/rerank ",
            json!({ "query": QUERY, "texts": ["a", "b"], "raw_scores": true, "truncate": true }),
        ),
        ("deepinfra", "POST /v1/acme/large ", json!({ "queries": [QUERY], "documents": ["a", "b"] })),
    ];
    for (api, path, expected) in cases {
        let server = Server::start(move |request| answer(api, request));
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::with(behind(&server.url, &folder, json!({ "api": api })));
        rerank(&mut engine.connect(), &["a", "b"]).unwrap();
        let request = server.requests().remove(0);
        assert!(request.head.starts_with(path), "{}", request.head);
        assert_eq!(body(&request), expected);
    }
}

#[test]
fn a_field_that_the_server_does_not_know_is_left_out_the_next_time() {
    let server = Server::start(|request| match body(request).get("return_documents") {
        Some(_) => http("422 Unprocessable Entity", "", "unknown field").into_bytes(),
        None => answer("cohere", request),
    });
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server.url, &folder, json!({})));
    assert_eq!(rerank(&mut engine.connect(), &["a", "b", "c", "d", "e"]).unwrap().len(), 5);
    assert_eq!(server.requests().len(), 3, "one refused, two batches answered");
    assert_eq!(rerank(&mut engine.connect(), &["f"]).unwrap().len(), 1);
    assert_eq!(server.requests().len(), 4, "what helped is done at once the next time");

    let server = Server::start(|_| http("422 Unprocessable Entity", "", "").into_bytes());
    let engine = Engine::with(behind(&server.url, &folder, json!({})));
    let failure = rerank(&mut engine.connect(), &["a"]).unwrap_err();
    assert_eq!((failure.code, server.requests().len()), (FailureCode::Provider, 2), "{failure}");
}

#[test]
fn a_passage_is_cut_here_at_its_end_and_counts_with_the_query() {
    let server = Server::start(|request| answer("cohere", request));
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server.url, &folder, json!({})));
    let long = "river ".repeat(10_000);
    rerank(&mut engine.connect(), &["short", &long]).unwrap();
    let sent = passages(&server.requests()[0]);
    // Three special tokens, the three of the query, and 58 words.
    assert_eq!((sent[0].as_str(), sent[1].as_str()), ("short", "river ".repeat(58).trim_end()));
}

#[test]
fn a_busy_endpoint_is_asked_again_and_one_that_finds_a_batch_too_large_with_less() {
    let server = Server::start(busy_then_too_large(
        |request| passages(request).len(),
        |request| answer("tei", request),
    ));
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server.url, &folder, json!({ "api": "tei" })));
    assert_eq!(rerank(&mut engine.connect(), &["one", "two", "three"]).unwrap().len(), 3);
    assert_eq!(server.requests().iter().map(|r| passages(r).len()).collect::<Vec<_>>(), [3, 3, 3, 1, 1, 1]);
}

#[test]
fn an_answer_that_does_not_fit_is_a_failure_in_words() {
    let results = |items: Value| json!({ "results": items });
    let cohere = |index: u64, score: f64| json!({ "index": index, "relevance_score": score });
    let cases = [
        ("cohere", results(json!([cohere(0, 0.5)])), "no score for passage 2 of 2"),
        (
            "cohere",
            results(json!([cohere(0, 0.5), cohere(1, 0.5), cohere(1, 0.5)])),
            "two scores for passage 2",
        ),
        ("cohere", results(json!([cohere(0, 0.5), cohere(7, 0.5)])), "for passage 8 of 2"),
        ("cohere", results(json!([cohere(0, 0.5), cohere(1, -7.5)])), "A score is -7.5"),
        ("cohere", json!({ "results": [{ "index": 0, "relevance_score": null }] }), "Not the expected JSON"),
        ("cohere", json!({ "error": "sesame-key is wrong" }), "Not the expected JSON"),
        ("tei", json!([{ "index": 0, "score": 0.5 }]), "no score for passage 2 of 2"),
        ("tei", json!([{ "index": 0, "score": 1e300 }, { "index": 1, "score": 0.5 }]), "finite"),
        ("deepinfra", json!({ "scores": [0.5] }), "no score for passage 2 of 2"),
        ("deepinfra", json!({ "scores": [0.5, 0.5, 0.5] }), "for passage 3 of 2"),
    ];
    for (api, answer, words) in cases {
        let body = answer.to_string();
        let server = Server::start(move |_| http("200 OK", "", &body).into_bytes());
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::with(behind(&server.url, &folder, json!({ "api": api })));
        let failure = rerank(&mut engine.connect(), &["one", "two"]).unwrap_err();
        assert!(failure.detail.as_ref().is_some_and(|detail| detail.contains(words)), "{api}: {failure:?}");
        assert_eq!(failure.code, FailureCode::Provider);
        assert!(failure.message.starts_with("the rerank endpoint gave an answer that is"), "{failure}");
        assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
        let is_about_range = words.starts_with("A score is");
        assert_eq!(failure.hint.is_some_and(|hint| hint.contains("endpoint.scores")), is_about_range);
    }
}

#[test]
fn logits_are_taken_as_they_are_where_the_folder_says_so() {
    let answer = json!({ "results": [
        { "index": 1, "relevance_score": 7.75 }, { "index": 0, "relevance_score": -2.5 },
    ] });
    let server = Server::start(move |_| http("200 OK", "", &answer.to_string()).into_bytes());
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server.url, &folder, json!({ "scores": "logit" })));
    assert_eq!(rerank(&mut engine.connect(), &["one", "two"]).unwrap(), [-2.5, 7.75]);
}

#[test]
fn a_silent_endpoint_ends_at_the_time_out_or_at_the_deadline() {
    let server = Server::start(|_| b"silence".to_vec());
    let folder = tempfile::tempdir().unwrap();
    let more = json!({ "timeout_ms": 200, "retries": 0 });
    let failure =
        rerank(&mut Engine::with(behind(&server.url, &folder, more)).connect(), &["one"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::Provider);
    assert!(failure.message.contains("within 200 ms"), "{failure}");

    let engine = Engine::with(behind(&server.url, &folder, json!({ "timeout_ms": 600_000 })));
    let mut client = engine.connect();
    client.deadline_ms = Some(200);
    let started = Instant::now();
    assert_eq!(rerank(&mut client, &["one"]).unwrap_err().code, FailureCode::Deadline);
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn nothing_is_sent_beyond_this_machine_unless_the_settings_allow_it() {
    for api in APIS {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::with(behind("http://192.0.2.1", &folder, json!({ "api": api })));
        let failure = rerank(&mut engine.connect(), &["one"]).unwrap_err();
        assert_eq!(failure.code, FailureCode::NotAllowed, "{failure}");
        assert!(failure.hint.unwrap().contains("rag_ext.allow_remote"));
        let model = engine.connect().models().into_iter().find(|model| model.name == "remote").unwrap();
        assert!(model.problem.unwrap().contains("the rerank endpoint is beyond this machine"));
    }
}

#[test]
fn a_reranker_elsewhere_embeds_nothing() {
    let server = Server::start(|request| answer("cohere", request));
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::with(behind(&server.url, &folder, json!({})));
    let call = Call::Embed {
        model: Some("remote".into()),
        role: rag_wire::TextRole::Query,
        texts: vec!["x".into()],
    };
    let failure = engine.connect().ask(call).unwrap_err();
    assert_eq!((failure.code, server.requests().len()), (FailureCode::InvalidArgument, 0), "{failure}");
    let call = Call::Rerank { model: None, query: QUERY.into(), passages: Vec::new(), within_budget: true };
    assert!(matches!(engine.connect().ask(call), Ok(Reply::Scores { scores, .. }) if scores.is_empty()));
    assert_eq!(server.requests().len(), 0);
}
