//! What the current transaction is and has done.

use pgrx::pg_sys;

/// Whether a row version was written by the current transaction or one of its subtransactions.
pub(crate) fn is_own_xid(xid: u32) -> bool {
    // SAFETY: only looks at the backend's own transaction state.
    unsafe { pg_sys::TransactionIdIsCurrentTransactionId(pg_sys::TransactionId::from(xid)) }
}

/// Whether each statement of the transaction takes a new snapshot (READ COMMITTED).
pub(crate) fn sees_new_commits() -> bool {
    // SAFETY: reads a variable of the backend.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32 }
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
