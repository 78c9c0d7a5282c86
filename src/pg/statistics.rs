//! Leaving no trace in the counters of relations, which anybody may read: how many rows a scan went over tells of rows
//! that its caller may not see.

use pgrx::pg_sys;

/// While this lives, relations that are opened are not counted: neither then nor in what is done with them until they
/// are opened again.
pub(crate) struct Uncounted {
    tracked: bool,
    /// Relations that a scan of somebody else's counts, and goes on with afterwards.
    counted: Vec<pg_sys::Oid>,
}

impl Uncounted {
    pub(crate) fn begin() -> Self {
        Self::besides(&[])
    }

    /// As [`Self::begin`], and scans of these relations that are under way are counted again afterwards: the backend
    /// has one entry for each relation, however often it is open.
    pub(crate) fn besides(relations: &[pg_sys::Oid]) -> Self {
        let counted =
            relations.iter().copied().filter(|relation| with_entry(*relation, |entry| entry.pgstat_enabled));
        let counted = counted.collect();
        // SAFETY: a variable of the backend, read whenever a relation is opened; what it was is put back.
        unsafe {
            let tracked = pg_sys::pgstat_track_counts;
            pg_sys::pgstat_track_counts = false;
            Self { tracked, counted }
        }
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { pg_sys::pgstat_track_counts = self.tracked }
        // An error ends all scans.
        if !std::thread::panicking() {
            for relation in &self.counted {
                with_entry(*relation, |entry| {
                    entry.pgstat_enabled = true;
                    true
                });
            }
        }
    }
}

/// What is made of a relation's entry in the cache; false if there is none.
fn with_entry(relation: pg_sys::Oid, work: impl FnOnce(&mut pg_sys::RelationData) -> bool) -> bool {
    // SAFETY: a catalog look-up within a transaction. The entry is held until it is closed, and nothing in between raises
    // an error.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return false;
        }
        let made = work(&mut *entry);
        pg_sys::RelationClose(entry);
        made
    }
}
