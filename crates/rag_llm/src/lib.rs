//! One GGUF chat model in a process of its own: what the engine and that process say to each other, and what of it needs no
//! llama.cpp. The program itself is `main.rs`, which is compiled with the feature `llama` alone.
//!
//! The process is a child of the engine's and is spoken to over its standard streams, in [`rag_wire`]'s frames.

#![forbid(unsafe_code)]

mod conversation;
mod grammar;
mod message;
mod threads;
mod written;

pub use conversation::{Segment, segments, stand_in};
pub use grammar::grammar_of_schema;
pub use message::{Ask, Load, LoadedModel, Outcome, PROTOCOL, Question, Told};
pub use threads::Threads;
pub use written::WholeCharacters;

/// Most tokens of a conversation and its answer together, whatever a model takes: the memory for them is taken at the start.
pub const MAX_CONTEXT: u32 = 8192;
