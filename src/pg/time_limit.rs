//! Work that may fail or take too long without the call that wants it: it runs in a subtransaction and under a timer.
//!
//! The timer cancels what runs, as `statement_timeout` does; the work is rolled back, and the call goes on. A cancel that
//! the caller or one of their own time-outs sent is told apart from the timer's, and ends the call, also where both come
//! at the same moment: all of those come as the signal SIGINT, which is counted here before the server's own handler
//! takes it. The timer raises no signal.

use crate::error::{Error, Result};
use crate::pg::interrupts::{self, ANY_TIMEOUT, disable_timeout, enable_timeout_after, register_timeout};
use crate::pg::{ErrorReport, transaction};
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};
use std::cell::{Cell, OnceCell};
use std::ffi::{c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// Why work under a limit came to nothing.
pub(crate) enum Failure {
    /// The time was over.
    Late,
    /// The work failed by itself.
    Failed(Error),
    /// The call is to end: somebody or a time-out of the caller's cancelled it, or it cannot go on.
    Ended(Error),
}

/// Whether the timer has ended the work, and nobody else had before.
static FIRED: AtomicBool = AtomicBool::new(false);
/// SIGINTs since the work began.
static CANCELS: AtomicU32 = AtomicU32::new(0);
/// The server's handler of SIGINT, and whether it takes three arguments.
static SERVERS_HANDLER: AtomicUsize = AtomicUsize::new(0);
static TAKES_DETAILS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static TIMEOUT: OnceCell<c_int> = const { OnceCell::new() };
    static IS_LIMITED: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C-unwind" fn end_work() {
    if CANCELS.load(Ordering::Relaxed) > 0 {
        return;
    }
    FIRED.store(true, Ordering::Relaxed);
    // The server's own handler of timers sets the latch.
    cancel();
}

extern "C" fn count_cancel(signal: c_int, details: *mut libc::siginfo_t, context: *mut c_void) {
    CANCELS.fetch_add(1, Ordering::Relaxed);
    let handler = SERVERS_HANDLER.load(Ordering::Relaxed);
    // SAFETY: the handler that the server had installed, of the type that its flags tell.
    unsafe {
        if TAKES_DETAILS.load(Ordering::Relaxed) {
            type Detailed = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            std::mem::transmute::<usize, Detailed>(handler)(signal, details, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
        }
    }
}

/// Counts SIGINTs from now on, and leaves them to the server's handler. Once per process.
fn count_cancels() {
    // SAFETY: reads and replaces this process's handler of a signal by one that does what a handler may, and then what
    // the former one does.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGINT, std::ptr::null(), &raw mut action) != 0
            || [libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
        {
            return;
        }
        SERVERS_HANDLER.store(action.sa_sigaction, Ordering::Relaxed);
        TAKES_DETAILS.store(action.sa_flags & libc::SA_SIGINFO != 0, Ordering::Relaxed);
        action.sa_sigaction = count_cancel as *const () as usize;
        action.sa_flags |= libc::SA_SIGINFO;
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
}

/// The timer, from its start to its end.
struct Timer(c_int);

impl Timer {
    fn start(at_most: Duration) -> Self {
        let timeout = TIMEOUT.with(|timeout| {
            *timeout.get_or_init(|| {
                count_cancels();
                // SAFETY: once per process, with a handler that does what a signal handler may.
                unsafe { register_timeout(ANY_TIMEOUT, end_work) }
            })
        });
        CANCELS.store(0, Ordering::Relaxed);
        FIRED.store(false, Ordering::Relaxed);
        // Whoever cancelled before has cancelled the call.
        interrupts::check();
        IS_LIMITED.set(true);
        let milliseconds = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: changes a timer of this process that is registered.
        unsafe { enable_timeout_after(timeout, milliseconds) };
        Self(timeout)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        IS_LIMITED.set(false);
        // SAFETY: changes the process's own timer and raises nothing, so it may run while an error unwinds.
        unsafe { disable_timeout(self.0, false) };
        if is_late() {
            // A cancel of ours that nobody has taken is withdrawn; one that came by a signal meanwhile stays.
            // SAFETY: a flag that signal handlers set, too; these run on this thread, and count first.
            unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
            if CANCELS.load(Ordering::Relaxed) > 0 {
                cancel();
            }
        }
    }
}

/// Has the next look at interrupts end the call.
fn cancel() {
    // SAFETY: flags that are made to be set at any time, by signal handlers too.
    unsafe {
        (&raw mut pg_sys::QueryCancelPending).write_volatile(1);
        (&raw mut pg_sys::InterruptPending).write_volatile(1);
    }
}

/// Runs `work` in a subtransaction for at most this long. Within such work it has the time that is left of that.
///
/// In a parallel plan of Postgres before 18 no subtransaction can begin, so there work that is late, or that the server
/// stops by an error, ends the statement.
pub(crate) fn attempt<T>(
    at_most: Duration,
    work: impl FnOnce() -> Result<T>,
) -> std::result::Result<T, Failure> {
    if IS_LIMITED.get() {
        return transaction::attempt(work).map_err(told);
    }
    if at_most.is_zero() {
        return Err(Failure::Late);
    }
    let timer = Timer::start(at_most);
    let outcome = if transaction::may_attempt() {
        transaction::attempt(work)
    } else {
        PgTryBuilder::new(AssertUnwindSafe(work))
            .catch_others(|caught| {
                if is_late() {
                    ErrorReport::from(late_statement()).report(pgrx::PgLogLevel::ERROR);
                }
                caught.rethrow()
            })
            .execute()
    };
    let outcome = outcome.map_err(told);
    drop(timer);
    match outcome {
        Err(Failure::Ended(_)) if is_late() => return Err(Failure::Late),
        // Where a signal came right behind the timer, it says itself whose it was, and why.
        Err(Failure::Ended(_)) => interrupts::check(),
        // Whoever has taken the cancel of a signal for the timer's has not ended the call.
        Ok(_) | Err(Failure::Late | Failure::Failed(_)) => {
            if FIRED.load(Ordering::Relaxed) && CANCELS.load(Ordering::Relaxed) > 0 {
                cancel();
            }
        }
    }
    outcome
}

/// Whether the timer has ended the work, and nobody else has cancelled it.
fn is_late() -> bool {
    FIRED.load(Ordering::Relaxed) && CANCELS.load(Ordering::Relaxed) == 0
}

fn late_statement() -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
        "a part of the work took too long, and in a parallel plan it cannot be left out",
    )
    .hint("SET max_parallel_workers_per_gather = 0 plans the statement without parallel workers.")
}

fn told(error: Error) -> Failure {
    let is_cancelled = FIRED.load(Ordering::Relaxed) || CANCELS.load(Ordering::Relaxed) > 0;
    match error.code {
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED if is_cancelled => Failure::Ended(error),
        // 57014 without a cancel is what the engine says when its time is over.
        _ => Failure::Failed(error),
    }
}
