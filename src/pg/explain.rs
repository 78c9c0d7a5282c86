//! EXPLAIN ANALYZE over our tables: its counters are about all rows that a scan went over, so it is for members of
//! `pg_read_all_stats`. And the same scans leave nothing in the counters of `pg_stat_xact_…`.

use crate::error::Error;
use crate::pg::planner::reads_ours;
use crate::pg::principal::caller_is_held_to_policies;
use crate::pg::scoped::Scoped;
use crate::pg::statistics::Uncounted;
use pgrx::{PgLogLevel, pg_guard, pg_sys};
use std::cell::Cell;

thread_local! {
    /// EXPLAIN statements that are running, one within another.
    static EXPLAINED: Cell<usize> = const { Cell::new(0) };
}

/// `pg_read_all_stats`.
const ROLE_PG_READ_ALL_STATS: u32 = 3375;

static mut NEXT_START: pg_sys::ExecutorStart_hook_type = None;

/// Installs the hook. Call once, from `_PG_init`.
pub(crate) fn install() {
    // SAFETY: on the main thread, before this process runs a statement.
    unsafe {
        NEXT_START = pg_sys::ExecutorStart_hook;
        pg_sys::ExecutorStart_hook = Some(executor_start);
    }
}

/// Counts a running EXPLAIN, until it ends or fails.
pub(crate) struct Explained {
    _running: Scoped<usize>,
}

impl Explained {
    /// # Safety
    /// A valid utility statement.
    pub(crate) unsafe fn of(statement: *mut pg_sys::Node) -> Option<Self> {
        // SAFETY: as the function's.
        let is_explain = unsafe { pgrx::is_a(statement, pg_sys::NodeTag::T_ExplainStmt) };
        is_explain.then(|| Self { _running: Scoped::set(&EXPLAINED, EXPLAINED.get() + 1) })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn executor_start(query: *mut pg_sys::QueryDesc, flags: i32) {
    // SAFETY: Postgres hands over a valid query description, which is passed on as it came.
    unsafe {
        let planned = (*query).plannedstmt;
        let reads_hidden = reads_ours(planned) && caller_is_held_to_policies() && !may_read_all_statistics();
        let counts = flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 && (*query).instrument_options != 0;
        if reads_hidden && counts && EXPLAINED.get() > 0 {
            let error = Error::forbidden("permission denied to count what a query of rag_ext's tables reads")
                .hint("EXPLAIN without ANALYZE is for everybody, with it for members of pg_read_all_stats.");
            pg_sys::panic::ErrorReport::from(error).report(PgLogLevel::ERROR);
        }
        let only_reads = (*planned).commandType == pg_sys::CmdType::CMD_SELECT && !(*planned).hasModifyingCTE;
        // Relations are opened here, for all of the execution.
        let _uncounted = (reads_hidden && only_reads).then(Uncounted::begin);
        match NEXT_START {
            Some(next) => pg_sys::ffi::pg_guard_ffi_boundary(|| next(query, flags)),
            None => pg_sys::standard_ExecutorStart(query, flags),
        }
    }
}

/// Whether the session's role is told how many rows its statements go over.
pub(crate) fn may_read_all_statistics() -> bool {
    // SAFETY: catalog look-up within a transaction.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetOuterUserId(), pg_sys::Oid::from(ROLE_PG_READ_ALL_STATS)) }
}
