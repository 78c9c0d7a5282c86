//! Chat, against a small HTTP server of our own.

use crate::http::{Request, Server, http};
use crate::running::{Engine, chat, settings};
use rag_wire::{Call, ChatEndpoint, Failure, FailureCode, Reply};
use std::net::TcpListener;
use std::time::{Duration, Instant};

pub(crate) const GOOD: &str = r#"{"model":"tiny","choices":[{"message":{"role":"assistant","content":"Forty-two."}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;

struct Endpoint(Server);

impl Endpoint {
    /// Answers each request with the next of some raw HTTP answers, the last one again and again.
    fn answering(answers: Vec<String>) -> Self {
        Self(Server::start(move |request| {
            answers[request.number.min(answers.len() - 1)].clone().into_bytes()
        }))
    }

    fn requests(&self) -> Vec<(String, String)> {
        let texts = |request: Request| (request.head, String::from_utf8(request.body).unwrap());
        self.0.requests().into_iter().map(texts).collect()
    }

    fn engine(&self, retries: u32) -> Engine {
        engine_for(&self.url(), retries, 5000)
    }

    fn url(&self) -> String {
        format!("{}/v1", self.0.url)
    }
}

fn engine_for(url: &str, retries: u32, timeout_ms: u32) -> Engine {
    let mut settings = settings();
    let api_key = Some("sesame-key".into());
    settings.chat =
        Some(ChatEndpoint { url: url.into(), model: "tiny".into(), api_key, timeout_ms, retries });
    Engine::with(settings)
}

fn ok() -> String {
    http("200 OK", "", GOOD)
}

