//! Greeting, malformed input, and clients that misbehave.

use crate::running::{Engine, patiently};
use rag_wire::{
    Call, FrameError, Hello, MAX_FRAME_BYTES, PROTOCOL_VERSION, Reply, TextRole, Welcome, read_frame,
    write_frame,
};
use std::io::{Read, Write};

#[test]
fn another_protocol_version_is_told_ours_and_closed() {
    let engine = Engine::start();
    let mut stream = engine.stream();
    write_frame(&mut stream, &Hello { protocol: PROTOCOL_VERSION + 1 }).unwrap();
    let welcome: Welcome = read_frame(&mut stream).unwrap();
    assert_eq!(welcome.protocol, PROTOCOL_VERSION);
    assert!(matches!(read_frame::<Reply>(&mut stream), Err(FrameError::Closed)));
}

#[test]
fn malformed_and_too_long_frames_close_the_connection_with_a_logged_line_and_nothing_else_happens() {
    let engine = Engine::start();
    let mut bystander = engine.connect();
    let malformed = [vec![3, 0, 0, 0, 9, 9, 9], ((MAX_FRAME_BYTES + 1) as u32).to_le_bytes().to_vec()];
    for (number, bytes) in malformed.iter().enumerate() {
        let mut client = engine.connect();
        client.stream.write_all(bytes).unwrap();
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "closed");
        patiently("a log line", || {
            (engine.log().matches("WARNING: a connection was closed").count() > number).then_some(())
        });
    }
    assert_eq!(bystander.counters().failed, 0);
}

#[test]
fn bytes_that_are_no_greeting_close_the_connection() {
    let engine = Engine::start();
    let mut stream = engine.stream();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    engine.connect().status();
}

#[test]
fn a_half_sent_request_blocks_nobody() {
    let engine = Engine::start();
    let mut stalled = engine.connect();
    stalled.stream.write_all(&[200, 0, 0, 0, 1, 2, 3]).unwrap();
    engine.connect().vector(TextRole::Query, "still served");
}

#[test]
fn one_connection_answers_many_requests() {
    let engine = Engine::start();
    let mut client = engine.connect();
    for _ in 0..100 {
        assert!(matches!(client.ask(Call::Models).unwrap(), Reply::Models(models) if models.len() >= 3));
    }
}

#[test]
fn nothing_asked_appears_in_the_log() {
    let engine = Engine::start();
    let mut client = engine.connect();
    client.vector(TextRole::Query, "sesame-secret-query");
    let _ = client.embed(None, TextRole::Passage, &[&"sesame-secret-passage ".repeat(2000)]);
    let _ = client.rerank("sesame-secret-rerank", &["sesame-secret-document"]);
    let _ = client.embed(Some("../sesame"), TextRole::Passage, &["x"]);
    client.status();
    engine.logs("loaded on cpu");
    assert!(!engine.log().contains("sesame"), "{}", engine.log());
}

#[test]
fn a_connection_on_which_nothing_is_asked_is_closed_and_another_one_serves() {
    let engine = Engine::start();
    let mut idle = engine.connect();
    idle.status();
    assert_eq!(idle.stream.read(&mut [0]).unwrap(), 0, "closed");
    assert!(matches!(idle.ask(Call::Models).unwrap(), Reply::Models(_)));
}
