//! Which parse children run beside which: any number together, or one that is alone.

use super::Waiter;
use crate::calls::NoReply;
use crate::failure::deadline_passed;
use crate::ticket::is_gone;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting request looks whether its client is still there.
const GLANCE: Duration = Duration::from_millis(50);

/// A lock that parse children share, or that one has for itself. A second try alone is how a document gets along that
/// was killed for want of memory which others had taken.
#[derive(Default)]
pub(crate) struct ChildLock {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those who have the lock for themselves, or wait for that: nobody shares it meanwhile.
    exclusive: usize,
}

/// The lock, held by one child and given back when dropped.
pub(crate) struct ChildLockGuard<'a> {
    lock: &'a ChildLock,
    is_exclusive: bool,
}

impl ChildLock {
    /// Shares the lock, once nobody wants it for themselves.
    pub(crate) fn shared(&self, waiter: &Waiter<'_>) -> Result<ChildLockGuard<'_>, NoReply> {
        let mut state = self.wait_while(self.lock(), waiter, |state| state.exclusive > 0)?;
        state.running += 1;
        Ok(ChildLockGuard { lock: self, is_exclusive: false })
    }

    /// Waits until all the others have ended, and keeps everybody else out.
    pub(crate) fn exclusive(&self, waiter: &Waiter<'_>) -> Result<ChildLockGuard<'_>, NoReply> {
        self.lock().exclusive += 1;
        match self.wait_while(self.lock(), waiter, |state| state.running > 0) {
            Ok(mut state) => {
                state.running += 1;
                Ok(ChildLockGuard { lock: self, is_exclusive: true })
            }
            Err(no_reply) => {
                self.lock().exclusive -= 1;
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

impl Drop for ChildLockGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.lock.lock();
        state.running -= 1;
        state.exclusive -= usize::from(self.is_exclusive);
        drop(state);
        self.lock.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn one_that_wants_the_lock_alone_waits_for_the_others_and_keeps_them_out() {
        let lock = ChildLock::default();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let patient = Waiter { client: ours.as_fd(), deadline: None };
        let hurried = Waiter { client: ours.as_fd(), deadline: Some(Instant::now()) };
        let shared = [lock.shared(&patient).ok().unwrap(), lock.shared(&patient).ok().unwrap()];
        assert!(lock.exclusive(&hurried).is_err(), "two are there");
        assert!(lock.shared(&hurried).is_ok(), "who gave up keeps nobody away");
        drop(shared);
        let alone = lock.exclusive(&patient).ok().unwrap();
        assert!(lock.shared(&hurried).is_err() && lock.exclusive(&hurried).is_err());
        drop(alone);
        assert!(lock.shared(&hurried).is_ok());
    }
}
