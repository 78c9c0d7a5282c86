//! What the current transaction is and has done.

use crate::error::Result;
use crate::pg::worker::caught_error;
use pgrx::{PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// Whether a row version was written by the current transaction or one of its subtransactions.
pub(crate) fn is_own_xid(xid: u32) -> bool {
    // SAFETY: only looks at the backend's own transaction state.
    unsafe { pg_sys::TransactionIdIsCurrentTransactionId(pg_sys::TransactionId::from(xid)) }
}

/// Whether the transaction has an id: without one it has written nothing.
pub(crate) fn has_written() -> bool {
    // SAFETY: only looks at the backend's own transaction state.
    unsafe { pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId }
}

/// Number of the transaction's current command: it grows once something was written.
pub(crate) fn command() -> u32 {
    // SAFETY: only looks at the backend's own transaction state; the command counts as one that has written only for true.
    unsafe { pg_sys::GetCurrentCommandId(false) }
}

/// Whether each statement of the transaction takes a new snapshot (READ COMMITTED).
pub(crate) fn sees_new_commits() -> bool {
    // SAFETY: reads a variable of the backend.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Whether the transaction is SERIALIZABLE: what it reads is kept track of.
pub(crate) fn is_serializable() -> bool {
    // SAFETY: reads a variable of the backend.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_SERIALIZABLE as i32 }
}

/// OID of the current database.
pub(crate) fn database() -> u32 {
    // SAFETY: reads a variable that is set once when the backend connects.
    unsafe { pg_sys::MyDatabaseId.to_u32() }
}

/// Whether the server is in recovery: a hot standby.
pub(crate) fn in_recovery() -> bool {
    // SAFETY: reads shared state.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Whether the transaction may not write.
pub(crate) fn is_read_only() -> bool {
    // SAFETY: reads a variable of the backend.
    unsafe { pg_sys::XactReadOnly }
}

/// Runs `work` with what was committed last, and what this transaction has written, as its active snapshot: for the
/// few questions whose answer must not be older than the catalogs in force.
pub(crate) fn with_catalog_snapshot<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: within a transaction. The pushed snapshot is a copy, and an error pops it with the (sub)transaction.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetCatalogSnapshot(pg_sys::InvalidOid)) };
    let result = work();
    // SAFETY: `work` has left the active snapshot as it was.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// Whether a subtransaction can begin. Before Postgres 18 none can in a parallel plan; from then on one can that writes
/// nothing.
pub(crate) fn may_attempt() -> bool {
    // SAFETY: reads the backend's own transaction state.
    cfg!(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))
        || !unsafe { pg_sys::IsInParallelMode() }
}

/// Runs `work` in a subtransaction. An error in it, also one that the server raises, is returned, and what the
/// transaction did before is left as it was. The caller must pass on what it does not expect, such as 57014.
///
/// Where [`may_attempt`] denies, an error of the server ends the statement.
pub(crate) fn attempt<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    if !may_attempt() {
        return work();
    }
    // SAFETY: called on the backend's main thread within a transaction. Memory context and resource owner are those
    // of before, as after a block with EXCEPTION in PL/pgSQL.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let outcome = PgTryBuilder::new(AssertUnwindSafe(work))
            .catch_others(|caught| Err(caught_error(caught)))
            .execute();
        match outcome {
            Ok(_) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        outcome
    }
}
