//! How many documents are prepared at once, so that parsing and cutting take no more cores than models may.

use super::Waiter;
use crate::calls::NoReply;
use crate::failure::{deadline_passed, failure};
use crate::principal::PrincipalKey;
use crate::ticket::is_gone;
use rag_wire::FailureCode;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting request looks whether its client is still there.
const GLANCE: Duration = Duration::from_millis(50);

/// A number of permits, and those who wait for one: next comes whose principal holds the fewest, then whose had a turn
/// longest ago, then who came first.
pub(crate) struct Permits {
    count: usize,
    /// Whether there is one more, for somebody else where one principal holds all.
    has_spare: bool,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    held: HashMap<PrincipalKey, usize>,
    /// In the order in which they came.
    waiting: Vec<(Number, PrincipalKey)>,
    /// When each principal had the last turn, kept while it holds a permit or somebody waits.
    turns: HashMap<PrincipalKey, Number>,
    last: Number,
}

/// Numbers those who come and the turns that they get, in one sequence.
type Number = u64;

/// One permit, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    permits: &'a Permits,
    principal: PrincipalKey,
}

impl std::fmt::Debug for Permits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permits")
    }
}

impl Permits {
    /// So many at once, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Self { count: count.max(1), has_spare: false, state: Mutex::default(), returned: Condvar::new() }
    }

    /// So many at once, and one more for somebody else where one principal holds all: its work may take minutes.
    pub(crate) fn with_spare(count: usize) -> Self {
        Self { has_spare: true, ..Self::new(count) }
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Waits for a permit, as long as the client does. Refuses at once where `limit` others wait already, and of this
    /// principal some do.
    pub(crate) fn take(
        &self,
        limit: usize,
        principal: PrincipalKey,
        waiter: &Waiter<'_>,
    ) -> Result<Permit<'_>, NoReply> {
        let mut state = self.lock();
        // One more of each principal, so that nobody's queue is full for the others.
        let is_first = state.waiting.iter().all(|(_, waiting)| *waiting != principal);
        let is_full = state.waiting.len() >= limit && !(is_first && limit > 0);
        if is_full && !self.is_free_for(&state, principal) {
            let message = format!("the engine's queue of documents is full: {limit} wait");
            return Err(failure(FailureCode::QueueFull, message).into());
        }
        let number = state.next_number();
        state.waiting.push((number, principal));
        let outcome = loop {
            if self.next(&state) == Some(number) {
                *state.held.entry(principal).or_default() += 1;
                let turn = state.next_number();
                state.turns.insert(principal, turn);
                break Ok(Permit { permits: self, principal });
            }
            if waiter.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                break Err(deadline_passed().into());
            }
            if is_gone(waiter.client) {
                break Err(NoReply::Gone);
            }
            state = self.returned.wait_timeout(state, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        };
        state.waiting.retain(|(waiting, _)| *waiting != number);
        state.forget_turns();
        drop(state);
        // Whoever is next now may have been kept back by this one alone.
        self.returned.notify_all();
        outcome
    }

    /// Who may take a permit now.
    fn next(&self, state: &State) -> Option<Number> {
        let order = |(number, principal): &(Number, PrincipalKey)| {
            (state.held_by(*principal), state.turns.get(principal).copied(), *number)
        };
        let (number, principal) = state.waiting.iter().min_by_key(|waiting| order(waiting))?;
        self.is_free_for(state, *principal).then_some(*number)
    }

    fn is_free_for(&self, state: &State, principal: PrincipalKey) -> bool {
        let held: usize = state.held.values().sum();
        held < self.count
            || self.has_spare && held == self.count && state.held.len() == 1 && state.held_by(principal) == 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn held_by(&self, principal: PrincipalKey) -> usize {
        self.held.get(&principal).copied().unwrap_or(0)
    }

    /// Forgets turns that nobody waits behind.
    fn forget_turns(&mut self) {
        if self.waiting.is_empty() {
            self.turns.retain(|principal, _| self.held.contains_key(principal));
        }
    }

    fn next_number(&mut self) -> Number {
        self.last += 1;
        self.last
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.permits.lock();
        if let Some(held) = state.held.get_mut(&self.principal) {
            *held -= 1;
        }
        state.held.retain(|_, held| *held > 0);
        state.forget_turns();
        drop(state);
        self.permits.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

    const ANN: PrincipalKey = PrincipalKey(1);
    const BOB: PrincipalKey = PrincipalKey(2);

    fn code(error: NoReply) -> Option<FailureCode> {
        match error {
            NoReply::Failed(failure) => Some(failure.code),
            NoReply::Gone => None,
        }
    }

    #[test]
    fn a_permit_is_waited_for_until_the_deadline_or_the_client_ends_it() {
        let permits = Permits::new(1);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let patient = Waiter { client: ours.as_fd(), deadline: None };
        let hurried = Waiter { client: ours.as_fd(), deadline: Some(Instant::now()) };
        let held = permits.take(9, ANN, &patient).unwrap();
        assert_eq!(code(permits.take(9, ANN, &hurried).unwrap_err()), Some(FailureCode::Deadline));
        assert_eq!(code(permits.take(0, ANN, &patient).unwrap_err()), Some(FailureCode::QueueFull));
        drop(theirs);
        assert_eq!(code(permits.take(9, ANN, &patient).unwrap_err()), None);
        drop(held);
        assert!(permits.take(0, ANN, &patient).is_ok());
        assert_eq!(permits.waiting(), 0);
    }

    #[test]
    fn a_spare_permit_is_for_others_than_the_one_who_holds_all() {
        let permits = Permits::with_spare(2);
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let hurried = Waiter { client: ours.as_fd(), deadline: Some(Instant::now()) };
        let take = |principal| permits.take(9, principal, &hurried);
        let held = [take(ANN).unwrap(), take(ANN).unwrap()];
        assert!(take(ANN).is_err(), "the third is not hers");
        let spare = take(BOB).unwrap();
        assert!(take(BOB).is_err() && take(PrincipalKey(3)).is_err(), "there is one");
        drop(held);
        let one = take(BOB).unwrap();
        assert!(take(BOB).is_err());
        drop((spare, one));
        assert_eq!(permits.waiting(), 0);
    }

    #[test]
    fn principals_take_turns_whatever_one_of_them_has_queued() {
        let permits = Permits::new(1);
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let waiter = || Waiter { client: ours.as_fd(), deadline: None };
        let limit = 5;
        let held = permits.take(limit, ANN, &waiter()).unwrap();
        let (turns, order) = mpsc::channel();
        std::thread::scope(|scope| {
            let queue = |principal| {
                let before = permits.waiting();
                let (turns, permits) = (turns.clone(), &permits);
                scope.spawn(move || {
                    let permit = permits.take(limit, principal, &waiter()).unwrap();
                    turns.send(principal).unwrap();
                    drop(permit);
                });
                while permits.waiting() == before {
                    std::thread::yield_now();
                }
            };
            (0..limit).for_each(|_| queue(ANN));
            let refused = permits.take(limit, ANN, &waiter()).unwrap_err();
            assert_eq!(code(refused), Some(FailureCode::QueueFull));
            queue(BOB);
            assert_eq!(code(permits.take(limit, BOB, &waiter()).unwrap_err()), Some(FailureCode::QueueFull));
            drop(held);
        });
        // Ann had her turn before.
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [BOB, ANN, ANN, ANN, ANN, ANN]);
    }
}
