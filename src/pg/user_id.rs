//! How long `rag_ext.user_id` stays set: for a transaction, or for the session, which a pooler hands to the next
//! client.
//!
//! A gateway may be registered to speak for a user in one transaction only. Its value then counts while it is set
//! locally, and no transaction of it commits a value that stays. The second is what holds in parallel workers, which
//! get the value but not how it was set: what the session set is of this transaction there, whichever way.

use crate::pg::{ErrorReport, principal};
use pgrx::{PgLogLevel, pg_guard, pg_sys};
use std::ffi::CStr;

const NAME: &CStr = c"rag_ext.user_id";

/// Watches commits. Call once, from `_PG_init`.
pub(crate) fn register() {
    // SAFETY: the callback has the right type and lives as long as the process.
    unsafe { pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut()) };
}

/// Whether the value ends with the transaction, or with a function that sets it, and was not there before.
pub(crate) fn is_local() -> bool {
    // SAFETY: the setting is defined, and lives as long as the process.
    unsafe {
        let Some(setting) = setting() else { return false };
        if pg_sys::ParallelWorkerNumber >= 0 {
            return (*setting).source == pg_sys::GucSource::PGC_S_SESSION;
        }
        !(*setting).stack.is_null() && (*(*setting).stack).state != pg_sys::GucStackState::GUC_SET
    }
}

/// Whether a value that this session set would outlive the transaction. At its end, when functions and subtransactions
/// have ended.
fn outlives_transaction() -> bool {
    use pg_sys::GucStackState::{GUC_SET, GUC_SET_LOCAL};
    // SAFETY: the setting is defined and a string; what is below it on the stack are values that it had before.
    unsafe {
        // A parallel worker sets nothing itself. Before 18 it takes the session's values over in a transaction of its own.
        if pg_sys::ParallelWorkerNumber >= 0 {
            return false;
        }
        let Some(setting) = setting() else { return false };
        let stack = (*setting).stack;
        let (value, source) = if stack.is_null() || (*stack).state == GUC_SET {
            (*(*setting.cast::<pg_sys::config_string>()).variable, (*setting).source)
        } else if (*stack).state == GUC_SET_LOCAL {
            ((*stack).masked.val.stringval, pg_sys::GucSource::PGC_S_SESSION)
        } else {
            ((*stack).prior.val.stringval, (*stack).source)
        };
        source == pg_sys::GucSource::PGC_S_SESSION && !value.is_null() && *value != 0
    }
}

/// The record that Postgres keeps of the setting.
///
/// # Safety
/// On the backend's main thread.
unsafe fn setting() -> Option<*mut pg_sys::config_generic> {
    // SAFETY: a C string; an unknown name gives null. Before Postgres 16 the records are an array of known length.
    unsafe {
        #[cfg(not(feature = "pg15"))]
        let found = pg_sys::find_option(NAME.as_ptr(), false, true, 0);
        #[cfg(feature = "pg15")]
        let found = {
            let count = usize::try_from(pg_sys::GetNumConfigOptions()).unwrap_or(0);
            let settings = std::slice::from_raw_parts(pg_sys::get_guc_variables(), count);
            let is_ours = |setting: &&*mut pg_sys::config_generic| CStr::from_ptr((***setting).name) == NAME;
            settings.iter().find(is_ours).copied().unwrap_or(std::ptr::null_mut())
        };
        let is_ours = !found.is_null() && (*found).vartype == pg_sys::config_type::PGC_STRING;
        is_ours.then_some(found)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    use pg_sys::XactEvent::{XACT_EVENT_PRE_COMMIT, XACT_EVENT_PRE_PREPARE};
    if matches!(event, XACT_EVENT_PRE_COMMIT | XACT_EVENT_PRE_PREPARE)
        && outlives_transaction()
        && let Err(refused) = principal::check_user_id_may_stay()
    {
        ErrorReport::from(refused).report(PgLogLevel::ERROR);
    }
}
