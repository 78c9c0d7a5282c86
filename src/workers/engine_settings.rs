//! What the engine is told, read from the server's settings and from the key file.

use super::machine;
use crate::{config, engine};
use rag_wire::{ChatEndpoint, ChatModels, OcrProgram, ParseLimits, Settings, read_api_key};
use std::path::Path;

/// The engine's settings, and what is wrong with them: sentences for the log.
pub(super) fn read() -> (Settings, Vec<String>) {
    let mut problems = Vec::new();
    let settings = Settings {
        socket: engine::SOCKET.to_owned(),
        model_folders: config::model_folders(),
        onnxruntime: config::onnxruntime_path(),
        embedding_model: config::embedding_model(),
        rerank_model: config::rerank_model(),
        device: config::device(),
        threads: config::threads(),
        bulk_threads: config::bulk_threads(),
        memory_limit_mb: config::engine_memory_limit().unwrap_or_else(machine::half_of_memory_mb),
        queue_limit: config::engine_queue_limit(),
        cache_mb: config::cache_size(),
        cache_ttl_s: config::cache_lifetime(),
        parse: ParseLimits {
            max_document_bytes: config::max_document_bytes(),
            memory_mb: config::parse_memory_limit(),
            cpu_seconds: config::parse_cpu_limit(),
            sandbox: config::parse_sandbox(),
            ocr: config::ocr_program().map(|path| OcrProgram {
                path,
                memory_mb: config::parse_memory_limit(),
                seconds: config::ocr_timeout(),
            }),
        },
        llm_program: config::llm_program(),
        chat: config::has_chat_model().then(|| ChatModels {
            model: config::llm_model(),
            simple_model: config::llm_simple_model(),
            fallback_models: config::llm_fallback_models(),
            endpoint: chat_endpoint().unwrap_or_else(|problem| {
                problems.push(problem);
                None
            }),
        }),
        allow_remote: config::allow_remote(),
    };
    (settings, problems)
}

/// Whether the engine must be started anew to take on settings.
pub(super) fn need_restart(running: &Settings, wanted: &Settings) -> bool {
    // Named one by one, so that a new setting is decided about here before it compiles.
    let Settings {
        socket,
        model_folders,
        onnxruntime,
        embedding_model,
        rerank_model,
        device,
        threads,
        bulk_threads,
        memory_limit_mb,
        queue_limit: _,
        cache_mb: _,
        cache_ttl_s: _,
        parse: _,
        llm_program,
        chat: _,
        allow_remote: _,
    } = wanted;
    running.socket != *socket
        || running.model_folders != *model_folders
        || running.onnxruntime != *onnxruntime
        || running.embedding_model != *embedding_model
        || running.rerank_model != *rerank_model
        || running.device != *device
        || running.threads != *threads
        || running.bulk_threads != *bulk_threads
        || running.memory_limit_mb != *memory_limit_mb
        || running.llm_program != *llm_program
}

/// The chat endpoint. Without its key it is left out, so that no question is sent without one.
fn chat_endpoint() -> Result<Option<ChatEndpoint>, String> {
    let Some(url) = config::llm_url() else { return Ok(None) };
    let api_key = config::llm_api_key_file().map(|path| key(&path)).transpose()?;
    Ok(Some(ChatEndpoint {
        url,
        api_key,
        timeout_ms: u32::try_from(config::llm_timeout().as_millis()).unwrap_or(u32::MAX),
        retries: config::llm_retries(),
    }))
}

fn key(path: &Path) -> Result<String, String> {
    let problem = |reason: String| {
        format!("chat endpoint is off: rag_ext.llm_api_key_file \"{}\" {reason}", path.display())
    };
    let file = std::fs::File::open(path).map_err(|error| problem(format!("cannot be read: {error}")))?;
    read_api_key(file).map_err(problem)
}
