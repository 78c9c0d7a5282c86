//! Background workers: registering and starting them, their signals, and transactions that turn Postgres
//! errors into [`Error`] instead of ending the process.

use crate::error::{Error, Result};
use crate::pg::interrupts;
use crate::pg::shared;
use crate::pg::work_queue::WorkerSlot;
use pgrx::bgworkers::{BackgroundWorkerBuilder, BgWorkerStartTime};
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// Name of the library, as `shared_preload_libraries` has it.
const LIBRARY: &str = "rag_ext";
/// A worker that crashed is started again after this time.
pub(crate) const RESTART_DELAY: Duration = Duration::from_secs(5);

/// Defines the function by which Postgres enters a background worker; it calls one that takes the worker's
/// argument, which for a worker of [`StartedWorker::start`] is its database.
macro_rules! worker_entry {
    ($(#[$doc:meta])* $name:ident => $main:expr) => {
        $(#[$doc])*
        // SAFETY: the prefix makes the symbol ours; Postgres calls it by this name with one datum.
        #[pgrx::pg_guard]
        #[unsafe(no_mangle)]
        pub(crate) extern "C-unwind" fn $name(argument: pgrx::pg_sys::Datum) {
            let main: fn(u32) = $main;
            main(argument.value() as u32);
        }
    };
}
pub(crate) use worker_entry;

// The server's own handlers, taken by address only: called through the bindings they would be wrapped in code
// that must not run in a signal handler.
unsafe extern "C-unwind" {
    #[link_name = "die"]
    fn handle_termination(signal: i32);
    #[link_name = "SignalHandlerForConfigReload"]
    fn handle_reload(signal: i32);
    #[link_name = "SignalHandlerForShutdownRequest"]
    fn handle_shutdown(signal: i32);
    #[link_name = "SetLatch"]
    fn set_latch(latch: *mut pg_sys::Latch);
}

unsafe extern "C-unwind" fn handle_child(_: i32) {
    // SAFETY: `MyLatch` is this process's own; `SetLatch` may be called by a signal handler. The interrupted
    // code must find its `errno` again.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        set_latch(pg_sys::MyLatch);
        *errno = kept;
    }
}

/// How a worker takes SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Termination {
    /// As a request that [`should_stop`] tells of.
    Request,
    /// As a request, and as the end of the process at the next check for interrupts, in any query or wait.
    Interrupt,
}

/// Installs the signal handlers of this worker and lets signals in. Call first.
pub(crate) fn handle_signals(termination: Termination) {
    type Handler = unsafe extern "C-unwind" fn(i32);
    let on_termination: Handler = match termination {
        Termination::Request => handle_shutdown,
        Termination::Interrupt => handle_termination,
    };
    set_handler(libc::SIGTERM, on_termination);
    set_handler(libc::SIGHUP, handle_reload);
    set_handler(libc::SIGCHLD, handle_child);
    // SAFETY: the handlers are in place.
    unsafe { pg_sys::BackgroundWorkerUnblockSignals() };
}

fn set_handler(signal: i32, handler: unsafe extern "C-unwind" fn(i32)) {
    // SAFETY: the handlers do only what a signal handler may.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::pqsignal(signal, Some(handler));
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::pqsignal_be(signal, Some(handler));
    }
}

/// Registers a worker that runs for as long as the server does. Call from `_PG_init`, while preloading.
pub(crate) fn register(name: &str, function: &str, start: BgWorkerStartTime, shared_catalogs: bool) {
    let mut builder = BackgroundWorkerBuilder::new(name)
        .set_library(LIBRARY)
        .set_function(function)
        .set_restart_time(Some(RESTART_DELAY));
    if shared_catalogs {
        builder = builder.enable_spi_access();
    }
    builder.set_start_time(start).load();
}

/// A worker that this process started.
pub(crate) struct StartedWorker {
    handle: *mut pg_sys::BackgroundWorkerHandle,
}

impl StartedWorker {
    /// Starts a worker for a database; `None` if `max_worker_processes` is exhausted.
    pub(crate) fn start(name: &str, function: &str, database: u32, place: WorkerSlot) -> Option<Self> {
        // SAFETY: reads a variable that is set at the start of the process.
        let own_pid = unsafe { pg_sys::MyProcPid };
        let builder = BackgroundWorkerBuilder::new(name)
            .set_library(LIBRARY)
            .set_function(function)
            .set_argument(Some(pg_sys::Datum::from(u64::from(database))))
            .set_extra(&format!("{} {}", place.index, place.token))
            .set_notify_pid(own_pid)
            .enable_spi_access();
        let mut worker = pg_sys::BackgroundWorker::from(&builder);
        let mut handle = std::ptr::null_mut();
        // SAFETY: both pointers are valid for the call. The handle is allocated where it lives until it is
        // freed below, whatever the caller's memory context.
        let started = unsafe {
            let context = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
            let started = pg_sys::RegisterDynamicBackgroundWorker(&mut worker, &mut handle);
            pg_sys::MemoryContextSwitchTo(context);
            started
        };
        // Made only now: dropping it frees the handle.
        started.then(|| Self { handle })
    }

