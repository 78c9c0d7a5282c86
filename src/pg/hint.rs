//! Hints for errors that Postgres raises before anything of ours runs: "permission denied" of those who may not use the
//! extension yet, and a number where `rag_search` takes a collection's name.

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_guard, pg_sys};
use std::ffi::{CStr, c_char};

const ENABLE: &CStr = c"A superuser allows a role to use rag_ext: SELECT rag_enable('role').";
const NAME_ARGUMENTS: &CStr =
    c"rag_search(query, collection, filter, k, mode, options): write rag_search('…', k => 5) to leave out what is before k.";

/// Functions that stay with superusers, whatever is enabled.
const OF_SUPERUSERS: [&str; 4] =
    ["rag_enable", "rag_disable", "rag_register_gateway", "rag_unregister_gateway"];

static mut NEXT_HOOK: pg_sys::emit_log_hook_type = None;

/// Installs the hook. Call once, from `_PG_init`, while libraries are preloaded.
pub(crate) fn install() {
    // SAFETY: the only thread of the postmaster, before it starts any process.
    unsafe {
        NEXT_HOOK = pg_sys::emit_log_hook;
        pg_sys::emit_log_hook = Some(emit_log);
    }
}

/// Called with each error on its way to the log, before the client gets it.
#[pg_guard]
unsafe extern "C-unwind" fn emit_log(error: *mut pg_sys::ErrorData) {
    // SAFETY: Postgres hands over an error that nobody else uses meanwhile. The hint lives for ever; that of an error, as
    // opposed to a warning's, is never freed.
    unsafe {
        if (*error).elevel == PgLogLevel::ERROR as i32
            && let Some(hint) = hint_for(&*error)
        {
            (*error).hint = hint.as_ptr().cast_mut();
        }
        if let Some(next) = NEXT_HOOK {
            pg_sys::ffi::pg_guard_ffi_boundary(|| next(error));
        }
    }
}

/// # Safety
/// An error whose texts outlive the call.
unsafe fn hint_for(error: &pg_sys::ErrorData) -> Option<&'static CStr> {
    const DENIED: i32 = PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE as i32;
    const NO_FUNCTION: i32 = PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION as i32;
    // SAFETY: as the function's.
    let message = unsafe { text(error.message) };
    // SAFETY: as above.
    let is_hinted = unsafe { !text(error.hint).is_empty() };
    match error.sqlerrcode {
        // SAFETY: as above.
        DENIED if !is_hinted => is_about_ours(unsafe { text(error.message_id) }, message).then_some(ENABLE),
        // The hint that Postgres gives here, to add type casts, leads astray.
        NO_FUNCTION => {
            [&b"rag_search(unknown, integer"[..], b"rag_search(text, integer", b"rag_search(text, bigint"]
                .iter()
                .any(|call| contains(message, call))
                .then_some(NAME_ARGUMENTS)
        }
        _ => None,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The string at a pointer, empty for null.
///
/// # Safety
/// The pointer is null or a NUL-terminated string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> &'a [u8] {
    // SAFETY: as the caller promises.
    if pointer.is_null() { &[] } else { unsafe { CStr::from_ptr(pointer) }.to_bytes() }
}

/// Whether a message is about our schema or one of our functions. It is known by what it was before it was translated;
/// one that has passed a hook of ours is known by itself.
fn is_about_ours(message_id: &[u8], message: &[u8]) -> bool {
    let known_by = if message_id == b"%s" { message } else { message_id };
    let mut words = message.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    if known_by.starts_with(b"permission denied for schema ") {
        return words.any(|word| word == b"rag");
    }
    known_by.starts_with(b"permission denied for function ")
        && words
            .any(|word| word.starts_with(b"rag_") && OF_SUPERUSERS.iter().all(|name| name.as_bytes() != word))
}
