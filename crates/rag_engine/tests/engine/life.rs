//! Start, settings, end.

use crate::running::{EMBEDDING, Engine, MEAN_POOLED, RERANKER, patiently, settings};
use rag_wire::{Call, FailureCode, ModelKind, TextRole};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

#[test]
fn closing_standard_input_ends_the_engine_with_status_0() {
    let mut engine = Engine::start();
    engine.connect().status();
    engine.close_stdin();
    assert_eq!(engine.wait_for_end().code(), Some(0));
}

#[test]
fn closing_standard_input_in_the_middle_of_work_ends_the_engine_with_status_0() {
    let mut engine = Engine::start();
    let mut client = engine.connect().bulk();
    client.vector(TextRole::Passage, "loaded");
    let texts = (0..500).map(|n| format!("{n} {}", "word ".repeat(300))).collect();
    client.send(Call::Embed { model: None, role: TextRole::Passage, texts });
    patiently("work to begin", || (engine.connect().counters().texts_embedded > 2).then_some(()));
    engine.close_stdin();
    assert_eq!(engine.wait_for_end().code(), Some(0));
}

#[test]
fn sigterm_ends_the_engine_with_status_0() {
    let mut engine = Engine::start();
    engine.connect().vector(TextRole::Query, "loaded");
    let pid = nix::unistd::Pid::from_raw(engine.child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(engine.wait_for_end().code(), Some(0));
}

#[test]
fn the_process_is_detached_private_and_first_to_be_killed() {
    let engine = Engine::start();
    engine.connect().status();
    let pid = engine.child.id();
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let stat = read("stat");
    let after_name: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let own = pid.to_string();
    assert_eq!((after_name[2], after_name[3]), (own.as_str(), own.as_str()), "group and session are its own");
    assert_eq!(read("oom_score_adj").trim(), "500");
    let mode = std::fs::metadata(engine.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_stale_socket_is_replaced_but_a_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(folder.path().join("engine.sock")).unwrap());
    Engine::in_folder(folder, settings()).connect().status();

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("engine.sock"), "precious").unwrap();
    let mut engine = Engine::in_folder(folder, settings());
    assert_eq!(engine.wait_for_end().code(), Some(1));
    assert_eq!(std::fs::read_to_string(engine.socket()).unwrap(), "precious");
}

#[test]
fn settings_that_are_no_settings_end_the_engine_with_a_line() {
    let mut settings = settings();
    settings.socket = "x/".repeat(60);
    let mut engine = Engine::with(settings);
    assert_eq!(engine.wait_for_end().code(), Some(1));
    engine.logs("the limit is 107");
}

#[test]
fn without_onnx_runtime_the_engine_runs_and_says_what_is_missing() {
    let mut settings = settings();
    settings.onnxruntime = "/nonexistent/libonnxruntime.so".into();
    let engine = Engine::with(settings);
    let mut client = engine.connect();
    let failure = client.embed(None, TextRole::Query, &["x"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.detail.unwrap().contains("/nonexistent/libonnxruntime.so"));
    assert!(failure.hint.unwrap().contains("rag_ext.onnxruntime_path"));
    assert!(client.status().onnxruntime.unwrap_err().contains("/nonexistent"));
    engine.logs("WARNING: ONNX Runtime did not load");
}

#[test]
fn asking_for_cuda_on_a_machine_without_gives_one_warning_and_the_cpu() {
    let mut settings = settings();
    settings.device = "cuda:99".into();
    let engine = Engine::with(settings);
    let mut client = engine.connect();
    client.vector(TextRole::Query, "works");
    let status = client.status();
    assert_eq!(status.device, "cpu");
    assert!(status.device_note.unwrap().contains("cuda:99"));
    engine.logs("using the CPU");
    assert_eq!(engine.log().matches("using the CPU").count(), 1, "{}", engine.log());
}

#[test]
fn models_are_listed_with_what_their_folders_say() {
    let engine = Engine::start();
    let mut client = engine.connect();
    client.vector(TextRole::Query, "loads the default");
    let models = client.models();
    let find = |name: &str| models.iter().find(|model| model.name == name).unwrap();
    let bge = find(EMBEDDING);
    assert_eq!((bge.kind, bge.dimension, bge.max_tokens), (ModelKind::Embedding, 384, 512));
    assert_eq!((bge.pooling.as_str(), bge.loaded, bge.is_default), ("cls", true, true));
    assert_eq!(bge.query_prefix, "Represent this sentence for searching relevant passages: ");
    let mini = find(MEAN_POOLED);
    assert_eq!(
        (mini.pooling.as_str(), mini.max_tokens, mini.loaded, mini.is_default),
        ("mean", 256, false, false)
    );
    assert_eq!(mini.query_prefix, "");
    let reranker = find(RERANKER);
    assert_eq!((reranker.kind, reranker.dimension, reranker.is_default), (ModelKind::Reranker, 0, true));
    assert!(models.iter().all(|model| model.problem.is_none() && model.license.is_some()), "{models:?}");
}

#[test]
fn a_broken_model_is_listed_with_its_problem_and_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("model.onnx"), "this is no graph").unwrap();
    let real = std::path::Path::new(&settings().model_folders[0]).join(EMBEDDING).join("tokenizer.json");
    std::fs::copy(real, broken.join("tokenizer.json")).unwrap();
    let mut settings = settings();
    settings.model_folders.insert(0, folder.path().to_str().unwrap().into());
    let engine = Engine::with(settings);
    let mut client = engine.connect();
    let failure = client.embed(Some("broken"), TextRole::Query, &["x"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    let listed = client.models().into_iter().find(|model| model.name == "broken").unwrap();
    assert!(listed.problem.is_some() && !listed.loaded);
    client.vector(TextRole::Query, "the others work");
}

#[test]
fn later_settings_take_effect_while_running() {
    let mut engine = Engine::start();
    let mut client = engine.connect();
    client.vector(TextRole::Query, "kept");
    assert!(client.counters().cache_bytes > 0);
    engine.change(&rag_wire::Settings { cache_mb: 0, ..settings() });
    assert_eq!(client.counters().cache_bytes, 0);
    client.vector(TextRole::Query, "not kept");
    assert_eq!(client.counters().cache_bytes, 0);
}

#[test]
fn above_its_memory_limit_the_engine_ends_with_a_status_of_its_own() {
    let mut settings = settings();
    settings.memory_limit_mb = 20;
    let mut engine = Engine::with(settings);
    assert_eq!(engine.wait_for_end().code(), Some(rag_wire::OVER_MEMORY_LIMIT));
    engine.logs("the limit is 20 MiB");
}
