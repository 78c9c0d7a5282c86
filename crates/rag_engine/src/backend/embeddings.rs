//! Embedding models behind an OpenAI-compatible endpoint: what is asked of `POST /embeddings`, and what is made of
//! the answer.

use super::remote::{Protocol, Remote};
use super::{Backend, Conditions, Input, Limits};
use crate::endpoint::{self, EMBEDDINGS, Purpose, Target};
use crate::failure::{Explain, failure};
use crate::model::ModelFolder;
use crate::model::endpoint::Endpoint;
use rag_wire::{Failure, FailureCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most bytes of an answer per number that is expected, JSON and white space included.
const MAX_BYTES_PER_NUMBER: u64 = 64;

/// An embedding model at an endpoint.
pub(super) struct EmbeddingsBackend {
    remote: Remote,
    protocol: OpenAi,
}

impl EmbeddingsBackend {
    pub(super) fn new(folder: &ModelFolder, endpoint: &Endpoint) -> Self {
        let dimension = folder.dimension.unwrap_or(0) as usize;
        let sent_dimension = endpoint.send_dimensions.then_some(dimension);
        let protocol = OpenAi { model: endpoint.model.clone(), dimension, sent_dimension };
        Self { remote: Remote::new(folder, endpoint), protocol }
    }
}

impl Backend for EmbeddingsBackend {
    fn limits(&self) -> Limits {
        self.remote.limits()
    }

    fn health(&self, allow_remote: bool) -> Result<(), String> {
        self.remote.health(&EMBEDDINGS, allow_remote)
    }

    fn embed(&self, texts: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        self.remote.ask(&self.protocol, texts, conditions)
    }
}

/// OpenAI's `/embeddings`.
struct OpenAi {
    model: String,
    dimension: usize,
    /// The dimension, where it is asked for.
    sent_dimension: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl Protocol for OpenAi {
    type Result = Vec<f32>;

    fn purpose(&self) -> &'static Purpose {
        &EMBEDDINGS
    }

    fn path(&self) -> Vec<&str> {
        vec!["embeddings"]
    }

    fn body(&self, inputs: &[&Input], _required_only: bool) -> Value {
        let texts: Vec<&str> = inputs.iter().map(|input| input.text.as_str()).collect();
        let mut body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        if let Some(dimension) = self.sent_dimension {
            body["dimensions"] = json!(dimension);
        }
        body
    }

    fn has_optional_fields(&self) -> bool {
        false
    }

    fn max_answer_bytes(&self, inputs: &[&Input]) -> u64 {
        (1 << 20) + MAX_BYTES_PER_NUMBER * (self.dimension * inputs.len()) as u64
    }

    fn read(&self, target: &Target, bytes: &[u8], inputs: usize) -> Result<Vec<Vec<f32>>, Failure> {
        const WHAT: &str = "no list of embeddings";
        let unusable = |why: &str| endpoint::unusable(target, WHAT, why);
        let answer: Answer = endpoint::json(target, WHAT, bytes)?;
        let mut vectors = vec![Vec::new(); inputs];
        for Item { index, embedding } in answer.data {
            if embedding.len() != self.dimension {
                return Err(self.wrong_dimension(target, embedding.len()));
            }
            let length = embedding.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            if !(length.is_finite() && length > 0.0) {
                return Err(unusable("An embedding is zero or not finite."));
            }
            let vector = vectors.get_mut(index).ok_or_else(|| unusable("An index is out of range."))?;
            if !vector.is_empty() {
                return Err(unusable(&format!("There are two for text {} of {inputs}.", index + 1)));
            }
            *vector = embedding.iter().map(|x| (f64::from(*x) / length) as f32).collect();
        }
        match vectors.iter().position(Vec::is_empty) {
            Some(missing) => Err(unusable(&format!("There is none for text {} of {inputs}.", missing + 1))),
            None => Ok(vectors),
        }
    }
}

impl OpenAi {
    fn wrong_dimension(&self, target: &Target, found: usize) -> Failure {
        let message =
            format!("the embeddings endpoint gives {found} numbers per text, not {}", self.dimension);
        failure(FailureCode::NotLoaded, message).detail(format!("It is at {}.", target.shown()))
    }
}
