//! Waiting for documents: until nothing is left to do for them.

use crate::error::{Error, Result};
use crate::pg::{elevation, interrupts, transaction};
use crate::storage::steering::{self, Steered, Unfinished};
use crate::storage::{Id, attachment};
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

impl Awaited {
    /// Where their jobs are right now: rows of attached tables may have owners that are new.
    pub(crate) fn work(&self) -> Result<Work> {
        let followed = |collections: &[Id]| match collections {
            [] => Ok(attachment::Unfinished::default()),
            some => elevation::elevated(|| attachment::unfinished(some)),
        };
        // Before the jobs: what a worker has looked at is a job by then.
        let (own, others) = (followed(&self.own_attached)?, followed(&self.attached)?);
        let mut domains = self.domains.clone();
        domains.extend(others.domains.iter().filter(|id| !self.domains.contains(id)));
        Ok(Work {
            jobs: Jobs::OfDomains { domains, own: own.domains },
            is_following: own.is_following || others.is_following,
            changed_by: own.changed_by.into_iter().chain(others.changed_by).collect(),
        })
    }
}

/// Jobs that are waited for, and what precedes them.
pub(crate) struct Work {
    jobs: Jobs,
    /// Whether an attached table has rows that no job is about yet.
    is_following: bool,
    /// Transactions that changed such rows.
    changed_by: Vec<u32>,
}

enum Jobs {
    OfDomains {
        domains: Vec<Id>,
        /// Domains whose jobs are looked at with the extension's rights.
        own: Vec<Id>,
    },
    OfDocument(Id, Id),
}

impl Work {
    /// That of one document.
    pub(crate) fn of_document(domain: Id, document: Id) -> Self {
        Self { jobs: Jobs::OfDocument(domain, document), is_following: false, changed_by: Vec::new() }
    }

    /// What `look` says of the jobs, with the rights that they are looked at with.
    fn look<T>(&self, look: impl Fn(Steered<'_>) -> Result<T>) -> Result<Vec<T>> {
        match &self.jobs {
            Jobs::OfDocument(domain, document) => Ok(vec![look(Steered::Document(*domain, *document))?]),
            Jobs::OfDomains { domains, own } => {
                let mut found = vec![look(Steered::Domains(domains))?];
                if !own.is_empty() {
                    found.push(elevation::elevated(|| look(Steered::Domains(own)))?);
                }
                Ok(found)
            }
        }
    }

    fn is_left(&self) -> Result<bool> {
        Ok(self.is_following || self.look(steering::is_left)?.contains(&true))
    }

    fn unfinished(&self) -> Result<Unfinished> {
        let found = self.look(steering::unfinished)?.into_iter();
        Ok(found.fold(Unfinished::default(), |sum, of| Unfinished {
            jobs: sum.jobs + of.jobs,
            paused: sum.paused + of.paused,
            failed: sum.failed + of.failed,
        }))
    }

    /// Whether this transaction has written what nobody will begin with before it commits.
    fn is_of_this_transaction(&self) -> Result<bool> {
        if !transaction::has_written() {
            return Ok(false);
        }
        let queued_by = self.look(steering::queueing_transactions)?;
        Ok(queued_by.iter().flatten().chain(&self.changed_by).any(|xid| transaction::is_own_xid(*xid)))
    }
}

/// Longest pause between two looks, unless looking takes long.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// Waits until nothing is left to do; whether all of it is done. How much is left, or failed, is counted once, at the end: each
/// look before costs the same, however much waits.
pub(crate) fn wait_while(patience: Duration, work: impl Fn() -> Result<Work>) -> Result<bool> {
    let until = Instant::now().checked_add(patience);
    let mut pause = Duration::from_millis(10);
    let mut is_first = true;
    loop {
        let looking = Instant::now();
        let work = work()?;
        if !work.is_left()? {
            let Unfinished { jobs, paused, failed } = work.unfinished()?;
            // Some may have come meanwhile.
            if jobs == 0 {
                if paused > 0 {
                    pgrx::notice!("rag_ext: {paused} documents are paused, see rag_resume");
                }
                if failed > 0 {
                    pgrx::notice!("rag_ext: {failed} documents failed, see rag.failed_job");
                }
                return Ok(paused == 0 && failed == 0);
            }
        }
        // Nothing is written while it is waited.
        if is_first && work.is_of_this_transaction()? {
            return Err(Error::not_ready(
                "documents of this transaction cannot be waited for before it commits",
            )
            .hint("COMMIT first, or write them under SET rag_ext.sync = on."));
        }
        is_first = false;
        if !transaction::sees_new_commits() {
            return Err(Error::not_ready(
                "this transaction's snapshot is fixed, so it cannot see work being done",
            )
            .hint("Call rag_wait in a READ COMMITTED transaction."));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            let unfinished = work.unfinished()?.jobs;
            pgrx::notice!("rag_ext: time is up, and {unfinished} documents are not done");
            return Ok(false);
        }
        // Looking at many thousands of domains takes a while: it is not to take what their jobs need.
        pause = pause.max(looking.elapsed() * 20);
        interrupts::pause(left.map_or(pause, |left| left.min(pause)));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
