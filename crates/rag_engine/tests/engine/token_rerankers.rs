//! Rerankers whose graphs give numbers per token, as small ones written byte by byte: a decoder that says yes or no, and
//! late interaction. What they must score is worked out here from the tokens.

use crate::running::{Engine, MEAN_POOLED, settings};
use crate::synthetic::{model, words};
use rag_engine::model::onnx_file::{FLOAT, INT64, Message, node, value};
use rag_engine::model::tokenizer::Tokenizer;
use rag_wire::FailureCode;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Tokens of BERT's vocabulary, which these models use, and their ids.
const VOCABULARY: usize = 30_522;
const YES: usize = 2748;
const NO: usize = 2053;
const MASK: u32 = 103;
const QUERY_MARKER: u32 = 1;
const DOCUMENT_MARKER: u32 = 2;
const FULL_STOP: u32 = 1012;

/// By which a token's number in the vocabulary is multiplied to weigh it.
const WEIGHT: f32 = 1e-8;

/// By which a token's id is multiplied to make an angle of it.
const ANGLE: f32 = 0.01;

fn real_tokenizer() -> PathBuf {
    Path::new(&settings().model_folders[0]).join(MEAN_POOLED).join("tokenizer.json")
}

/// Ids of a text between `[CLS]` and `[SEP]`.
fn ids(text: &str) -> Vec<u32> {
    Tokenizer::open(&real_tokenizer(), 512).unwrap().encode(text).unwrap().ids
}

fn floats(name: &str, dimensions: &[u64], numbers: &[f32]) -> Message {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let tensor = dimensions.iter().fold(Message::default(), |tensor, size| tensor.number(1, *size));
    tensor.number(2, FLOAT).text(8, name).bytes(9, &bytes)
}

fn integer(name: &str, number: i64) -> Message {
    Message::default().number(1, 1).number(2, INT64).text(8, name).bytes(9, &number.to_le_bytes())
}

fn models(nodes: &[Message], constants: &[Message], output: Message, ours: &Value) -> TempDir {
    let graph = nodes.iter().cloned().fold(Message::default(), |graph, node| graph.message(1, node));
    let graph = constants.iter().cloned().fold(graph.text(2, "tiny"), |graph, c| graph.message(5, c));
    let inputs = ["input_ids", "attention_mask"].map(|name| value(name, INT64, &["rows", "tokens"]));
    let graph = inputs.into_iter().fold(graph, |graph, input| graph.message(11, input)).message(12, output);
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("tiny");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("model.onnx"), model(graph)).unwrap();
    std::fs::write(folder.join("rag_model.json"), ours.to_string()).unwrap();
    std::fs::copy(real_tokenizer(), folder.join("tokenizer.json")).unwrap();
    root
}

/// A decoder that takes 64 tokens: a token's logit of each word is the sum of the ids up to it, times the word's weight.
pub(crate) fn decoder() -> TempDir {
    let yes_no = json!({ "prefix": "[CLS]", "suffix": "[SEP]", "body": "{query} {instruction} {document}", "instruction": "=" });
    decoder_that_says(&json!({ "max_tokens": 64, "yes_no": yes_no }))
}

fn decoder_that_says(ours: &Value) -> TempDir {
    let nodes = [
        node("Mul", &["input_ids", "attention_mask"], "seen", None),
        node("Cast", &["seen"], "ids", Some(("to", FLOAT))),
        node("CumSum", &["ids", "axis"], "sums", None),
        node("Unsqueeze", &["sums", "two"], "columns", None),
        node("Mul", &["columns", "weights"], "logits", None),
    ];
    let weights: Vec<f32> = (0..VOCABULARY).map(|word| word as f32 * WEIGHT).collect();
    let axis = integer("axis", 1);
    let constants = [floats("weights", &[VOCABULARY as u64], &weights), axis, integer("two", 2)];
    models(&nodes, &constants, value("logits", FLOAT, &["rows", "tokens", "30522"]), ours)
}

