//! Which databases there are, read without being connected to one.

use pgrx::pg_sys;

/// OIDs of the databases that take connections and are no templates. Call in a transaction.
pub(crate) fn list() -> Vec<u32> {
    // A connection limit of -2 marks a database whose removal was interrupted.
    scan(|database| database.datallowconn && !database.datistemplate && database.datconnlimit != -2)
}

/// OIDs of all databases, as [`list`] reads them: the catalog caches know of one that was dropped a moment later than
/// its row is gone. Call in a transaction.
pub(crate) fn all() -> Vec<u32> {
    scan(|_| true)
}

fn scan(is_wanted: impl Fn(&pg_sys::FormData_pg_database) -> bool) -> Vec<u32> {
    let mut databases = Vec::new();
    // SAFETY: runs in a transaction of a process that is connected to the shared catalogs; the scan's own
    // snapshot is registered by it; each row is read before the next one is fetched, and the row type is that
    // of the catalog, whose columns used here are never null.
    unsafe {
        let relation = pg_sys::table_open(
            pg_sys::Oid::from(pg_sys::DatabaseRelationId.to_u32()),
            pg_sys::AccessShareLock as i32,
        );
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::InvalidOid,
            false,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        loop {
            let row = pg_sys::systable_getnext(scan);
            if row.is_null() {
                break;
            }
            let database = pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_database>();
            if is_wanted(&*database) {
                databases.push((*database).oid.to_u32());
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
    }
    databases
}

/// Whether this database has the extension.
pub(crate) fn has_extension() -> bool {
    // SAFETY: a catalog look-up within a transaction.
    unsafe { pg_sys::get_extension_oid(c"rag_ext".as_ptr(), true) != pg_sys::InvalidOid }
}
