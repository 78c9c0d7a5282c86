//! Whether what this backend has read of some rows still holds, by what others have written since: see [`write_log`].
//!
//! [`write_log`]: super::write_log

use super::write_log::{Subject, View, WriteLog};
use super::{shared, transaction};
use pgrx::{PGRXSharedMemory, PgLwLock, pg_guard, pg_shmem_init, pg_sys};
use rag_core::hash;
use std::cell::Cell;

// SAFETY: plain data without pointers.
unsafe impl PGRXSharedMemory for WriteLog {}

// SAFETY: the prefix makes the name ours.
static LOG: PgLwLock<WriteLog> = unsafe { PgLwLock::new(c"rag_ext_writes") };

/// Asks for the shared memory. Call once, from `_PG_init`, while libraries are preloaded.
// The macro asks for majors that this crate does not build for.
#[allow(unexpected_cfgs)]
pub(super) fn reserve() {
    pg_shmem_init!(LOG = WriteLog::EMPTY);
}

/// Whatever a text names, such as a principal.
pub(crate) fn text(text: &str) -> Subject {
    Subject::new(hash::number(text.as_bytes()))
}

/// Whatever has this id.
pub(crate) fn id(id: u128) -> Subject {
    Subject::new(hash::number(&id.to_be_bytes()))
}

thread_local! {
    /// What this transaction has noted last.
    static NOTED: Cell<Option<(u64, Subject)>> = const { Cell::new(None) };
}

/// This transaction is about to write rows about a subject. Does nothing if the library was not preloaded.
pub(crate) fn note(subject: Subject) {
    if !shared::is_available() {
        return;
    }
    // SAFETY: within a transaction that is about to write, and so gets an id anyway.
    let xid = unsafe { pg_sys::GetTopFullTransactionId() }.value;
    if NOTED.replace(Some((xid, subject))) == Some((xid, subject)) {
        return;
    }
    let next = next_xid();
    let mut log = LOG.exclusive();
    log.begin(next);
    log.note(transaction::database(), xid, subject);
}

/// What the active snapshot shows. None where nothing may be kept from one statement to the next: without the shared
/// memory, on a standby, where writers note nothing, and in a SERIALIZABLE transaction, whose reads are to be seen.
pub(crate) fn view() -> Option<View> {
    if !shared::is_available() || transaction::in_recovery() || transaction::is_serializable() {
        return None;
    }
    // SAFETY: reads variables of the backend; the active snapshot, if there is one, outlives this function, and its array
    // has as many elements as it says.
    unsafe {
        if !pg_sys::ActiveSnapshotSet() {
            return None;
        }
        let active = &*pg_sys::GetActiveSnapshot();
        if active.snapshot_type != pg_sys::SnapshotType::SNAPSHOT_MVCC || active.takenDuringRecovery {
            return None;
        }
        let next = next_xid();
        // No id of a snapshot is beyond the next one.
        let full = |xid: pg_sys::TransactionId| {
            next.wrapping_sub(u64::from((next as u32).wrapping_sub(xid.into_inner())))
        };
        let running = match active.xcnt {
            0 => &[],
            count => std::slice::from_raw_parts(active.xip.cast_const(), count as usize),
        };
        let own = pg_sys::GetTopFullTransactionIdIfAny().value;
        Some(View::new(
            (full(active.xmin), full(active.xmax)),
            running.iter().map(|xid| full(*xid)),
            (own != 0).then_some(own),
        ))
    }
}

/// Whether what was read of rows about these subjects, which are in order, under `then` holds under `now`, the active
/// snapshot.
pub(crate) fn is_same(subjects: &[Subject], then: &View, now: &View) -> bool {
    let log = LOG.share();
    if log.has_begun() {
        return log.is_same(transaction::database(), subjects, then, now);
    }
    drop(log);
    let next = next_xid();
    LOG.exclusive().begin(next);
    false
}

fn next_xid() -> u64 {
    // SAFETY: reads shared state.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}
