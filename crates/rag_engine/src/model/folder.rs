//! A model folder in the shape of sentence-transformers, read without opening the model.
//!
//! What is read, the first that says something wins: `rag_model.json`, `sentence_bert_config.json`,
//! `1_Pooling/config.json`, `config_sentence_transformers.json`, `modules.json`, `config.json`,
//! `tokenizer_config.json`. A folder with a GGUF file is read by [`gguf`]. A model behind an endpoint has, in place of a graph, `endpoint` in `rag_model.json`. The
//! graph is `model.onnx` or `onnx/model.onnx`, on a GPU a `model_fp16.onnx` beside it; weights beside it are found by
//! ONNX Runtime itself. SHA-256 sums in `rag_model.json` are checked by whoever fetches a model, not at each load.

use super::endpoint::{Api, Endpoint};
use super::gguf;
use super::scoring::{LateInteraction, Scoring, YesNo};
use crate::device::Device;
use rag_core::answer::answerable::AnswerWeights;
use rag_wire::{ModelInfo, ModelKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Tokens that a model takes when its folder does not say.
const DEFAULT_MAX_TOKENS: usize = 512;

/// `model_max_length` beyond this means "no limit" in tokenizer configurations.
const UNLIMITED: f64 = 1e6;

/// A graph in half precision, by the name that published models give it.
const HALF_PRECISION: &str = "model_fp16.onnx";

/// How token vectors become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean over all tokens that are not padding.
    Mean,
    /// The first token's vector.
    Cls,
    /// The largest value of each number.
    Max,
    /// The last token's vector.
    Last,
}

impl Pooling {
    /// Its name as `rag_model.json` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Cls => "cls",
            Self::Max => "max",
            Self::Last => "last",
        }
    }
}

/// What a folder says about the backend that computes its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendConfig {
    /// ONNX Runtime on this machine.
    Onnx {
        /// The graph's file.
        graph: PathBuf,
    },
    /// An endpoint.
    Endpoint(Endpoint),
    /// A chat model in a process of its own.
    Gguf {
        /// The model's file.
        file: PathBuf,
    },
}

