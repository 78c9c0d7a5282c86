//! The way of a note from a search to the worker that writes it: through shared memory, because nothing on the read path
//! writes.

use crate::pg::query_queue::{Holder, Pushed, QueryQueue};
use crate::pg::{server, shared, transaction};
use pgrx::{PGRXSharedMemory, PgLwLock, pg_guard, pg_shmem_init, pg_sys};

// SAFETY: plain data without pointers.
unsafe impl PGRXSharedMemory for QueryQueue {}

// SAFETY: the prefix makes the name ours.
static NOTES: PgLwLock<QueryQueue> = unsafe { PgLwLock::new(c"rag_ext_query_log") };

/// Asks for the shared memory. Call once, from `_PG_init`, while libraries are preloaded.
// The macro asks for majors that this crate does not build for.
#[allow(unexpected_cfgs)]
pub(super) fn reserve() {
    pg_shmem_init!(NOTES = QueryQueue::EMPTY);
}

/// Hands a note of the current database to the workers: of an owner, told by a number, with the role behind them. On a standby
/// and in a read-only transaction it is dropped, as where there is no place, and counted. Never waits for more than the lock.
pub(crate) fn push(role: u32, owner: u64, note: &[u8]) {
    if !shared::is_available() {
        return;
    }
    if transaction::in_recovery() || transaction::is_read_only() {
        return drop_note();
    }
    let holder = Holder { database: transaction::database(), role, owner };
    let pushed = NOTES.exclusive().push(holder, note, server::now());
    if pushed == Pushed::First {
        shared::request_work();
    }
}

/// Counts a note that could not be made.
pub(crate) fn drop_note() {
    if shared::is_available() {
        NOTES.exclusive().drop_note();
    }
}

/// Takes at most so many notes of the current database, the oldest first.
pub(crate) fn take(most: usize) -> Vec<Vec<u8>> {
    if shared::is_available() { NOTES.exclusive().take(transaction::database(), most) } else { Vec::new() }
}

/// Notes that were dropped since the server started, in all databases.
pub(crate) fn dropped() -> u64 {
    if shared::is_available() { NOTES.share().dropped() } else { 0 }
}
