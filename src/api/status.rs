//! What works and what does not.

use super::call_even_unloaded;
use crate::config;
use crate::engine;
use crate::error::Result;
use crate::pg::ErrorReport;
use crate::pg::notes::{self, Log};
use crate::pg::{elevation, principal, server, shared, transaction};
use crate::storage::steering::{self, Steered};
use crate::storage::{self, installed, restore};
use pgrx::JsonB;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use rag_wire::{EngineStatus, ModelInfo, ModelKind};
use serde_json::{Value, json};

#[pg_extern(sql = false)]
fn rag_status() -> std::result::Result<String, ErrorReport> {
    call_even_unloaded(|| {
        let mut lines = Lines::default();
        lines.good(format!("rag_ext {} in Postgres", env!("CARGO_PKG_VERSION")));
        describe_workers(&mut lines)?;
        match engine::status() {
            Ok(status) => describe_engine(&mut lines, &status),
            Err(error) => {
                lines.bad(format!("engine: {}", error.message));
                if let Some(last) = shared::engine_state()
                    .and_then(|state| state.last_error)
                    .filter(|_| server::user_is_superuser())
                {
                    lines.bad(format!("engine: last error: {last}"));
                }
                lines.bad("keyword search works; vector search, reranking and ingestion wait for the engine");
            }
        }
        if let Ok(models) = engine::models() {
            describe_models(&mut lines, &models);
        }
        describe_gateways(&mut lines)?;
        describe_logs(&mut lines);
        match principal::current_principals() {
            Ok(_) => describe_documents(&mut lines)?,
            Err(refused) => lines.bad(format!("{}. {}", refused.message, refused.hint.unwrap_or_default())),
        }
        Ok(lines.0.join("\n"))
    })
}

/// Lines of the report, marked by whether all is well.
#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn good(&mut self, line: impl std::fmt::Display) {
        self.0.push(format!("ok       {line}"));
    }

    fn bad(&mut self, line: impl std::fmt::Display) {
        self.0.push(format!("PROBLEM  {line}"));
    }
}

fn describe_workers(lines: &mut Lines) -> Result<()> {
    if !shared::is_available() {
        lines.bad("not preloaded: add rag_ext to shared_preload_libraries and restart the server");
    } else if transaction::in_recovery() {
        lines.good("standby: searches and answers, ingests nothing");
    } else if elevation::elevated(storage::is_replicated)? {
        lines.good("logical subscriber: searches and answers; what is in schema rag comes from the publisher, no worker runs");
    } else if !shared::launcher_is_running() {
        lines.bad("ingestion: the launcher is not running; the server's log says why");
    } else if config::ingest_workers() == 0 {
        lines.bad("ingestion: off (rag_ext.ingest_workers = 0)");
    } else if elevation::elevated(is_being_restored)? {
        lines.good("ingestion: waits until the restore of a dump is over");
    } else {
        lines.good(format!(
            "ingestion: up to {} workers per owner and database, and one for who waits",
            config::ingest_workers()
        ));
    }
    Ok(())
}

/// False before the objects are of the library's version.
fn is_being_restored() -> Result<bool> {
    Ok(installed::is_installed()? && restore::is_noted()?)
}

/// Counts are about all users together.
fn describe_logs(lines: &mut Lines) {
    for (log, is_on) in [(Log::Queries, config::query_log()), (Log::Answers, config::answer_log())] {
        if !is_on || !principal::may_monitor() {
            continue;
        }
        let subject = log.subject();
        match notes::dropped(log) {
            0 => lines.good(format!("log of {subject}: on, none left out")),
            dropped => {
                lines.bad(format!("log of {subject}: on, {dropped} left out since the server started"));
            }
        }
    }
}

fn describe_engine(lines: &mut Lines, status: &EngineStatus) {
    lines.good(format!(
        "engine: {} running as process {} for {} s",
        status.version, status.pid, status.uptime_s
    ));
    match &status.onnxruntime {
        Ok(version) => lines.good(format!("ONNX Runtime {version} on {}", status.device)),
        Err(problem) => lines.bad(format!("ONNX Runtime: {}", for_superusers(problem))),
    }
    if let Some(note) = &status.device_note {
        lines.bad(format!("device: {note}"));
    }
    lines.good(format!("parser sandbox: {}", status.parse_sandbox));
    match &status.chat {
        Ok(endpoint) => {
            let endpoint = if server::user_is_superuser() { endpoint } else { "a chat model" };
            lines.good(format!("answers: by {endpoint}, extractive when it fails"));
        }
        Err(_) if !config::has_chat_model() => {
            lines.good("answers: extractive (no chat endpoint in rag_ext.llm_url, and no local model in rag_ext.llm_model)");
        }
        Err(problem) => {
            lines.bad(format!("answers: extractive; chat model: {}", for_superusers(problem)));
        }
    }
}

/// What the engine says of its files and endpoints may name paths and addresses.
fn for_superusers(problem: &str) -> &str {
    if server::user_is_superuser() { problem } else { "cannot be used" }
}

