//! `rag-engine pull`, from a small server that speaks a hub's protocol.

use crate::http::{Request, Server, http};
use crate::running::{EMBEDDING, Engine, set_by_make_test, settings};
use rag_wire::TextRole;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A hub with one repository that holds the default embedding model, its graph under onnx/.
fn hub(wrong_sum: bool) -> Server {
    let model = PathBuf::from(set_by_make_test("RAG_TEST_MODELS")).join(EMBEDDING);
    Server::start(move |request| answer(&model, request, wrong_sum))
}

fn answer(model: &Path, request: &Request, wrong_sum: bool) -> Vec<u8> {
    let path = request.path().to_owned();
    if path == "/api/models/acme/tiny/revision/v1?blobs=true" {
        let graph = std::fs::read(model.join("model.onnx")).unwrap();
        let sum: String = Sha256::digest(&graph).iter().map(|byte| format!("{byte:02x}")).collect();
        let sum = if wrong_sum { "0".repeat(64) } else { sum };
        let listing = json!({
            "sha": "abc123",
            "cardData": { "license": "mit", "language": ["en"] },
            "siblings": [
                { "rfilename": "README.md", "size": 10 },
                { "rfilename": "config.json" },
                { "rfilename": "1_Pooling/config.json" },
                { "rfilename": "modules.json" },
                { "rfilename": "tokenizer.json" },
                { "rfilename": "onnx/model.onnx", "size": graph.len(), "lfs": { "sha256": sum } },
            ],
        });
        return http("200 OK", "", &listing.to_string()).into_bytes();
    }
    let Some(file) = path.strip_prefix("/acme/tiny/resolve/v1/") else {
        return http("404 Not Found", "", "").into_bytes();
    };
    if !file.starts_with("again/") {
        // Hubs send large files from elsewhere.
        let elsewhere = format!("location: /acme/tiny/resolve/v1/again/{file}\r\n");
        return http("302 Found", &elsewhere, "").into_bytes();
    }
    let name = file.trim_start_matches("again/").trim_start_matches("onnx/");
    let Ok(content) = std::fs::read(model.join(name)) else {
        return http("404 Not Found", "", "").into_bytes();
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len());
    [head.as_bytes(), &content].concat()
}

fn pull(hub: &Server, into: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rag-engine"))
        .args(["pull", "acme/tiny", "--revision", "v1", "--hub", &hub.url, "--into"])
        .arg(into)
        .args(more)
        .env_clear()
        .output()
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_pulled_model_embeds_and_says_where_it_came_from() {
    let hub = hub(false);
    let folder = tempfile::tempdir().unwrap();
    let pulled = pull(&hub, folder.path(), &["--as", "pulled"]);
    assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    assert_eq!(Path::new(String::from_utf8(pulled.stdout).unwrap().trim()), folder.path().join("pulled"));
    assert_eq!(names(folder.path()), ["pulled"], "nothing is left beside it");
    let mut settings = settings();
    settings.model_folders.push(folder.path().to_str().unwrap().to_owned());
    let engine = Engine::with(settings);
    let mut client = engine.connect();
    let found = client.embed(Some("pulled"), TextRole::Passage, &["The same text."]).unwrap();
    let beside = client.embed(Some(EMBEDDING), TextRole::Passage, &["The same text."]).unwrap();
    assert_eq!(found.values, beside.values);
    let model = client.models().into_iter().find(|model| model.name == "pulled").unwrap();
    assert_eq!((model.license.as_deref(), model.languages), (Some("mit"), vec!["en".to_owned()]));
    let ours = std::fs::read_to_string(folder.path().join("pulled/rag_model.json")).unwrap();
    assert!(ours.contains("acme/tiny at abc123") && ours.contains("\"sha256\""), "{ours}");

    let again = pull(&hub, folder.path(), &["--as", "pulled"]);
    assert_eq!(again.status.code(), Some(1), "an existing model is not replaced");
    assert!(pull(&hub, folder.path(), &["--as", "pulled", "--force"]).status.success());
    assert_eq!(names(folder.path()), ["pulled"]);
}

#[test]
fn a_file_that_differs_from_its_sum_leaves_nothing() {
    let hub = hub(true);
    let folder = tempfile::tempdir().unwrap();
    let pulled = pull(&hub, folder.path(), &[]);
    let words = String::from_utf8(pulled.stderr).unwrap();
    assert!(pulled.status.code() == Some(1) && words.contains("the hub says 000"), "{words}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_cannot_be_ordered_is_said_with_the_usage() {
    let hub = hub(false);
    let folder = tempfile::tempdir().unwrap();
    for (more, words) in [
        (&["--as", "../up"][..], "cannot be the name"),
        (&["--kind", "poem"], "[possible values: embedding, reranker]"),
        (&["--sise", "1"], "unexpected argument '--sise'"),
        (&["--graph"], "a value is required for '--graph <FILE>'"),
        (&["another/model"], "unexpected argument 'another/model'"),
    ] {
        let refused = pull(&hub, folder.path(), more);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            refused.status.code() == Some(2) && said.contains(words) && said.contains("--help"),
            "{said}"
        );
    }
    let rag_engine = |arguments: &[&str]| {
        let ran =
            Command::new(env!("CARGO_BIN_EXE_rag-engine")).args(arguments).env_clear().output().unwrap();
        (ran.status.code(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
    };
    for (arguments, status, words) in [
        (&["pull", "acme/tiny"][..], 2, "--into <FOLDER>"),
        (&["pull", "--into", "x"], 2, "<REPOSITORY>"),
        (&["pull", "acme/t i n y", "--into", "x"], 1, "cannot be the name"),
        (&["pull", "--help"], 0, "$HF_ENDPOINT"),
        (&[], 2, "Usage: rag-engine"),
        (&["serf"], 2, "a similar subcommand exists: 'serve'"),
        (&["parse", "file.pdf"], 2, "unexpected argument 'file.pdf'"),
        (&["ocr", "64", "soon", "/bin/true"], 2, "invalid value 'soon'"),
        (&["ocr", "64", "1"], 2, "<PROGRAM>"),
        (&["--version"], 0, env!("CARGO_PKG_VERSION")),
    ] {
        let (found, said) = rag_engine(arguments);
        assert!(found == Some(status) && said.contains(words), "{arguments:?}: {found:?} {said}");
    }
    let missing = pull(&hub, folder.path(), &["--graph", "onnx/other.onnx"]);
    assert!(String::from_utf8(missing.stderr).unwrap().contains("has no file onnx/other.onnx"));
}
