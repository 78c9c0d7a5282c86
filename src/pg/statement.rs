//! Utility statements on their way to Postgres: what they may not lock, whom they need out of the way, and whether they
//! explain. What each of these means stands with it; here is the one hook.

use crate::error::{Error, Result};
use crate::pg::explain::Explained;
use crate::pg::{ErrorReport, closing, database, locking};
use pgrx::{PgLogLevel, PgSqlErrorCode, is_a, pg_guard, pg_sys};
use std::ffi::CStr;

static mut NEXT_HOOK: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hook. Call once, from `_PG_init`.
pub(crate) fn install() {
    // SAFETY: on the main thread, before this process runs a statement.
    unsafe {
        NEXT_HOOK = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

#[pg_guard]
#[allow(clippy::too_many_arguments, reason = "the signature of the hook")]
unsafe extern "C-unwind" fn process_utility(
    planned: *mut pg_sys::PlannedStmt,
    query: *const std::ffi::c_char,
    read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: Postgres hands over a valid statement, and everything is passed on as it came. An error of what comes
    // next unwinds through here, and so undoes what was begun for it.
    unsafe {
        let statement = (*planned).utilityStmt;
        if let Err(error) = locking::check(statement).and_then(|()| keep_schema(statement)) {
            ErrorReport::from(error).report(PgLogLevel::ERROR);
        }
        let _closed = closing::closed_for(statement);
        let _explained = Explained::of(statement);
        match NEXT_HOOK {
            Some(next) => pg_sys::ffi::pg_guard_ffi_boundary(|| {
                next(planned, query, read_only, context, params, environment, receiver, completion)
            }),
            None => pg_sys::standard_ProcessUtility(
                planned,
                query,
                read_only,
                context,
                params,
                environment,
                receiver,
                completion,
            ),
        }
    }
}

/// 0A000 if a statement would give the extension's schema another name: functions, policies and workers use this one.
///
/// # Safety
/// A valid utility statement or null; in a transaction.
unsafe fn keep_schema(statement: *mut pg_sys::Node) -> Result<()> {
    // SAFETY: a cast to the type that the tag names; a renamed schema has a name.
    unsafe {
        if statement.is_null() || !is_a(statement, pg_sys::NodeTag::T_RenameStmt) {
            return Ok(());
        }
        let rename = statement.cast::<pg_sys::RenameStmt>();
        let is_ours = (*rename).renameType == pg_sys::ObjectType::OBJECT_SCHEMA
            && CStr::from_ptr((*rename).subname) == c"rag"
            && database::has_extension();
        if is_ours {
            let error =
                Error::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, "schema rag cannot be renamed");
            return Err(error.detail(
                "It belongs to rag_ext, whose functions, policies and workers find their tables in it.",
            ));
        }
    }
    Ok(())
}
