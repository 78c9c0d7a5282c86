//! The default embedding model run by ONNX Runtime in this process, as its authors describe it: what the
//! engine's vectors and times are compared with. Shares no code with the engine.
//!
//! Source: the model card of BAAI/bge-small-en-v1.5: the vector of the first token, L2-normalised; 512 tokens;
//! questions, and only these, with an instruction before them.

use crate::{KeptVectors, MODEL, digest, set_by_make};
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::Tensor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tokenizers::{Tokenizer, TruncationParams};

const QUERY_INSTRUCTION: &str = "Represent this sentence for searching relevant passages: ";
const MAX_TOKENS: usize = 512;

/// Vectors computed between two writes of the kept file: what an interrupted run loses.
const SAVE_EVERY: usize = 256;

/// A session on one thread, with its tokenizer.
pub struct Model {
    session: Session,
    tokenizer: Tokenizer,
}

fn folder() -> PathBuf {
    PathBuf::from(set_by_make("RAG_TEST_MODELS")).join(MODEL)
}

/// SHA-256 of the model's graph, in hexadecimal digits: what vectors are kept under.
pub fn model_digest() -> String {
    static DIGEST: OnceLock<String> = OnceLock::new();
    let compute = || {
        digest(&std::fs::read(folder().join("model.onnx")).unwrap())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    };
    DIGEST.get_or_init(compute).clone()
}

/// A question with the instruction that the model wants before it.
pub fn as_query(text: &str) -> String {
    format!("{QUERY_INSTRUCTION}{text}")
}

impl Model {
    /// Opens the model on one thread, as the engine does with models of this size.
    pub fn open() -> Self {
        // ONNX Runtime must not be unloaded before the process ends.
        static ENVIRONMENT: OnceLock<ort::environment::Environment> = OnceLock::new();
        let environment = ENVIRONMENT.get_or_init(|| {
            ort::init_from(set_by_make("RAG_TEST_ONNXRUNTIME"))
                .unwrap()
                .with_telemetry(false)
                .build()
                .unwrap()
        });
        let session = Session::builder(environment)
            .unwrap()
            .with_intra_threads(1)
            .unwrap()
            .with_inter_threads(1)
            .unwrap()
            .with_optimization_level(GraphOptimizationLevel::All)
            .unwrap()
            .commit_from_file(folder().join("model.onnx"))
            .unwrap();
        let mut tokenizer = Tokenizer::from_file(folder().join("tokenizer.json")).unwrap();
        tokenizer.with_padding(None);
        let truncation = TruncationParams { max_length: MAX_TOKENS, ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).unwrap();
        Self { session, tokenizer }
    }

    /// The vector of a question.
    pub fn embed_query(&mut self, text: &str) -> Vec<f32> {
        self.embed(&as_query(text))
    }

    /// The vector of a text; what is beyond 512 tokens is not looked at.
    pub fn embed(&mut self, text: &str) -> Vec<f32> {
        let encoding = self.tokenizer.encode_fast(text, true).unwrap();
        let shape = [1, encoding.len()];
        let tensor = |numbers: &[u32]| {
            let numbers: Vec<i64> = numbers.iter().map(|number| i64::from(*number)).collect();
            Tensor::from_array((shape, numbers)).unwrap()
        };
        let inputs = ort::inputs! {
            "input_ids" => tensor(encoding.get_ids()),
            "attention_mask" => tensor(encoding.get_attention_mask()),
            "token_type_ids" => tensor(encoding.get_type_ids()),
        };
        let outputs = self.session.run(inputs).unwrap();
        let (shape, values) = outputs[0].try_extract_tensor::<f32>().unwrap();
        let width = usize::try_from(*shape.last().unwrap()).unwrap();
        let first = &values[..width];
        let norm = first.iter().map(|value| value * value).sum::<f32>().sqrt();
        first.iter().map(|value| value / norm).collect()
    }
}

/// Vectors of texts, in their order: kept ones where there are, others computed on all cores and kept.
pub fn embed_all(texts: &[String], kept: &mut KeptVectors) -> Vec<Vec<f32>> {
    tokenizers::utils::parallelism::set_parallelism(false);
    let missing: Vec<&String> =
        texts.iter().filter(|text| kept.get(&digest(text.as_bytes())).is_none()).collect();
    let done = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    let shared = Mutex::new(&mut *kept);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(missing.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut model = Model::open();
                while let Some(text) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let vector = model.embed(text);
                    let mut kept = shared.lock().unwrap();
                    kept.put(digest(text.as_bytes()), vector);
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(SAVE_EVERY) || done == missing.len() {
                        kept.save();
                        eprintln!("  {done} of {} texts embedded directly", missing.len());
                    }
                }
            });
        }
    });
    texts.iter().map(|text| kept.get(&digest(text.as_bytes())).unwrap().to_vec()).collect()
}
