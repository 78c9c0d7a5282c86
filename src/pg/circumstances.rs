//! Under which circumstances an answer about the caller was found: while they are the same, so is the answer.

use crate::config;
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    /// Counts what the catalogs told of changes: of roles, memberships, privileges and definitions of relations.
    static CATALOG_CHANGES: Cell<u64> = const { Cell::new(0) };
    static CALLBACKS_REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Who asks, in which statement, and what they can see.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Circumstances {
    session: Session,
    transaction_start: i64,
    statement_start: i64,
    subtransaction: u32,
    snapshot: Option<SnapshotKey>,
}

/// Who asks, and how the catalogs are.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Session {
    user: pg_sys::Oid,
    outer_user: pg_sys::Oid,
    user_id: Option<String>,
    catalog_changes: u64,
}

impl Circumstances {
    pub(crate) fn now() -> Self {
        register_callbacks();
        // SAFETY: reads variables of the backend; the active snapshot, if there is one, outlives this function.
        unsafe {
            let snapshot = pg_sys::ActiveSnapshotSet().then(|| SnapshotKey::active());
            Self {
                session: Session {
                    user: pg_sys::GetUserId(),
                    outer_user: pg_sys::GetOuterUserId(),
                    user_id: config::user_id(),
                    catalog_changes: CATALOG_CHANGES.get(),
                },
                transaction_start: pg_sys::GetCurrentTransactionStartTimestamp(),
                statement_start: pg_sys::GetCurrentStatementStartTimestamp(),
                subtransaction: pg_sys::GetCurrentSubTransactionId(),
                snapshot,
            }
        }
    }

    /// What of them may be the same in another statement.
    pub(crate) fn session(&self) -> Session {
        self.session.clone()
    }
}

/// What tells snapshots apart.
#[derive(Clone, PartialEq, Eq)]
struct SnapshotKey {
    /// Oldest running and next transaction, and the command within one's own.
    bounds: (u32, u32, u32),
    /// Running transactions between these, and subtransactions.
    running: Vec<u32>,
}

impl SnapshotKey {
    /// # Safety
    /// There is an active snapshot.
    unsafe fn active() -> Self {
        // SAFETY: the active snapshot outlives this function; its arrays have as many elements as it says.
        unsafe {
            let active = &*pg_sys::GetActiveSnapshot();
            let ids = |array: *mut pg_sys::TransactionId, count: usize| match count {
                0 => &[],
                _ => std::slice::from_raw_parts(array.cast_const(), count),
            };
            let top = ids(active.xip, active.xcnt as usize);
            let sub = ids(active.subxip, usize::try_from(active.subxcnt).unwrap_or(0));
            Self {
                bounds: (active.xmin.into_inner(), active.xmax.into_inner(), active.curcid),
                running: top.iter().chain(sub).map(|id| id.into_inner()).collect(),
            }
        }
    }
}

/// Grows with what the catalogs tell of changes: of roles, memberships, privileges and definitions of relations.
pub(crate) fn catalog_changes() -> u64 {
    register_callbacks();
    CATALOG_CHANGES.get()
}

fn register_callbacks() {
    if CALLBACKS_REGISTERED.replace(true) {
        return;
    }
    let nothing = pg_sys::Datum::from(0usize);
    // SAFETY: the callbacks only count; they may run at any catalog access. They take two of 64 slots for caches, and
    // one of ten for relations, once per backend.
    unsafe {
        for cache in [pg_sys::SysCacheIdentifier::AUTHMEMMEMROLE, pg_sys::SysCacheIdentifier::AUTHOID] {
            pg_sys::CacheRegisterSyscacheCallback(cache as i32, Some(note_cache_change), nothing);
        }
        pg_sys::CacheRegisterRelcacheCallback(Some(note_relation_change), nothing);
    }
}

unsafe extern "C-unwind" fn note_cache_change(_: pg_sys::Datum, _: i32, _: u32) {
    CATALOG_CHANGES.set(CATALOG_CHANGES.get() + 1);
}

unsafe extern "C-unwind" fn note_relation_change(_: pg_sys::Datum, _: pg_sys::Oid) {
    CATALOG_CHANGES.set(CATALOG_CHANGES.get() + 1);
}
