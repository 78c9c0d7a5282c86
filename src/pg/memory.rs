//! Memory of Postgres for a part of a transaction.

use pgrx::PgMemoryContexts;

/// Runs `work` with memory of its own, which is free again when it is done: what is made of a statement's arguments would
/// otherwise stay until the end of the transaction. Nothing that `work` returns may lie in it.
pub(crate) fn scoped<T>(work: impl FnOnce() -> T) -> T {
    let mut memory = PgMemoryContexts::new("rag_ext");
    // SAFETY: the former context is current again before this one is deleted; what is returned is Rust's.
    unsafe { memory.switch_to(|_| work()) }
}
