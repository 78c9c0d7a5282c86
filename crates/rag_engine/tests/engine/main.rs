//! The real binary, started in a temporary folder and spoken to over its socket.
//!
//! Models, ONNX Runtime and the program of local chat models are found through `RAG_TEST_MODELS` (a folder of model
//! folders), `RAG_TEST_ONNXRUNTIME` (the library's path) and `RAG_TEST_LLM` (the program's); `make test` sets all. Without them
//! these tests fail.

#![allow(clippy::unwrap_used)]

mod chat;
mod conformance;
mod embed;
mod fake;
mod gpu_style;
mod http;
mod life;
mod load;
mod local_chat;
mod measure;
mod memory;
mod prepare;
mod protocol;
mod pull;
mod remote;
mod remote_rerank;
mod rerank;
mod running;
mod streaming;
mod synthetic;
mod token_rerankers;
