//! Tiny graphs written byte by byte, in the shapes of models that are too large for a test: rows that do not depend on
//! each other, no `token_type_ids`, weights in a file of their own, int32 inputs, half precision, finished vectors.

use crate::running::{Engine, MEAN_POOLED, RERANKER, settings};
use rag_engine::model::onnx_file::{FLOAT, INT64, Message, node, value};
use rag_wire::{FailureCode, TextRole};
use std::path::Path;
use tempfile::TempDir;

const INT32: u64 = 6;
const HALF: u64 = 10;

/// Token ids of `[CLS]`, `word` and `[SEP]` in BERT's vocabulary.
const CLS: f32 = 101.0;
const WORD: f32 = 2773.0;
const SEP: f32 = 102.0;

/// The weight by which the graph multiplies each id.
const WEIGHT: f32 = 0.25;

/// What differs between the shapes.
pub(crate) struct Shape {
    integers: u64,
    result: u64,
    finished: bool,
    inputs: &'static [&'static str],
}

pub(crate) const XLM_R: Shape =
    Shape { integers: INT64, result: FLOAT, finished: false, inputs: &["input_ids", "attention_mask"] };

/// All of which a graph with vectors for tokens may differ in.
pub(crate) const SHAPES: [Shape; 2] = [XLM_R, Shape { result: HALF, integers: INT32, ..XLM_R }];

/// A graph whose vector for a token is (id × weight, mask); the weight stands in `model.onnx_data`.
fn graph(shape: &Shape) -> Vec<u8> {
    let names: &[&str] = if shape.finished { &["rows", "2"] } else { &["rows", "tokens", "2"] };
    let last = if shape.finished { "sentence_embedding" } else { "last_hidden_state" };
    let mut nodes = vec![
        node("Cast", &["input_ids"], "ids", Some(("to", FLOAT))),
        node("Cast", &["attention_mask"], "mask", Some(("to", FLOAT))),
        node("Mul", &["ids", "weight"], "scaled", None),
        node("Unsqueeze", &["scaled", "two"], "left", None),
        node("Unsqueeze", &["mask", "two"], "right", None),
        node("Concat", &["left", "right"], "both", Some(("axis", 2))),
    ];
    if shape.finished {
        nodes.push(node("ReduceMax", &["both", "one"], "single", Some(("keepdims", 0))));
    } else {
        nodes.push(node("Identity", &["both"], "single", None));
    }
    nodes.push(node("Cast", &["single"], last, Some(("to", shape.result))));
    let constant = |name: &str, number: i64| {
        Message::default().number(1, 1).number(2, INT64).text(8, name).bytes(9, &number.to_le_bytes())
    };
    let entry = |key: &str, value: &str| Message::default().text(1, key).text(2, value);
    let weight = Message::default()
        .number(1, 1)
        .number(2, FLOAT)
        .text(8, "weight")
        .message(13, entry("location", "model.onnx_data"))
        .message(13, entry("length", "4"))
        .number(14, 1);
    let graph =
        nodes.into_iter().fold(Message::default(), |graph, node| graph.message(1, node)).text(2, "tiny");
    let graph = graph.message(5, weight).message(5, constant("two", 2)).message(5, constant("one", 1));
    let graph = shape
        .inputs
        .iter()
        .fold(graph, |graph, name| graph.message(11, value(name, shape.integers, &["rows", "tokens"])));
    let graph = graph.message(12, value(last, shape.result, names));
    model(graph)
}

/// A file that holds a graph.
pub(crate) fn model(graph: Message) -> Vec<u8> {
    let opset = Message::default().text(1, "").number(2, 18);
    Message::default().number(1, 8).message(7, graph).message(8, opset).into_bytes()
}

/// A folder of models with one model in it, `tiny`, tokenized like the small ones.
pub(crate) fn models(shape: &Shape, config: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("tiny");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("model.onnx"), graph(shape)).unwrap();
    std::fs::write(folder.join("model.onnx_data"), WEIGHT.to_le_bytes()).unwrap();
    std::fs::write(folder.join("config.json"), config).unwrap();
    let real = Path::new(&settings().model_folders[0]).join(MEAN_POOLED).join("tokenizer.json");
    std::fs::copy(real, folder.join("tokenizer.json")).unwrap();
    root
}

pub(crate) const CONFIG: &str =
    r#"{"model_type":"xlm-roberta","hidden_size":2,"max_position_embeddings":66,"pad_token_id":1}"#;

fn engine(models: &TempDir) -> Engine {
    let mut settings = settings();
    settings.model_folders.insert(0, models.path().to_str().unwrap().into());
    settings.embedding_model = "tiny".into();
    Engine::with(settings)
}

pub(crate) fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

