//! Models that ONNX Runtime computes on this machine.

use super::{Backend, Conditions, Input, Limits, refuse_too_long, unsupported};
use crate::device::Device;
use crate::failure::{Explain, failure, internal};
use crate::model::session::Sessions;
use crate::model::{ModelFolder, Row, not_loaded, runtime};
use rag_wire::{Failure, FailureCode, ModelKind};

/// A model's sessions.
pub struct OnnxBackend {
    name: String,
    kind: ModelKind,
    max_tokens: usize,
    sessions: Sessions,
}

impl OnnxBackend {
    /// Opens the first session. ONNX Runtime must have been loaded.
    pub fn open(folder: &ModelFolder, device: Device, threads: usize) -> Result<Self, Failure> {
        let sessions = open_sessions(folder, device, threads)?;
        Ok(Self { name: folder.name.clone(), kind: folder.kind, max_tokens: folder.max_tokens, sessions })
    }

    /// Runs all inputs together, or each alone where they would change each other's results.
    fn run(&self, inputs: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        refuse_too_long(&self.name, self.max_tokens, inputs)?;
        let rows: Vec<&Row> = inputs.iter().map(|input| &input.row).collect();
        let at_once = if self.sessions.couples_rows() { 1 } else { rows.len().max(1) };
        let mut results = Vec::with_capacity(rows.len());
        for rows in rows.chunks(at_once) {
            conditions.check()?;
            let found = self.sessions.run(rows);
            results.extend(found.map_err(|reason| failed(&self.name, &reason))?);
        }
        Ok(results)
    }
}

/// Opens a model's first session.
pub(super) fn open_sessions(
    folder: &ModelFolder,
    device: Device,
    threads: usize,
) -> Result<Sessions, Failure> {
    runtime::version().map_err(|reason| {
        failure(FailureCode::NotLoaded, "ONNX Runtime is not loaded")
            .detail(reason)
            .hint("Set rag_ext.onnxruntime_path to libonnxruntime.so, version 1.23 or later.")
    })?;
    Sessions::open(folder, device, threads).map_err(|e| not_loaded(&folder.name, &e))
}

/// The failure of a model that broke while it computed.
pub(super) fn failed(model: &str, reason: &str) -> Failure {
    internal(format!("model \"{model}\" failed")).detail(reason)
}

impl Backend for OnnxBackend {
    fn limits(&self) -> Limits {
        let one_by_one = self.sessions.couples_rows();
        Limits { max_tokens: self.max_tokens, is_local: true, one_by_one }
    }

    fn health(&self, _allow_remote: bool) -> Result<(), String> {
        runtime::version().map(drop)
    }

    fn warm_up(&self, calls: usize) -> Result<(), Failure> {
        self.sessions.warm_up(calls).map_err(|reason| failed(&self.name, &reason))
    }

    fn embed(&self, texts: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        match self.kind {
            ModelKind::Embedding => self.run(texts, conditions),
            ModelKind::Reranker | ModelKind::Chat => Err(unsupported("does not embed texts")),
        }
    }

    fn score(&self, pairs: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<f32>, Failure> {
        match self.kind {
            // A session gives one logit per row, or fails.
            ModelKind::Reranker => Ok(self.run(pairs, conditions)?.concat()),
            ModelKind::Embedding | ModelKind::Chat => Err(unsupported("does not score pairs")),
        }
    }
}
