//! Random bytes and time, from Postgres.

use crate::error::{Error, Result};
use pgrx::pg_sys;

/// A fresh UUID, version 7.
pub(crate) fn new_id() -> Result<[u8; 16]> {
    let mut random = [0u8; 10];
    // SAFETY: the buffer is as long as said.
    if !unsafe { pg_sys::pg_strong_random(random.as_mut_ptr().cast(), random.len()) } {
        return Err(Error::internal("no random bytes to be had"));
    }
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(rag_core::ids::uuid_v7(since_epoch.as_millis() as u64, random))
}
