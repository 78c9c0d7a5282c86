//! Waiting for documents: until nothing is left to do for them.

use crate::error::{Error, Result};
use crate::pg::{elevation, interrupts, transaction};
use crate::storage::job::Steered;
use crate::storage::{Id, attachment, job};
use std::time::{Duration, Instant};

/// What a caller waits for.
pub(crate) struct Awaited {
    /// Domains whose jobs they are shown as themselves.
    pub(crate) domains: Vec<Id>,
    /// Attached collections of their own. All their documents are theirs, and asking the table for each would take long.
    pub(crate) own_attached: Vec<Id>,
    /// Attached collections of others.
    pub(crate) attached: Vec<Id>,
}

/// What is left to do.
pub(crate) struct Look {
    unfinished: job::Unfinished,
    /// Whether an attached table has rows that no job is about yet.
    is_following: bool,
    queued_by: Vec<u32>,
}

impl Look {
    pub(crate) fn at(awaited: Steered<'_>) -> Result<Self> {
        Ok(Self {
            unfinished: job::unfinished(awaited)?,
            is_following: false,
            queued_by: job::queueing_transactions(awaited)?,
        })
    }
}

impl Awaited {
    pub(crate) fn look(&self) -> Result<Look> {
        let followed = |collections: &[Id]| match collections {
            [] => Ok(attachment::Unfinished::default()),
            some => elevation::elevated(|| attachment::unfinished(some)),
        };
        // Before the jobs: what a worker has looked at is a job by then. Rows may have owners that are new.
        let (own, others) = (followed(&self.own_attached)?, followed(&self.attached)?);
        let mut domains = self.domains.clone();
        domains.extend(others.domains.iter().filter(|id| !self.domains.contains(id)));
        let Look { mut unfinished, mut queued_by, .. } = Look::at(Steered::Domains(&domains))?;
        if !own.domains.is_empty() {
            let Look { unfinished: of_own, queued_by: by, .. } =
                elevation::elevated(|| Look::at(Steered::Domains(&own.domains)))?;
            unfinished.jobs += of_own.jobs;
            unfinished.paused += of_own.paused;
            unfinished.failed += of_own.failed;
            queued_by.extend(by);
        }
        queued_by.extend(own.changed_by.into_iter().chain(others.changed_by));
        Ok(Look { unfinished, is_following: own.is_following || others.is_following, queued_by })
    }
}

/// Longest pause between two looks, unless looking takes long.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Waits until nothing is left to do; whether all of it is done.
pub(crate) fn wait_while(patience: Duration, look: impl Fn() -> Result<Look>) -> Result<bool> {
    let until = Instant::now().checked_add(patience);
    let mut pause = Duration::from_millis(10);
    loop {
        let looking = Instant::now();
        let Look { unfinished, is_following, queued_by } = look()?;
        if unfinished.jobs == 0 && !is_following {
            if unfinished.paused > 0 {
                pgrx::notice!("rag_ext: {} documents are paused, see rag_resume", unfinished.paused);
            }
            if unfinished.failed > 0 {
                pgrx::notice!("rag_ext: {} documents failed, see rag.failed_job", unfinished.failed);
            }
            return Ok(unfinished.paused == 0 && unfinished.failed == 0);
        }
        if queued_by.into_iter().any(transaction::is_own_xid) {
            return Err(Error::not_ready(
                "documents of this transaction cannot be waited for before it commits",
            )
            .hint("COMMIT first, or write them under SET rag_ext.sync = on."));
        }
        if !transaction::sees_new_commits() {
            return Err(Error::not_ready(
                "this transaction's snapshot is fixed, so it cannot see work being done",
            )
            .hint("Call rag_wait in a READ COMMITTED transaction."));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            pgrx::notice!("rag_ext: time is up, and {} documents are not done", unfinished.jobs);
            return Ok(false);
        }
        // Looking at many thousands of jobs takes a while: it is not to take what they need.
        pause = pause.max(looking.elapsed() * 20);
        interrupts::pause(left.map_or(pause, |left| left.min(pause)));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
