//! Completions that are read while they are written.

use crate::chat::GOOD;
use crate::http::{Server, http};
use crate::running::{Client, Engine, chat, chat_models, settings};
use rag_wire::{Call, Chat, ChatEndpoint, Completion, Failure, FailureCode, Reply};

fn engine_for(server: &Server, fallbacks: &[&str]) -> Engine {
    let mut settings = settings();
    let endpoint_settings =
        ChatEndpoint { url: format!("{}/v1", server.url), api_key: None, timeout_ms: 60_000, retries: 0 };
    settings.chat = Some(chat_models("tiny", fallbacks, endpoint_settings));
    Engine::with(settings)
}

/// The deltas, then the end.
fn stream(client: &mut Client, question: &str) -> (Vec<String>, Result<Completion, Failure>) {
    let Call::Chat(request) = chat(question) else { panic!("no chat") };
    let json_schema = Some(r#"{"type":"object"}"#.into());
    client.send(Call::ChatStream(Chat { json_schema, ..request }));
    let mut deltas = Vec::new();
    loop {
        match client.receive() {
            Reply::Delta(delta) => deltas.push(delta),
            Reply::Completion(completion) => return (deltas, Ok(completion)),
            Reply::Failed(failure) => return (deltas, Err(failure)),
            other => panic!("{other:?}"),
        }
    }
}

fn event(text: &str) -> String {
    format!(
        "data: {}\r\n\r\n",
        serde_json::json!({"model": "tiny-1", "choices": [{"delta": {"content": text}}]})
    )
}

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n";
const END: &str = "data: [DONE]\n\n";

#[test]
fn what_is_written_comes_in_its_parts_and_then_as_a_whole() {
    let body = [": comment\n\n", &event("Forty"), "event: x\n", &event("-two é."), USAGE, END].concat();
    let server =
        Server::start(move |_| http("200 OK", "content-type: text/event-stream\r\n", &body).into_bytes());
    let engine = engine_for(&server, &[]);
    let mut client = engine.connect();
    let (deltas, completion) = stream(&mut client, "What is six times seven?");
    let completion = completion.unwrap();
    assert_eq!(deltas, ["Forty", "-two é."]);
    assert_eq!((completion.text.as_str(), completion.model.as_str()), ("Forty-two é.", "tiny-1"));
    assert_eq!((completion.asked_model.as_str(), completion.completion_tokens), ("tiny", Some(3)));
    let body: serde_json::Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!((&body["stream"], &body["stream_options"]["include_usage"]), (&true.into(), &true.into()));

    // The connection serves on, and what is known is not asked again.
    let (deltas, completion) = stream(&mut client, "What is six times seven?");
    assert_eq!(
        (deltas, completion.unwrap().text.as_str()),
        (vec!["Forty-two é.".to_owned()], "Forty-two é.")
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_endpoint_that_does_not_stream_answers_at_once() {
    let server = Server::start(|request| match request.number {
        0 => http("400 Bad Request", "", "").into_bytes(),
        _ => http("200 OK", "", GOOD).into_bytes(),
    });
    let engine = engine_for(&server, &[]);
    let (deltas, completion) = stream(&mut engine.connect(), "x");
    assert_eq!((deltas, completion.unwrap().text.as_str()), (vec!["Forty-two.".to_owned()], "Forty-two."));
    let body: serde_json::Value = serde_json::from_slice(&server.requests()[1].body).unwrap();
    assert!(body["response_format"].is_null() && body["stream"] == true, "{body}");
}

#[test]
fn a_stream_that_ends_badly_is_a_failure_and_another_model_is_asked_only_before_the_first_word() {
    let long = event(&"x".repeat(600_000)).repeat(2);
    for (what, body, words) in [
        ("not JSON", format!("{}data: {{\n\n", event("Forty")), 1),
        ("an error", format!("{}data: {{\"error\":{{\"message\":\"sesame\"}}}}\n\n", event("Forty")), 1),
        ("no end", event("Forty"), 1),
        ("too long", long, 1),
        ("nothing", String::new(), 0),
        ("no stream", "<html>".into(), 0),
    ] {
        let server = Server::start(move |request| {
            let is_first = request.body.windows(6).any(|part| part == b"\"tiny\"");
            let body = if is_first { body.clone() } else { [&event("Spare."), END].concat() };
            http("200 OK", "", &body).into_bytes()
        });
        let engine = engine_for(&server, &["spare"]);
        let (deltas, completion) = stream(&mut engine.connect(), "x");
        match words {
            0 => {
                assert_eq!(completion.unwrap().asked_model, "spare", "{what}");
                assert_eq!(deltas, ["Spare."], "{what}");
            }
            _ => {
                assert_eq!(completion.unwrap_err().code, FailureCode::Provider, "{what}");
                assert_eq!((deltas.len(), server.requests().len()), (words, 1), "{what}");
            }
        }
        assert!(!engine.log().contains("sesame"), "{what}");
    }
}

#[test]
fn a_model_that_says_nothing_leaves_time_for_the_next() {
    let server = Server::start(|request| {
        let is_first = request.body.windows(6).any(|part| part == b"\"tiny\"");
        let body = [&event("Spare."), END].concat();
        if is_first { b"silence".to_vec() } else { http("200 OK", "", &body).into_bytes() }
    });
    let engine = engine_for(&server, &["spare"]);
    let mut client = engine.connect();
    client.deadline_ms = Some(20_000);
    let (deltas, completion) = stream(&mut client, "x");
    assert_eq!((deltas, completion.unwrap().asked_model.as_str()), (vec!["Spare.".to_owned()], "spare"));
}
