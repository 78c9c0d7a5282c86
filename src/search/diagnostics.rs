//! What each stage of a call did: in, out, milliseconds, and what it fell back to.

use crate::error::Error;
use crate::pg::ErrorReport;
use pgrx::PgSqlErrorCode;
use serde_json::{Value, json};
use std::borrow::Cow;
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
    method: Option<Cow<'static, str>>,
    fallback: Option<&'static str>,
    reason: Option<String>,
    warning: Option<String>,
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
        self.push(watch, input, output, None, None);
    }

    /// Ends a stage that did its work in one of several ways.
    pub(crate) fn done_as(&mut self, watch: Watch, input: usize, output: usize, method: &'static str) {
        self.push(watch, input, output, Some(method), None);
    }

    /// Ends a stage that did its work, with what it did in words.
    pub(crate) fn done_so(&mut self, watch: Watch, input: usize, output: usize, method: String) {
        self.push(watch, input, output, None, None).method = Some(method.into());
    }

    /// Adds to the last stage what the caller should know of it.
    pub(crate) fn warn(&mut self, warning: String) {
        if let Some(stage) = self.0.last_mut() {
            stage.because(&warning, warning.clone());
        }
    }

    /// Ends a stage that failed, with what takes its place.
    pub(crate) fn fell_back(&mut self, watch: Watch, to: &'static str, error: &Error) {
        let warning = format!("{} stage unavailable, continuing with {to}: {}", watch.name, error.message);
        pgrx::warning!("rag_ext: {warning}");
        self.push(watch, 0, 0, None, Some(to)).because(&error.message, warning);
    }

    /// Ends a stage that did its work, but for what is damaged.
    pub(crate) fn done_in_part(&mut self, watch: Watch, input: usize, output: usize, damage: &Error) {
        let warning = format!("{} stage leaves out what is damaged: {}", watch.name, damage.message);
        let mut report = damage.clone();
        report.message = format!("rag_ext: {warning}");
        ErrorReport::from(report).report(pgrx::PgLogLevel::WARNING);
        self.push(watch, input, output, None, Some("what is sound")).because(&damage.message, warning);
    }

    /// Ends a stage that did its work, with what the caller should know of it.
    pub(crate) fn done_but(&mut self, watch: Watch, input: usize, output: usize, warning: String) {
        self.push(watch, input, output, None, None).because(&warning, warning.clone());
    }

    /// Ends a stage that found that there is nothing to do, and tells the caller why.
    pub(crate) fn stopped(&mut self, watch: Watch, reason: &str, hint: &str) {
        self.push(watch, 0, 0, None, None).because(reason, reason.to_owned());
        let notice = Error::invalid(format!("rag_ext: {reason}")).hint(hint);
        ErrorReport::from(notice).report(pgrx::PgLogLevel::NOTICE);
    }

    fn push(
        &mut self,
        watch: Watch,
        input: usize,
        output: usize,
        method: Option<&'static str>,
        fallback: Option<&'static str>,
    ) -> &mut Stage {
        let milliseconds = watch.since.elapsed().as_secs_f64() * 1000.0;
        let (reason, warning) = (None, None);
        self.0.push_mut(Stage {
            name: watch.name,
            input,
            output,
            milliseconds,
            method: method.map(Cow::Borrowed),
            fallback,
            reason,
            warning,
        })
    }

    /// What went otherwise than it should, in words.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|stage| stage.warning.as_deref())
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
                    ("method", stage.method.as_deref()),
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

impl Stage {
    fn because(&mut self, reason: &str, warning: String) {
        self.reason = Some(reason.to_owned());
        self.warning = Some(warning);
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
