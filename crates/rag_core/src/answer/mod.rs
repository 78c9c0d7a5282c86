//! From passages to an answer with citations: extractive, or by a prompt whose completion is checked.
//!
//! Scoring sentences by a model, and asking a language model, is the caller's work; here is what goes into
//! them and what is made of what comes out.

pub mod answerable;
pub mod beside;
pub mod block;
pub mod cite;
pub mod claim;
mod code;
pub mod complexity;
pub mod confidence;
pub mod delta;
pub mod extract;
pub mod gap;
pub mod leak;
pub mod names;
pub mod neutralise;
pub mod plain;
pub mod prompt;
pub mod snippet;
mod statement;
pub mod unit;

/// A text that was found and may be cited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage<'a> {
    /// Title of its document; empty if it has none.
    pub title: &'a str,
    /// Headings above it, from the outermost down.
    pub header_path: &'a [String],
    /// The header of a table that the passage begins within: its row of names, with or without the dashes below.
    pub table_header: Option<&'a str>,
    /// The passage itself.
    pub text: &'a str,
}

/// Compiles the patterns of these modules, which takes some tens of milliseconds, before one is needed: a process that forks others
/// does it once for all of them.
pub fn prepare() {
    cite::prepare();
    delta::prepare();
    gap::prepare();
    neutralise::prepare();
    plain::prepare();
}