    /// Whether its process has ended, or could not be started.
    pub(crate) fn has_stopped(&self) -> bool {
        let mut pid = 0;
        // SAFETY: the handle is valid until it is dropped.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.handle, &mut pid) };
        status == pg_sys::BgwHandleStatus::BGWH_STOPPED
    }
}

impl Drop for StartedWorker {
    fn drop(&mut self) {
        // SAFETY: the handle was allocated by Postgres' allocator and nothing else refers to it.
        unsafe { pg_sys::pfree(self.handle.cast()) }
    }
}

/// What a database's owner sets for it is for their sessions, and not for those of a superuser who works in it: no
/// function or operator of ours is to be found in their schemas, and nothing of theirs is to end or forbid the work.
///
/// No wait for a lock is without a limit, or any idle transaction could stop a worker for everybody. It is below the
/// default of deadlock_timeout, so that a session and a worker who wait for each other are told apart by the worker,
/// which comes again.
const OWN_SETTINGS: &[(&CStr, &CStr)] = &[
    (c"role", c"none"),
    (c"search_path", c"pg_catalog, pg_temp"),
    (c"session_replication_role", c"origin"),
    (c"row_security", c"on"),
    (c"rag_ext.user_id", c""),
    (c"default_transaction_isolation", c"read committed"),
    (c"default_transaction_read_only", c"off"),
    (c"statement_timeout", c"0"),
    (c"lock_timeout", c"500ms"),
    (c"idle_in_transaction_session_timeout", c"0"),
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    (c"transaction_timeout", c"0"),
];

/// Connects this worker to a database, as the bootstrap superuser, and takes the place that the launcher kept
/// for it. False if it has none any more: then it must return at once. Installs the signal handlers. `name` is what
/// `pg_stat_activity` shows as its application.
///
/// Ends the process if the database is gone or takes no connections.
pub(crate) fn connect(name: &'static CStr, database: u32) -> bool {
    handle_signals(Termination::Interrupt);
    if !own_place().is_some_and(shared::attach_worker) {
        return false;
    }
    // SAFETY: called once in this process, which was registered with access to databases. Names and values are literals
    // of settings that this major has.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnectionByOid(pg_sys::Oid::from(database), pg_sys::InvalidOid, 0);
        for (name, value) in OWN_SETTINGS {
            pg_sys::SetConfigOption(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_SUSET,
                pg_sys::GucSource::PGC_S_OVERRIDE,
            );
        }
        pg_sys::SetConfigOption(
            c"application_name".as_ptr(),
            name.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
    true
}

/// Connects this worker to the catalogs that all databases share, and to no database.
pub(crate) fn connect_to_shared_catalogs() {
    // SAFETY: called once in this process, which was registered with access to databases.
    unsafe { pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0) };
}

/// The place that [`StartedWorker::start`] was given.
fn own_place() -> Option<WorkerSlot> {
    // SAFETY: Postgres sets the entry before it calls a worker's function, and its text ends with a NUL.
    let extra = unsafe { CStr::from_ptr((*pg_sys::MyBgworkerEntry).bgw_extra.as_ptr()) };
    let (index, token) = extra.to_str().ok()?.split_once(' ')?;
    Some(WorkerSlot { index: index.parse().ok()?, token: token.parse().ok()? })
}

/// Whether this worker was asked to end: by the server, an administrator, or to make room for another database.
pub(crate) fn should_stop() -> bool {
    stop_requested() || shared::worker_must_leave()
}

/// Whether the server or an administrator asked this worker to end.
pub(crate) fn stop_requested() -> bool {
    // SAFETY: flags that signal handlers set, read as they are.
    unsafe {
        (&raw const pg_sys::ShutdownRequestPending).read_volatile() != 0
            || (&raw const pg_sys::ProcDiePending).read_volatile() != 0
    }
}

/// Reads the configuration again if a reload was asked for. True if it did.
pub(crate) fn reload_configuration() -> bool {
    // SAFETY: a flag of the signal handler, reset before the files are read, so that no later request is lost.
    unsafe {
        if (&raw const pg_sys::ConfigReloadPending).read_volatile() == 0 {
            return false;
        }
        (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
        pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
    }
    true
}

/// Pauses a worker that found nothing to do. True, before the time is over, if it should look for work again:
/// then it must, before it leaves. False after `at_most`, or when [`should_stop`] says so.
pub(crate) fn wait(at_most: Duration) -> bool {
    set_activity("");
    let deadline = Instant::now() + at_most;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if shared::pause_worker() && !should_stop() && !left.is_zero() {
            interrupts::pause(left);
            reload_configuration();
        }
        if shared::resume_worker() {
            return true;
        }
        if left.is_zero() || should_stop() {
            return false;
        }
    }
}

