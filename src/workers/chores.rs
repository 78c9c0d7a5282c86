//! What workers do beside documents: merging, clearing away deleted collections, vector indexes, stale files.
//!
//! A busy worker does a little of it after each batch of documents, so that steady ingestion starves none of it; an
//! idle one does all. What somebody else holds is for another time.

use super::{attach, merge, model_change};
use crate::config;
use crate::error::{Error, Result, unless_locked};
use crate::pg::notes::{self, Log};
use crate::pg::{shared, worker};
use crate::search;
use crate::storage::dropped::{self, Progress};
use crate::storage::{answer_log, graph_job, growth, note, query_log, verify};
use std::time::{Duration, Instant};

/// Between two looks of a busy worker for what is rarely to be done.
const LOOK: Duration = Duration::from_secs(5);

/// Between two looks for old rows of the logs of searches and answers.
const BETWEEN_CLEANINGS: Duration = Duration::from_secs(3600);

/// Between two complaints about the same.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(3600);

/// Thousands of domains whose segments an idle worker looks at.
const LOOKS: usize = 10;

/// Vectors that a worker looks at for some without a chunk.
const SWEPT: i64 = 10_000;

/// Notes of a log that are written at a time, and old rows of it that are deleted at a time.
const NOTES: usize = 64;
const OLD_ROWS: i64 = 5_000;

/// What a worker remembers of its chores.
pub(super) struct Chores {
    cleared: Progress,
    segments: merge::Round,
    model_change: model_change::Progress,
    looked: Instant,
    swept: bool,
    /// When the logs of searches and answers had nothing old left.
    logs_cleaned: Option<Instant>,
    complained: Option<Instant>,
}

impl Chores {
    pub(super) fn new() -> Self {
        Self {
            cleared: Progress::default(),
            segments: merge::Round::new(),
            model_change: Default::default(),
            looked: Instant::now(),
            swept: false,
            logs_cleaned: None,
            complained: None,
        }
    }

    /// A small piece, for a worker that has documents to do.
    pub(super) fn do_some(&mut self) -> Result<()> {
        if worker::should_stop() {
            return Ok(());
        }
        self.clear()?;
        self.change_models()?;
        write_notes()?;
        self.clean_logs()?;
        if self.looked.elapsed() >= LOOK {
            want_graph()?;
            self.segments.go_on(1)?;
            self.looked = Instant::now();
        }
        Ok(())
    }

    /// A piece, for a worker that has nothing else to do; false when nothing is left.
    pub(super) fn do_all(&mut self) -> Result<bool> {
        if write_notes()?
            || self.segments.go_on(LOOKS)?
            || self.clear()?
            || self.change_models()?
            || self.clean_logs()?
        {
            return Ok(true);
        }
        analyze_grown()?;
        want_graph()?;
        self.sweep()?;
        unless_locked(worker::transaction(search::remove_stale_files))?;
        attach::clean_up()?;
        Ok(false)
    }

    /// Takes vectors away that belong to no chunk; once in the life of a worker.
    fn sweep(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.swept, true) {
            unless_locked(worker::transaction(|| verify::sweep_stray_vectors(SWEPT)))?;
        }
        Ok(())
    }

    /// Takes away what is too old in the logs of searches and answers; once in a while.
    fn clean_logs(&mut self) -> Result<bool> {
        if self.logs_cleaned.is_some_and(|last| last.elapsed() < BETWEEN_CLEANINGS) {
            return Ok(false);
        }
        let mut is_clean = true;
        for log in Log::ALL {
            let days = match log {
                Log::Queries => config::query_log_retention(),
                Log::Answers => config::answer_log_retention(),
            };
            let delete = || note::delete_old(log, days, OLD_ROWS);
            is_clean &= unless_locked(worker::transaction(delete))? != Some(true);
        }
        self.logs_cleaned = is_clean.then(Instant::now);
        Ok(!is_clean)
    }

    fn clear(&mut self) -> Result<bool> {
        worker::set_activity("rag_ext: clearing away a deleted collection");
        let mut progress = self.cleared;
        let cleared = match worker::transaction(|| dropped::clear_some(&mut progress)) {
            Err(error) if error.is_about_a_reference() => {
                self.complain(&error);
                None
            }
            outcome => unless_locked(outcome)?,
        };
        if cleared.is_none() {
            progress.pass_over();
        }
        self.cleared = progress;
        Ok(cleared.unwrap_or(false))
    }

    /// Says, once in a while, that somebody's table refers to what is to be cleared away.
    fn complain(&mut self, error: &Error) {
        if self.complained.is_some_and(|last| last.elapsed() < BETWEEN_COMPLAINTS) {
            return;
        }
        self.complained = Some(Instant::now());
        worker::log(
            pgrx::PgLogLevel::WARNING,
            error.code,
            format!(
                "rag_ext: documents of a deleted collection cannot be cleared away: {}",
                error.one_line()
            ),
            Some(
                "Delete the rows that refer to them. Foreign keys with ON DELETE CASCADE or SET NULL do so by themselves.",
            ),
        );
    }

    fn change_models(&mut self) -> Result<bool> {
        Ok(unless_locked(model_change::do_some(&mut self.model_change))?.unwrap_or(false))
    }
}

/// Writes notes that searches and answers have left; false if there were none.
fn write_notes() -> Result<bool> {
    let mut were_some = false;
    for log in Log::ALL {
        were_some |= write_notes_of(log)?;
    }
    Ok(were_some)
}

fn write_notes_of(log: Log) -> Result<bool> {
    let taken: Vec<String> =
        notes::take(log, NOTES).into_iter().filter_map(|note| String::from_utf8(note).ok()).collect();
    if taken.is_empty() {
        return Ok(false);
    }
    worker::set_activity(&format!("rag_ext: writing the log of {}", log.subject()));
    let written = worker::transaction(|| match log {
        Log::Queries => query_log::write(&taken),
        Log::Answers => answer_log::write(&taken),
    });
    if written.is_err() {
        taken.iter().for_each(|_| notes::drop_note(log));
    }
    match unless_locked(written) {
        // Notes are no reason to stop working.
        Err(error) if !worker::should_stop() => {
            let message =
                format!("rag_ext: notes of {} cannot be written: {}", log.subject(), error.one_line());
            worker::log(pgrx::PgLogLevel::WARNING, error.code, message, None);
            Ok(true)
        }
        written => Ok(written?.is_some()),
    }
}

/// Has the planner look at tables that have grown, as far as nobody holds them.
pub(super) fn analyze_grown() -> Result<()> {
    worker::report_statistics();
    unless_locked(worker::transaction(growth::analyze_grown)).map(drop)
}

/// Has a graph worker come when there are chunks about which the chat model is to be asked.
fn want_graph() -> Result<()> {
    if !config::has_chat_model() || !config::graph() {
        return Ok(());
    }
    let due = unless_locked(worker::transaction(graph_job::seconds_until_due))?.flatten();
    if let Some(seconds) = due {
        shared::request_graph(Duration::from_secs_f64(seconds.clamp(0.0, 1e6)));
    }
    Ok(())
}
