//! Tables by OID: holding them still while they are looked at.

use pgrx::pg_sys;

/// Locks a table against ALTER and DROP until the transaction ends; `false` if there is none of this OID.
///
/// Readers and writers are not kept out.
pub(crate) fn lock_shared(table: pg_sys::Oid) -> bool {
    // SAFETY: an OID that names nothing is locked all the same, and let go if the look-up says so.
    unsafe {
        let mode = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        pg_sys::LockRelationOid(table, mode);
        let exists = !pg_sys::get_rel_name(table).is_null();
        if !exists {
            pg_sys::UnlockRelationOid(table, mode);
        }
        exists
    }
}
