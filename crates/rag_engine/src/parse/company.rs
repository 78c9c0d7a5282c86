//! Which parse children run beside which: any number together, or one that is alone.

use super::Waiter;
use crate::calls::NoReply;
use crate::failure::deadline_passed;
use crate::ticket::is_gone;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting request looks whether its client is still there.
const GLANCE: Duration = Duration::from_millis(50);

/// Those who parse at this moment. A second try alone is how a document gets along that was killed for want of
/// memory which others had taken.
#[derive(Default)]
pub(crate) struct Company {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those who want to be alone, or are: nobody joins meanwhile.
    lonely: usize,
}

/// A place among those who parse, given back when dropped.
pub(crate) struct Place<'a> {
    company: &'a Company,
    is_alone: bool,
}

impl Company {
    /// Joins the others, once nobody wants to be alone.
    pub(crate) fn join(&self, waiter: &Waiter<'_>) -> Result<Place<'_>, NoReply> {
        let mut state = self.wait_while(self.lock(), waiter, |state| state.lonely > 0)?;
        state.running += 1;
        Ok(Place { company: self, is_alone: false })
    }

    /// Waits until all the others have ended, and lets nobody join.
    pub(crate) fn be_alone(&self, waiter: &Waiter<'_>) -> Result<Place<'_>, NoReply> {
        self.lock().lonely += 1;
        match self.wait_while(self.lock(), waiter, |state| state.running > 0) {
            Ok(mut state) => {
                state.running += 1;
                Ok(Place { company: self, is_alone: true })
            }
            Err(no_reply) => {
                self.lock().lonely -= 1;
                self.changed.notify_all();
                Err(no_reply)
            }
        }
    }

    fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        waiter: &Waiter<'_>,
        must_wait: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>, NoReply> {
        while must_wait(&state) {
            if waiter.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(deadline_passed().into());
            }
            if is_gone(waiter.client) {
                return Err(NoReply::Gone);
            }
            state = self.changed.wait_timeout(state, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.company.lock();
        state.running -= 1;
        state.lonely -= usize::from(self.is_alone);
        drop(state);
        self.company.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn one_that_wants_to_be_alone_waits_for_the_others_and_lets_none_join() {
        let company = Company::default();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let patient = Waiter { client: ours.as_fd(), deadline: None };
        let hurried = Waiter { client: ours.as_fd(), deadline: Some(Instant::now()) };
        let together = [company.join(&patient).ok().unwrap(), company.join(&patient).ok().unwrap()];
        assert!(company.be_alone(&hurried).is_err(), "two are there");
        assert!(company.join(&hurried).is_ok(), "who gave up keeps nobody away");
        drop(together);
        let alone = company.be_alone(&patient).ok().unwrap();
        assert!(company.join(&hurried).is_err() && company.be_alone(&hurried).is_err());
        drop(alone);
        assert!(company.join(&hurried).is_ok());
    }
}
