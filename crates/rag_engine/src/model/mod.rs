//! Models on disk and in memory: what a folder says, its tokenizer, its ONNX sessions, and who loads them when.

pub mod endpoint;
pub mod folder;
mod gguf;
mod graph;
pub mod onnx_file;
pub mod pair;
mod plain_words;
mod pooled;
pub mod pooling;
pub mod registry;
pub mod runtime;
pub mod scoring;
pub mod session;
pub mod tokenizer;

pub use folder::{ModelFolder, Pooling};
pub(crate) use registry::not_loaded;
pub use registry::{Model, Registry};
pub use session::Row;
