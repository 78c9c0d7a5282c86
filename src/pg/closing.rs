//! Lets go of a database that is to be dropped, renamed or copied, and of the extension when it is dropped.
//!
//! A connected worker would make `DROP DATABASE` fail, and could hold what `DROP EXTENSION` is to lock. So before
//! such a statement runs, the workers of the database are asked to leave, and kept away until it is over.

use crate::pg::{interrupts, server, shared, transaction};
use pgrx::{PgBox, pg_guard, pg_sys};
use std::cell::Cell;
use std::ffi::CStr;
use std::time::{Duration, Instant};

/// How long workers are kept away if nobody says that it is over: the session died.
const AT_MOST: Duration = Duration::from_secs(600);
/// How long a worker may take to leave by itself.
const POLITE: Duration = Duration::from_secs(2);
/// How long it may take after it was told to end.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);

thread_local! {
    /// This session's transaction drops the extension.
    static DROPS_EXTENSION: Cell<bool> = const { Cell::new(false) };
    static CALLBACK_REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Opens the database again at the end of the statement, also if it fails.
pub(crate) struct Closed(u32);

impl Drop for Closed {
    fn drop(&mut self) {
        shared::open_database(self.0);
    }
}

/// Has workers leave if the statement wants their database for itself.
///
/// # Safety
/// `statement` is a valid utility statement.
pub(crate) unsafe fn closed_for(statement: *mut pg_sys::Node) -> Option<Closed> {
    if !shared::is_available() || statement.is_null() {
        return None;
    }
    // SAFETY: each cast is to the type that the node's tag names.
    let name = unsafe {
        match (*statement).type_ {
            pg_sys::NodeTag::T_DropdbStmt => (*statement.cast::<pg_sys::DropdbStmt>()).dbname,
            pg_sys::NodeTag::T_RenameStmt
                if (*statement.cast::<pg_sys::RenameStmt>()).renameType
                    == pg_sys::ObjectType::OBJECT_DATABASE =>
            {
                (*statement.cast::<pg_sys::RenameStmt>()).subname
            }
            pg_sys::NodeTag::T_CreatedbStmt => template((*statement.cast::<pg_sys::CreatedbStmt>()).options),
            pg_sys::NodeTag::T_DropStmt => {
                if drops_extension(statement.cast()) && server::user_is_superuser() {
                    close_until_transaction_ends();
                }
                return None;
            }
            _ => return None,
        }
    };
    // SAFETY: a name of the statement, or null.
    let database = unsafe { owned_database(name) }?;
    close(database);
    Some(Closed(database))
}

/// `TEMPLATE name` of CREATE DATABASE, or null.
///
/// # Safety
/// A list of `DefElem`, or null.
unsafe fn template(options: *mut pg_sys::List) -> *mut std::ffi::c_char {
    // SAFETY: the elements of the list are `DefElem`s with a name; defGetString copies.
    unsafe {
        for index in 0..if options.is_null() { 0 } else { (*options).length } {
            let option = (*(*options).elements.add(index as usize)).ptr_value.cast::<pg_sys::DefElem>();
            if CStr::from_ptr((*option).defname) == c"template" && !(*option).arg.is_null() {
                return pg_sys::defGetString(option);
            }
        }
    }
    std::ptr::null_mut()
}

/// Whether DROP EXTENSION names this one, or pgvector, on which it depends.
///
/// # Safety
/// A valid `DropStmt`.
unsafe fn drops_extension(statement: *mut pg_sys::DropStmt) -> bool {
    // SAFETY: the objects of DROP EXTENSION are `String` nodes.
    unsafe {
        if (*statement).removeType != pg_sys::ObjectType::OBJECT_EXTENSION {
            return false;
        }
        let objects = PgBox::from_pg((*statement).objects);
        (0..objects.length).any(|index| {
            let name = (*objects.elements.add(index as usize)).ptr_value.cast::<pg_sys::String>();
            let name = CStr::from_ptr((*name).sval);
            name == c"rag_ext" || name == c"vector"
        })
    }
}

/// The database of this name, if the current user may drop it: nobody else is to disturb its workers.
///
/// # Safety
/// A C string or null; in a transaction.
unsafe fn owned_database(name: *const std::ffi::c_char) -> Option<u32> {
    if name.is_null() {
        return None;
    }
    // SAFETY: look-ups in the catalogs by valid keys.
    unsafe {
        let database = pg_sys::get_database_oid(name, true);
        if database == pg_sys::InvalidOid {
            return None;
        }
        #[cfg(not(feature = "pg15"))]
        let is_owner = pg_sys::object_ownercheck(
            pg_sys::Oid::from(pg_sys::DatabaseRelationId.to_u32()),
            database,
            pg_sys::GetUserId(),
        );
        #[cfg(feature = "pg15")]
        let is_owner = pg_sys::pg_database_ownercheck(database, pg_sys::GetUserId());
        is_owner.then(|| database.to_u32())
    }
}

/// Asks the workers to leave and waits until they have let go.
fn close(database: u32) {
    shared::close_database(database, AT_MOST);
    let asked = Instant::now();
    let mut told = false;
    loop {
        let workers = shared::workers_in(database);
        if workers.is_empty() || asked.elapsed() > POLITE + PATIENCE {
            return;
        }
        if asked.elapsed() > POLITE && !told {
            told = true;
            for pid in workers.into_iter().filter(|pid| *pid > 0) {
                // SAFETY: signals a worker of ours, which has its place, and so its process, as long as it is listed.
                unsafe { libc::kill(pid, libc::SIGTERM) };
            }
        }
        interrupts::pause(STEP);
    }
}

fn close_until_transaction_ends() {
    if !CALLBACK_REGISTERED.replace(true) {
        // SAFETY: the callback has the right type and lives as long as the process.
        unsafe { pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut()) };
    }
    DROPS_EXTENSION.set(true);
    close(transaction::database());
}

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PREPARE};
    if matches!(event, XACT_EVENT_COMMIT | XACT_EVENT_ABORT | XACT_EVENT_PREPARE) && DROPS_EXTENSION.take() {
        shared::open_database(transaction::database());
    }
}
