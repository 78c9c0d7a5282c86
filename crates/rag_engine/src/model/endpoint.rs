//! What `rag_model.json` says of an endpoint that computes a model.

use serde::Deserialize;
use std::path::PathBuf;

/// An endpoint that computes the model, as `rag_model.json` names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Base address, such as `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// The model's name there.
    pub model: String,
    /// What it speaks; by default OpenAI's way for an embedding model, and Cohere's for a reranker.
    #[serde(default)]
    pub api: Option<Api>,
    /// What a reranker's scores are; by default what is usual for what it speaks.
    #[serde(default)]
    pub scores: Option<ScoreScale>,
    /// File with the API key; a relative path starts at the model's folder.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Most texts of one request.
    #[serde(default = "default_batch")]
    pub batch: usize,
    /// Time-out of one try, in milliseconds.
    #[serde(default = "default_timeout")]
    pub timeout_ms: u64,
    /// Tries after the first.
    #[serde(default = "default_retries")]
    pub retries: u32,
    /// Whether the wanted dimension is sent along, for models that can give several.
    #[serde(default)]
    pub send_dimensions: bool,
}

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI's `/embeddings`.
    OpenAi,
    /// Cohere's `/rerank`, which many servers speak too.
    Cohere,
    /// Jina's `/rerank`, which is Cohere's.
    Jina,
    /// `/rerank` of text-embeddings-inference.
    Tei,
    /// DeepInfra's path per model.
    DeepInfra,
}

/// What a reranker's scores are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreScale {
    /// From 0 to 1.
    Probability,
    /// Any number, such that the logistic function makes a probability of it.
    Logit,
}

fn default_batch() -> usize {
    64
}

fn default_timeout() -> u64 {
    60_000
}

fn default_retries() -> u32 {
    4
}
