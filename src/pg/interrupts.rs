//! Waiting in a backend for a socket, for a time or for both, such that cancel, `statement_timeout` and
//! termination end the wait at once.
//!
//! An interrupt is a Postgres error: it unwinds the Rust stack, so whatever the caller holds is dropped.

use crate::error::Result;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_sys};
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a socket is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    Readable,
    Writable,
}

/// Between two questions whether work is still wanted.
const QUESTION: Duration = Duration::from_millis(50);

type Question = Box<dyn Fn() -> Result<()>>;

thread_local! {
    static STILL_WANTED: RefCell<Option<Question>> = const { RefCell::new(None) };
    /// An interrupt that waits to be raised.
    static HELD: Cell<Option<CaughtError>> = const { Cell::new(None) };
}

/// Runs `work`. While it waits for a socket, `still_wanted` is asked whenever the wait is interrupted and at least
/// every 50 ms; its error ends the wait. For background work, which nobody cancels by a signal.
pub(crate) fn while_wanted<T>(
    still_wanted: impl Fn() -> Result<()> + 'static,
    work: impl FnOnce() -> T,
) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            STILL_WANTED.take();
        }
    }
    STILL_WANTED.set(Some(Box::new(still_wanted)));
    let _reset = Reset;
    work()
}

/// The error of [`while_wanted`], if the work that waits is not wanted any more.
pub(crate) fn check_wanted() -> Result<()> {
    STILL_WANTED.with_borrow(|question| question.as_ref().map_or(Ok(()), |ask| ask()))
}

/// Raises the error of a pending interrupt, if there is one.
pub(crate) fn check() {
    pg_sys::check_for_interrupts!();
}

/// For long work of a library that cannot let an error pass through: false once an interrupt ends the work, which must
/// then return to [`raise_held`]. What else is asked of this process meanwhile is done.
pub(crate) fn goes_on() -> bool {
    // SAFETY: a flag that signal handlers set, read as it is.
    if unsafe { (&raw const pg_sys::InterruptPending).read_volatile() } == 0 {
        return true;
    }
    let held = PgTryBuilder::new(|| {
        check();
        None
    })
    .catch_others(Some)
    .execute();
    let is_none = held.is_none();
    HELD.set(held);
    is_none
}

/// Raises the interrupt that made [`goes_on`] false.
pub(crate) fn raise_held() {
    if let Some(held) = HELD.take() {
        held.rethrow();
    }
}

/// Waits until the socket is ready, something set this process's latch, or the time is over. True if the
/// socket is ready; false may come early.
pub(crate) fn wait_for_socket(socket: BorrowedFd<'_>, readiness: Readiness, at_most: Duration) -> bool {
    let at_most = if STILL_WANTED.with_borrow(Option::is_some) { at_most.min(QUESTION) } else { at_most };
    let wanted = match readiness {
        Readiness::Readable => pg_sys::WL_SOCKET_READABLE,
        Readiness::Writable => pg_sys::WL_SOCKET_WRITEABLE,
    };
    wait(Some(socket), wanted, at_most) & wanted != 0
}

/// Waits until something set this process's latch or the time is over.
pub(crate) fn pause(at_most: Duration) {
    wait(None, 0, at_most);
}

fn wait(socket: Option<BorrowedFd<'_>>, wanted: u32, at_most: Duration) -> u32 {
    check();
    let events = wanted | pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let milliseconds = at_most.as_micros().div_ceil(1000).min(i32::MAX as u128);
    // SAFETY: `MyLatch` is this process's own latch from its start to its end, and the borrowed descriptor is
    // open for the length of the call.
    let happened = unsafe {
        pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            events as i32,
            socket.map_or(pg_sys::PGINVALID_SOCKET, |socket| socket.as_raw_fd()),
            milliseconds as _,
            pg_sys::PG_WAIT_EXTENSION,
        )
    } as u32;
    if happened & pg_sys::WL_LATCH_SET != 0 {
        // SAFETY: the latch is this process's own.
        unsafe { pg_sys::ResetLatch(pg_sys::MyLatch) };
        check();
    }
    happened
}

/// `TimeoutId` of `statement_timeout`, the same in all majors.
const STATEMENT_TIMEOUT: c_int = 3;

/// `USER_TIMEOUT` of Postgres 17, the highest of all majors': from there on ids are given out.
pub(super) const ANY_TIMEOUT: c_int = 13;

// Not among the bindings.
unsafe extern "C-unwind" {
    #[link_name = "RegisterTimeout"]
    pub(super) fn register_timeout(timeout: c_int, handler: unsafe extern "C-unwind" fn()) -> c_int;
    pub(super) fn enable_timeout_after(timeout: c_int, milliseconds: c_int);
    pub(super) fn disable_timeout(timeout: c_int, keep_indicator: bool);
}

/// How long work that is cancelled may take to end, before its process is ended.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Whether this process is ended because its work did not end.
static OVERRAN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The timeout that ends this process.
    static END_TIMEOUT: OnceCell<c_int> = const { OnceCell::new() };
}

unsafe extern "C-unwind" fn end_process() {
    OVERRAN.store(true, Ordering::Relaxed);
    // SAFETY: both functions may be called by a signal handler. The signal is what an administrator ends a worker with:
    // what catches a cancellation does not catch that.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
}

/// Whether this process ends because work within [`within`] did not.
pub(crate) fn has_overrun() -> bool {
    OVERRAN.load(Ordering::Relaxed)
}

/// Runs `work` in a worker for at most this long; then it ends with SQLSTATE 57014, as by `statement_timeout`, which
/// itself only holds for statements of clients. Work that goes on all the same ends with the process, [`GRACE`] later.
pub(crate) fn within<T>(at_most: Duration, work: impl FnOnce() -> T) -> T {
    struct Limit(c_int);
    impl Drop for Limit {
        fn drop(&mut self) {
            // SAFETY: changes the process's own timers and raises nothing, so it may run while an error unwinds.
            unsafe {
                disable_timeout(STATEMENT_TIMEOUT, false);
                disable_timeout(self.0, false);
            }
        }
    }
    let milliseconds = |time: Duration| i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the first timeout is registered in every process that is connected to a database, and its handler only
    // asks for the cancellation of what runs; the other one is registered here, once per process, with a handler that
    // does what a signal handler may.
    let end_timeout = END_TIMEOUT
        .with(|timeout| *timeout.get_or_init(|| unsafe { register_timeout(ANY_TIMEOUT, end_process) }));
    let _limit = Limit(end_timeout);
    // SAFETY: as above.
    unsafe {
        enable_timeout_after(STATEMENT_TIMEOUT, milliseconds(at_most));
        enable_timeout_after(end_timeout, milliseconds(at_most.saturating_add(GRACE)));
    }
    work()
}
