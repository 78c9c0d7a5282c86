//! Jobs: whose turn it is, holding, finishing and failing. What a caller may do to them is in [`super::steering`].

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;

pub(crate) use super::claim::{Claim, ClaimedUpTo, claim};

/// Whether nobody is at a running job `j`: its worker is gone, or is this one, which could not give it back.
const IS_ORPHAN: &str = "j.state = 'running' AND (j.worker_pid = pg_backend_pid() OR NOT EXISTS (
         SELECT FROM pg_stat_activity a WHERE a.pid = j.worker_pid AND a.backend_start = j.worker_start))";

/// Puts jobs that nobody is at back into the queue, and returns how many. This worker is at `at_hand` alone. What
/// somebody holds is left for another time.
pub(crate) fn reclaim_orphans(at_hand: &[Id]) -> Result<i64> {
    let rows = spi::execute_by_index(
        &format!(
            "UPDATE rag.job o SET state = 'queued', worker_pid = NULL, worker_start = NULL, due_at = now()
             FROM (SELECT j.domain_id, j.document_id FROM rag.job j
                   WHERE {IS_ORPHAN} AND j.document_id <> ALL ($1) FOR UPDATE SKIP LOCKED) j
             WHERE o.domain_id = j.domain_id AND o.document_id = j.document_id
             RETURNING 1"
        ),
        vec![uuids(at_hand.iter().copied()).into()],
        |_| Ok(()),
    )?;
    Ok(rows.len() as i64)
}

/// A domain whose turn it is to have work done.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Whose turn it is: where the next look goes on.
    pub(crate) of: Id,
    /// Whose it is, as [`next_turn`] is told.
    pub(crate) owner: String,
    /// Where its owner wants the turn to be spent.
    pub(crate) spent_in: Id,
}

/// Domains with queued jobs are stepped through in the falling order of ids, each by one look into the index, until
/// one is not paused, is not of these owners, and has a job that is due. ORDER BY is that of `job_queued` read
/// backwards: no other index serves, so nothing that is done is looked at, and the newest job of a domain comes first.
/// Where an old snapshot keeps the entries of what is done, these are the older ones.
const NEXT_TURN: &str = "WITH RECURSIVE waiting (domain_id) AS (
         (SELECT j.domain_id FROM rag.job j WHERE j.state = 'queued' AND j.domain_id < $1
          ORDER BY j.domain_id DESC, j.priority, j.due_at DESC, j.document_id DESC LIMIT 1)
         UNION ALL
         SELECT (SELECT j.domain_id FROM rag.job j WHERE j.state = 'queued' AND j.domain_id < w.domain_id
                 ORDER BY j.domain_id DESC, j.priority, j.due_at DESC, j.document_id DESC LIMIT 1)
         FROM waiting w WHERE w.domain_id IS NOT NULL)
     SELECT w.domain_id, live.owner FROM waiting w
     CROSS JOIN LATERAL (
         SELECT d.owner_role::oid || '/' || d.owner AS owner
         FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE d.id = w.domain_id AND d.paused_at IS NULL AND c.paused_at IS NULL LIMIT 1) live
     CROSS JOIN LATERAL (
         SELECT FROM rag.job j
         WHERE j.domain_id = w.domain_id AND j.state = 'queued' AND j.due_at <= clock_timestamp()
         ORDER BY j.priority, j.due_at DESC, j.document_id DESC LIMIT 1) due
     WHERE live.owner <> ALL ($2)
     LIMIT 1";

/// Owners that other workers are at. To be looked up: only so do the entries of jobs that no longer run leave the index before it
/// is vacuumed.
const SERVED_BY_OTHERS: &str = "SELECT DISTINCT d.owner_role::oid || '/' || d.owner
     FROM rag.job j JOIN rag.domain d ON d.id = j.domain_id
     WHERE j.state = 'running' AND j.worker_pid <> pg_backend_pid()";

