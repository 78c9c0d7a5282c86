//! Facts about the server that this library runs in: its folders, its clock, how it was loaded.

use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

/// Whether the library is being loaded by `shared_preload_libraries` of a server that is to serve.
///
/// False under `pg_upgrade`, where no worker may start.
pub(crate) fn is_preloading() -> bool {
    // SAFETY: two flags that Postgres sets before it loads libraries, read by the only thread.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress && !pg_sys::IsBinaryUpgrade }
}

/// Refuses settings of this prefix that are not defined.
pub(crate) fn reserve_setting_prefix(prefix: &'static CStr) {
    // SAFETY: the string is NUL-terminated and lives for ever; Postgres copies it.
    unsafe { pg_sys::MarkGUCPrefixReserved(prefix.as_ptr()) }
}

/// The folder of the server's loadable libraries (`pg_config --pkglibdir`).
pub(crate) fn library_folder() -> String {
    // SAFETY: a NUL-terminated array of MAXPGPATH bytes that Postgres fills before it loads libraries. The
    // bindings declare it with length 0, so only its address is taken.
    unsafe { CStr::from_ptr((&raw const pg_sys::pkglib_path).cast::<c_char>()) }
        .to_string_lossy()
        .into_owned()
}

/// The server's folder of shared files (`pg_config --sharedir`), wherever the installation was moved to.
pub(crate) fn share_folder() -> String {
    let mut path = [0 as c_char; pg_sys::MAXPGPATH as usize];
    // SAFETY: `my_exec_path` is a NUL-terminated array that Postgres fills at its start; `path` has the
    // MAXPGPATH bytes that the function may write, and is NUL-terminated afterwards.
    unsafe {
        pg_sys::get_share_path((&raw const pg_sys::my_exec_path).cast::<c_char>(), path.as_mut_ptr());
        CStr::from_ptr(path.as_ptr()).to_string_lossy().into_owned()
    }
}

/// A path whose leading `$libdir` or `$sharedir` is replaced by the server's own folder.
pub(crate) fn expanded(path: &str) -> String {
    for (word, folder) in [("$libdir", library_folder as fn() -> String), ("$sharedir", share_folder)] {
        if let Some(rest) = path.strip_prefix(word)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return folder() + rest;
        }
    }
    path.to_owned()
}

/// The time, in microseconds since 2000-01-01 00:00 UTC: a `timestamptz`.
pub(crate) fn now() -> i64 {
    // SAFETY: reads the clock; no preconditions.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

/// Whether the current user may see the server's paths.
pub(crate) fn user_is_superuser() -> bool {
    // SAFETY: looks the current user up in the catalog cache, within a transaction.
    unsafe { pg_sys::superuser() }
}

/// The setting `max_worker_processes`.
pub(crate) fn max_worker_processes() -> usize {
    // SAFETY: an integer that Postgres sets before it starts processes, read by the only thread.
    usize::try_from(unsafe { pg_sys::max_worker_processes }).unwrap_or(0)
}

/// This process.
pub(crate) fn own_pid() -> i32 {
    // SAFETY: reads a variable that is set at the start of the process.
    unsafe { pg_sys::MyProcPid }
}

/// Whether this process works for a client, and is no background worker.
pub(crate) fn is_client() -> bool {
    // SAFETY: reads a variable that is set once when the process begins.
    unsafe { pg_sys::MyBgworkerEntry.is_null() }
}
