//! What each stage of a call did: in, out, milliseconds, and what it fell back to.

use super::time_budget::{Outcome, TimeBudget};
use super::trail::Trail;
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::storage::Id;
use pgrx::PgSqlErrorCode;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Rows of diagnostics, in order, and what became of the candidates, where that is asked for. They carry the time that
/// optional stages have.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<Stage>, Option<Trail>, TimeBudget);

/// What a stage did.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) milliseconds: f64,
    pub(crate) method: Option<Cow<'static, str>>,
    pub(crate) fallback: Option<&'static str>,
    pub(crate) reason: Option<String>,
    /// An object with what else there is to say of it.
    pub(crate) details: Option<Value>,
    warning: Option<String>,
}

/// A stage that has begun.
#[must_use]
pub(crate) struct Watch {
    name: &'static str,
    since: Instant,
}

impl Stages {
    /// Keeps what becomes of each candidate as well.
    pub(crate) fn with_trail() -> Self {
        Self(Vec::new(), Some(Trail::default()), TimeBudget::default())
    }

    /// For a part of the work that may be done again: see [`Self::extend`].
    pub(crate) fn round(&self) -> Self {
        Self(Vec::new(), self.has_trail().then(Trail::default), self.2.clone())
    }

    /// For a search beside the one for the caller's own query: it is not noted where that puts chunks.
    pub(crate) fn aside(&self) -> Self {
        Self(Vec::new(), None, self.2.clone())
    }

    /// Does such a search among these stages.
    pub(crate) fn beside<T>(&mut self, search: impl FnOnce(&mut Self) -> T) -> T {
        let trail = self.1.take();
        let found = search(self);
        self.1 = trail;
        found
    }

    /// Whether a stage of this name has failed, so that it need not be waited for again.
    pub(crate) fn has_failed(&self, name: &str) -> bool {
        self.0.iter().any(|stage| stage.name == name && stage.fallback.is_some() && stage.output == 0)
    }

    /// Whether it is kept what becomes of each candidate.
    pub(crate) fn has_trail(&self) -> bool {
        self.1.is_some()
    }

    /// What became of the candidates, if that was kept.
    pub(crate) fn take_trail(&mut self) -> Option<Trail> {
        self.1.take()
    }

    /// Notes where a stage put chunks: with their scores, best first. Nothing is done where nobody asks.
    pub(crate) fn ranked(&mut self, stage: &'static str, hits: impl IntoIterator<Item = (Id, f64)>) {
        if let Some(trail) = &mut self.1 {
            trail.ranked(stage, hits.into_iter());
        }
    }

    /// Notes why chunks are dropped. Nothing is done where nobody asks.
    pub(crate) fn dropped(&mut self, chunks: impl IntoIterator<Item = Id>, reason: impl Fn(Id) -> String) {
        if let Some(trail) = &mut self.1 {
            chunks.into_iter().for_each(|chunk| trail.dropped(chunk, reason(chunk)));
        }
    }

    /// Begins a stage.
    pub(crate) fn start(&self, name: &'static str) -> Watch {
        Watch { name, since: Instant::now() }
    }

    /// Does the work of a stage that a search can do without, within what is left of the time for such. None where it
    /// failed or took too long: then the stage ends here, with what takes its place. An error is the end of the call.
    pub(crate) fn attempt<T>(
        &mut self,
        name: &'static str,
        fallback: &'static str,
        work: impl FnOnce(Duration) -> Result<T>,
    ) -> Result<Option<(Watch, T)>> {
        let watch = self.start(name);
        let budget = self.2.clone();
        match budget.spend(work)? {
            Outcome::Done(value) => Ok(Some((watch, value))),
            Outcome::Lost(error) => {
                self.fell_back(watch, fallback, &error);
                Ok(None)
            }
        }
    }

    /// Ends a stage that did its work.
    pub(crate) fn done(&mut self, watch: Watch, input: usize, output: usize) {
        self.push(watch, input, output, None, None);
    }

    /// Ends a stage that did its work in one of several ways.
    pub(crate) fn done_as(
        &mut self,
        watch: Watch,
        input: usize,
        output: usize,
        method: impl Into<Cow<'static, str>>,
    ) {
        self.push(watch, input, output, Some(method.into()), None);
    }

    /// Adds to the last stage what the caller should know of it.
    pub(crate) fn warn(&mut self, warning: String) {
        if let Some(stage) = self.0.last_mut() {
            stage.because(&warning, warning.clone());
        }
    }

    /// Adds to the last stage an object with what else there is to say of it.
    pub(crate) fn detail(&mut self, details: Value) {
        if let Some(stage) = self.0.last_mut() {
            stage.details = Some(details);
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
        method: Option<Cow<'static, str>>,
        fallback: Option<&'static str>,
    ) -> &mut Stage {
        let milliseconds = watch.since.elapsed().as_secs_f64() * 1000.0;
        let (reason, warning) = (None, None);
        self.0.push_mut(Stage {
            name: watch.name,
            input,
            output,
            milliseconds,
            method,
            fallback,
            reason,
            details: None,
            warning,
        })
    }

    /// What went otherwise than it should, in words.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|stage| stage.warning.as_deref())
    }

    /// Stages that failed, each with what took its place.
    pub(crate) fn fallbacks(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.0.iter().filter_map(|stage| Some((stage.name, stage.fallback?)))
    }

    /// Takes over the stages of a part of the work.
    pub(crate) fn extend(&mut self, other: Stages) {
        self.0.extend(other.0);
        if let (Some(trail), Some(other)) = (&mut self.1, other.1) {
            trail.extend(other);
        }
    }

    /// The stages themselves.
    pub(crate) fn into_rows(self) -> Vec<Stage> {
        self.0
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
                if let Some(details) = &stage.details {
                    row["details"] = details.clone();
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
    let is_trouble = matches!(
        error.code,
        PgSqlErrorCode::ERRCODE_SYSTEM_ERROR
            | PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            | PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES
            | PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT
            | PgSqlErrorCode::ERRCODE_QUERY_CANCELED
            | PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED
            | PgSqlErrorCode::ERRCODE_INTERNAL_ERROR
            | PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE
    );
    is_trouble && !error.is_cancel()
}
