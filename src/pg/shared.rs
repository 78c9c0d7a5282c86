//! Shared memory: the queue of databases with background work, the engine's state, and what [`notes`] and [`writes`] keep.
//!
//! It exists only where `shared_preload_libraries` names the library; everywhere else [`is_available`] is
//! false, requests for work are dropped and the engine's state is unknown.

use crate::error::{Error, Result};
use crate::pg::work_queue::{WORKERS, WorkQueue, WorkerSlot};
use crate::pg::{interrupts, notes, server, transaction, worker, writes};
use pgrx::{PGRXSharedMemory, PgLogLevel, PgLwLock, PgSqlErrorCode, pg_guard, pg_shmem_init, pg_sys};
use rag_core::hash::number;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

// SAFETY: plain data without pointers that are followed; a latch's address means the same in every process,
// because latches lie in the server's shared memory.
unsafe impl PGRXSharedMemory for WorkQueue {}
// SAFETY: plain data.
unsafe impl PGRXSharedMemory for EngineSlot {}

// SAFETY: the prefix makes the names ours.
static WORK: PgLwLock<WorkQueue> = unsafe { PgLwLock::new(c"rag_ext_work") };
// SAFETY: the prefix makes the names ours.
static ENGINE: PgLwLock<EngineSlot> = unsafe { PgLwLock::new(c"rag_ext_engine") };

/// Set in the postmaster, and so in every process that it forks.
static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Asks for the shared memory. Call once, from `_PG_init`, while libraries are preloaded.
// The macro asks for majors that this crate does not build for.
#[allow(unexpected_cfgs)]
pub(crate) fn reserve() {
    pg_shmem_init!(WORK = WorkQueue::EMPTY);
    pg_shmem_init!(ENGINE = EngineSlot::EMPTY);
    notes::reserve();
    writes::reserve();
    AVAILABLE.store(true, Ordering::Relaxed);
}

/// Whether the library was preloaded.
pub(crate) fn is_available() -> bool {
    AVAILABLE.load(Ordering::Relaxed)
}

/// 55000 unless the library was preloaded.
pub(crate) fn require() -> Result<()> {
    if is_available() {
        return Ok(());
    }
    Err(Error::not_ready("rag_ext must be loaded via \"shared_preload_libraries\"")
        .hint("Add rag_ext to shared_preload_libraries and restart the server."))
}

/// Bytes kept of the engine's last error.
const ERROR_BYTES: usize = 200;

#[derive(Clone, Copy)]
struct EngineSlot {
    phase: EnginePhase,
    pid: i32,
    starts: u32,
    started_at: i64,
    retry_at: i64,
    error: [u8; ERROR_BYTES],
    error_length: usize,
}

impl EngineSlot {
    const EMPTY: Self = Self {
        phase: EnginePhase::Waiting,
        pid: 0,
        starts: 0,
        started_at: 0,
        retry_at: 0,
        error: [0; ERROR_BYTES],
        error_length: 0,
    };
}

/// What the supervisor is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnginePhase {
    /// The supervisor has not come to start it.
    Waiting,
    /// Its process runs.
    Running,
    /// It ended, or could not be started, and is started again at [`EngineState::retry_at`].
    Down,
}

/// What the supervisor knows of the engine. Times are those of [`server::now`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineState {
    pub(crate) phase: EnginePhase,
    /// Its process, if it runs.
    pub(crate) pid: Option<i32>,
    /// Times that it was started anew since the server started.
    pub(crate) restarts: u32,
    /// When it was started last, if ever.
    pub(crate) started_at: Option<i64>,
    /// When it is started next, if it is down.
    pub(crate) retry_at: Option<i64>,
    /// Why it ended or could not be started last, at most 200 bytes.
    pub(crate) last_error: Option<String>,
}

/// The engine's state; `None` if the library was not preloaded.
pub(crate) fn engine_state() -> Option<EngineState> {
    if !is_available() {
        return None;
    }
    let slot = *ENGINE.share();
    let error = slot.error.get(..slot.error_length).unwrap_or_default();
    Some(EngineState {
        phase: slot.phase,
        pid: (slot.phase == EnginePhase::Running).then_some(slot.pid),
        restarts: slot.starts.saturating_sub(1),
        started_at: (slot.starts > 0).then_some(slot.started_at),
        retry_at: (slot.phase == EnginePhase::Down).then_some(slot.retry_at),
        last_error: (!error.is_empty()).then(|| String::from_utf8_lossy(error).into_owned()),
    })
}

/// The supervisor started the engine.
pub(crate) fn engine_started(pid: i32) {
    let now = server::now();
    let mut slot = ENGINE.exclusive();
    slot.phase = EnginePhase::Running;
    slot.pid = pid;
    slot.starts = slot.starts.saturating_add(1);
    slot.started_at = now;
}

