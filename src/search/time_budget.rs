//! The time that the optional stages of one search have, all together: `rag_ext.query_deadline`.
//!
//! What a search cannot do without, its retrievers and the look at what the caller sees, is not counted and not cut.

use crate::config;
use crate::error::{Error, Result};
use crate::pg::time_limit::{self, Failure};
use pgrx::PgSqlErrorCode;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What is left of the time. Copies share it.
#[derive(Debug, Clone)]
pub(super) struct TimeBudget {
    whole: Duration,
    left: Rc<Cell<Duration>>,
}

impl Default for TimeBudget {
    fn default() -> Self {
        let whole = config::query_deadline();
        Self { whole, left: Rc::new(Cell::new(whole)) }
    }
}

/// What became of work that a search can do without.
pub(super) enum Outcome<T> {
    Done(T),
    /// It failed, or took too long; what it did is undone.
    Lost(Error),
}

impl TimeBudget {
    /// Does work within what is left. An error is one that ends the search: the caller has cancelled it.
    pub(super) fn spend<T>(&self, work: impl FnOnce(Duration) -> Result<T>) -> Result<Outcome<T>> {
        let (since, left) = (Instant::now(), self.left.get());
        let outcome = time_limit::attempt(left, || work(left));
        self.left.set(left.saturating_sub(since.elapsed()));
        match outcome {
            Ok(value) => Ok(Outcome::Done(value)),
            Err(Failure::Failed(error)) => Ok(Outcome::Lost(error)),
            Err(Failure::Late) => Ok(Outcome::Lost(self.late())),
            Err(Failure::Ended(error)) => Err(error),
        }
    }

    fn late(&self) -> Error {
        Error::new(
            PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
            format!("not done within rag_ext.query_deadline, {} ms", self.whole.as_millis()),
        )
    }
}
