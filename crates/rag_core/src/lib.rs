//! Chunking, fusion, prompts and citations: values in, values out.
//!
//! Nothing here reads a file, opens a socket or knows Postgres; what must be known from outside (a
//! tokenizer, say) comes in as a trait.

#![forbid(unsafe_code)]

pub mod option;

pub mod chunking;
pub mod collection;
pub mod document;
pub mod position;

pub mod chunk;
pub mod sentence;

pub mod file_name;
pub mod filter;
pub mod graph;
pub mod metadata;

pub mod acronym;
pub mod answer;
pub mod balance;
pub mod decompose;
pub mod evaluate;
pub mod feedback;
pub mod fuse;
pub mod near_duplicate;
pub mod query;
pub mod rerank;
pub mod rewrite;
pub mod selectivity;
pub mod top_up;

pub mod merging;

pub mod hash;
pub mod ids;

mod terms;
mod word_pattern;
pub mod words;