/// The next domain with work that is due, after `last` (0 at first) in the falling order of ids, then beginning anew: each
/// owner gets their turn, however much another has queued in however many domains. `served` are those who had theirs since
/// the last beginning; a new one empties it. While others wait, no turn goes to an owner whom another worker is at, and
/// never one to an owner for whom `may_serve` denies it.
///
/// The owner may have given another of their domains a higher priority; then the turn is spent there, so that no priority
/// takes anything from others.
pub(crate) fn next_turn(
    last: Id,
    served: &mut Vec<String>,
    may_serve: impl Fn(&str) -> bool,
) -> Result<Option<Turn>> {
    let mut without = Vec::new();
    loop {
        match next_candidate(last, served, &without)? {
            Some((of, owner)) if may_serve(&owner) => {
                let spent_in = preferred_domain(of)?.unwrap_or(of);
                return Ok(Some(Turn { of, owner, spent_in }));
            }
            Some((_, owner)) => without.push(owner),
            None => return Ok(None),
        }
    }
}

/// Whose turn it would be, `without` these owners.
fn next_candidate(last: Id, served: &mut Vec<String>, without: &[String]) -> Result<Option<(Id, String)>> {
    let next = |before: Id, without: Vec<String>| {
        spi::read_latest_one(NEXT_TURN, vec![uuid(before).into(), without.into()], |row| {
            Ok((row.require::<pgrx::Uuid>(1).map(id)?, row.require::<String>(2)?))
        })
    };
    let mut busy = spi::look_up_latest(SERVED_BY_OTHERS, vec![], |row| row.require::<String>(1))?;
    busy.extend_from_slice(without);
    let mut found = match last {
        0 => None,
        last => next(last, busy.iter().chain(served.iter()).cloned().collect())?,
    };
    if found.is_none() {
        served.clear();
        found = next(Id::MAX, busy.clone())?;
    }
    if found.is_none() && !busy.is_empty() {
        found = next(Id::MAX, without.to_vec())?;
    }
    Ok(found)
}

