//! What each stage of a call did: in, out, milliseconds, and what it fell back to.

use crate::error::Error;
use crate::pg::ErrorReport;
use pgrx::PgSqlErrorCode;
use serde_json::{Value, json};
use std::time::Instant;

/// Rows of diagnostics, in order.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<Stage>);

#[derive(Debug)]
struct Stage {
    name: &'static str,
    input: usize,
    output: usize,
    milliseconds: f64,
    method: Option<&'static str>,
    fallback: Option<&'static str>,
    reason: Option<String>,
}

/// A stage that has begun.
#[must_use]
pub(crate) struct Watch {
    name: &'static str,
    since: Instant,
}

impl Stages {
    /// Begins a stage.
    pub(crate) fn start(&self, name: &'static str) -> Watch {
        Watch { name, since: Instant::now() }
    }

    /// Ends a stage that did its work.
    pub(crate) fn done(&mut self, watch: Watch, input: usize, output: usize) {
        self.push(watch, input, output, None, None, None);
    }

    /// Ends a stage that did its work in one of several ways.
    pub(crate) fn done_as(&mut self, watch: Watch, input: usize, output: usize, method: &'static str) {
        self.push(watch, input, output, Some(method), None, None);
    }

    /// Ends a stage that failed, with what takes its place.
    pub(crate) fn fell_back(&mut self, watch: Watch, to: &'static str, error: &Error) {
        let name = watch.name;
        self.push(watch, 0, 0, None, Some(to), Some(error.message.clone()));
        pgrx::warning!("rag_ext: {name} stage unavailable, continuing with {to}: {}", error.message);
    }

    /// Ends a stage that did its work, but for what is damaged.
    pub(crate) fn done_in_part(&mut self, watch: Watch, input: usize, output: usize, damage: &Error) {
        let name = watch.name;
        self.push(watch, input, output, None, Some("what is sound"), Some(damage.message.clone()));
        let mut warning = damage.clone();
        warning.message = format!("rag_ext: {name} stage leaves out what is damaged: {}", damage.message);
        ErrorReport::from(warning).report(pgrx::PgLogLevel::WARNING);
    }

    fn push(
        &mut self,
        watch: Watch,
        input: usize,
        output: usize,
        method: Option<&'static str>,
        fallback: Option<&'static str>,
        reason: Option<String>,
    ) {
        let milliseconds = watch.since.elapsed().as_secs_f64() * 1000.0;
        self.0.push(Stage { name: watch.name, input, output, milliseconds, method, fallback, reason });
    }

    /// Takes over the stages of a part of the work.
    pub(crate) fn extend(&mut self, other: Stages) {
        self.0.extend(other.0);
    }

    /// One object per stage.
    pub(crate) fn to_json(&self) -> Value {
        self.0
            .iter()
            .map(|stage| {
                let mut row = json!({
                    "stage": stage.name, "in": stage.input, "out": stage.output,
                    "ms": (stage.milliseconds * 1000.0).round() / 1000.0,
                });
                for (key, value) in [
                    ("method", stage.method),
                    ("fallback", stage.fallback),
                    ("reason", stage.reason.as_deref()),
                ] {
                    if let Some(value) = value {
                        row[key] = value.into();
                    }
                }
                row
            })
            .collect()
    }
}

/// Whether an error is the engine's or a model's, so that another stage may take over; not a bad argument, and
/// not the end of the caller's patience.
pub(crate) fn is_engine_trouble(error: &Error) -> bool {
    matches!(
        error.code,
        PgSqlErrorCode::ERRCODE_SYSTEM_ERROR
            | PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            | PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES
            | PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT
            | PgSqlErrorCode::ERRCODE_QUERY_CANCELED
            | PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED
            | PgSqlErrorCode::ERRCODE_INTERNAL_ERROR
            | PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE
    )
}
