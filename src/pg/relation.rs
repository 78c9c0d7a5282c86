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

/// Waits for whoever writes to a table, and keeps writers out until the transaction ends, as CREATE TRIGGER does.
pub(crate) fn lock_out_writers(table: pg_sys::Oid) {
    // SAFETY: an OID that names nothing is locked all the same.
    unsafe { pg_sys::LockRelationOid(table, pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE) };
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
    with_cached(schema, table, |relation| {
        // SAFETY: policies belong to the relation, which is held.
        unsafe {
            let security = relation.rd_rsdesc;
            if security.is_null() || (*security).policies.is_null() {
                return false;
            }
            let policies = &*(*security).policies;
            let cells = std::slice::from_raw_parts(policies.elements, policies.length as usize);
            cells.iter().any(|cell| {
                let policy = &*cell.ptr_value.cast::<pg_sys::RowSecurityPolicy>();
                let is_for_select = matches!(policy.polcmd as u8, b'r' | b'*');
                !policy.permissive && is_for_select
            })
        }
    })
}

/// Whether a table has a trigger of this name that fires in every session, also in one that replicates (ENABLE ALWAYS).
/// Asked of the relation cache.
pub(crate) fn has_constant_trigger(schema: &CStr, table: &CStr, name: &CStr) -> bool {
    with_cached(schema, table, |relation| {
        // SAFETY: triggers belong to the relation, which is held; there are as many as it says, and their names are C strings.
        unsafe {
            let Some(description) = relation.trigdesc.as_ref() else { return false };
            let count = usize::try_from(description.numtriggers).unwrap_or(0);
            let triggers = std::slice::from_raw_parts(description.triggers, count);
            triggers
                .iter()
                .any(|trigger| CStr::from_ptr(trigger.tgname) == name && trigger.tgenabled as u8 == b'A')
        }
    })
}

/// Whether something is so of a relation in the relation cache; `false` if there is no such relation. `is_so` must raise no
/// error.
fn with_cached(schema: &CStr, table: &CStr, is_so: impl FnOnce(&pg_sys::RelationData) -> bool) -> bool {
    // SAFETY: catalog look-ups within a transaction. The relation is held until it is closed, and nothing in between
    // raises an error.
    unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        let relation = pg_sys::RelationIdGetRelation(pg_sys::get_relname_relid(table.as_ptr(), schema));
        if relation.is_null() {
            return false;
        }
        let found = is_so(&*relation);
        pg_sys::RelationClose(relation);
        found
    }
}

/// A type by the names of its schema and its own.
pub(crate) fn type_in_schema(schema: &CStr, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: look-ups in the system caches within a transaction; the names outlive them.
    let found = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::TYPENAMENSP as i32,
            pg_sys::Anum_pg_type_oid as i16,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::null(),
            pg_sys::Datum::null(),
        )
    };
    (found != pg_sys::InvalidOid).then_some(found)
}
