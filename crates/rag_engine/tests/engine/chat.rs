//! Chat, against a small HTTP server of our own.

use crate::http::{Request, Server, http};
use crate::running::{Engine, chat, chat_models, settings};
use rag_wire::{Call, ChatEndpoint, Failure, FailureCode, Reply};
use std::io::Read;
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
    engine_with_fallbacks(url, retries, timeout_ms, &[])
}

fn engine_with_fallbacks(url: &str, retries: u32, timeout_ms: u32, fallbacks: &[&str]) -> Engine {
    let mut settings = settings();
    let endpoint_settings =
        ChatEndpoint { url: url.into(), api_key: Some("sesame-key".into()), timeout_ms, retries };
    settings.chat = Some(chat_models("tiny", fallbacks, endpoint_settings));
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
    let endpoint = Endpoint::answering(vec![busy.clone(), limited, ok()]);
    let started = Instant::now();
    assert_eq!(text(endpoint.engine(2).connect().chat("x")), "Forty-two.");
    assert_eq!(endpoint.requests().len(), 3);
    assert!(started.elapsed() >= Duration::from_secs(2), "1 s between tries, and as the endpoint says");

    // What has no status is no reason to ask the same model again.
    let endpoint = Endpoint::answering(vec!["broken off".into(), ok()]);
    let failure = endpoint.engine(2).connect().chat("x").unwrap_err();
    assert_eq!((failure.code, endpoint.requests().len()), (FailureCode::Provider, 1));

    // What the endpoint asks for is beyond the deadline: nobody waits for it.
    let endpoint =
        Endpoint::answering(vec![http("429 Too Many Requests", "retry-after: 3600\r\n", ""), ok()]);
    let engine = endpoint.engine(2);
    let mut client = engine.connect();
    client.deadline_ms = Some(600_000);
    assert!(client.chat("x").unwrap_err().message.contains("429"));

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
fn what_an_endpoint_does_not_know_is_left_out() {
    let endpoint = Endpoint::answering(vec![http("400 Bad Request", "", ""), ok()]);
    let mut call = chat("x");
    if let Call::Chat(chat) = &mut call {
        chat.top_p = Some(0.5);
    }
    assert_eq!(text(endpoint.engine(0).connect().ask(call)), "Forty-two.");
    let bodies: Vec<serde_json::Value> =
        endpoint.requests().iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect();
    assert_eq!((&bodies[0]["top_p"], &bodies[0]["max_tokens"]), (&0.5.into(), &64.into()));
    assert_eq!(bodies[1]["max_completion_tokens"], 64);
    assert!(bodies[1]["top_p"].is_null() && bodies[1]["temperature"].is_null(), "{}", bodies[1]);

    let endpoint = Endpoint::answering(vec![http("400 Bad Request", "", "")]);
    assert!(endpoint.engine(2).connect().chat("x").unwrap_err().message.contains("400"));
    assert_eq!(endpoint.requests().len(), 2);
}

/// Answers the models that it knows, each in its way.
fn by_model(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Endpoint {
    Endpoint(Server::start(move |request| {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        answer(body["model"].as_str().unwrap()).into_bytes()
    }))
}

fn asked_models(endpoint: &Endpoint) -> Vec<String> {
    let model = |(_, body): (String, String)| {
        serde_json::from_str::<serde_json::Value>(&body).unwrap()["model"].as_str().unwrap().to_owned()
    };
    endpoint.requests().into_iter().map(model).collect()
}

#[test]
fn the_next_model_answers_where_one_fails() {
    let huge = format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "x".repeat(10 << 20));
    for (what, answer) in [
        ("no such model", http("404 Not Found", "", "")),
        ("no JSON", http("200 OK", "", "<html>")),
        ("half a reply", format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", GOOD.len(), &GOOD[..40])),
        ("10 MB", http("200 OK", "", &huge)),
    ] {
        let endpoint = by_model(move |model| if model == "tiny" { answer.clone() } else { ok() });
        let engine = engine_with_fallbacks(&endpoint.url(), 2, 5000, &["tiny", "spare"]);
        let Reply::Completion(found) = engine.connect().chat("x").unwrap() else { panic!("{what}") };
        assert_eq!((found.text.as_str(), found.asked_model.as_str()), ("Forty-two.", "spare"), "{what}");
        assert_eq!(found.failed_models.len(), 1, "{what}");
        assert_eq!(found.failed_models[0].model, "tiny", "{what}");
        assert_eq!(asked_models(&endpoint), ["tiny", "spare"], "{what}");
        // The one that is wanted is asked first, also if it is the spare one.
        let mut call = chat("y");
        if let Call::Chat(chat) = &mut call {
            chat.model = Some("spare".into());
        }
        text(engine.connect().ask(call));
        assert_eq!(asked_models(&endpoint)[2..], ["spare"], "{what}");
    }
    let endpoint = by_model(|model| http(if model == "tiny" { "401 No" } else { "404 No" }, "", ""));
    let engine = engine_with_fallbacks(&endpoint.url(), 2, 5000, &["spare"]);
    let failure = engine.connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::Provider);
    for part in ["\"tiny\"", "401", "\"spare\"", "404"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}

#[test]
fn a_model_that_hangs_leaves_time_for_the_next() {
    let endpoint = by_model(|model| if model == "tiny" { "silence".into() } else { ok() });
    let engine = engine_with_fallbacks(&endpoint.url(), 2, 600_000, &["spare"]);
    let mut client = engine.connect();
    client.deadline_ms = Some(20_000);
    assert_eq!(text(client.chat("x")), "Forty-two.");
    assert_eq!(asked_models(&endpoint), ["tiny", "spare"]);
}

#[test]
fn a_client_that_hangs_up_ends_the_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let engine = engine_for(&format!("http://{}/v1", listener.local_addr().unwrap()), 2, 600_000);
    let mut client = engine.connect();
    client.send(chat("x"));
    let (mut provider, _) = listener.accept().unwrap();
    provider.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut buffer = [0; 4096];
    assert!(provider.read(&mut buffer).unwrap() > 0);
    drop(client);
    let hung_up = Instant::now();
    // Whatever of the request is left, then the end.
    while !matches!(provider.read(&mut buffer), Ok(0) | Err(_)) {}
    eprintln!("the provider's connection ended {:?} after the client's", hung_up.elapsed());
    assert!(hung_up.elapsed() < Duration::from_secs(30));
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

    // Not even a name server is asked.
    let failure = engine_for("http://name.example.invalid/v1", 0, 1000).connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::NotAllowed);

    // Where the settings allow it, a request may still be for this machine alone.
    let mut remote = settings();
    remote.allow_remote = true;
    let endpoint_settings =
        ChatEndpoint { url: "http://203.0.113.7/v1".into(), api_key: None, timeout_ms: 1000, retries: 0 };
    remote.chat = Some(chat_models("tiny", &["spare"], endpoint_settings));
    let engine = Engine::with(remote);
    let mut client = engine.connect();
    client.local_only = true;
    let failure = client.chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::NotAllowed);
    assert!(failure.message.contains("collection"), "{}", failure.message);
    let endpoint = Endpoint::answering(vec![ok()]);
    let engine = endpoint.engine(0);
    let mut client = engine.connect();
    client.local_only = true;
    assert_eq!(text(client.chat("x")), "Forty-two.");
}

#[test]
fn without_an_endpoint_the_failure_says_what_to_set() {
    let mut engine = Engine::start();
    let failure = engine.connect().chat("x").unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.hint.unwrap().contains("rag_ext.llm_url"));

    let endpoint = Endpoint::answering(vec![ok()]);
    let mut changed = settings();
    let endpoint_settings = ChatEndpoint { url: endpoint.url(), api_key: None, timeout_ms: 5000, retries: 0 };
    changed.chat = Some(chat_models("tiny", &[], endpoint_settings));
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