/// A model of late interaction whose vector for a token is (cos, sin) of an angle that is its id's, and whether others
/// attend to it.
pub(crate) fn late(more: &str) -> TempDir {
    let mut late = json!({ "query_length": 12, "query_marker": "[unused0]", "document_marker": "[unused1]" });
    let more: Value = serde_json::from_str(more).unwrap();
    late.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let nodes = [
        node("Cast", &["input_ids"], "ids", Some(("to", FLOAT))),
        node("Cast", &["attention_mask"], "mask", Some(("to", FLOAT))),
        node("Mul", &["ids", "angle"], "angles", None),
        node("Cos", &["angles"], "cosines", None),
        node("Sin", &["angles"], "sines", None),
        node("Unsqueeze", &["cosines", "two"], "x", None),
        node("Unsqueeze", &["sines", "two"], "y", None),
        node("Unsqueeze", &["mask", "two"], "z", None),
        node("Concat", &["x", "y", "z"], "last_hidden_state", Some(("axis", 2))),
    ];
    let constants = [floats("angle", &[1], &[ANGLE]), integer("two", 2)];
    let output = value("last_hidden_state", FLOAT, &["rows", "tokens", "3"]);
    models(&nodes, &constants, output, &json!({ "max_tokens": 40, "late_interaction": late }))
}

fn engine(models: &TempDir) -> Engine {
    let mut settings = settings();
    settings.model_folders.insert(0, models.path().to_str().unwrap().into());
    settings.rerank_model = "tiny".into();
    Engine::with(settings)
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found_one, expected_one) in found.iter().zip(expected) {
        let near = (f64::from(*found_one) - expected_one).abs() < 2e-3 * expected_one.abs().max(0.1);
        assert!(near, "{found:?}, not {expected:?}");
    }
}

/// The score of the decoder for a row of these tokens.
fn of_row(ids: &[u32]) -> f64 {
    f64::from(ids.iter().sum::<u32>()) * (YES as f64 - NO as f64) * f64::from(WEIGHT)
}

#[test]
fn a_decoder_scores_by_yes_less_no_behind_its_last_token() {
    let models = decoder();
    let engine = engine(&models);
    let mut client = engine.connect();
    let scores = client.rerank("which port?", &["It listens on port 5432.", "", "No."]).unwrap();
    let expected = ["which port? = It listens on port 5432.", "which port? =", "which port? = No."];
    assert_close(&scores, &expected.map(|text| of_row(&ids(text))));
    engine.logs("model tiny loaded on cpu");
}

#[test]
fn text_in_a_prompt_that_reads_like_a_special_token_or_a_placeholder_is_text() {
    let models = decoder();
    let engine = engine(&models);
    let found = engine.connect().rerank("{document}", &["a [SEP] b", "{query}"]).unwrap();
    let [bracketed, named] =
        ["{document} = a [ sep ] b", "{document} = {query}"].map(|text| of_row(&ids(text)));
    assert_close(&found, &[bracketed, named]);
    let special = ids("{document} = a b").iter().sum::<u32>() + 102;
    assert!((bracketed - of_row(&[special])).abs() > 0.01, "they can be told apart");
}

#[test]
fn a_prompt_that_is_too_long_loses_the_end_of_the_passage_and_never_its_frame() {
    let models = decoder();
    let engine = engine(&models);
    let found = engine.connect().rerank("port?", &[&words(500), &words(62 - 3), &words(5)]).unwrap();
    // [CLS] port ? = … [SEP]
    let of_words = |count: usize| of_row(&ids(&format!("port? = {}", words(count))));
    assert_eq!(ids(&format!("port? = {}", words(59))).len(), 64);
    assert_close(&found, &[of_words(59), of_words(59), of_words(5)]);
    // A long query leaves half of the room to the passage.
    let found = engine.connect().rerank(&words(300), &["port ".repeat(300).trim_end()]).unwrap();
    let both = format!("{} = {}", words(31), "port ".repeat(30));
    assert_eq!(ids(&both).len(), 64);
    assert_close(&found, &[of_row(&ids(&both))]);
}