/// What a folder says about its model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFolder {
    /// The folder's name.
    pub name: String,
    /// What computes it.
    pub backend: BackendConfig,
    /// The tokenizer's file.
    pub tokenizer: PathBuf,
    /// What it does.
    pub kind: ModelKind,
    /// How token vectors become one; of no meaning for a reranker.
    pub pooling: Pooling,
    /// What a reranker on this machine computes.
    pub scoring: Scoring,
    /// Most tokens of one input, special tokens and prefix included.
    pub max_tokens: usize,
    /// Numbers per vector, if the folder says so.
    pub dimension: Option<u32>,
    /// Put before a query.
    pub query_prefix: String,
    /// Put before a passage.
    pub passage_prefix: String,
    /// Id of the padding token.
    pub pad_id: u32,
    /// SPDX licence.
    pub license: Option<String>,
    /// Languages that it was made for, as ISO 639 codes; empty where nothing says so.
    pub languages: Vec<String>,
    /// Of a reranker: least score, from 0 to 1, of what supports an answer, if the folder says so.
    pub answer_threshold: Option<f64>,
    /// Of a reranker: how its scores tell whether there is an answer, if the folder says so.
    pub answer_weights: Option<AnswerWeights>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RagModel {
    pub(super) endpoint: Option<Endpoint>,
    tokenizer: Option<String>,
    pub(super) languages: Vec<String>,
    pub(super) kind: Option<String>,
    pooling: Option<Pooling>,
    pub(super) max_tokens: Option<usize>,
    dimension: Option<u32>,
    query_prefix: Option<String>,
    passage_prefix: Option<String>,
    pub(super) license: Option<String>,
    yes_no: Option<YesNo>,
    late_interaction: Option<LateInteraction>,
    answer_threshold: Option<f64>,
    answer_weights: Option<AnswerWeights>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Config {
    architectures: Vec<String>,
    model_type: String,
    hidden_size: Option<u32>,
    max_position_embeddings: Option<usize>,
    pad_token_id: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PoolingConfig {
    word_embedding_dimension: Option<u32>,
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_max_tokens: bool,
    pooling_mode_mean_sqrt_len_tokens: bool,
    pooling_mode_weightedmean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SentenceBert {
    max_seq_length: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SentenceTransformers {
    prompts: HashMap<String, Option<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenizerConfig {
    model_max_length: Option<f64>,
}

impl ModelFolder {
    /// Finds a model by name in `folders`, the first match wins. `Ok(None)` if no folder has it.
    ///
    /// Errors say in words what is wrong with the name or the folder.
    pub fn find(folders: &[String], name: &str) -> Result<Option<Self>, String> {
        if !is_plain_name(name) {
            return Err("a model's name is the plain name of its folder".into());
        }
        let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_dir());
        found.map(|path| Self::read(&path, name, folders)).transpose()
    }

    /// All models in `folders`, by name; a name that occurs twice is taken from the first folder.
    pub fn list(folders: &[String]) -> Vec<(String, Result<Self, String>)> {
        let mut names: Vec<String> = folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flat_map(|entries| entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()))
            .filter(|name| is_plain_name(name))
            .collect();
        names.sort_unstable();
        names.dedup();
        let read = |name: String| Some((name.clone(), Self::find(folders, &name).transpose()?));
        names.into_iter().filter_map(read).collect()
    }

    /// Reads one folder. A model whose tokenizer it uses is looked for beside it, then in `folders`.
    pub fn read(path: &Path, name: &str, folders: &[String]) -> Result<Self, String> {
        let mut ours: RagModel = read_json(path, "rag_model.json")?;
        if let Some(chat_model) = gguf::read(path, name, &ours) {
            return chat_model;
        }
        let scoring = Scoring::read(ours.yes_no.take(), ours.late_interaction.take())
            .map_err(|problem| format!("rag_model.json: {problem}"))?;
        let tokenizer = find_tokenizer(path, &ours, folders)?;
        let config: Config = read_json(path, "config.json")?;
        let kind = match ours.kind.as_deref() {
            Some("embedding") => ModelKind::Embedding,
            Some("reranker") => ModelKind::Reranker,
            Some(other) => return Err(format!("rag_model.json: unknown kind {:?}", excerpt(other))),
            None if scoring != Scoring::CrossEncoder => ModelKind::Reranker,
            None => kind_by_architecture(path, &config),
        };
        if scoring != Scoring::CrossEncoder && (kind == ModelKind::Embedding || ours.endpoint.is_some()) {
            return Err("rag_model.json: yes_no and late_interaction are for a reranker with a graph".into());
        }
        check_threshold(ours.answer_threshold, kind)?;
        check_weights(ours.answer_weights, kind)?;
        let backend = read_backend(path, &ours, kind)?;
        let (pooling, width) = read_pooling(path, ours.pooling, kind)?;
        let (query_prefix, passage_prefix) = read_prefixes(path, name, &ours)?;
        Ok(Self {
            name: name.to_owned(),
            backend,
            tokenizer,
            kind,
            pooling,
            scoring,
            max_tokens: read_max_tokens(path, &ours, &config)?,
            dimension: match kind {
                ModelKind::Embedding => ours.dimension.or(width).or(config.hidden_size),
                ModelKind::Reranker | ModelKind::Chat => Some(0),
            },
            query_prefix,
            passage_prefix,
            pad_id: config.pad_token_id.unwrap_or(0),
            license: ours.license,
            languages: ours.languages,
            answer_threshold: ours.answer_threshold,
            answer_weights: ours.answer_weights,
        })
    }

    /// What is told about it.
    pub fn info(&self) -> ModelInfo {
        ModelInfo {
            name: self.name.clone(),
            kind: self.kind,
            dimension: self.dimension.unwrap_or(0),
            max_tokens: self.max_tokens as u32,
            pooling: match (self.kind, &self.backend) {
                (ModelKind::Embedding, BackendConfig::Onnx { .. }) => self.pooling.name().to_owned(),
                _ => String::new(),
            },
            query_prefix: self.query_prefix.clone(),
            passage_prefix: self.passage_prefix.clone(),
            loaded: false,
            is_default: false,
            problem: None,
            license: self.license.clone(),
            languages: self.languages.clone(),
            endpoint: match &self.backend {
                BackendConfig::Onnx { .. } | BackendConfig::Gguf { .. } => None,
                BackendConfig::Endpoint(endpoint) => {
                    Some(format!("{} at {}", endpoint.model, shown_url(&endpoint.url)))
                }
            },
            answer_threshold: self.answer_threshold,
            answer_weights: self.answer_weights,
        }
    }

    /// The graph's file, if the model has one.
    pub fn graph(&self) -> Option<&Path> {
        match &self.backend {
            BackendConfig::Onnx { graph } => Some(graph),
            BackendConfig::Endpoint(_) | BackendConfig::Gguf { .. } => None,
        }
    }

    /// The graph's file for a device: on a GPU the one in half precision, where it lies beside the other.
    pub fn graph_on(&self, device: Device) -> Option<PathBuf> {
        let graph = self.graph()?;
        let half = graph.with_file_name(HALF_PRECISION);
        Some(if device != Device::Cpu && half.is_file() { half } else { graph.to_owned() })
    }
}

/// A base address without a name and password that somebody put into it.
fn shown_url(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let host = url[start..].split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default()
}

fn read_backend(path: &Path, ours: &RagModel, kind: ModelKind) -> Result<BackendConfig, String> {
    if let Some(endpoint) = &ours.endpoint {
        check_endpoint(endpoint, ours, kind).map_err(|problem| format!("rag_model.json: {problem}"))?;
        let mut endpoint = endpoint.clone();
        endpoint.api_key_file = endpoint.api_key_file.map(|file| path.join(file));
        return Ok(BackendConfig::Endpoint(endpoint));
    }
    graph(path)
        .map(|graph| BackendConfig::Onnx { graph })
        .ok_or_else(|| "the folder has no model.onnx".into())
}

/// The graph's file in a folder, if there is one.
pub(super) fn graph(path: &Path) -> Option<PathBuf> {
    ["model.onnx", "onnx/model.onnx"].iter().map(|file| path.join(file)).find(|graph| graph.is_file())
}

fn check_weights(weights: Option<AnswerWeights>, kind: ModelKind) -> Result<(), &'static str> {
    match (weights, kind) {
        (None, _) => Ok(()),
        (Some(_), ModelKind::Embedding | ModelKind::Chat) => {
            Err("rag_model.json: answer_weights are for a reranker")
        }
        (Some(weights), ModelKind::Reranker) if weights.are_finite() => Ok(()),
        (Some(_), ModelKind::Reranker) => Err("rag_model.json: answer_weights must be finite"),
    }
}

fn check_threshold(threshold: Option<f64>, kind: ModelKind) -> Result<(), &'static str> {
    match (threshold, kind) {
        (None, _) => Ok(()),
        (Some(_), ModelKind::Embedding | ModelKind::Chat) => {
            Err("rag_model.json: answer_threshold is for a reranker")
        }
        (Some(threshold), ModelKind::Reranker) if (0.0..=1.0).contains(&threshold) => Ok(()),
        (Some(_), ModelKind::Reranker) => Err("rag_model.json: answer_threshold must be from 0 to 1"),
    }
}

fn check_endpoint(endpoint: &Endpoint, ours: &RagModel, kind: ModelKind) -> Result<(), &'static str> {
    let has_limits = match kind {
        ModelKind::Embedding => ours.dimension.is_some() && ours.max_tokens.is_some(),
        ModelKind::Reranker | ModelKind::Chat => ours.max_tokens.is_some(),
    };
    match (kind, endpoint.api) {
        (ModelKind::Embedding, _) if !has_limits => {
            Err("the endpoint of an embedding model needs dimension and max_tokens")
        }
        (ModelKind::Reranker, _) if !has_limits => Err("the endpoint of a reranker needs max_tokens"),
        (ModelKind::Embedding, None | Some(Api::OpenAi)) if endpoint.scores.is_some() => {
            Err("endpoint.scores is for a reranker")
        }
        (ModelKind::Embedding, None | Some(Api::OpenAi)) => Ok(()),
        (ModelKind::Embedding, Some(_)) => Err("endpoint.api of an embedding model is openai"),
        (ModelKind::Reranker, Some(Api::OpenAi)) => {
            Err("endpoint.api of a reranker is cohere, jina, tei or deepinfra")
        }
        (ModelKind::Reranker, _) if endpoint.send_dimensions => {
            Err("endpoint.send_dimensions is for an embedding model")
        }
        (ModelKind::Reranker | ModelKind::Chat, _) => Ok(()),
    }
}

