//! Tables and types: holding tables still while they are looked at, the policies that they have, and what is where.

use pgrx::pg_sys;
use std::ffi::CStr;
use std::time::Duration;

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

/// Whether the current user may read a column of a table, at least; `false` if there is none of this OID.
pub(crate) fn may_select_something(table: pg_sys::Oid) -> bool {
    // SAFETY: catalog look-ups within a transaction, which say of a missing table that it is missing.
    unsafe {
        let (user, select) = (pg_sys::GetUserId(), pg_sys::ACL_SELECT.into());
        let mut is_missing = false;
        let whole = pg_sys::pg_class_aclcheck_ext(table, user, select, &mut is_missing);
        whole == pg_sys::AclResult::ACLCHECK_OK
            || !is_missing
                && pg_sys::pg_attribute_aclcheck_all(table, user, select, pg_sys::AclMaskHow::ACLMASK_ANY)
                    == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// What came of an attempt to lock a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableLock {
    Held,
    /// There is no such table.
    Gone,
    /// Somebody else holds it.
    Busy,
}

/// How long a lock is asked for in vain. A transaction's changes are seen an instant before it lets its locks go.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// As [`lock_shared`], and waits for nobody.
pub(crate) fn try_lock_shared(table: pg_sys::Oid) -> TableLock {
    let mode = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: as in `lock_shared`.
    unsafe {
        let mut tries = 1;
        while !pg_sys::ConditionalLockRelationOid(table, mode) {
            if tries == TRIES {
                return TableLock::Busy;
            }
            tries += 1;
            std::thread::sleep(BETWEEN_TRIES);
        }
        if pg_sys::get_rel_name(table).is_null() {
            pg_sys::UnlockRelationOid(table, mode);
            return TableLock::Gone;
        }
    }
    TableLock::Held
}

/// Whether a table has a restrictive policy for SELECT: ours have none. Asked of the relation cache, which is
/// kept up to date by the messages that every statement takes in: a query would cost more than a search's own.
pub(crate) fn has_restrictive_policy(schema: &CStr, table: &CStr) -> bool {
    // SAFETY: catalog look-ups within a transaction. The relation is held until it is closed, and nothing in between
    // raises an error; its policies belong to it.
    unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        let oid = pg_sys::get_relname_relid(table.as_ptr(), schema);
        let relation = pg_sys::RelationIdGetRelation(oid);
        if relation.is_null() {
            return false;
        }
        let security = (*relation).rd_rsdesc;
        let mut found = false;
        if !security.is_null() && !(*security).policies.is_null() {
            let policies = &*(*security).policies;
            for cell in std::slice::from_raw_parts(policies.elements, policies.length as usize) {
                let policy = &*cell.ptr_value.cast::<pg_sys::RowSecurityPolicy>();
                let is_for_select = matches!(policy.polcmd as u8, b'r' | b'*');
                found |= !policy.permissive && is_for_select;
            }
        }
        pg_sys::RelationClose(relation);
        found
    }
}

/// Whether a schema of this name has a type of this name.
pub(crate) fn schema_has_type(schema: &CStr, name: &CStr) -> bool {
    // SAFETY: look-ups in the system caches within a transaction; the names outlive them.
    unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        schema != pg_sys::InvalidOid
            && pg_sys::SearchSysCacheExists(
                pg_sys::SysCacheIdentifier::TYPENAMENSP as i32,
                pg_sys::Datum::from(name.as_ptr()),
                pg_sys::Datum::from(schema),
                pg_sys::Datum::from(0usize),
                pg_sys::Datum::from(0usize),
            )
    }
}
