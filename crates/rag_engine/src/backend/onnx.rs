//! Models that ONNX Runtime computes on this machine.

use super::{Backend, Conditions, Input, Limits, refuse_too_long, unsupported};
use crate::batch_limits::FixedShape;
use crate::device::Device;
use crate::failure::{Explain, failure, internal};
use crate::log;
use crate::model::session::{Rows, RunStyle, Sessions};
use crate::model::{ModelFolder, Row, not_loaded, runtime};
use rag_wire::{Failure, FailureCode, ModelKind};

/// Tokens of the rows by which it is tried out whether results depend on company.
const PROBED_TOKENS: [u32; 4] = [64, 128, 192, 512];

/// A model's sessions.
pub struct OnnxBackend {
    name: String,
    kind: ModelKind,
    max_tokens: usize,
    /// Whether rows in batches of fixed shapes are reproducible.
    has_fixed_shapes: bool,
    sessions: Sessions,
}

impl OnnxBackend {
    /// Opens the first session. ONNX Runtime must have been loaded.
    pub fn open(folder: &ModelFolder, device: Device, threads: usize) -> Result<Self, Failure> {
        Self::open_in_style(folder, device, RunStyle::of(device), threads)
    }

    /// Opens it on one device as on another.
    pub fn open_in_style(
        folder: &ModelFolder,
        device: Device,
        style: RunStyle,
        threads: usize,
    ) -> Result<Self, Failure> {
        let sessions = open_sessions(folder, device, style, threads)?;
        let is_shaped = sessions.style() == RunStyle::Gpu && !sessions.couples_rows();
        let mut backend = Self {
            name: folder.name.clone(),
            kind: folder.kind,
            max_tokens: folder.max_tokens,
            has_fixed_shapes: false,
            sessions,
        };
        backend.has_fixed_shapes = is_shaped && backend.keeps_results_in_shapes()?;
        if is_shaped && !backend.has_fixed_shapes {
            log::info(format_args!(
                "model {} gives results that depend on what runs beside them: what must be reproducible runs alone",
                folder.name
            ));
        }
        Ok(backend)
    }

    /// Runs inputs together, as many as do not change each other's results.
    fn run(&self, inputs: &[&Input], conditions: &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        refuse_too_long(&self.name, self.max_tokens, inputs)?;
        let rows: Vec<&Row> = inputs.iter().map(|input| &input.row).collect();
        let mut results = Vec::with_capacity(rows.len());
        while results.len() < rows.len() {
            conditions.check()?;
            let rest = &rows[results.len()..];
            let (count, company) = match (self.sessions.couples_rows(), conditions.is_reproducible) {
                (false, false) => (rest.len(), Rows::Batch),
                (false, true) if self.has_fixed_shapes => {
                    let (shape, count) = FixedShape::of_first(rest.iter().map(|row| row.tokens()));
                    (count, Rows::Shaped(shape))
                }
                _ => (1, Rows::Alone),
            };
            let found = self.sessions.run(&rest[..count], company);
            results.extend(found.map_err(|reason| failed(&self.name, &reason))?);
        }
        Ok(results)
    }

    /// Whether, as far as some rows show, a row's result in a fixed shape is the same wherever it stands and whatever stands
    /// beside it. Where a GPU adds in an order that depends on the place of a row, it is not.
    fn keeps_results_in_shapes(&self) -> Result<bool, Failure> {
        for tokens in PROBED_TOKENS.map(|tokens| tokens.min(self.max_tokens as u32)) {
            let shape = FixedShape::of(tokens);
            let rows: Vec<Row> = (0..shape.rows).map(|number| probe(number, tokens)).collect();
            let run = |rows: &[&Row]| {
                self.sessions.run(rows, Rows::Shaped(shape)).map_err(|reason| failed(&self.name, &reason))
            };
            let forwards = run(&rows.iter().collect::<Vec<_>>())?;
            let mut backwards = run(&rows.iter().rev().collect::<Vec<_>>())?;
            backwards.reverse();
            if forwards != backwards || run(&[&rows[1]])?[0] != forwards[1] {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A row that is no text, of tokens that every vocabulary has.
fn probe(number: u32, tokens: u32) -> Row {
    let id = |at: u32| 10 + (at * (2 * number + 1) + 7 * number) % 90;
    // Each ends somewhere else.
    let tokens = tokens.saturating_sub(number % 48).max(1);
    Row { ids: (0..tokens).map(id).collect(), types: vec![0; tokens as usize] }
}

/// Opens a model's first session.
pub(super) fn open_sessions(
    folder: &ModelFolder,
    device: Device,
    style: RunStyle,
    threads: usize,
) -> Result<Sessions, Failure> {
    runtime::version().map_err(|reason| {
        failure(FailureCode::NotLoaded, "ONNX Runtime is not loaded")
            .detail(reason)
            .hint("Set rag_ext.onnxruntime_path to libonnxruntime.so, version 1.23 or later.")
    })?;
    Sessions::open(folder, device, style, threads).map_err(|e| not_loaded(&folder.name, &e))
}

/// The failure of a model that broke while it computed.
pub(super) fn failed(model: &str, reason: &str) -> Failure {
    internal(format!("model \"{model}\" failed")).detail(reason)
}

impl Backend for OnnxBackend {
    fn limits(&self) -> Limits {
        Limits {
            places: self.sessions.places(),
            one_by_one: self.sessions.couples_rows(),
            has_fixed_shapes: self.has_fixed_shapes,
            ..Limits::new(Some(self.sessions.device()), self.max_tokens)
        }
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
