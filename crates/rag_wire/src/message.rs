//! What a backend and the engine say to each other.

use rag_core::answer::answerable::AnswerWeights;
use rag_core::chunking::ChunkOptions;
use rag_core::document::{ParsedDocument, PreparedDocument};
use serde::{Deserialize, Serialize};

/// First message on a connection, from the backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`crate::PROTOCOL_VERSION`] of the backend's library.
    pub protocol: u32,
}

/// The engine's answer to [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`crate::PROTOCOL_VERSION`] of the engine. If it differs, the engine closes the connection.
    pub protocol: u32,
    /// Version of the engine's package.
    pub version: String,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which queue it waits in.
    pub lane: Lane,
    /// Who asks, for fair queueing and for cache keys: opaque to the engine.
    pub principals: Vec<String>,
    /// The engine gives up and answers [`FailureCode::Deadline`] after this many milliseconds.
    pub deadline_ms: Option<u32>,
    /// Nothing of it may go beyond this machine, whatever the settings allow.
    pub local_only: bool,
    /// What is asked.
    pub call: Call,
}

/// The two queues: interactive work goes before bulk work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Lane {
    /// A user waits for it.
    Interactive,
    /// Background work.
    Bulk,
}

/// What is asked of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Health, load and counters.
    Status,
    /// The models that were found.
    Models,
    /// Vectors for texts, L2-normalised, in the order of the texts.
    Embed {
        /// Name of an embedding model; `None` is the default model.
        model: Option<String>,
        /// Which prefix the model wants.
        role: TextRole,
        /// At most [`crate::MAX_FRAME_BYTES`] in all. A text beyond the model's limit is refused, never cut.
        texts: Vec<String>,
    },
    /// Relevance of passages to a query: logits, in the order of the passages. The probabilities of a model behind an
    /// endpoint come as logits too.
    Rerank {
        /// Name of a reranking model; `None` is the default one.
        model: Option<String>,
        /// The query.
        query: String,
        /// The passages; one beyond the model's limit is cut at its end.
        passages: Vec<String>,
        /// Score no more of the first passages than the model's budget of pairs; the reply then has fewer scores.
        within_budget: bool,
    },
    /// Parse and chunk a document.
    Prepare(Prepare),
    /// Parse a document.
    Parse {
        /// The document.
        content: Content,
        /// Its media type, if the user said so; else it is detected by content.
        media_type: Option<String>,
    },
    /// One completion by the configured chat models: by the model that is asked for, or else by the fallback models, one
    /// after the other.
    Chat(Chat),
    /// The same, answered by [`Reply::Delta`] as often as the model writes something, and then as `Chat` is.
    ChatStream(Chat),
    /// How many tokens texts have for a chat model of this machine.
    CountTokens {
        /// Its name, with [`crate::LOCAL_MODEL`] before it.
        model: String,
        /// The texts.
        texts: Vec<String>,
    },
}

/// Whether a text asks or is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TextRole {
    /// A question: gets the model's query prefix.
    Query,
    /// A document's text: gets the model's passage prefix.
    Passage,
}

/// A document to parse and chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// The document.
    pub content: Content,
    /// Its media type, if the user said so; else it is detected by content.
    pub media_type: Option<String>,
    /// Its title, if the user gave one; goes into the context of each chunk.
    pub title: Option<String>,
    /// Embedding model whose tokenizer counts; `None` is the default model.
    pub model: Option<String>,
    /// Its language by an English name such as `german`, whose abbreviations end no sentence; if it is known.
    pub language: Option<String>,
    /// How to cut.
    pub chunking: ChunkOptions,
}

/// A document's content as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// Text.
    Text(String),
    /// A file.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
}

impl Content {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// A chat request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Chat {
    /// Name of a model, see [`crate::ChatModels`]; `None` is the configured one.
    pub model: Option<String>,
    /// The conversation, system message first.
    pub messages: Vec<ChatMessage>,
    /// Most tokens to generate.
    pub max_tokens: u32,
    /// Sampling temperature.
    pub temperature: f32,
    /// Probability mass that tokens are sampled from, 0 to 1; `None` leaves it to the model.
    pub top_p: Option<f32>,
    /// JSON schema that the answer must follow, as text.
    pub json_schema: Option<String>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// Its text.
    pub content: String,
}

/// The engine's answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Call::Status`].
    Status(EngineStatus),
    /// To [`Call::Models`].
    Models(Vec<ModelInfo>),
    /// To [`Call::Embed`].
    Embeddings(Embeddings),
    /// To [`Call::Rerank`].
    Scores {
        /// The model that scored.
        model: String,
        /// One logit per passage that was scored, from the first on.
        scores: Vec<f32>,
    },
    /// To [`Call::Prepare`].
    Prepared(PreparedDocument),
    /// To [`Call::Parse`].
    Parsed(ParsedDocument),
    /// To [`Call::Chat`], and the last to [`Call::ChatStream`].
    Completion(Completion),
    /// To any call that failed.
    Failed(Failure),
    /// To [`Call::ChatStream`]: what the model has written since the last one. It is not the last reply.
    Delta(String),
    /// To [`Call::CountTokens`]: a number for each text.
    TokenCounts(Vec<u32>),
}

