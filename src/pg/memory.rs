//! Memory of Postgres for a part of a transaction, and of the allocator for a call.

use pgrx::PgMemoryContexts;
use std::cell::Cell;

/// How much of a call's memory is worth giving back to the system, in bytes.
const GIVEN_BACK: u64 = 4 * 1024 * 1024;

thread_local! {
    /// What the running call has needed in pieces, in bytes.
    static NEEDED: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work` with memory of its own, which is free again when it is done: what is made of a statement's arguments would
/// otherwise stay until the end of the transaction. Nothing that `work` returns may lie in it.
pub(crate) fn scoped<T>(work: impl FnOnce() -> T) -> T {
    let mut memory = PgMemoryContexts::new("rag_ext");
    // SAFETY: the former context is current again before this one is deleted; what is returned is Rust's.
    unsafe { memory.switch_to(|_| work()) }
}

/// Notes that the running call has needed so many bytes, in pieces between those that stay.
pub(crate) fn note_need(bytes: u64) {
    NEEDED.set(NEEDED.get() + bytes);
}

/// At the end of a call: gives what it has freed back to the system, if it has needed much. The allocator would keep all that lies
/// below something in use, for good.
pub(crate) fn give_back() {
    if NEEDED.take() >= GIVEN_BACK {
        #[cfg(target_env = "gnu")]
        // SAFETY: looks at memory that is free.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