#[test]
fn a_folder_that_names_what_is_not_there_says_so() {
    let check = |models: TempDir, words: &str| {
        let failure = engine(&models).connect().rerank("x", &["y"]).unwrap_err();
        assert_eq!(failure.code, FailureCode::NotLoaded, "{failure:?}");
        assert!(failure.detail.as_ref().is_some_and(|detail| detail.contains(words)), "{failure:?}");
    };
    let asked =
        |yes_no: Value| decoder_that_says(&json!({ "kind": "reranker", "max_tokens": 64, "yes_no": yes_no }));
    check(asked(json!({ "prefix": "", "suffix": "", "yes": "jawohl" })), "no token \"jawohl\"");
    check(asked(json!({ "body": "{query}" })), "yes_no.body needs {query} and {document}");
    check(asked(json!({ "prefix": words(60) })), "prefix and suffix leave");
    check(asked(json!({ "template": "" })), "unknown field");
    check(late(r#"{ "query_marker": "[none]" }"#), "no token \"[none]\"");
    check(late(r#"{ "query_length": 1 }"#), "query_length is from 4 to 512");
    let embedding = json!({ "kind": "embedding", "max_tokens": 64, "yes_no": {} });
    check(decoder_that_says(&embedding), "are for a reranker");
}

/// The probability of MaxSim, by the angles between tokens. Ids of a query come with whether others attend to them.
fn of_tokens(query: &[(u32, bool)], document: &[u32]) -> f64 {
    let vector = |id: u32, attended: bool| {
        let (sin, cos) = (f64::from(id) * f64::from(ANGLE)).sin_cos();
        let z = f64::from(u8::from(attended));
        [cos, sin, z].map(|x| x / (1.0 + z).sqrt())
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let best = |(id, attended): &(u32, bool)| {
        let cosines = document.iter().map(|other| dot(vector(*id, *attended), vector(*other, true)));
        cosines.fold(-1.0, f64::max)
    };
    let mean = query.iter().map(best).sum::<f64>() / query.len() as f64;
    ((1.0 + mean) / (1.0 - mean)).ln()
}

fn marked(marker: u32, text: &str) -> Vec<u32> {
    let mut ids = ids(text);
    ids.insert(1, marker);
    ids
}

#[test]
fn late_interaction_compares_each_token_of_the_query_with_its_nearest_in_the_passage() {
    let check = |more: &str, attended: bool, filled: bool, skips: bool| {
        let models = late(more);
        let engine = engine(&models);
        let found = engine.connect().rerank("old mill", &["A river, and a mill.", "Coffee."]).unwrap();
        let mut query: Vec<(u32, bool)> =
            marked(QUERY_MARKER, "old mill").into_iter().map(|id| (id, true)).collect();
        if filled {
            query.resize(12, (MASK, attended));
        }
        let expected = ["A river, and a mill.", "Coffee."].map(|text| {
            let mut document = marked(DOCUMENT_MARKER, text);
            document.retain(|id| !skips || ![FULL_STOP, 1010].contains(id));
            of_tokens(&query, &document)
        });
        assert_close(&found, &expected);
        assert!(found[0] > found[1], "{found:?}");
    };
    check("{}", false, true, true);
    check(r#"{ "attend_to_mask": true }"#, true, true, true);
    check(r#"{ "mask": null }"#, true, false, true);
    check(r#"{ "skip": [] }"#, false, true, false);
}

#[test]
fn late_interaction_cuts_query_and_passage_apart() {
    let models = late("{}");
    let engine = engine(&models);
    let found = engine.connect().rerank(&words(100), &[&"port ".repeat(500)]).unwrap();
    let query: Vec<(u32, bool)> = marked(QUERY_MARKER, &words(9)).into_iter().map(|id| (id, true)).collect();
    let document = marked(DOCUMENT_MARKER, &"port ".repeat(37));
    assert_eq!((query.len(), document.len()), (12, 40));
    assert_close(&found, &[of_tokens(&query, &document)]);
}
