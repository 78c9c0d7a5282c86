//! Many sessions at once: same results, fair turns, full queues, deadlines, clients that leave.

use crate::running::{Engine, patiently, settings};
use rag_wire::{Call, Content, FailureCode, Reply, Settings, TextRole};
use std::time::{Duration, Instant};

fn passages(count: usize, words: usize) -> Vec<String> {
    (0..count).map(|n| format!("passage {n} {}", "filler words of no meaning ".repeat(words / 5))).collect()
}

fn embed(count: usize, words: usize) -> Call {
    Call::Embed { model: None, role: TextRole::Passage, texts: passages(count, words) }
}

#[test]
fn vectors_and_scores_are_bit_identical_under_load() {
    let engine = Engine::start();
    let texts: Vec<String> =
        (0..6).map(|n| format!("question {n} about the {}", "long ".repeat(n * 7))).collect();
    let measure = |name: &str| {
        let mut client = engine.connect().named(name);
        let vectors: Vec<_> = texts.iter().map(|text| client.vector(TextRole::Query, text)).collect();
        let passages: Vec<&str> = texts.iter().map(String::as_str).collect();
        (vectors, client.rerank("what is long", &passages).unwrap())
    };
    let calm = measure("role:calm");
    std::thread::scope(|scope| {
        let load: Vec<_> = (0..3)
            .map(|n| {
                let mut client = engine.connect().bulk().named(&format!("role:load{n}"));
                scope.spawn(move || client.ask(embed(30, 40 + 30 * n)).unwrap())
            })
            .collect();
        let measured: Vec<_> =
            (0..4).map(|n| scope.spawn(move || measure(&format!("role:busy{n}")))).collect();
        measured.into_iter().for_each(|busy| assert!(busy.join().unwrap() == calm));
        load.into_iter().for_each(|load| drop(load.join().unwrap()));
    });
}

#[test]
fn an_interactive_query_overtakes_bulk_work() {
    let engine = Engine::start();
    let mut bulk = engine.connect().bulk();
    bulk.vector(TextRole::Passage, "loaded");
    bulk.send(embed(200, 200));
    patiently("bulk work to begin", || (engine.connect().counters().texts_embedded > 3).then_some(()));
    engine.connect().vector(TextRole::Query, "quick");
    assert!(engine.connect().counters().texts_embedded < 190, "bulk work was still going on");
    assert!(matches!(bulk.receive(), Reply::Embeddings(found) if found.values.len() == 200 * 384));
}

#[test]
fn a_second_principal_does_not_wait_for_the_first_ones_backlog() {
    let engine = Engine::start();
    let mut greedy = engine.connect().bulk().named("role:greedy");
    greedy.vector(TextRole::Passage, "loaded");
    greedy.send(embed(200, 100));
    patiently("work to begin", || (engine.connect().counters().texts_embedded > 3).then_some(()));
    let mut modest = engine.connect().bulk().named("role:modest");
    modest.ask(embed(5, 100)).unwrap();
    assert!(engine.connect().counters().texts_embedded < 150, "the backlog was still there");
    greedy.receive();
}

#[test]
fn whoever_parses_long_leaves_a_place_for_others() {
    let engine = Engine::with(Settings { threads: 2, ..settings() });
    let mut greedy: Vec<_> = (0..4).map(|_| engine.connect().named("role:greedy")).collect();
    for client in &mut greedy {
        // Takes seconds, the more so the larger it is.
        let nested = format!("%PDF-1.4\n1 0 obj\n{}", "<< /A ".repeat(500_000));
        client.send(Call::Parse { content: Content::Bytes(nested.into_bytes()), media_type: None });
    }
    patiently("two to wait", || (engine.connect().counters().queued == 2).then_some(()));
    let page = Content::Bytes(b"<!DOCTYPE html><p>Small.</p>".to_vec());
    let mut modest = engine.connect().named("role:modest");
    modest.ask(Call::Parse { content: page, media_type: None }).unwrap();
    assert_eq!(engine.connect().counters().queued, 2, "the others were still at it");
}

#[test]
fn a_full_queue_refuses_at_once_and_serves_again_later() {
    let mut settings = settings();
    settings.queue_limit = 2;
    let engine = Engine::with(settings);
    engine.connect().vector(TextRole::Passage, "loaded");
    let mut waiting: Vec<_> = (0..2).map(|_| engine.connect().bulk()).collect();
    waiting.iter_mut().for_each(|client| client.send(embed(40, 200)));
    patiently("two requests to wait", || (engine.connect().counters().queued == 2).then_some(()));
    let failure = engine.connect().bulk().ask(embed(1, 5)).unwrap_err();
    assert_eq!(failure.code, FailureCode::QueueFull);
    assert!(failure.message.contains("bulk") && failure.message.contains('2'), "{}", failure.message);
    engine.connect().vector(TextRole::Query, "the other lane has its own queue");
    waiting.iter_mut().for_each(|client| drop(client.receive()));
    engine.connect().bulk().ask(embed(1, 5)).unwrap();
}

#[test]
fn a_deadline_is_kept_in_the_queue_and_in_the_middle_of_work() {
    let engine = Engine::start();
    let mut client = engine.connect().bulk();
    client.vector(TextRole::Passage, "loaded");
    client.deadline_ms = Some(300);
    let started = Instant::now();
    let failure = client.ask(embed(500, 300)).unwrap_err();
    assert_eq!(failure.code, FailureCode::Deadline);
    assert!(started.elapsed() < Duration::from_secs(20));
    client.deadline_ms = None;
    client.vector(TextRole::Passage, "the connection still works");
    patiently("the rest to be dropped", || (client.counters().queued == 0).then_some(()));
    assert!(client.counters().texts_embedded < 400);
}

#[test]
fn requests_of_clients_that_left_are_dropped() {
    let engine = Engine::start();
    let mut client = engine.connect();
    client.vector(TextRole::Passage, "loaded");
    for _ in 0..3 {
        let mut leaver = engine.connect().bulk();
        leaver.send(embed(300, 200));
        patiently("the request to wait", || (client.counters().queued > 0).then_some(()));
        drop(leaver);
        patiently("the request to be dropped", || (client.counters().queued == 0).then_some(()));
    }
    assert!(client.counters().texts_embedded < 500, "most of 900 texts were never run");
}

#[test]
fn a_thousand_connections_are_served_fifty_of_them_for_background_work_and_one_more_is_refused_in_words() {
    let engine = Engine::start();
    // A client that has not greeted yet has its place for half a minute; one that asks nothing loses it after ten seconds.
    let silent = |count| (0..count).map(|_| engine.stream()).collect::<Vec<_>>();
    let places = silent(949);
    let mut session = engine.connect();
    session.status();
    assert_eq!(engine.connect().ask(Call::Status).unwrap_err().code, FailureCode::QueueFull);
    let kept = silent(48);
    // The place of the refused one may be taken for a moment still.
    let served = || {
        let mut worker = engine.connect().bulk();
        worker.ask(Call::Status).is_ok().then_some(worker)
    };
    let _workers = [patiently("a place that was kept", served), patiently("the last place", served)];
    assert_eq!(engine.connect().bulk().ask(Call::Status).unwrap_err().code, FailureCode::QueueFull);
    session.status();
    drop((places, kept));
    patiently("a place to be free", || engine.connect().ask(Call::Status).ok());
}
