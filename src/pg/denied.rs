//! A hint for those who may not use the extension yet. Rights are looked at by Postgres before anything of ours runs, and
//! its "permission denied" names no remedy.

use pgrx::{PgLogLevel, PgSqlErrorCode, pg_guard, pg_sys};
use std::ffi::{CStr, c_char};

const HINT: &CStr = c"A superuser allows a role to use rag_ext: SELECT rag_enable('role').";

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
        let denied = PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE as i32;
        let lacks_hint = (*error).elevel == PgLogLevel::ERROR as i32 && (*error).hint.is_null();
        if lacks_hint
            && (*error).sqlerrcode == denied
            && is_about_ours(text((*error).message_id), text((*error).message))
        {
            (*error).hint = HINT.as_ptr().cast_mut();
        }
        if let Some(next) = NEXT_HOOK {
            pg_sys::ffi::pg_guard_ffi_boundary(|| next(error));
        }
    }
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
