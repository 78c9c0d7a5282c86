//! Hints for errors that Postgres raises before anything of ours runs: "permission denied" of those who may not use the
//! extension yet, and a collection's name where `rag_search` takes a number.

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_guard, pg_sys};
use std::ffi::{CStr, c_char};

const ENABLE: &CStr = c"A superuser allows a role to use rag_ext: SELECT rag_enable('role').";
const NAME_ARGUMENTS: &CStr =
    c"rag_search(query, k, collection, …): write rag_search('…', collection => 'name') to leave k out.";

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
            && (*error).hint.is_null()
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
    const NOT_A_NUMBER: i32 = PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION as i32;
    // SAFETY: as the function's; the text of the client's statement, if there is one, outlives it.
    unsafe {
        match error.sqlerrcode {
            DENIED => is_about_ours(text(error.message_id), text(error.message)).then_some(ENABLE),
            NOT_A_NUMBER => {
                let before = usize::try_from(error.cursorpos).ok()?.checked_sub(1)?;
                is_in_call(b"rag_search", text(pg_sys::debug_query_string), before).then_some(NAME_ARGUMENTS)
            }
            _ => None,
        }
    }
}

/// Whether a place in a statement, counted in characters, is among the arguments of a call of this function.
fn is_in_call(function: &[u8], statement: &[u8], place: usize) -> bool {
    let Ok(statement) = std::str::from_utf8(statement) else { return false };
    let before: String = statement.chars().take(place).collect();
    let Some(call) = before.as_bytes().windows(function.len()).rposition(|word| word == function) else {
        return false;
    };
    let mut depth = 0;
    for byte in &before.as_bytes()[call + function.len()..] {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 1
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
