//! The client of this backend: rows that are produced slowly are sent before the buffer is full.

use pgrx::pg_sys;
use std::ffi::c_int;

/// The beginning of `PQcommMethods` of `libpq/libpq.h`, the same in all majors.
#[repr(C)]
struct CommunicationMethods {
    comm_reset: unsafe extern "C-unwind" fn(),
    flush: unsafe extern "C-unwind" fn() -> c_int,
    flush_if_writable: unsafe extern "C-unwind" fn() -> c_int,
}

// Not among the bindings.
unsafe extern "C" {
    #[link_name = "PqCommMethods"]
    static mut COMMUNICATION_METHODS: *const CommunicationMethods;
}

/// Sends what waits in the buffer of the connection, as far as the client takes it without a wait. For whoever is about to
/// wait for something else. Nothing is done where rows go to no client.
pub(crate) fn flush() {
    // SAFETY: variables of the backend, which point to functions for as long as it lives. Messages are put into the buffer
    // as a whole, and this is called between rows: there is no half of one.
    unsafe {
        if pg_sys::whereToSendOutput == pg_sys::CommandDest::DestRemote && !COMMUNICATION_METHODS.is_null() {
            ((*COMMUNICATION_METHODS).flush_if_writable)();
        }
    }
}
