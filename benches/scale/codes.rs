//! Codes of vectors, which the workers make where rows were copied in: when, and how long that takes.

use rag_benches::{Library, timed};
use rag_tests::wait_until;
use std::time::Duration;

/// Making them fails the bench where it takes longer.
const LONGEST: Duration = Duration::from_secs(3 * 3600);

/// Entries of the smallest segment that gets codes.
const CODED_ENTRIES: usize = 64;

/// Lets no worker do anything until somebody waits for the codes, so that they are not made beside the filling.
pub(crate) fn hold_workers(library: &Library<'_>) {
    let mut admin = library.admin();
    admin.run("ALTER SYSTEM SET rag_ext.ingest_workers = 0");
    admin.run("SELECT pg_reload_conf()");
    library.settle();
}

/// Lets the workers go until no segment lacks codes of its vectors, and says how long that took.
pub(crate) fn wait_for_codes(library: &Library<'_>) -> Duration {
    let mut admin = library.admin();
    let (building, ()) = timed(|| {
        admin.run("ALTER SYSTEM RESET rag_ext.ingest_workers");
        admin.run("SELECT pg_reload_conf()");
        wait_until("the codes are made", LONGEST, || {
            admin.run("SELECT rag.wake_workers()");
            admin.holds(&format!(
                "SELECT NOT EXISTS (
                     SELECT FROM rag.segment s WHERE s.part = 0 AND s.entries >= {CODED_ENTRIES} AND NOT EXISTS (
                         SELECT FROM rag.segment_codes c WHERE c.domain_id = s.domain_id AND c.segment_id = s.id))"
            ))
        });
    });
    library.settle();
    building
}
