//! An embeddings endpoint whose vectors cost nothing: what is measured with it is everything but the model.

use crate::MODEL;
use rag_tests::{ChatReply, ChatStub, model_folder};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Different vectors that it has.
const VECTORS: usize = 256;

/// As the default model's.
const DIMENSION: usize = 384;

/// The vectors as JSON, of numbers as long as real ones.
static SHOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    let value = |n: usize, at: usize| (((n + 1) * 7919 + at * 104_729) % 20_011) as f64 / 1e5 - 0.1;
    let shown = |n: usize| {
        let values: Vec<String> =
            (0..DIMENSION).map(|at| format!("{:.8}", value(n, at) + 1.234e-6)).collect();
        format!("[{}]", values.join(","))
    };
    (0..VECTORS).map(shown).collect()
});

/// A running endpoint in this process, and a folder with the model that is behind it.
#[derive(Debug)]
pub struct StandIn {
    models: TempDir,
    _endpoint: ChatStub,
}

impl StandIn {
    /// With a model of this name, which has the tokenizer of the default one.
    pub fn start(name: &str) -> Self {
        let endpoint = ChatStub::start(ChatReply::StatusBy(embeddings));
        let model = json!({
            "endpoint": {"url": endpoint.url(), "model": name},
            "dimension": DIMENSION, "max_tokens": 512, "tokenizer": MODEL,
        });
        Self { models: model_folder(name, &model), _endpoint: endpoint }
    }

    /// `rag_ext.model_path` with the model's folder.
    pub fn model_path(&self) -> String {
        format!("$sharedir/rag_ext/models:{}", self.models.path().display())
    }
}

fn embeddings(request: &Value) -> (u16, String) {
    let texts = request["input"].as_array().unwrap();
    let mut body = String::from(r#"{"model":"stand-in","data":["#);
    for (index, text) in texts.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let vector = &SHOWN[text.as_str().map_or(0, str::len) % VECTORS];
        write!(body, r#"{comma}{{"index":{index},"embedding":{vector}}}"#).unwrap();
    }
    body.push_str("]}");
    (200, body)
}
