//! When a busy worker looks whether somebody else needs it.

use crate::pg::shared;
use std::time::{Duration, Instant};

/// The last look: when it was, and how many requests for work there had been.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looks {
    at: Instant,
    requests: u64,
}

impl Looks {
    /// Looked just now.
    pub(super) fn now() -> Self {
        Self { at: Instant::now(), requests: shared::requests_for_work() }
    }

    /// Whether another look is due, which then counts as done: after `soon` where work was asked for since the last
    /// one, after `late` in any case.
    pub(super) fn is_due(&mut self, soon: Duration, late: Duration) -> bool {
        let now = Self::now();
        let since = now.at - self.at;
        let is_due = since >= late || since >= soon && now.requests != self.requests;
        if is_due {
            *self = now;
        }
        is_due
    }
}
