//! Vector indexes, which the workers build: when, and how long that takes.

use rag_benches::{Library, timed};
use rag_tests::{Session, wait_until};
use std::time::Duration;

/// A build that takes longer fails the bench.
const LONGEST: Duration = Duration::from_secs(3 * 3600);

/// Entries of the smallest segment that gets codes.
const CODED_ENTRIES: usize = 64;

/// Lets no worker do anything until somebody waits for the index, so that it is not built beside the filling.
pub(crate) fn hold_workers(library: &Library<'_>) {
    let mut admin = library.admin();
    admin.run("ALTER SYSTEM SET rag_ext.ingest_workers = 0");
    admin.run("SELECT pg_reload_conf()");
    library.settle();
}

/// Lets the workers go until they have built whatever vector index is missing where an owner has so many chunks, and says
/// how long that took.
pub(crate) fn wait_for_vector_index(library: &Library<'_>, chunks: usize) -> Duration {
    let mut admin = library.admin();
    let has_codes = admin.holds("SELECT to_regclass('rag.segment_codes') IS NOT NULL");
    let limit = admin.count("SELECT current_setting('rag_ext.exact_search_limit')");
    let (building, ()) = timed(|| {
        admin.run("ALTER SYSTEM RESET rag_ext.ingest_workers");
        admin.run("SELECT pg_reload_conf()");
        if has_codes || chunks as i64 > limit {
            wait_until("the vector index is built", LONGEST, || {
                admin.run("SELECT rag.wake_workers()");
                is_built(&mut admin, has_codes)
            });
        }
    });
    library.settle();
    building
}

/// Whether no segment lacks codes, or, where there are none of these, whether there is an HNSW index.
fn is_built(admin: &mut Session, has_codes: bool) -> bool {
    admin.holds(&match has_codes {
        true => format!(
            "SELECT NOT EXISTS (
                 SELECT FROM rag.segment s WHERE s.part = 0 AND s.entries >= {CODED_ENTRIES} AND NOT EXISTS (
                     SELECT FROM rag.segment_codes c WHERE c.domain_id = s.domain_id AND c.segment_id = s.id))"
        ),
        false => "SELECT EXISTS (
                      SELECT FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
                      WHERE c.relnamespace = 'rag'::regnamespace AND c.relname LIKE '%\\_hnsw' AND i.indisvalid)"
            .into(),
    })
}