/// Where the owner of a domain wants their turn to be spent, if they gave another domain a higher priority.
fn preferred_domain(of: Id) -> Result<Option<Id>> {
    spi::read_latest_one(
        "SELECT o.id FROM rag.domain d
         JOIN rag.domain o ON o.owner = d.owner AND o.owner_role = d.owner_role AND o.priority > d.priority
         JOIN rag.collection c ON c.id = o.collection_id
         WHERE d.id = $1 AND o.paused_at IS NULL AND c.paused_at IS NULL
           AND EXISTS (SELECT FROM rag.job j
                       WHERE j.domain_id = o.id AND j.state = 'queued' AND j.due_at <= clock_timestamp())
         ORDER BY o.priority DESC, o.id LIMIT 1",
        vec![uuid(of).into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )
}

/// Whether another owner waits while the document's has several workers, of which this one came last: what it is at is
/// given back, however long it would take, and the older one goes on.
pub(crate) fn should_give_way(claim: &Claim) -> Result<bool> {
    let of_several = spi::look_up_latest_one(
        "SELECT d.owner_role::oid || '/' || d.owner
         FROM rag.job m JOIN rag.domain d ON d.id = m.domain_id
         WHERE m.domain_id = $1 AND m.document_id = $2
           AND EXISTS (SELECT FROM rag.job o JOIN rag.domain od ON od.id = o.domain_id
                       WHERE o.state = 'running' AND o.worker_pid <> m.worker_pid
                         AND od.owner = d.owner AND od.owner_role = d.owner_role
                         AND (o.started_at, o.worker_pid) < (m.started_at, m.worker_pid))",
        vec![uuid(claim.domain).into(), uuid(claim.document).into()],
        |row| row.require::<String>(1),
    )?;
    let Some(owner) = of_several else { return Ok(false) };
    let mut busy = spi::look_up_latest(SERVED_BY_OTHERS, vec![], |row| row.require::<String>(1))?;
    busy.push(owner);
    does_one_wait(busy)
}

/// Whether another owner than this has work that is due.
pub(crate) fn does_another_wait(owner: &str) -> Result<bool> {
    does_one_wait(vec![owner.to_owned()])
}

/// Whether there is work that is due, without these owners.
fn does_one_wait(without: Vec<String>) -> Result<bool> {
    let waiting = spi::read_latest_one(NEXT_TURN, vec![uuid(Id::MAX).into(), without.into()], |_| Ok(()))?;
    Ok(waiting.is_some())
}

/// Whether this worker's claim still stands (only a running job has a worker): not cancelled, not changed, not taken over
/// by another worker, and its collection not deleted.
pub(crate) fn is_held(claim: &Claim) -> Result<bool> {
    let held = spi::read_latest_one(
        "SELECT true FROM rag.job j JOIN rag.domain d ON d.id = j.domain_id
         WHERE j.domain_id = $1 AND j.document_id = $2 AND j.version = $3
           AND j.worker_pid = pg_backend_pid() AND d.collection_id IS NOT NULL",
        vec![uuid(claim.domain).into(), uuid(claim.document).into(), claim.version.into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(held.unwrap_or(false))
}

/// Those of the documents whose claim by this worker still stands, locked until the transaction ends. What
/// somebody else is changing is left out.
pub(crate) fn hold(domain: Id, documents: &[Id]) -> Result<Vec<Id>> {
    spi::look_up_latest(
        "SELECT j.document_id FROM rag.job j
         WHERE j.domain_id = $1 AND j.document_id = ANY ($2) AND j.worker_pid = pg_backend_pid()
           AND EXISTS (SELECT FROM rag.domain d WHERE d.id = j.domain_id AND d.collection_id IS NOT NULL)
         FOR UPDATE OF j SKIP LOCKED",
        vec![uuid(domain).into(), uuids(documents.iter().copied()).into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )
}

/// Whether the owner of a domain, or of its collection, holds back its work.
pub(crate) fn is_paused(domain: Id) -> Result<bool> {
    let paused = spi::read_latest_one(
        "SELECT d.paused_at IS NOT NULL OR c.paused_at IS NOT NULL
         FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id WHERE d.id = $1",
        vec![uuid(domain).into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(paused.unwrap_or(false))
}

/// Work that is done.
pub(crate) struct Finished {
    pub(crate) document: Id,
    pub(crate) version: i64,
    pub(crate) chunks: usize,
    pub(crate) embedded: usize,
}

/// Marks jobs of a domain as done, as far as they are still about these versions.
pub(crate) fn finish(domain: Id, finished: &[Finished]) -> Result<()> {
    let column =
        |count: fn(&Finished) -> usize| finished.iter().map(|f| count(f) as i32).collect::<Vec<i32>>();
    let args = vec![
        uuid(domain).into(),
        uuids(finished.iter().map(|f| f.document)).into(),
        finished.iter().map(|f| f.version).collect::<Vec<i64>>().into(),
        column(|f| f.chunks).into(),
        column(|f| f.embedded).into(),
    ];
    spi::run_by_index(
        "UPDATE rag.job j
         SET state = 'done', finished_at = clock_timestamp(), chunks = f.chunks, embedded = f.embedded,
             sqlstate = NULL, error = NULL, worker_pid = NULL, worker_start = NULL,
             started_at = coalesce(started_at, clock_timestamp())
         FROM unnest($2::uuid[], $3::int8[], $4::int[], $5::int[]) f (document_id, version, chunks, embedded)
         WHERE j.domain_id = $1 AND j.document_id = f.document_id AND j.version = f.version",
        args,
    )
}

/// How long a job waits: half as long as it has been queued, so that each wait is longer than the last, within bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    pub(crate) least_s: f64,
    pub(crate) most_s: f64,
}

impl Pause {
    /// While somebody else holds what the work needs.
    pub(crate) const FOR_A_LOCK: Self = Self { least_s: 0.2, most_s: 15.0 };

    pub(crate) fn exactly(seconds: f64) -> Self {
        Self { least_s: seconds, most_s: seconds }
    }
}

/// Puts a running job back into the queue.
pub(crate) struct Requeue<'a> {
    pub(crate) pause: Pause,
    /// Whether it counts as a try.
    pub(crate) counts: bool,
    pub(crate) sqlstate: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
}

/// Puts a running job back into the queue, if this worker still holds it. What somebody else holds is left to
/// [`reclaim_orphans`].
pub(crate) fn requeue(claim: &Claim, requeue: &Requeue<'_>) -> Result<()> {
    spi::run(
        "UPDATE rag.job j SET state = 'queued', tries = tries + $5, sqlstate = $6, error = $7, worker_pid = NULL,
                worker_start = NULL,
                due_at = clock_timestamp() + interval '1 second' * greatest($4, least($8,
                    extract(epoch FROM clock_timestamp() - j.queued_at)::float8 / 2))
         FROM (SELECT domain_id, document_id FROM rag.job
               WHERE domain_id = $1 AND document_id = $2 AND version = $3 AND worker_pid = pg_backend_pid()
               FOR UPDATE SKIP LOCKED) q
         WHERE j.domain_id = q.domain_id AND j.document_id = q.document_id",
        vec![
            uuid(claim.domain).into(),
            uuid(claim.document).into(),
            claim.version.into(),
            requeue.pause.least_s.into(),
            i32::from(requeue.counts).into(),
            requeue.sqlstate.map(str::to_owned).into(),
            requeue.error.map(str::to_owned).into(),
            requeue.pause.most_s.into(),
        ],
    )
}

/// Marks a job as failed, if this worker still holds it; `false` if it does not.
pub(crate) fn fail(claim: &Claim, sqlstate: &str, error: &str) -> Result<bool> {
    let changed = spi::execute_one(
        "UPDATE rag.job SET state = 'failed', finished_at = clock_timestamp(), tries = tries + 1, sqlstate = $4,
                error = $5, worker_pid = NULL, worker_start = NULL
         WHERE domain_id = $1 AND document_id = $2 AND version = $3 AND worker_pid = pg_backend_pid()
         RETURNING true",
        vec![
            uuid(claim.domain).into(),
            uuid(claim.document).into(),
            claim.version.into(),
            sqlstate.into(),
            error.into(),
        ],
        |row| row.require::<bool>(1),
    )?;
    Ok(changed.unwrap_or(false))
}

/// Seconds until the next queued job is due, or a running one that nobody is at is to be looked for again; `None` if
/// there is nothing of the kind that is not paused.
pub(crate) fn seconds_until_due() -> Result<Option<f64>> {
    let due = spi::read_latest_one(
        &format!(
            "SELECT extract(epoch FROM least(
                 (SELECT min(j.due_at) FROM rag.job j
                  JOIN rag.domain d ON d.id = j.domain_id JOIN rag.collection c ON c.id = d.collection_id
                  WHERE j.state = 'queued' AND d.paused_at IS NULL AND c.paused_at IS NULL),
                 (SELECT clock_timestamp() + interval '2 s' FROM rag.job j WHERE {IS_ORPHAN} LIMIT 1))
             - clock_timestamp())::float8"
        ),
        vec![],
        |row| Ok(row.get::<f64>(1)),
    )?;
    Ok(due.flatten())
}

/// Sets the place of a document among those of its domain. Elevated.
pub(crate) fn set_priority(domain: Id, document: Id, priority: i32) -> Result<()> {
    spi::run(
        "UPDATE rag.job SET priority = $3 WHERE domain_id = $1 AND document_id = $2 AND priority <> $3",
        vec![uuid(domain).into(), uuid(document).into(), priority.into()],
    )
}

/// Has the documents of a collection processed anew, also those that a worker is processing as it was, and those of
/// which less was asked for. The forms they have stay searchable meanwhile. Elevated.
pub(crate) fn process_anew(collection: Id) -> Result<()> {
    queue_again(
        "j.domain_id = ANY (ARRAY(SELECT d.id FROM rag.domain d WHERE d.collection_id = $1))
         AND (j.state IN ('done', 'running') OR j.state = 'queued' AND j.kind <> 'process')",
        vec![uuid(collection).into()],
    )
    .map(drop)
}

/// Has processed documents of a domain processed anew; returns how many. For workers.
pub(crate) fn process_documents_anew(domain: Id, documents: &[Id]) -> Result<i64> {
    // By what the documents are, not by what all in that state are: the index of these serves no state that is given.
    queue_again(
        "j.domain_id = $1 AND j.document_id = ANY ($2) AND j.state = $3",
        vec![uuid(domain).into(), uuids(documents.iter().copied()).into(), "done".into()],
    )
}

/// Queues the jobs that a condition of our own chooses.
fn queue_again(which: &str, args: Vec<spi::Arg>) -> Result<i64> {
    let statement = format!(
        "UPDATE rag.job j SET state = 'queued', kind = 'process', tries = 0, due_at = clock_timestamp(),
                queued_at = clock_timestamp(), started_at = NULL, finished_at = NULL, worker_pid = NULL, worker_start = NULL
         WHERE {which}
         RETURNING 1"
    );
    // Not by going over everybody's jobs.
    let rows = spi::execute_by_index(&statement, args, |_| Ok(()))?;
    Ok(rows.len() as i64)
}