/// The normalised mean over `[CLS]`, so many words and `[SEP]`.
fn expected_mean(count: usize) -> [f32; 2] {
    let mean = (CLS + SEP + WORD * count as f32) * WEIGHT / (count + 2) as f32;
    let length = mean.hypot(1.0);
    [mean / length, 1.0 / length]
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    found
        .iter()
        .zip(expected)
        .for_each(|(f, e)| assert!((f - e).abs() < 2e-3 * e.abs(), "{found:?} {expected:?}"));
}

#[test]
fn rows_of_many_lengths_share_batches_and_padding_changes_nothing() {
    let models = models(&XLM_R, CONFIG);
    let engine = engine(&models);
    let mut client = engine.connect().bulk();
    let lengths: Vec<usize> = (0..200).map(|n| (n * 37) % 60).collect();
    let texts: Vec<String> = lengths.iter().map(|count| words(*count)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = client.embed(None, TextRole::Passage, &texts).unwrap();
    assert_eq!(found.dimension, 2);
    for (vector, count) in found.values.chunks(2).zip(&lengths) {
        assert_close(vector, &expected_mean(*count));
        assert_eq!(vector, client.vector(TextRole::Query, &words(*count)), "alone and in a batch");
    }
    engine.logs("model tiny loaded on cpu");
    engine.logs("in batches");
}

#[test]
fn a_shifted_position_table_limits_the_tokens() {
    let models = models(&XLM_R, CONFIG);
    let engine = engine(&models);
    let mut client = engine.connect();
    assert!(client.embed(None, TextRole::Passage, &[&words(62)]).is_ok());
    let failure = client.embed(None, TextRole::Passage, &[&words(63)]).unwrap_err();
    assert_eq!(failure.code, FailureCode::LimitExceeded);
    assert!(failure.message.contains("65") && failure.message.contains("64"), "{}", failure.message);
}

#[test]
fn other_number_formats_and_finished_vectors_are_read() {
    for token_vectors in SHAPES {
        assert_close(
            &engine(&models(&token_vectors, CONFIG)).connect().vector(TextRole::Passage, "word"),
            &expected_mean(1),
        );
    }

    let finished = Shape { finished: true, ..XLM_R };
    let largest = [WORD * WEIGHT, 1.0];
    let length = largest[0].hypot(largest[1]);
    let vector = engine(&models(&finished, CONFIG)).connect().vector(TextRole::Passage, "word word");
    assert_close(&vector, &[largest[0] / length, largest[1] / length]);
}

#[test]
fn each_pooling_gives_its_own_vector() {
    let cases = [("cls_token", CLS), ("max_tokens", WORD), ("lasttoken", SEP)];
    for (mode, id) in cases {
        let models = models(&XLM_R, CONFIG);
        let pooling = models.path().join("tiny/1_Pooling");
        std::fs::create_dir(&pooling).unwrap();
        std::fs::write(pooling.join("config.json"), format!(r#"{{"pooling_mode_{mode}":true}}"#)).unwrap();
        let vector = engine(&models).connect().vector(TextRole::Passage, "word");
        let length = (id * WEIGHT).hypot(1.0);
        assert_close(&vector, &[id * WEIGHT / length, 1.0 / length]);
    }
}

#[test]
fn a_graph_with_an_unknown_input_or_without_its_weights_says_so() {
    let odd = Shape { inputs: &["input_ids", "attention_mask", "pixel_values"], ..XLM_R };
    let failure = engine(&models(&odd, CONFIG)).connect().embed(None, TextRole::Query, &["x"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.detail.unwrap().contains("pixel_values"));

    let models = models(&XLM_R, CONFIG);
    std::fs::remove_file(models.path().join("tiny/model.onnx_data")).unwrap();
    let failure = engine(&models).connect().embed(None, TextRole::Query, &["x"]).unwrap_err();
    assert_eq!(failure.code, FailureCode::NotLoaded);
    assert!(failure.detail.unwrap().contains("model.onnx_data"));
}

#[test]
fn many_sessions_of_a_batching_model_get_their_own_vectors() {
    let models = models(&XLM_R, CONFIG);
    let engine = engine(&models);
    engine.connect().vector(TextRole::Passage, "loaded");
    std::thread::scope(|scope| {
        for session in 0..8usize {
            let mut client = engine.connect().bulk().named(&format!("role:{session}"));
            scope.spawn(move || {
                for round in 0..20 {
                    let counts: Vec<usize> = (0..9).map(|n| (n * 7 + session * 5 + round) % 60).collect();
                    let texts: Vec<String> = counts.iter().map(|count| words(*count)).collect();
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let found = client.embed(None, TextRole::Passage, &texts).unwrap();
                    for (vector, count) in found.values.chunks(2).zip(&counts) {
                        assert_close(vector, &expected_mean(*count));
                    }
                }
            });
        }
    });
    assert!(engine.connect().models().iter().any(|model| model.name == RERANKER));
}
