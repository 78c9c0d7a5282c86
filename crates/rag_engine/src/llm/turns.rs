//! Turns: whoever comes first is served first, one at a time.

use crate::backend::Conditions;
use crate::failure::failure;
use rag_wire::{Failure, FailureCode};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often one who waits looks whether there is still somebody to wait for.
const GLANCE: Duration = Duration::from_millis(20);

/// Most questions that wait for one model, each in a thread of its own.
const MAX_WAITING: usize = 32;

/// Who is served, and who waits.
#[derive(Default)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    next: u64,
    /// The first one is served.
    waiting: VecDeque<u64>,
}

/// A turn, over when dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    /// Waits for a turn, as long as the conditions allow.
    pub(super) fn take(&self, conditions: &Conditions<'_>) -> Result<Turn<'_>, Failure> {
        let mut queue = self.lock();
        if queue.waiting.len() > MAX_WAITING {
            let message = format!("{MAX_WAITING} questions wait for the local chat model already");
            return Err(failure(FailureCode::Provider, message));
        }
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back(number);
        let turn = Turn { turns: self, number };
        while queue.waiting.front() != Some(&number) {
            if let Err(failure) = conditions.check_first_part() {
                drop(queue);
                return Err(failure);
            }
            queue = self.changed.wait_timeout(queue, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(queue);
        Ok(turn)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().waiting.retain(|waiting| *waiting != self.number);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    #[test]
    fn whoever_comes_first_is_served_first() {
        let turns = Turns::default();
        let (send, served) = channel();
        std::thread::scope(|scope| {
            let first = turns.take(&Conditions::unlimited()).unwrap();
            for number in 0..3 {
                let (send, turns) = (send.clone(), &turns);
                scope.spawn(move || {
                    let _turn = turns.take(&Conditions::unlimited()).unwrap();
                    send.send(number).unwrap();
                });
                while turns.lock().waiting.len() < number + 2 {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(served.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn one_whose_time_is_up_leaves_the_queue() {
        let turns = Turns::default();
        let first = turns.take(&Conditions::unlimited()).unwrap();
        let late = Conditions { deadline: Some(Instant::now()), ..Conditions::unlimited() };
        assert!(turns.take(&late).is_err());
        assert_eq!(turns.lock().waiting.len(), 1);
        drop(first);
        assert!(turns.take(&late).is_ok(), "nobody is before it");
    }
}