fn text(reply: Result<Reply, Failure>) -> String {
    match reply.unwrap() {
        Reply::Completion(completion) => completion.text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_completion_comes_back_with_its_counts() {
    let endpoint = Endpoint::answering(vec![ok()]);
    let engine = endpoint.engine(0);
    match engine.connect().chat("What is six times seven?").unwrap() {
        Reply::Completion(found) => {
            assert_eq!((found.text.as_str(), found.model.as_str()), ("Forty-two.", "tiny"));
            assert_eq!((found.prompt_tokens, found.completion_tokens), (Some(9), Some(3)));
        }
        other => panic!("{other:?}"),
    }
    let (head, body) = endpoint.requests().remove(0);
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("authorization: bearer sesame-key"));
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((body["model"].as_str(), body["max_tokens"].as_u64()), (Some("tiny"), Some(64)));
    assert_eq!(body["messages"][0]["content"], "What is six times seven?");
    assert!(engine.connect().status().chat.unwrap().starts_with("tiny at 127.0.0.1"));
    assert!(!engine.log().contains("sesame-key") && !engine.log().contains("six times"));
}

#[test]
fn the_same_prompt_is_answered_from_the_cache_for_the_same_caller_only() {
    let endpoint = Endpoint::answering(vec![ok()]);
    let engine = endpoint.engine(0);
    for (caller, requests) in [("role:a", 1), ("role:a", 1), ("role:b", 2)] {
        text(engine.connect().named(caller).chat("again"));
        assert_eq!(endpoint.requests().len(), requests);
    }
}

#[test]
fn passing_failures_are_tried_again_and_lasting_ones_are_not() {
    let busy = http("503 Service Unavailable", "", "");
    let limited = http("429 Too Many Requests", "retry-after: 1\r\n", "");
    let endpoint = Endpoint::answering(vec![busy.clone(), limited, "broken off".into(), ok()]);
    let started = Instant::now();
    assert_eq!(text(endpoint.engine(3).connect().chat("x")), "Forty-two.");
    assert_eq!(endpoint.requests().len(), 4);
    assert!(started.elapsed() >= Duration::from_secs(1), "retry-after was heeded");

    let endpoint = Endpoint::answering(vec![busy]);
    let failure = endpoint.engine(1).connect().chat("x").unwrap_err();
    assert_eq!((failure.code, endpoint.requests().len()), (FailureCode::Provider, 2));
    assert!(failure.message.contains("503"));

    let endpoint = Endpoint::answering(vec![http("401 Unauthorized", "", "sesame-key is wrong")]);
    let engine = endpoint.engine(5);
    let failure = engine.connect().chat("x").unwrap_err();
    assert_eq!((failure.code, endpoint.requests().len()), (FailureCode::Provider, 1));
    assert!(failure.message.contains("401") && failure.hint.unwrap().contains("llm_api_key_file"));
    // What the endpoint said goes nowhere: the detail names its address alone.
    let detail = failure.detail.unwrap();
    assert!(!detail.contains("sesame") && !engine.log().contains("sesame"), "{detail}");
}

#[test]
fn a_schema_is_sent_and_left_out_where_the_endpoint_refuses_it() {
    let endpoint = Endpoint::answering(vec![http("400 Bad Request", "", ""), ok()]);
    let mut call = chat("x");
    if let Call::Chat(chat) = &mut call {
        chat.json_schema = Some(r#"{"type":"object"}"#.into());
    }
    assert_eq!(text(endpoint.engine(0).connect().ask(call)), "Forty-two.");
    let requests = endpoint.requests();
    assert!(requests[0].1.contains("json_schema") && !requests[1].1.contains("response_format"));
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = Endpoint::answering(vec![ok()]);
    let location = format!("location: {}/chat/completions\r\n", elsewhere.url());
    for status in ["302 Found", "307 Temporary Redirect"] {
        let endpoint = Endpoint::answering(vec![http(status, &location, "")]);
        let failure = endpoint.engine(2).connect().chat("x").unwrap_err();
        assert_eq!(failure.code, FailureCode::Provider);
    }
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn answers_that_are_none_are_failures() {
    let huge = format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "x".repeat(2 << 20));
    for body in
        ["", "{", r#"{"choices":[]}"#, r#"{"choices":[{"message":{"content":null}}]}"#, "[1,2]", &huge]
    {
        let endpoint = Endpoint::answering(vec![http("200 OK", "", body)]);
        let failure = endpoint.engine(0).connect().chat("x").unwrap_err();
        assert_eq!(failure.code, FailureCode::Provider, "{failure:?}");
    }
}

#[test]
fn a_silent_endpoint_ends_at_the_time_out_or_at_the_deadline() {
    let endpoint = Endpoint::answering(vec!["silence".into()]);
    let engine = engine_for(&endpoint.url(), 0, 200);
    let failure = engine.connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::Provider);
    assert!(failure.message.contains("within 200 ms"), "{}", failure.message);

    let engine = engine_for(&endpoint.url(), 10, 600_000);
    let mut client = engine.connect();
    client.deadline_ms = Some(200);
    assert_eq!(client.chat("x").unwrap_err().code, FailureCode::Deadline);
}

#[test]
fn nothing_leaves_the_machine_unless_allowed() {
    let engine = engine_for("http://203.0.113.7/v1", 0, 1000);
    let failure = engine.connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::NotAllowed);
    assert!(failure.hint.unwrap().contains("rag_ext.allow_remote"));
    assert!(engine.connect().status().chat.unwrap_err().contains("203.0.113.7"));
}

#[test]
fn without_an_endpoint_the_failure_says_what_to_set() {
    let mut engine = Engine::start();
    let failure = engine.connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.hint.unwrap().contains("rag_ext.llm_url"));

    let endpoint = Endpoint::answering(vec![ok()]);
    let mut changed = settings();
    changed.chat = Some(ChatEndpoint {
        url: endpoint.url(),
        model: "tiny".into(),
        api_key: None,
        timeout_ms: 5000,
        retries: 0,
    });
    engine.change(&changed);
    assert_eq!(text(engine.connect().chat("x")), "Forty-two.");
}

#[test]
fn an_endpoint_that_is_not_there_cannot_be_reached() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failure =
        engine_for(&format!("http://127.0.0.1:{port}/v1"), 1, 1000).connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::Provider);
    assert!(failure.message.contains("cannot be reached"), "{}", failure.message);
    // Where it is stands in the detail, which is for superusers.
    let port = port.to_string();
    assert!(!failure.message.contains(&port) && failure.detail.unwrap().contains(&port));
}
