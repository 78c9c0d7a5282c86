//! Memory of Postgres for a part of a transaction, and of the allocator for a call.

use pgrx::PgMemoryContexts;
use std::cell::Cell;

/// How much memory is worth giving back to the system, in bytes.
const MUCH: u64 = 4 * 1024 * 1024;

thread_local! {
    /// What calls have freed in pieces since it was last given back, in bytes.
    static FREED: Cell<u64> = const { Cell::new(0) };
}

/// Runs `work` with memory of its own, which is free again when it is done: what is made of a statement's arguments would
/// otherwise stay until the end of the transaction. Nothing that `work` returns may lie in it.
pub(crate) fn scoped<T>(work: impl FnOnce() -> T) -> T {
    let mut memory = PgMemoryContexts::new("rag_ext");
    // SAFETY: the former context is current again before this one is deleted; what is returned is Rust's.
    unsafe { memory.switch_to(|_| work()) }
}

/// Notes that so many bytes are freed by the end of the call, in pieces between those that stay.
pub(crate) fn note_freed(bytes: u64) {
    FREED.set(FREED.get() + bytes);
}

/// The end of a call, however it ends: gives what was freed back to the system, if it is much. The allocator would keep all that
/// lies below something in use, for good.
pub(crate) struct GivenBack;

impl Drop for GivenBack {
    fn drop(&mut self) {
        if FREED.get() >= MUCH {
            FREED.set(0);
            #[cfg(target_env = "gnu")]
            // SAFETY: looks at memory that is free.
            unsafe {
                libc::malloc_trim(0);
            }
        }
    }
}