/// The folder's own tokenizer, or that of the model that `rag_model.json` names: the one beside it, else the first in
/// `folders`.
fn find_tokenizer(path: &Path, ours: &RagModel, folders: &[String]) -> Result<PathBuf, String> {
    let Some(name) = &ours.tokenizer else {
        let own = path.join("tokenizer.json");
        return if own.is_file() { Ok(own) } else { Err("the folder has no tokenizer.json".into()) };
    };
    if !is_plain_name(name) {
        return Err(format!("rag_model.json: {:?} is no name of a model", excerpt(name)));
    }
    let elsewhere = folders.iter().map(|folder| Path::new(folder).join(name));
    std::iter::once(path.with_file_name(name))
        .chain(elsewhere)
        .map(|folder| folder.join("tokenizer.json"))
        .find(|tokenizer| tokenizer.is_file())
        .ok_or_else(|| {
            format!("rag_model.json: no folder of models has a model {name:?} with a tokenizer.json")
        })
}

/// Whether a name can only mean a folder right inside a models folder.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
}

/// A JSON file; its type's default if there is no such file.
fn read_json<T: DeserializeOwned + Default>(folder: &Path, file: &str) -> Result<T, String> {
    match std::fs::read(folder.join(file)) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| format!("{file}: {e}")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(e) => Err(format!("{file}: {e}")),
    }
}

