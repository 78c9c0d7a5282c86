//! Statements that cannot run within a transaction, run by a background worker as if a client had sent them.

use crate::error::{Error, Result};
use crate::pg::worker::caught_error;
use pgrx::{PgTryBuilder, pg_sys};
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;

/// Runs one utility statement, such as CREATE INDEX CONCURRENTLY, which begins and ends transactions by itself.
/// Call outside of transactions. After an error there is none either.
pub(crate) fn run_at_top_level(sql: &str) -> Result<()> {
    let sql = CString::new(sql).map_err(|_| Error::internal("statement contains a NUL byte"))?;
    let outcome = PgTryBuilder::new(AssertUnwindSafe(|| {
        // SAFETY: this worker is connected and in no transaction; the statement is one of ours.
        unsafe { run(&sql) };
        Ok(())
    }))
    .catch_others(|caught| Err(caught_error(caught)))
    .execute();
    // SAFETY: after an error the transaction, in whatever state, is there to be aborted, which also takes the portal
    // away and releases locks of the session; statistics are sent outside of transactions only.
    unsafe {
        if outcome.is_err() {
            pg_sys::AbortCurrentTransaction();
        }
        pg_sys::pgstat_report_stat(false);
    }
    outcome
}

/// What the server does with a simple query of one utility statement.
///
/// # Safety
/// The process is connected to a database and in no transaction.
unsafe fn run(sql: &CStr) {
    // SAFETY: the calls and their order are those of the server's own exec_simple_query. What the statement is parsed
    // into lives in a context of its own, for the transaction's would end in the middle; the worker leaves soon
    // after an error, so the context need not be freed then.
    unsafe {
        pg_sys::SetCurrentStatementStartTimestamp();
        pg_sys::StartTransactionCommand();
        let context = pg_sys::AllocSetContextCreateExtended(
            pg_sys::TopMemoryContext,
            c"rag_ext utility statement".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let outer = pg_sys::MemoryContextSwitchTo(context);
        let parsed = (*(*pg_sys::pg_parse_query(sql.as_ptr())).elements).ptr_value.cast::<pg_sys::RawStmt>();
        let planned = pg_sys::palloc0(size_of::<pg_sys::PlannedStmt>()).cast::<pg_sys::PlannedStmt>();
        (*planned).type_ = pg_sys::NodeTag::T_PlannedStmt;
        (*planned).commandType = pg_sys::CmdType::CMD_UTILITY;
        (*planned).utilityStmt = (*parsed).stmt;
        (*planned).stmt_location = (*parsed).stmt_location;
        (*planned).stmt_len = (*parsed).stmt_len;
        let portal = pg_sys::CreatePortal(c"".as_ptr(), true, true);
        (*portal).visible = false;
        pg_sys::PortalDefineQuery(
            portal,
            std::ptr::null(),
            sql.as_ptr(),
            pg_sys::CreateCommandTag((*parsed).stmt),
            pg_sys::lappend(std::ptr::null_mut(), planned.cast()),
            std::ptr::null_mut(),
        );
        pg_sys::PortalStart(portal, std::ptr::null_mut(), 0, std::ptr::null_mut());
        let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone);
        pg_sys::MemoryContextSwitchTo(outer);
        #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::PortalRun(portal, ALL, true, true, receiver, receiver, std::ptr::null_mut());
        #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::PortalRun(portal, ALL, true, receiver, receiver, std::ptr::null_mut());
        ((*receiver).rDestroy.unwrap_or(keep))(receiver);
        pg_sys::PortalDrop(portal, false);
        pg_sys::CommitTransactionCommand();
        pg_sys::MemoryContextDelete(context);
    }
}

/// `FETCH_ALL`.
const ALL: std::ffi::c_long = std::ffi::c_long::MAX;

unsafe extern "C-unwind" fn keep(_receiver: *mut pg_sys::DestReceiver) {}