/// Vectors, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// The model that made them.
    pub model: String,
    /// Numbers per vector.
    pub dimension: u32,
    /// `dimension` numbers per text.
    pub values: Vec<f32>,
}

/// What a chat model answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Completion {
    /// The text.
    pub text: String,
    /// The model's name, as the endpoint says it.
    pub model: String,
    /// The model's name, as it was asked for.
    pub asked_model: String,
    /// Models that were asked before and failed.
    pub failed_models: Vec<FailedModel>,
    /// Tokens read, if the endpoint says so.
    pub prompt_tokens: Option<u32>,
    /// Tokens written, if the endpoint says so.
    pub completion_tokens: Option<u32>,
}

/// A chat model that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedModel {
    /// Its name, as it was asked for.
    pub model: String,
    /// Why, in words for everybody.
    pub reason: String,
}

/// Why a request failed, in the form of a Postgres error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure; maps to one SQLSTATE.
    pub code: FailureCode,
    /// Lower-case sentence with value and limit.
    pub message: String,
    /// More facts.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailureCode {
    /// 22023: an argument makes no sense.
    InvalidArgument,
    /// 42704: no model of that name.
    UnknownModel,
    /// 55000: the model or library is not there or did not load.
    NotLoaded,
    /// 0A000: not supported, such as an unknown media type.
    Unsupported,
    /// 22000: the document does not parse.
    NotParsable,
    /// 54000: over a limit.
    LimitExceeded,
    /// 53000: the queue is full.
    QueueFull,
    /// 57014: the deadline passed.
    Deadline,
    /// 42501: not allowed by the settings, such as a remote endpoint.
    NotAllowed,
    /// 58000: an endpoint failed.
    Provider,
    /// XX000: a bug.
    Internal,
    /// 38000: what parses the document was killed from outside, by the kernel for want of memory or by somebody. Another
    /// try may succeed.
    Killed,
}

/// A model folder that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its folder's name.
    pub name: String,
    /// What it does.
    pub kind: ModelKind,
    /// Numbers per vector; 0 for other kinds.
    pub dimension: u32,
    /// Most tokens of one input, special tokens and prefix included; of a chat model, of a conversation with its answer.
    pub max_tokens: u32,
    /// `mean` or `cls`; empty for other kinds.
    pub pooling: String,
    /// Put before a query.
    pub query_prefix: String,
    /// Put before a passage.
    pub passage_prefix: String,
    /// Whether a session is open.
    pub loaded: bool,
    /// Whether it is the default of its kind.
    pub is_default: bool,
    /// Why it cannot be used, if so.
    pub problem: Option<String>,
    /// SPDX licence, if the folder says so.
    pub license: Option<String>,
    /// Languages it was made for, as ISO 639 codes, if the folder says so.
    pub languages: Vec<String>,
    /// For a model behind an endpoint: its name there and the host.
    pub endpoint: Option<String>,
    /// Of a reranker: least score, from 0 to 1, of what supports an answer, if the folder says so.
    pub answer_threshold: Option<f64>,
    /// Of a reranker: how its scores tell whether there is an answer, if the folder says so.
    pub answer_weights: Option<AnswerWeights>,
}

/// What a model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModelKind {
    /// Texts to vectors.
    Embedding,
    /// Query and passage to a relevance score.
    Reranker,
    /// A conversation to its next message.
    Chat,
}

/// Health, load and counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// Version of the engine's package.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Version of ONNX Runtime, or why there is none.
    pub onnxruntime: Result<String, String>,
    /// Device in use: `cpu` or `cuda:0`.
    pub device: String,
    /// One line, if the device differs from what was asked for.
    pub device_note: Option<String>,
    /// What the parse child is confined by, in words, such as `rlimits, landlock, seccomp`.
    pub parse_sandbox: String,
    /// Whether a chat endpoint is configured and allowed; else why not.
    pub chat: Result<String, String>,
    /// Load and counters.
    pub counters: EngineCounters,
}

/// Numbers about the engine's work for all users together. Their names are columns of `rag.engine_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCounters {
    /// Requests waiting.
    pub queued: u32,
    /// Requests answered.
    pub served: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Texts embedded.
    pub texts_embedded: u64,
    /// Tokens embedded.
    pub tokens_embedded: u64,
    /// Pairs scored by a reranker.
    pub pairs_scored: u64,
    /// Cache look-ups that found something.
    pub cache_hits: u64,
    /// Cache look-ups that did not.
    pub cache_misses: u64,
    /// Bytes held by the caches.
    pub cache_bytes: u64,
    /// Resident memory of the engine, in bytes.
    pub resident_bytes: u64,
}
