//! Rows run in the style of a GPU, on the CPU: a graph that pools, batches of fixed shapes, bound memory.

use crate::running::{EMBEDDING, MEAN_POOLED, set_by_make_test};
use crate::synthetic::{CONFIG, SHAPES, models, words};
use rag_engine::backend::{Backend, Conditions, Input, OnnxBackend};
use rag_engine::batch_limits::FixedShape;
use rag_engine::device::Device;
use rag_engine::model::session::RunStyle;
use rag_engine::model::tokenizer::Tokenizer;
use rag_engine::model::{ModelFolder, runtime};
use std::path::Path;

fn folder(folders: &Path, name: &str) -> ModelFolder {
    ModelFolder::find(&[folders.to_str().unwrap().to_owned()], name).unwrap().unwrap()
}

fn installed(name: &str) -> ModelFolder {
    folder(Path::new(&set_by_make_test("RAG_TEST_MODELS")), name)
}

fn open(folder: &ModelFolder, style: RunStyle) -> OnnxBackend {
    runtime::load(&set_by_make_test("RAG_TEST_ONNXRUNTIME")).unwrap();
    OnnxBackend::open_in_style(folder, Device::Cpu, style, 2).unwrap()
}

fn inputs(folder: &ModelFolder, texts: &[String]) -> Vec<Input> {
    let tokenizer = Tokenizer::open(&folder.tokenizer, folder.max_tokens).unwrap();
    texts.iter().map(|text| Input { row: tokenizer.encode(text).unwrap(), ..Input::default() }).collect()
}

fn embed(backend: &OnnxBackend, inputs: &[&Input], is_reproducible: bool) -> Vec<Vec<f32>> {
    backend.embed(inputs, &Conditions { is_reproducible, ..Conditions::unlimited() }).unwrap()
}

#[track_caller]
fn assert_alike(found: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(found.len(), expected.len());
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len());
        let cosine: f32 = found.iter().zip(expected).map(|(a, b)| a * b).sum();
        assert!((cosine - 1.0).abs() < 1e-5, "row {row}: {cosine}");
    }
}

#[test]
fn vectors_are_those_of_the_other_style_for_each_pooling_and_number_format() {
    let texts: Vec<String> = [1, 40, 3, 20, 59, 0].map(words).into();
    for shape in SHAPES {
        for mode in ["mean_tokens", "cls_token", "lasttoken", "max_tokens"] {
            let models = models(&shape, CONFIG);
            let pooling = models.path().join("tiny/1_Pooling");
            std::fs::create_dir(&pooling).unwrap();
            std::fs::write(pooling.join("config.json"), format!(r#"{{"pooling_mode_{mode}":true}}"#))
                .unwrap();
            let folder = folder(models.path(), "tiny");
            let inputs = inputs(&folder, &texts);
            let inputs: Vec<&Input> = inputs.iter().collect();
            let expected = embed(&open(&folder, RunStyle::Cpu), &inputs, false);
            let gpu = open(&folder, RunStyle::Gpu);
            assert_alike(&embed(&gpu, &inputs, false), &expected);
            assert_alike(&embed(&gpu, &inputs, true), &expected);
        }
    }
}

#[test]
fn vectors_of_real_models_are_those_of_the_other_style() {
    let texts: Vec<String> = [4, 150, 90, 1].map(|count| format!("The {} end.", words(count))).into();
    for name in [EMBEDDING, MEAN_POOLED] {
        let folder = installed(name);
        let inputs = inputs(&folder, &texts);
        let inputs: Vec<&Input> = inputs.iter().collect();
        let expected = embed(&open(&folder, RunStyle::Cpu), &inputs, false);
        assert_alike(&embed(&open(&folder, RunStyle::Gpu), &inputs, false), &expected);
    }
}

#[test]
fn in_fixed_shapes_a_vector_is_the_same_alone_and_in_any_company() {
    let folder = installed(MEAN_POOLED);
    let backend = open(&folder, RunStyle::Gpu);
    assert!(backend.limits().has_fixed_shapes && !backend.limits().one_by_one);
    let lengths = [3, 5, 60, 70, 61, 9, 130, 2];
    let texts: Vec<String> = lengths.map(|count| format!("Of {} words, {}.", count, words(count))).into();
    let inputs = inputs(&folder, &texts);
    assert!(inputs.iter().any(|input| FixedShape::of(input.row.tokens()).tokens == 128));
    let alone: Vec<Vec<f32>> = inputs.iter().flat_map(|input| embed(&backend, &[input], true)).collect();
    let together = embed(&backend, &inputs.iter().collect::<Vec<_>>(), true);
    assert_eq!(together, alone);
    let backwards: Vec<Vec<f32>> =
        embed(&backend, &inputs.iter().rev().collect::<Vec<_>>(), true).into_iter().rev().collect();
    assert_eq!(backwards, alone);
}
