//! Leaving no trace in the counters of relations, which anybody may read: how many rows a scan went over tells of rows
//! that its caller may not see.

use pgrx::pg_sys;

/// While this lives, relations that are opened are not counted: neither then nor in what is done with them until they
/// are opened again.
pub(crate) struct Uncounted(bool);

impl Uncounted {
    pub(crate) fn begin() -> Self {
        // SAFETY: a variable of the backend, read whenever a relation is opened; what it was is put back.
        unsafe {
            let before = pg_sys::pgstat_track_counts;
            pg_sys::pgstat_track_counts = false;
            Self(before)
        }
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { pg_sys::pgstat_track_counts = self.0 }
    }
}