/// The engine ended or did not start; it is started again at `retry_at`.
pub(crate) fn engine_down(retry_at: i64) {
    let mut slot = ENGINE.exclusive();
    slot.phase = EnginePhase::Down;
    slot.retry_at = retry_at;
}

/// Keeps what went wrong with the engine; empty forgets it.
pub(crate) fn engine_error(error: &str) {
    let end = (0..=error.len().min(ERROR_BYTES)).rev().find(|end| error.is_char_boundary(*end)).unwrap_or(0);
    let kept = &error.as_bytes()[..end];
    let mut slot = ENGINE.exclusive();
    slot.error[..end].copy_from_slice(kept);
    slot.error_length = end;
}

thread_local! {
    /// The current transaction leaves work for the workers.
    static WORK_AT_COMMIT: Cell<bool> = const { Cell::new(false) };
    static CALLBACK_REGISTERED: Cell<bool> = const { Cell::new(false) };
    /// This process's place among the workers.
    static PLACE: Cell<Option<WorkerSlot>> = const { Cell::new(None) };
}

/// Wakes the launcher for the current database when the current transaction commits. Costs next to nothing
/// when called again in the same transaction; does nothing if the library was not preloaded.
pub(crate) fn request_work_at_commit() {
    if !is_available() {
        return;
    }
    if !CALLBACK_REGISTERED.replace(true) {
        // SAFETY: the callback has the right type and lives as long as the process, for a library is never unloaded.
        unsafe { pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut()) };
    }
    WORK_AT_COMMIT.set(true);
}

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PREPARE};
    match event {
        XACT_EVENT_COMMIT if WORK_AT_COMMIT.take() => request_work(),
        // A prepared transaction commits elsewhere, and its work is found by the launcher's regular look.
        XACT_EVENT_ABORT | XACT_EVENT_PREPARE => WORK_AT_COMMIT.set(false),
        _ => {}
    }
}

/// Says that the current database has work, now.
pub(crate) fn request_work() {
    if is_available() {
        // SAFETY: reads a variable that is set once when the process connects.
        let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
        WORK.exclusive().request(database, &mut set_latch);
    }
}

/// Says that the current database wants a vector index to be built.
pub(crate) fn request_index() {
    with_work_queue(|queue, wake| queue.request_index(transaction::database(), wake));
}

/// Says that the chat model is to be asked about chunks of the current database, after so long.
pub(crate) fn request_graph(after: Duration) {
    let after = i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
    let due = server::now().saturating_add(after);
    with_work_queue(|queue, wake| queue.request_graph(transaction::database(), due, wake));
}

/// Asks the workers of a database to leave, and lets none start for so long, or until [`open_database`].
pub(crate) fn close_database(database: u32, at_most: Duration) {
    let until = server::now().saturating_add(i64::try_from(at_most.as_micros()).unwrap_or(i64::MAX));
    with_work_queue(|queue, wake| queue.close(database, until, wake));
}

/// Lets workers start again in a database.
pub(crate) fn open_database(database: u32) {
    with_work_queue(|queue, wake| queue.close(database, 0, wake));
}

/// Processes of the workers in a database.
pub(crate) fn workers_in(database: u32) -> Vec<i32> {
    if is_available() { WORK.share().processes(database).collect() } else { Vec::new() }
}

/// Runs `change` on the queue of work, alone. Keep it short: it holds a lock that commits wait for.
pub(crate) fn with_work_queue<T>(
    change: impl FnOnce(&mut WorkQueue, &mut dyn FnMut(usize)) -> T,
) -> Option<T> {
    is_available().then(|| change(&mut WORK.exclusive(), &mut set_latch))
}

/// Whether the launcher runs: without it nothing is ingested. Never on a standby.
pub(crate) fn launcher_is_running() -> bool {
    is_available() && WORK.share().has_launcher()
}

/// The address of this process's latch, by which others wake it.
pub(crate) fn own_latch() -> usize {
    // SAFETY: reads a variable that is set before any code of ours runs.
    unsafe { pg_sys::MyLatch as usize }
}

fn set_latch(latch: usize) {
    // SAFETY: latches are those of processes' entries in shared memory, which is never unmapped. If the process
    // is gone, at worst another that took its entry wakes for nothing.
    unsafe { pg_sys::SetLatch(latch as *mut pg_sys::Latch) }
}

/// This process, a worker, takes the place that the launcher kept for it. False if it must end at once.
pub(crate) fn attach_worker(place: WorkerSlot) -> bool {
    let attached =
        with_work_queue(|queue, _| queue.attach(place, server::own_pid(), own_latch(), server::now()))
            .unwrap_or(false);
    if attached {
        PLACE.set(Some(place));
        // SAFETY: the callback has the right type and lives as long as the process.
        unsafe { pg_sys::before_shmem_exit(Some(at_worker_exit), pg_sys::Datum::from(0)) };
    }
    attached
}

