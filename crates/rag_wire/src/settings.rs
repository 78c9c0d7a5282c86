//! What the supervisor tells the engine over its standard input: once at the start, and again whenever the
//! server's configuration is reloaded.

use serde::{Deserialize, Serialize};
use std::io::Read;

/// Exit status of an engine that held more memory than [`Settings::memory_limit_mb`].
pub const OVER_MEMORY_LIMIT: i32 = 3;

/// Longest API key, in bytes.
pub const MAX_KEY_BYTES: u64 = 16 * 1024;

/// Reads an API key, which is one line of at most [`MAX_KEY_BYTES`].
///
/// Errors say in words what is wrong and nothing of what was read.
pub fn read_api_key(from: impl Read) -> Result<String, String> {
    let mut key = String::new();
    from.take(MAX_KEY_BYTES + 1)
        .read_to_string(&mut key)
        .map_err(|error| format!("cannot be read: {}", error.kind()))?;
    let trimmed = key.trim();
    if trimmed.is_empty() || key.len() as u64 > MAX_KEY_BYTES || trimmed.contains(char::is_control) {
        return Err(format!("does not hold a key: one line of at most {MAX_KEY_BYTES} bytes is expected"));
    }
    Ok(trimmed.to_owned())
}

/// Everything that the engine is told; nothing comes from its environment.
///
/// Sent as one frame. A later frame replaces the settings that can change while it runs (`chat`, limits,
/// caches); the supervisor restarts the engine for the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Path of the socket to listen on, relative to the working directory or absolute.
    pub socket: String,
    /// Folders that hold model folders, first match wins.
    pub model_folders: Vec<String>,
    /// Path of `libonnxruntime.so`.
    pub onnxruntime: String,
    /// Default embedding model.
    pub embedding_model: String,
    /// Default reranking model; empty for none.
    pub rerank_model: String,
    /// `auto`, `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// Threads for interactive work; 0 is all cores.
    pub threads: u32,
    /// Threads for bulk work; 0 is half of the cores, at least one.
    pub bulk_threads: u32,
    /// Address-space-independent limit on resident memory, in MiB; 0 for none.
    pub memory_limit_mb: u32,
    /// Most requests that may wait, per lane.
    pub queue_limit: u32,
    /// Most MiB that the caches may hold; 0 turns them off.
    pub cache_mb: u32,
    /// Seconds after which a cached value expires.
    pub cache_ttl_s: u32,
    /// Limits of the parse child.
    pub parse: ParseLimits,
    /// Path of `rag-llm`, which runs chat models of this machine.
    pub llm_program: String,
    /// The chat models, if any are configured.
    pub chat: Option<ChatModels>,
    /// Whether anything beyond loopback may be called.
    pub allow_remote: bool,
}

/// Limits of one parse child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParseLimits {
    /// Most bytes of a document.
    pub max_document_bytes: u64,
    /// Address space, in MiB.
    pub memory_mb: u32,
    /// CPU time, in seconds.
    pub cpu_seconds: u32,
    /// `auto`, `require` or `off`.
    pub sandbox: String,
    /// What reads scans, if anything does.
    pub ocr: Option<OcrProgram>,
}

/// A program that reads a PDF from its standard input and writes its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OcrProgram {
    /// Its path.
    pub path: String,
    /// Address space, in MiB.
    pub memory_mb: u32,
    /// Time for one document, both on the wall and of the CPU.
    pub seconds: u32,
}

/// Beginning of the name of a chat model of this machine; the name of its folder follows.
pub const LOCAL_MODEL: &str = "local/";

/// The folder of a chat model of this machine; `None` for one that is asked for at the endpoint.
pub fn local_model(name: &str) -> Option<&str> {
    name.strip_prefix(LOCAL_MODEL)
}

/// Which chat models are asked. A name that begins with [`LOCAL_MODEL`] is a folder's on this machine, any other one is known
/// to the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatModels {
    /// The model that is asked first, unless a request names another one.
    pub model: String,
    /// The model that requests name for simple questions, if there is one.
    pub simple_model: Option<String>,
    /// Names of models that are asked, one after the other, where that one fails.
    pub fallback_models: Vec<String>,
    /// The endpoint, if one is configured.
    pub endpoint: Option<ChatEndpoint>,
}

impl ChatModels {
    /// The folders of all models of this machine that are named.
    pub fn local_models(&self) -> impl Iterator<Item = &str> {
        let names = [&self.model].into_iter().chain(&self.simple_model).chain(&self.fallback_models);
        names.filter_map(|name| local_model(name))
    }
}

/// An OpenAI-compatible chat endpoint.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatEndpoint {
    /// Base URL, such as `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// Bearer token, read from a file by the supervisor.
    pub api_key: Option<String>,
    /// Time-out of one try, in milliseconds.
    pub timeout_ms: u32,
    /// Tries after the first.
    pub retries: u32,
}

impl std::fmt::Debug for ChatEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatEndpoint")
            .field("url", &self.url)
            .field("api_key", &self.api_key.as_ref().map(|_| "…"))
            .field("timeout_ms", &self.timeout_ms)
            .field("retries", &self.retries)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_is_one_line_and_no_error_repeats_it() {
        assert_eq!(read_api_key(&b" sesame-key\n"[..]).unwrap(), "sesame-key");
        let long = vec![b'x'; MAX_KEY_BYTES as usize + 1];
        for content in [&b""[..], b" \n", b"sesame\nsesame", b"sesame\xff", &long] {
            let error = read_api_key(content).unwrap_err();
            assert!(!error.contains("sesame") && !error.contains("xxx"), "{error}");
        }
    }
}
