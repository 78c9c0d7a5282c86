//! Which worker is at which attached table. Noted and committed before any code of the table's owner runs: when that ends
//! the worker, the next one knows what it was at. For workers.

use super::{Id, id, uuid};
use crate::error::Result;
use crate::pg::{Oid, spi};
use std::time::Duration;

/// What a worker is at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) collection: Id,
    /// The role behind the collection's owner.
    pub(crate) owner: Oid,
}

/// Takes on the next attachment with work that is due, after `last`, beginning anew at the end; none of these owners', none
/// that another worker is at, and none that somebody holds.
pub(crate) fn begin(last: Id, busy_owners: Vec<Oid>) -> Result<Option<Run>> {
    let next = |after: Id, compare: &str| {
        spi::execute_one(
            &format!(
                "UPDATE rag.attachment u
                 SET running_since = clock_timestamp(), worker_pid = pg_backend_pid(),
                     worker_start = (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid()))
                 FROM (SELECT a.collection_id, c.owner_role::oid AS owner
                       FROM rag.attachment a JOIN rag.collection c ON c.id = a.collection_id
                       WHERE a.collection_id {compare} $1 AND a.due_at <= clock_timestamp() AND a.running_since IS NULL
                         AND c.owner_role::oid <> ALL ($2)
                         AND (a.state = 'detached' OR a.pass IS NOT NULL AND a.state <> 'stopped'
                              OR EXISTS (SELECT FROM rag.attached_change n WHERE n.collection_id = a.collection_id))
                       ORDER BY a.collection_id LIMIT 1 FOR NO KEY UPDATE OF a SKIP LOCKED) f
                 WHERE u.collection_id = f.collection_id
                 RETURNING u.collection_id, f.owner"
            ),
            vec![uuid(after).into(), busy_owners.clone().into()],
            |row| Ok(Run { collection: id(row.require(1)?), owner: row.require(2)? }),
        )
    };
    match next(last, ">")? {
        Some(found) => Ok(Some(found)),
        None => next(0, ">="),
    }
}

/// Lets go of what this worker was at, without having done anything.
pub(crate) fn end(run: &Run) -> Result<()> {
    spi::run(
        "UPDATE rag.attachment u SET running_since = NULL
         FROM (SELECT collection_id FROM rag.attachment WHERE collection_id = $1 AND worker_pid = pg_backend_pid()
               FOR NO KEY UPDATE SKIP LOCKED) f
         WHERE u.collection_id = f.collection_id",
        vec![uuid(run.collection).into()],
    )
}

/// A run whose worker has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostRun {
    pub(crate) collection: Id,
    /// Whether it lasted longer than it may, with the server up all the time.
    pub(crate) was_too_long: bool,
    /// Workers in a row that ended so.
    pub(crate) lost: i32,
}

/// Lets go of attachments whose worker has ended, and of what this worker could not let go of. It is at none.
pub(crate) fn take_lost(at_most: Duration, delay_s: f64) -> Result<Vec<LostRun>> {
    spi::execute(
        "UPDATE rag.attachment u
         SET running_since = NULL, lost = u.lost + f.lost,
             due_at = greatest(u.due_at, clock_timestamp() + f.lost * $2 * interval '1 second')
         FROM (SELECT a.collection_id, CASE WHEN s.pid IS NULL THEN 1 ELSE 0 END AS lost,
                      a.running_since > pg_postmaster_start_time()
                      AND clock_timestamp() - a.running_since >= $1 * interval '1 second' AS was_too_long
               FROM rag.attachment a
               LEFT JOIN pg_stat_activity s ON s.pid = a.worker_pid AND s.backend_start = a.worker_start
               WHERE a.running_since IS NOT NULL AND (s.pid IS NULL OR s.pid = pg_backend_pid())
               FOR NO KEY UPDATE OF a SKIP LOCKED) f
         WHERE u.collection_id = f.collection_id
         RETURNING u.collection_id, f.was_too_long AND f.lost > 0, u.lost",
        vec![at_most.as_secs_f64().into(), delay_s.into()],
        |row| {
            Ok(LostRun {
                collection: id(row.require(1)?),
                was_too_long: row.require(2)?,
                lost: row.require(3)?,
            })
        },
    )
}
