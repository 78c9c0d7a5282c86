//! Messages between the engine and the process that runs a model.

use rag_wire::{ChatMessage, Failure};
use serde::{Deserialize, Serialize};

/// Version of these messages. An engine that runs on while both programs are replaced must not misread a newer child.
pub const PROTOCOL: u32 = 2;

/// The first frame to the child: what to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// [`PROTOCOL`] of the engine.
    pub protocol: u32,
    /// Absolute path of the GGUF file.
    pub file: String,
    /// Most tokens of a conversation and its answer together; less where the model takes less.
    pub max_context: u32,
    /// Threads to compute with.
    pub threads: u32,
}

/// A later frame to the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// Write the next message of a conversation. It is begun when the one before has ended.
    Question(Question),
    /// Nobody waits any more for the answers up to this number.
    Stop(u64),
    /// Say how many tokens texts have, also while an answer is written. Not before the model is loaded.
    Count(u64, Vec<String>),
}

/// A conversation to go on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Ascending, from 1.
    pub number: u64,
    /// The conversation, system message first.
    pub messages: Vec<ChatMessage>,
    /// Most tokens to write.
    pub max_tokens: u32,
    /// 0 takes the likeliest token each time.
    pub temperature: f32,
    /// Probability mass that tokens are sampled from, 0 to 1.
    pub top_p: Option<f32>,
    /// GBNF that the answer follows; its start is `root`.
    pub grammar: Option<String>,
}

/// What the child says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Once, before all else: the model is there.
    Loaded(LoadedModel),
    /// Or it is not, and the child ends.
    NotLoaded(Failure),
    /// What was written of an answer since the last time; characters may be cut.
    Written(u64, Vec<u8>),
    /// The answer has ended.
    Ended(u64, Outcome),
    /// Tokens of each text of an [`Ask::Count`] of that number; none where they cannot be counted.
    Counted(u64, Vec<u32>),
}

/// A model that is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedModel {
    /// Most tokens of a conversation and its answer together.
    pub context: u32,
    /// What confines the child, such as `landlock`.
    pub confined_by: Vec<String>,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// By itself, or at its limit.
    Whole {
        /// Tokens read.
        prompt_tokens: u32,
        /// Tokens written.
        completion_tokens: u32,
    },
    /// Nobody waited for it.
    Stopped,
    /// With a failure.
    Failed(Failure),
}
