//! Waiting for an answer that another thread makes, while watching the socket of whoever asked.
//!
//! The waiting thread sleeps in one `poll` on both the ticket and the socket, so an answer wakes it at once and so
//! does a client that hangs up. A withdrawn ticket tells the other side to leave the work undone.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A place for one answer, or for one in parts.
pub(crate) struct Ticket<T> {
    withdrawn: AtomicBool,
    ready: EventFd,
    answer: Mutex<Parts<T>>,
}

struct Parts<T> {
    waiting: VecDeque<T>,
    is_complete: bool,
}

/// How waiting ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited<T> {
    /// With the answer.
    Answered(T),
    /// The client hung up.
    Gone,
    /// The deadline passed.
    Late,
}

impl<T> Ticket<T> {
    /// An empty ticket. Fails when the process has no descriptor left.
    pub(crate) fn new() -> Result<Self, Errno> {
        let ready = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self {
            withdrawn: AtomicBool::new(false),
            ready,
            answer: Mutex::new(Parts { waiting: VecDeque::new(), is_complete: false }),
        })
    }

    /// Gives the answer, or its last part. The first one counts.
    pub(crate) fn answer(&self, answer: T) {
        self.give(answer, true);
    }

    /// Gives a part of the answer.
    pub(crate) fn part(&self, part: T) {
        self.give(part, false);
    }

    fn give(&self, part: T, is_last: bool) {
        let mut place = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if !place.is_complete {
            place.waiting.push_back(part);
            place.is_complete = is_last;
            let _ = self.ready.write(1);
        }
    }

    /// Says that nobody waits any more.
    pub(crate) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// Waits for the answer or its next part, the deadline, or `client` hanging up. In the last two cases the ticket is withdrawn.
    pub(crate) fn wait(&self, client: Option<BorrowedFd<'_>>, deadline: Option<Instant>) -> Waited<T> {
        loop {
            let next = self.answer.lock().unwrap_or_else(PoisonError::into_inner).waiting.pop_front();
            if let Some(answer) = next {
                return Waited::Answered(answer);
            }
            let mut watched = vec![PollFd::new(self.ready.as_fd(), PollFlags::POLLIN)];
            // No events asked for: hanging up is always told, and a client sends nothing while it waits.
            watched.extend(client.map(|client| PollFd::new(client, PollFlags::empty())));
            match poll(&mut watched, time_left(deadline)) {
                Ok(0) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    self.withdrawn.store(true, Ordering::Release);
                    return Waited::Late;
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return self.gone(),
            }
            let hung_up = watched.get(1).and_then(PollFd::any) == Some(true);
            let answered = watched[0].any() == Some(true);
            if hung_up && !answered {
                return self.gone();
            }
            if answered {
                // Parts that are taken wake nobody a second time.
                let _ = self.ready.read();
            }
        }
    }

    fn gone(&self) -> Waited<T> {
        self.withdraw();
        Waited::Gone
    }
}

/// Whether a client has hung up.
pub(crate) fn is_gone(client: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::new(client, PollFlags::empty())];
    poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Time left for one `poll`, rounded up to milliseconds.
fn time_left(deadline: Option<Instant>) -> PollTimeout {
    let Some(deadline) = deadline else { return PollTimeout::NONE };
    let left = deadline.saturating_duration_since(Instant::now());
    let rounded = if left.is_zero() { left } else { left + Duration::from_millis(1) };
    PollTimeout::try_from(rounded).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    #[test]
    fn an_answer_given_before_the_wait_is_found() {
        let ticket = Ticket::new().unwrap();
        ticket.answer(7);
        ticket.answer(8);
        assert_eq!(ticket.wait(None, None), Waited::Answered(7));
    }

    #[test]
    fn an_answer_wakes_the_waiting_thread() {
        let ticket = Arc::new(Ticket::new().unwrap());
        let other = ticket.clone();
        let thread = std::thread::spawn(move || other.answer("now"));
        assert_eq!(
            ticket.wait(None, Some(Instant::now() + Duration::from_secs(60))),
            Waited::Answered("now")
        );
        thread.join().unwrap();
    }

    #[test]
    fn parts_are_taken_in_their_order_and_none_follows_the_last() {
        let ticket = Ticket::new().unwrap();
        ticket.part(1);
        ticket.part(2);
        ticket.answer(3);
        ticket.part(4);
        for part in 1..=3 {
            assert_eq!(ticket.wait(None, None), Waited::Answered(part));
        }
        assert_eq!(ticket.wait(None, Some(Instant::now() + Duration::from_millis(5))), Waited::Late);
    }

    #[test]
    fn a_client_that_hangs_up_withdraws_the_ticket() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let ticket = Ticket::<()>::new().unwrap();
        assert_eq!(ticket.wait(Some(ours.as_fd()), None), Waited::Gone);
        assert!(ticket.is_withdrawn());
    }

    #[test]
    fn a_deadline_withdraws_the_ticket() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let ticket = Ticket::<()>::new().unwrap();
        let deadline = Instant::now() + Duration::from_millis(5);
        assert_eq!(ticket.wait(Some(ours.as_fd()), Some(deadline)), Waited::Late);
        assert!(Instant::now() >= deadline && ticket.is_withdrawn());
    }
}