#[pg_guard]
unsafe extern "C-unwind" fn at_worker_exit(_code: i32, _argument: pg_sys::Datum) {
    if interrupts::has_overrun() {
        worker::log(
            PgLogLevel::WARNING,
            PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
            "rag_ext: a worker ends because code of an attached table's owner took too long and could not be cancelled"
                .to_owned(),
            Some("The table is followed no more: see rag.attachment."),
        );
        // No failure of the database's: the others' work goes on at once.
        leave_idle(server::now(), false);
    }
    if let Some(place) = PLACE.take() {
        with_work_queue(|queue, wake| queue.leave_early(place, server::now(), wake));
    }
}

/// This worker's leave to follow an attached table, until it is dropped.
pub(crate) struct Following(WorkerSlot);

impl Following {
    /// `None` if as many other workers of this database are at attached tables.
    pub(crate) fn begin(most: usize) -> Option<Self> {
        let place = PLACE.get()?;
        with_work_queue(|queue, _| queue.begin_following(place, most)).unwrap_or(false).then_some(Self(place))
    }

    /// The roles whose attached tables others are at.
    pub(crate) fn owners_of_others(&self) -> Vec<pg_sys::Oid> {
        let owners = with_work_queue(|queue, _| queue.followed_by_others(self.0)).unwrap_or_default();
        owners.into_iter().map(pg_sys::Oid::from).collect()
    }

    /// Takes on a table of this role; false if another worker is at one.
    pub(crate) fn take(&self, owner: pg_sys::Oid) -> bool {
        with_work_queue(|queue, _| queue.take_owner(self.0, owner.to_u32())).unwrap_or(false)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        with_work_queue(|queue, _| queue.end_following(self.0));
    }
}

/// This worker is about to look for jobs: requests from here on call for another look.
pub(crate) fn look_for_work() {
    if let Some(place) = PLACE.get() {
        with_work_queue(|queue, _| queue.look(place));
    }
}

/// How often work was asked for so far in this worker's database: another number means that some came.
pub(crate) fn requests_for_work() -> u64 {
    PLACE.get().and_then(|place| with_work_queue(|queue, _| queue.requests(place))).unwrap_or(0)
}

/// This worker is about to work on documents of this owner; false if `most` others of its database are at theirs.
pub(crate) fn serve(owner: &str, most: usize) -> bool {
    // 0 stands for nobody.
    let owner = number(owner.as_bytes()).max(1);
    PLACE.get().and_then(|place| with_work_queue(|queue, _| queue.serve(place, owner, most))).unwrap_or(true)
}

/// This worker is at nobody's documents any more.
pub(crate) fn serve_nobody() {
    if let Some(place) = PLACE.get() {
        with_work_queue(|queue, _| queue.serve_nobody(place));
    }
}

/// Whether `most` other workers of this one's database are all at work.
pub(crate) fn is_spare_worker(most: usize) -> bool {
    PLACE.get().and_then(|place| with_work_queue(|queue, _| queue.is_spare(place, most))).unwrap_or(false)
}

/// Whether there is no place for another worker, in whichever database.
pub(crate) fn workers_are_full() -> bool {
    let in_all = most_workers();
    with_work_queue(|queue, _| queue.is_full(in_all)).unwrap_or(true)
}

/// All databases together leave half of the server's worker processes to others.
pub(crate) fn most_workers() -> usize {
    (server::max_worker_processes() / 2).clamp(1, WORKERS)
}

/// This worker found nothing to do and pauses; false if it must look again at once.
pub(crate) fn pause_worker() -> bool {
    PLACE.get().and_then(|place| with_work_queue(|queue, _| queue.pause(place))).unwrap_or(true)
}

/// This worker's pause is over; true if there is a reason to look for jobs.
pub(crate) fn resume_worker() -> bool {
    PLACE
        .get()
        .and_then(|place| with_work_queue(|queue, _| queue.resume(place, server::now())))
        .unwrap_or(false)
}

/// Whether this worker is to make room for another database's.
pub(crate) fn worker_must_leave() -> bool {
    is_available() && PLACE.get().is_some_and(|place| WORK.share().must_leave(place))
}

/// This worker ends because nothing is left to do in its database before `next_due` (of [`server::now`]).
pub(crate) fn worker_idle(next_due: Option<i64>) {
    leave_idle(next_due.unwrap_or(i64::MAX), false);
}

/// This worker ends because its database does not have the extension.
pub(crate) fn worker_found_no_extension() {
    leave_idle(i64::MAX, true);
}

fn leave_idle(due: i64, absent: bool) {
    if let Some(place) = PLACE.take() {
        with_work_queue(|queue, wake| queue.leave_idle(place, due, absent, server::now(), wake));
    }
}
