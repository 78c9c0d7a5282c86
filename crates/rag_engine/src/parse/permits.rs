//! How many documents are prepared at once, so that parsing and cutting take no more cores than models may.

use super::Waiter;
use crate::calls::NoReply;
use crate::failure::{deadline_passed, failure};
use crate::ticket::is_gone;
use rag_wire::FailureCode;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting request looks whether its client is still there.
const GLANCE: Duration = Duration::from_millis(50);

/// A number of permits, and those who wait for one.
pub(crate) struct Permits {
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    free: usize,
    waiting: usize,
}

/// One permit, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a>(&'a Permits);

impl std::fmt::Debug for Permits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permits")
    }
}

impl Permits {
    /// So many at once, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Self { state: Mutex::new(State { free: count.max(1), waiting: 0 }), returned: Condvar::new() }
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Waits for a permit, as long as the client does. Refuses at once where `limit` others wait already.
    pub(crate) fn take(&self, limit: usize, waiter: &Waiter<'_>) -> Result<Permit<'_>, NoReply> {
        let mut state = self.lock();
        if state.free == 0 && state.waiting >= limit {
            let message = format!("the engine's queue of documents is full: {limit} wait");
            return Err(failure(FailureCode::QueueFull, message).into());
        }
        state.waiting += 1;
        let outcome = loop {
            if state.free > 0 {
                state.free -= 1;
                break Ok(Permit(self));
            }
            if waiter.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                break Err(deadline_passed().into());
            }
            if is_gone(waiter.client) {
                break Err(NoReply::Gone);
            }
            state = self.returned.wait_timeout(state, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        };
        state.waiting -= 1;
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.lock().free += 1;
        self.0.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_permit_is_waited_for_until_the_deadline_or_the_client_ends_it() {
        let permits = Permits::new(1);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let patient = Waiter { client: ours.as_fd(), deadline: None };
        let hurried = Waiter { client: ours.as_fd(), deadline: Some(Instant::now()) };
        let held = permits.take(9, &patient).unwrap();
        let code = |error: NoReply| match error {
            NoReply::Failed(failure) => Some(failure.code),
            NoReply::Gone => None,
        };
        assert_eq!(code(permits.take(9, &hurried).unwrap_err()), Some(FailureCode::Deadline));
        assert_eq!(code(permits.take(0, &patient).unwrap_err()), Some(FailureCode::QueueFull));
        drop(theirs);
        assert_eq!(code(permits.take(9, &patient).unwrap_err()), None);
        drop(held);
        assert!(permits.take(0, &patient).is_ok());
        assert_eq!(permits.waiting(), 0);
    }
}
