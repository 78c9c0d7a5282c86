//! What the engine tells a parse child, and what the child answers: one frame each.

use rag_core::document::ParsedDocument;
use rag_wire::{Content, Failure, ParseLimits};
use serde::{Deserialize, Serialize};

/// First frame on the child's standard input: how it must confine itself before it reads anything else.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Confinement {
    /// Its limits.
    pub(super) limits: ParseLimits,
}

/// Second frame: what to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum ChildRequest {
    /// Parse a document.
    Parse {
        /// The document.
        content: Content,
        /// Its media type, if it is known.
        media_type: Option<String>,
    },
    /// Try what must not be possible.
    SelfTest,
}

/// The child's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum ChildReply {
    /// The document.
    Parsed(ParsedDocument),
    /// Why there is none.
    Failed(Failure),
    /// What is in force, and which forbidden acts succeeded nevertheless.
    Tested {
        /// Such as `rlimits, landlock, seccomp`.
        in_force: Vec<String>,
        /// Such as `open`; empty if confinement holds.
        possible: Vec<String>,
    },
}