/// Shows in `pg_stat_activity` what this worker does; empty is idle. Never a title, a name or a text of users.
pub(crate) fn set_activity(activity: &str) {
    let state = if activity.is_empty() {
        pg_sys::BackendState::STATE_IDLE
    } else {
        pg_sys::BackendState::STATE_RUNNING
    };
    let activity = CString::new(activity).unwrap_or_default();
    // SAFETY: the text is copied.
    unsafe { pg_sys::pgstat_report_activity(state, activity.as_ptr()) }
}

/// Runs `body` in a transaction of this worker, with a snapshot. It commits if `body` is `Ok`; otherwise, and
/// for every Postgres error or panic within, it is rolled back and the error returned.
pub(crate) fn transaction<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: this worker is connected and in no transaction.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        let value = body()?;
        // SAFETY: the snapshot and the transaction are those begun above.
        unsafe {
            pg_sys::PopActiveSnapshot();
            pg_sys::CommitTransactionCommand();
        }
        Ok(value)
    }))
    .catch_others(|caught| Err(caught_error(caught)))
    .execute();
    // SAFETY: after an error the transaction, in whatever state, is there to be aborted; statistics are sent
    // outside of transactions only.
    unsafe {
        if outcome.is_err() {
            pg_sys::AbortCurrentTransaction();
        }
        pg_sys::pgstat_report_stat(false);
    }
    outcome
}

/// Adds what this worker has changed to the counters of tables, which is otherwise done from time to time. Outside of
/// transactions.
pub(crate) fn report_statistics() {
    // SAFETY: this worker is connected and in no transaction.
    unsafe { pg_sys::pgstat_report_stat(true) };
}

pub(crate) fn caught_error(caught: CaughtError) -> Error {
    let (CaughtError::PostgresError(report)
    | CaughtError::ErrorReport(report)
    | CaughtError::RustPanic { ereport: report, .. }) = caught;
    Error {
        code: report.sql_error_code(),
        message: report.message().to_owned(),
        detail: report.detail().map(str::to_owned),
        hint: report.hint().map(str::to_owned),
        has_private_detail: false,
        is_servers: true,
    }
}

/// What ended a supervisor's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// A signal, a descriptor or the time.
    Normally,
    /// The server is gone.
    ByServerDeath,
}

/// Waits until a signal comes, `descriptor` can be read, the time is over, or the server dies: then it is for
/// the caller to end the process.
pub(crate) fn wait_as_supervisor(descriptor: Option<BorrowedFd<'_>>, at_most: Duration) -> Woken {
    let mut events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_POSTMASTER_DEATH;
    if descriptor.is_some() {
        events |= pg_sys::WL_SOCKET_READABLE;
    }
    let milliseconds = at_most.as_micros().div_ceil(1000).min(i32::MAX as u128);
    // SAFETY: the latch is this process's own and the borrowed descriptor is open for the length of the call.
    unsafe {
        let happened = pg_sys::WaitLatchOrSocket(
            pg_sys::MyLatch,
            events as i32,
            descriptor.map_or(-1, |descriptor| descriptor.as_raw_fd()),
            milliseconds as _,
            pg_sys::PG_WAIT_EXTENSION,
        ) as u32;
        if happened & pg_sys::WL_LATCH_SET != 0 {
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
        if happened & pg_sys::WL_POSTMASTER_DEATH != 0 { Woken::ByServerDeath } else { Woken::Normally }
    }
}

/// Ends the process as one that is to be started again: a worker that returns is not.
// Before 18 the binding does say that proc_exit does not return.
#[cfg_attr(any(feature = "pg15", feature = "pg16", feature = "pg17"), allow(unreachable_code))]
#[expect(
    clippy::disallowed_methods,
    reason = "never reached: proc_exit does not return, but its binding does not say so"
)]
pub(crate) fn exit_for_restart() -> ! {
    // SAFETY: ends the process after its exit callbacks.
    unsafe { pg_sys::proc_exit(1) };
    std::process::abort()
}

/// Runs `at_exit` whenever the process ends by itself, also through an error. Not upon SIGKILL or SIGQUIT.
pub(crate) fn at_exit(at_exit: fn()) {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn call(_code: i32, function: pg_sys::Datum) {
        // SAFETY: the datum is the function pointer registered below.
        let function: fn() = unsafe { std::mem::transmute::<usize, fn()>(function.value()) };
        function();
    }
    // SAFETY: the callback has the right type and lives as long as the process.
    unsafe { pg_sys::before_shmem_exit(Some(call), pg_sys::Datum::from(at_exit as usize)) }
}

/// Logs a line; `code` is left out of it unless the server is told to print codes.
pub(crate) fn log(level: pgrx::PgLogLevel, code: PgSqlErrorCode, message: String, hint: Option<&str>) {
    let mut report = pgrx::pg_sys::panic::ErrorReport::new(code, message, LIBRARY);
    if let Some(hint) = hint {
        report = report.set_hint(hint);
    }
    report.report(level);
}
