//! `rag-engine measure`, on the CPU.

use crate::running::{EMBEDDING, RERANKER, set_by_make_test};
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};

/// Few texts, and each client asks once.
fn measure(texts: &str, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rag-engine"))
        .args(["measure", "--seconds", "0", "--threads", "1", "--texts", texts])
        .args(["--models", &set_by_make_test("RAG_TEST_MODELS")])
        .args(["--onnxruntime", &set_by_make_test("RAG_TEST_ONNXRUNTIME")])
        .args(more)
        .env_clear()
        .output()
        .unwrap()
}

fn lines(output: Output) -> HashMap<String, String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let pair = |line: &str| line.split_once('\t').map(|(key, value)| (key.to_owned(), value.to_owned()));
    text.lines().map(|line| pair(line).unwrap_or_else(|| panic!("no tab in {line:?}"))).collect()
}

fn problem(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "figures beside a problem");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_run_counts_what_it_did_and_agrees_with_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors.json");
    let file = file.to_str().unwrap();
    let first = lines(measure("8", &["--device", "cpu", "--keep", file]));
    assert_eq!(first["device"], "cpu");
    assert_eq!(first["embedding_graph"], format!("{EMBEDDING}/model.onnx"));
    assert_eq!(first["reranker_graph"], format!("{RERANKER}/model.onnx"));
    let number = |key: &str| first[key].parse::<f64>().unwrap();
    // Requests of all eight texts, and of the ten pairs of a search on the CPU.
    assert!(number("chunks") >= 8.0 && number("chunks") % 8.0 == 0.0, "{first:?}");
    assert!(number("pairs") >= 10.0 && number("pairs") % 10.0 == 0.0, "{first:?}");
    let tokens_per_chunk = number("tokens_per_second") / number("chunks_per_second");
    assert!((100.0..250.0).contains(&tokens_per_chunk), "{first:?}");
    assert!(number("query_ms") > 0.0 && number("search_pairs_ms") > 0.0, "{first:?}");
    assert_eq!(first["changed_in_company"], "0");
    assert!(!first.contains_key("least_cosine"), "there was nothing to compare with");

    let second = lines(measure("8", &["--device", "cpu", "--compare", file]));
    let cosine: f64 = second["least_cosine"].parse().unwrap();
    assert!(cosine > 0.9999, "{second:?}");
    let other = problem(measure("7", &["--device", "cpu", "--compare", file]));
    assert!(other.contains("7 vectors cannot be compared with 8"), "{other}");
}

#[test]
fn a_gpu_that_is_named_and_not_there_is_an_error() {
    let message = problem(measure("8", &["--device", "cuda:999"]));
    assert!(message.contains("cuda:999 is not usable"), "{message}");
}

#[test]
fn what_is_missing_is_named() {
    let model = problem(measure("8", &["--device", "cpu", "--embedding", "nowhere"]));
    assert!(model.contains("nowhere"), "{model}");
    let kind = problem(measure("8", &["--device", "cpu", "--embedding", RERANKER]));
    assert!(kind.contains("is no embedding model"), "{kind}");
    let library = Path::new("/nonexistent/libonnxruntime.so");
    let output = Command::new(env!("CARGO_BIN_EXE_rag-engine"))
        .args(["measure", "--models", "/nonexistent", "--onnxruntime"])
        .arg(library)
        .output()
        .unwrap();
    assert!(problem(output).contains("/nonexistent/libonnxruntime.so"));
}
