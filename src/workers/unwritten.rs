//! Documents that are processed, and that a lock of somebody else's keeps from being written: kept for a while, so that
//! the engine is not asked twice, and written once the lock is gone.

use super::failure::{give_back, settle_failure};
use super::write::write;
use crate::error::Result;
use crate::ingest::process::ProcessedDocument;
use crate::pg::worker;
use crate::storage::Id;
use crate::storage::collection::Collection;
use crate::storage::job::{Claim, Pause};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Memory of what a worker keeps.
const MOST_BYTES: usize = 64 << 20;

/// How long a document is kept. After that it is processed again, once nobody holds it.
const AT_MOST: Duration = Duration::from_secs(60);

/// Pause after the first try; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

struct Kept {
    collection: Rc<Collection>,
    document: (Claim, ProcessedDocument),
    since: Instant,
    due: Instant,
    pause: Duration,
}

/// What a worker has yet to write. The jobs are running until then, so that nobody else takes them.
#[derive(Default)]
pub(super) struct Unwritten {
    kept: VecDeque<Kept>,
}

impl Unwritten {
    /// Keeps a document, or gives it back if that were too much.
    pub(super) fn keep(
        &mut self,
        collection: &Rc<Collection>,
        claim: Claim,
        processed: ProcessedDocument,
    ) -> Result<()> {
        let bytes: usize = self.kept.iter().map(|kept| kept.document.1.bytes()).sum();
        if bytes + processed.bytes() > MOST_BYTES {
            return give_back(&claim, Pause::FOR_A_LOCK);
        }
        let (since, collection) = (Instant::now(), Rc::clone(collection));
        let kept = Kept {
            collection,
            document: (claim, processed),
            since,
            due: since + FIRST_PAUSE,
            pause: FIRST_PAUSE,
        };
        self.kept.push_back(kept);
        Ok(())
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The documents.
    pub(super) fn documents(&self) -> Vec<Id> {
        self.kept.iter().map(|kept| kept.document.0.document).collect()
    }

    /// Writes what nobody holds any more, and gives back what was kept long enough.
    pub(super) fn retry(&mut self) -> Result<()> {
        let now = Instant::now();
        for _ in 0..self.kept.len() {
            let Some(kept) = self.kept.pop_front() else { break };
            let claim = kept.document.0;
            if kept.due > now || worker::should_stop() {
                self.kept.push_back(kept);
                continue;
            }
            let mut waited = false;
            match write(&kept.collection, std::slice::from_ref(&kept.document)) {
                // Written, or not wanted any more.
                Ok(left) if left.busy.is_empty() => {
                    give_back(&claim, Pause::FOR_A_LOCK)?;
                    continue;
                }
                Ok(_) => {}
                Err(error) if error.is_about_a_lock() => waited = true,
                Err(error) => {
                    settle_failure(&claim, &error)?;
                    continue;
                }
            }
            if kept.since.elapsed() >= AT_MOST {
                give_back(&claim, Pause::FOR_A_LOCK)?;
            } else {
                let pause = (kept.pause * 2).min(LONGEST_PAUSE);
                self.kept.push_back(Kept { due: Instant::now() + pause, pause, ..kept });
            }
            // The others are for the next time: whoever has work that can be done comes first.
            if waited {
                break;
            }
        }
        Ok(())
    }

    /// Gives everything back.
    pub(super) fn give_back(self) -> Result<()> {
        self.kept.iter().try_for_each(|kept| give_back(&kept.document.0, Pause::FOR_A_LOCK))
    }
}
