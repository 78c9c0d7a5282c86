//! What long texts take of the engine's memory.

use crate::running::{Engine, patiently, settings};
use rag_core::chunking::ChunkOptions;
use rag_wire::{Call, Content, FailureCode, Prepare, Reply, Settings, TextRole};

const MIB: u64 = 1 << 20;

/// The memory that the engine has now; [`peak`] begins anew.
fn resident(engine: &Engine) -> u64 {
    std::fs::write(format!("/proc/{}/clear_refs", engine.child.id()), "5").unwrap();
    peak(engine)
}

/// The most memory that the engine has had since [`resident`].
fn peak(engine: &Engine) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", engine.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// An engine with its models loaded, so that what it takes from now on is for texts: one thread has one session of each
/// model, where more would be opened in the background.
fn warm() -> Engine {
    let engine = Engine::with(Settings { threads: 1, bulk_threads: 1, ..settings() });
    let mut client = engine.connect();
    client.vector(TextRole::Query, "ready?");
    client.rerank("ready?", &["yes"]).unwrap();
    patiently("the self-test to end", || (client.status().parse_sandbox != "not tested yet").then_some(()));
    engine
}

fn text(bytes: u64) -> String {
    let mut text = String::new();
    let mut number = 0;
    while (text.len() as u64) < bytes {
        number += 1;
        text += &format!("Ferry number {number} leaves the harbour at dawn, unless it is foggy.\n");
    }
    text
}

#[test]
fn a_long_text_is_cut_in_a_few_times_its_size() {
    let engine = warm();
    let (before, size) = (resident(&engine), 2 * MIB);
    let prepare = Prepare {
        content: Content::Text(text(size)),
        media_type: Some("text/plain".into()),
        title: None,
        model: None,
        language: None,
        chunking: ChunkOptions::default(),
    };
    match engine.connect().bulk().ask(Call::Prepare(prepare)).unwrap() {
        Reply::Prepared(document) => assert!(document.chunks.len() > 1000),
        other => panic!("{other:?}"),
    }
    let took = peak(&engine) - before;
    eprintln!("cutting {} MiB took {} MiB", size / MIB, took / MIB);
    assert!(took < 40 * size, "{} MiB for a text of {} MiB", took / MIB, size / MIB);
}

#[test]
fn a_text_that_is_refused_or_cut_short_takes_little() {
    let engine = warm();
    let before = resident(&engine);
    let long = text(MIB - 100);
    for role in [TextRole::Query, TextRole::Passage] {
        let failure = engine.connect().embed(None, role, &[&long]).unwrap_err();
        assert_eq!(failure.code, FailureCode::LimitExceeded, "{failure:?}");
        assert!(failure.message.contains("more than 512 tokens"), "{failure:?}");
    }
    let mut client = engine.connect();
    let whole = client.rerank("when does the ferry leave?", &[&long]).unwrap();
    let start = client.rerank("when does the ferry leave?", &[&long[..20_000]]).unwrap();
    assert_eq!(whole, start, "the model reads the beginning alone");
    // Blanks are no tokens.
    let blanks = " ".repeat(8 << 20) + "ferry";
    assert_eq!(client.rerank("when does the ferry leave?", &[&blanks]).unwrap().len(), 1);
    let took = peak(&engine) - before;
    eprintln!("refusing and reranking 1 MiB took {} MiB", took / MIB);
    assert!(took < 64 * MIB, "{} MiB", took / MIB);
}