fn describe_models(lines: &mut Lines, models: &[ModelInfo]) {
    for (kind, name, wanted) in [
        (ModelKind::Embedding, "embedding model", config::embedding_model()),
        (ModelKind::Reranker, "reranking model", config::rerank_model()),
    ] {
        if wanted.is_empty() {
            lines.good(format!("{name}: none"));
            continue;
        }
        match models.iter().find(|m| m.kind == kind && m.name == wanted) {
            Some(ModelInfo { problem: Some(problem), .. }) => {
                lines.bad(format!("{name} {wanted}: {}", for_superusers(problem)))
            }
            Some(model) if kind == ModelKind::Embedding => lines.good(format!(
                "{name} {wanted}: {} dimensions, {} tokens",
                model.dimension, model.max_tokens
            )),
            Some(_) => lines.good(format!("{name} {wanted}")),
            None => lines
                .bad(format!("{name} {wanted}: not found; make install puts the default models in place")),
        }
    }
}

fn describe_gateways(lines: &mut Lines) -> Result<()> {
    if !principal::may_monitor() {
        return Ok(());
    }
    let gateways = elevation::elevated(storage::gateway::all)?;
    let names: Vec<String> = gateways
        .into_iter()
        .map(|gateway| match gateway.local_only {
            true => format!("{} (SET LOCAL only)", gateway.role),
            false => gateway.role,
        })
        .collect();
    lines.good(format!("gateways: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    Ok(())
}

fn describe_documents(lines: &mut Lines) -> Result<()> {
    let scope = crate::search::scope::Scope::resolve(None)?;
    let (documents, pending) = storage::document::counts(&scope.ids())?;
    let failed = steering::unfinished(Steered::Domains(&scope.ids()))?.failed;
    lines.good(format!("your documents: {documents}, of which {pending} pending"));
    if failed > 0 {
        lines.bad(format!("{failed} of your documents failed: SELECT * FROM rag.failed_job"));
    }
    Ok(())
}

/// An object with the columns of `rag.engine_status`, where their types are; what is unknown is left out.
#[pg_extern(sql = false)]
fn engine_state() -> std::result::Result<JsonB, ErrorReport> {
    let (state, status) = call_even_unloaded(|| Ok((shared::engine_state(), engine::status())))?;
    let words = |found: &std::result::Result<String, String>| match found {
        Ok(text) => text.clone(),
        Err(problem) => for_superusers(problem).to_owned(),
    };
    let mut row = json!({ "running": status.is_ok() });
    if let Some(state) = state {
        row["pid"] = json!(state.pid);
        row["started_at"] = json!(state.started_at.and_then(|at| TimestampWithTimeZone::try_from(at).ok()));
        row["restarts"] = json!(state.restarts);
        row["last_error"] = json!(state.last_error.filter(|_| server::user_is_superuser()));
    }
    match status {
        Ok(status) => {
            row["pid"] = json!(status.pid);
            row["version"] = json!(status.version);
            row["onnxruntime"] = json!(words(&status.onnxruntime));
            row["device"] = json!(status.device);
            row["device_note"] = json!(status.device_note);
            row["parse_sandbox"] = json!(status.parse_sandbox);
            row["chat"] = match &status.chat {
                Ok(_) if !server::user_is_superuser() => json!("a chat model"),
                chat => json!(words(chat)),
            };
            // They are about all users together.
            if principal::may_monitor() {
                merge(&mut row, json!(status.counters));
            }
        }
        Err(error) if row["last_error"].is_null() => row["last_error"] = json!(error.message),
        Err(_) => {}
    }
    Ok(JsonB(row))
}

/// Adds the fields of an object to another one.
fn merge(row: &mut Value, fields: Value) {
    if let (Value::Object(row), Value::Object(fields)) = (row, fields) {
        row.extend(fields);
    }
}

/// As large as an integer of SQL gets: a folder may say anything.
fn integer(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// An array of objects with the columns of `rag.model`, where their types are.
#[pg_extern(sql = false)]
fn models() -> std::result::Result<JsonB, ErrorReport> {
    let models = call_even_unloaded(engine::models)?;
    let sees_load = principal::may_monitor();
    let some = |text: String| (!text.is_empty()).then_some(text);
    let rows = models.into_iter().map(|m| {
        json!({
            "name": m.name,
            "kind": match m.kind {
                ModelKind::Embedding => "embedding",
                ModelKind::Reranker => "reranker",
                ModelKind::Chat => "chat",
            },
            "is_default": m.is_default,
            "dimension": (m.dimension > 0).then(|| integer(m.dimension)),
            "max_tokens": integer(m.max_tokens),
            "pooling": some(m.pooling),
            "query_prefix": some(m.query_prefix),
            "passage_prefix": some(m.passage_prefix),
            "loaded": sees_load.then_some(m.loaded),
            "license": m.license,
            "problem": m.problem.map(|problem| for_superusers(&problem).to_owned()),
            "languages": m.languages,
            "endpoint": m.endpoint.filter(|_| sees_load),
            "answer_threshold": m.answer_threshold,
        })
    });
    Ok(JsonB(rows.collect()))
}