/// A cross-encoder is a sequence classifier that is not a sentence-transformers bi-encoder.
fn kind_by_architecture(folder: &Path, config: &Config) -> ModelKind {
    let classifies = config.architectures.iter().any(|a| a.ends_with("ForSequenceClassification"));
    if classifies && !folder.join("1_Pooling").is_dir() { ModelKind::Reranker } else { ModelKind::Embedding }
}

fn read_pooling(
    folder: &Path,
    ours: Option<Pooling>,
    kind: ModelKind,
) -> Result<(Pooling, Option<u32>), String> {
    let config: PoolingConfig = read_json(folder, "1_Pooling/config.json")?;
    let width = config.word_embedding_dimension;
    if let Some(pooling) = ours {
        return Ok((pooling, width));
    }
    let modes = [
        (config.pooling_mode_mean_tokens, Some(Pooling::Mean)),
        (config.pooling_mode_cls_token, Some(Pooling::Cls)),
        (config.pooling_mode_max_tokens, Some(Pooling::Max)),
        (config.pooling_mode_lasttoken, Some(Pooling::Last)),
        (config.pooling_mode_mean_sqrt_len_tokens, None),
        (config.pooling_mode_weightedmean_tokens, None),
    ];
    let chosen: Vec<_> = modes.into_iter().filter(|(set, _)| *set).collect();
    match (chosen.as_slice(), kind) {
        ([], _) | (_, ModelKind::Reranker) => Ok((Pooling::Mean, width)),
        ([(_, Some(pooling))], _) => Ok((*pooling, width)),
        // Differs from the mean by a factor only, which normalisation takes away.
        ([(_, None)], _) if config.pooling_mode_mean_sqrt_len_tokens => Ok((Pooling::Mean, width)),
        _ => {
            Err("1_Pooling/config.json: this pooling is not supported (mean, cls, max and last token are)"
                .into())
        }
    }
}

fn read_prefixes(folder: &Path, name: &str, ours: &RagModel) -> Result<(String, String), String> {
    let st: SentenceTransformers = read_json(folder, "config_sentence_transformers.json")?;
    let prompt = |names: &[&str]| names.iter().find_map(|name| st.prompts.get(*name).cloned().flatten());
    let query = ours.query_prefix.clone().or_else(|| prompt(&["query", "retrieval.query", "s2p_query"]));
    let passage =
        ours.passage_prefix.clone().or_else(|| prompt(&["passage", "document", "retrieval.passage"]));
    // Published in the model cards, but missing from the configuration files of the older models.
    let known = |name: &str| {
        let name = name.to_ascii_lowercase();
        if name.starts_with("bge-") && name.contains("-en") {
            "Represent this sentence for searching relevant passages: "
        } else {
            ""
        }
    };
    Ok((query.unwrap_or_else(|| known(name).to_owned()), passage.unwrap_or_default()))
}

/// The smallest limit that anything in the folder names. RoBERTa and its kin number positions from
/// `pad_token_id + 1`, so they take that many tokens less than they have positions.
fn read_max_tokens(folder: &Path, ours: &RagModel, config: &Config) -> Result<usize, String> {
    let st: SentenceBert = read_json(folder, "sentence_bert_config.json")?;
    let tokenizer: TokenizerConfig = read_json(folder, "tokenizer_config.json")?;
    let shifted = matches!(
        config.model_type.as_str(),
        "roberta" | "xlm-roberta" | "xlm-roberta-xl" | "camembert" | "mpnet" | "xmod"
    );
    let shift = if shifted { config.pad_token_id.unwrap_or(1) as usize + 1 } else { 0 };
    let positions = config.max_position_embeddings.map(|n| n.saturating_sub(shift));
    let wanted = ours.max_tokens.or(st.max_seq_length);
    let wanted =
        wanted.or(tokenizer.model_max_length.filter(|n| (1.0..UNLIMITED).contains(n)).map(|n| n as usize));
    let limit = match (wanted, positions) {
        (Some(wanted), Some(positions)) => wanted.min(positions),
        (one, other) => one.or(other).unwrap_or(DEFAULT_MAX_TOKENS),
    };
    if limit < 8 { Err(format!("a limit of {limit} tokens leaves no room for text")) } else { Ok(limit) }
}

fn excerpt(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
