//! Whether the definition of some tables has changed since this backend looked at them.
//!
//! Every session tells the others of changes of a table, its policies among them, when it commits; a session takes
//! these messages in with each statement.

use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

thread_local! {
    static TABLES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static UNCHANGED: Cell<bool> = const { Cell::new(false) };
    static CALLBACK_REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Whether none of the tables of the last [`begin`] has changed since; `false` where there was none.
pub(crate) fn is_unchanged() -> bool {
    UNCHANGED.get()
}

/// Watches these tables from now on. Call before they are looked at, so that no change is missed.
pub(crate) fn begin(tables: Vec<u32>) {
    if !CALLBACK_REGISTERED.replace(true) {
        // SAFETY: the callback only sets a flag, so it may run at any catalog access. There are few slots for such
        // callbacks, of which we take one, once per backend.
        unsafe {
            pg_sys::CacheRegisterRelcacheCallback(Some(note_change), pg_sys::Datum::from(0usize));
        }
    }
    TABLES.set(tables);
    UNCHANGED.set(true);
}

/// Has [`is_unchanged`] deny until the next [`begin`].
pub(crate) fn forget() {
    UNCHANGED.set(false);
}

unsafe extern "C-unwind" fn note_change(_: pg_sys::Datum, table: pg_sys::Oid) {
    let is_watched = || {
        let watched = |tables: &RefCell<Vec<u32>>| tables.try_borrow().map(|t| t.contains(&table.to_u32()));
        TABLES.with(watched).unwrap_or(true)
    };
    // Zero stands for all tables.
    if UNCHANGED.get() && (table == pg_sys::InvalidOid || is_watched()) {
        UNCHANGED.set(false);
    }
}

/// Tells every session, with the commit, that this table has changed, as if its definition had.
pub(crate) fn announce_change(table: pg_sys::Oid) {
    // SAFETY: called in a transaction that holds a lock on the table.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(table) }
}
