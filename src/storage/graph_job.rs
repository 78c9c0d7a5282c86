//! Chunks about which the chat model is asked: queueing, claiming and settling them, and what it found.
//!
//! For workers, and elevated.

use super::job::Pause;
use super::steering::Steered;
use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use rag_core::graph::ChatGraph;
use rag_core::option::Choice;

/// A chunk that this worker has taken on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkClaim {
    pub(crate) domain: Id,
    pub(crate) document: Id,
    pub(crate) chunk: Id,
    /// Tries that failed.
    pub(crate) tries: i32,
}

impl ChunkClaim {
    fn args(&self) -> Vec<spi::Arg> {
        vec![uuid(self.domain).into(), uuid(self.document).into(), uuid(self.chunk).into()]
    }
}

/// The job of the chunk of the first three arguments, while this worker has it.
const MINE: &str = "j.domain_id = $1 AND j.document_id = $2 AND j.chunk_id = $3 AND j.state = 'running'
     AND j.worker_pid = pg_backend_pid()";

/// Whether nobody is at a running job `j`: its worker is gone, or is this one, which could not give it back.
const IS_ORPHAN: &str = "j.state = 'running' AND (j.worker_pid = pg_backend_pid() OR NOT EXISTS (
         SELECT FROM pg_stat_activity a WHERE a.pid = j.worker_pid AND a.backend_start = j.worker_start))";

/// Has the chat model asked about those of a document's chunks about which it was not, and forgets what others it had.
/// Returns whether there are new ones.
pub(crate) fn queue(domain: Id, document: Id, chunks: &[Id]) -> Result<bool> {
    let args = || vec![uuid(domain).into(), uuid(document).into(), uuids(chunks.iter().copied()).into()];
    spi::run(
        "DELETE FROM rag.graph_job j WHERE j.domain_id = $1 AND j.document_id = $2 AND j.chunk_id <> ALL ($3)",
        args(),
    )?;
    let queued = spi::execute(
        "INSERT INTO rag.graph_job (domain_id, document_id, chunk_id)
         SELECT DISTINCT $1, $2, c.id FROM unnest($3::uuid[]) c (id)
         ON CONFLICT DO NOTHING RETURNING 1",
        args(),
        |_| Ok(()),
    )?;
    Ok(!queued.is_empty())
}

/// Has nothing asked about a collection's documents any more, and takes away what the chat model found in them.
pub(crate) fn forget_collection(collection: Id) -> Result<()> {
    let of_collection = "g.domain_id IN (SELECT d.id FROM rag.domain d WHERE d.collection_id = $1)";
    let by_chat = "g.by_chat AND EXISTS (SELECT FROM rag.graph_job j
         WHERE j.domain_id = g.domain_id AND j.document_id = g.document_id AND j.chunk_id = g.chunk_id)";
    for table in ["entity_mention", "entity_relation"] {
        spi::run(
            &format!("DELETE FROM rag.{table} g WHERE {of_collection} AND {by_chat}"),
            vec![uuid(collection).into()],
        )?;
    }
    spi::run(&format!("DELETE FROM rag.graph_job g WHERE {of_collection}"), vec![uuid(collection).into()])
}

/// Has the chat model asked once more about what was skipped or failed.
pub(crate) fn retry(steered: Steered<'_>) -> Result<bool> {
    let is_meant = steered.condition();
    let retried = spi::execute(
        &format!(
            "UPDATE rag.graph_job j
             SET state = 'queued', tries = 0, due_at = clock_timestamp(), finished_at = NULL, error = NULL
             WHERE {is_meant} AND j.state IN ('skipped', 'failed') RETURNING 1"
        ),
        steered.args(),
        |_| Ok(()),
    )?;
    Ok(!retried.is_empty())
}

/// Has nothing asked that is queued or being asked: it failed.
pub(crate) fn cancel(steered: Steered<'_>) -> Result<()> {
    let is_meant = steered.condition();
    spi::run(
        &format!(
            "UPDATE rag.graph_job j
             SET state = 'failed', finished_at = clock_timestamp(), error = 'cancelled', worker_pid = NULL,
                 worker_start = NULL
             WHERE {is_meant} AND j.state IN ('queued', 'running')"
        ),
        steered.args(),
    )
}

/// [`retry`] for all of a collection.
pub(crate) fn retry_collection(collection: Id) -> Result<bool> {
    let domains = spi::read_latest(
        "SELECT id FROM rag.domain WHERE collection_id = $1",
        vec![uuid(collection).into()],
        |row| row.require::<pgrx::Uuid>(1).map(id),
    )?;
    retry(Steered::Domains(&domains))
}

/// Domains with queued chunks are stepped through in the falling order of ids, each by one look into the index, until one is
/// not paused, is not of these owners, and has a chunk that is due.
const NEXT_TURN: &str = "WITH RECURSIVE waiting (domain_id) AS (
         (SELECT j.domain_id FROM rag.graph_job j WHERE j.state = 'queued' AND j.domain_id < $1
          ORDER BY j.domain_id DESC, j.due_at DESC, j.document_id DESC, j.chunk_id DESC LIMIT 1)
         UNION ALL
         SELECT (SELECT j.domain_id FROM rag.graph_job j WHERE j.state = 'queued' AND j.domain_id < w.domain_id
                 ORDER BY j.domain_id DESC, j.due_at DESC, j.document_id DESC, j.chunk_id DESC LIMIT 1)
         FROM waiting w WHERE w.domain_id IS NOT NULL)
     SELECT w.domain_id, live.owner FROM waiting w
     CROSS JOIN LATERAL (
         SELECT d.owner_role::oid || '/' || d.owner AS owner
         FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
         WHERE d.id = w.domain_id AND d.paused_at IS NULL AND c.paused_at IS NULL LIMIT 1) live
     CROSS JOIN LATERAL (
         SELECT FROM rag.graph_job j
         WHERE j.domain_id = w.domain_id AND j.state = 'queued' AND j.due_at <= clock_timestamp() LIMIT 1) due
     WHERE live.owner <> ALL ($2)
     LIMIT 1";

/// The next domain with a chunk that is due, after `last` (0 at first) in the falling order of ids, then beginning anew, and
/// its owner. Each owner gets their turn: `served` are those who had theirs since the last beginning, which empties it. None
/// goes to the owners in `put_off`.
pub(crate) fn next_turn(
    last: Id,
    served: &mut Vec<String>,
    put_off: &[String],
) -> Result<Option<(Id, String)>> {
    let next = |before: Id, without: Vec<String>| {
        spi::read_latest_one(NEXT_TURN, vec![uuid(before).into(), without.into()], |row| {
            Ok((row.require::<pgrx::Uuid>(1).map(id)?, row.require::<String>(2)?))
        })
    };
    if last != 0
        && let Some(found) = next(last, served.iter().chain(put_off).cloned().collect())?
    {
        return Ok(Some(found));
    }
    served.clear();
    next(Id::MAX, put_off.to_vec())
}

/// Claims a chunk of a domain that is due, the oldest one.
pub(crate) fn claim(domain: Id) -> Result<Option<ChunkClaim>> {
    spi::execute_one(
        "UPDATE rag.graph_job j
         SET state = 'running', worker_pid = pg_backend_pid(),
             worker_start = (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid()))
         FROM (SELECT domain_id, document_id, chunk_id FROM rag.graph_job
               WHERE domain_id = $1 AND state = 'queued' AND due_at <= clock_timestamp()
               ORDER BY due_at, document_id, chunk_id LIMIT 1 FOR UPDATE SKIP LOCKED) q
         WHERE j.domain_id = q.domain_id AND j.document_id = q.document_id AND j.chunk_id = q.chunk_id
         RETURNING j.domain_id, j.document_id, j.chunk_id, j.tries",
        vec![uuid(domain).into()],
        |row| {
            Ok(ChunkClaim {
                domain: id(row.require(1)?),
                document: id(row.require(2)?),
                chunk: id(row.require(3)?),
                tries: row.require(4)?,
            })
        },
    )
}

/// What is to be known of a chunk to ask about it.
pub(crate) struct AskedChunk {
    pub(crate) text: String,
    /// Version and owner of its document.
    pub(crate) version: i64,
    pub(crate) owner: String,
    /// Whether the document waits to be processed: then the chunk may soon be another one.
    pub(crate) is_pending: bool,
    /// Whether its owner, or that of its collection, holds back the work.
    pub(crate) is_paused: bool,
    /// Options of its collection.
    pub(crate) options: serde_json::Value,
}

/// The chunk of a claim; `None` if it is gone.
pub(crate) fn load(claim: &ChunkClaim) -> Result<Option<AskedChunk>> {
    spi::read_latest_one(
        "SELECT k.content, d.version, d.owner, d.status = 'pending', m.paused_at IS NOT NULL OR c.paused_at IS NOT NULL,
                c.options
         FROM rag.chunk k
         JOIN rag.document d ON d.domain_id = k.domain_id AND d.id = k.document_id
         JOIN rag.domain m ON m.id = k.domain_id JOIN rag.collection c ON c.id = m.collection_id
         WHERE k.domain_id = $1 AND k.document_id = $2 AND k.id = $3",
        claim.args(),
        |row| {
            Ok(AskedChunk {
                text: row.require(1)?,
                version: row.require(2)?,
                owner: row.require(3)?,
                is_pending: row.require(4)?,
                is_paused: row.require(5)?,
                options: row.require::<pgrx::JsonB>(6)?.0,
            })
        },
    )
}

/// Whether a claim still stands, and nobody holds back the work: not cancelled, and neither document nor collection gone.
pub(crate) fn is_wanted(claim: &ChunkClaim) -> Result<bool> {
    let found = spi::read_latest_one(
        &format!(
            "SELECT d.paused_at IS NULL AND c.paused_at IS NULL FROM rag.graph_job j
             JOIN rag.domain d ON d.id = j.domain_id JOIN rag.collection c ON c.id = d.collection_id WHERE {MINE}"
        ),
        claim.args(),
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Locks a claim's job until the transaction ends, if it still stands and its chunk is there.
pub(crate) fn hold(claim: &ChunkClaim) -> Result<bool> {
    let found = spi::read_latest_one(
        &format!(
            "SELECT true FROM rag.graph_job j
             WHERE {MINE} AND EXISTS (SELECT FROM rag.chunk k
                 WHERE k.domain_id = j.domain_id AND k.document_id = j.document_id AND k.id = j.chunk_id)
             FOR UPDATE OF j SKIP LOCKED"
        ),
        claim.args(),
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Makes this what the chat model found in the chunk, beside what the rules did, and ends its job. After [`hold`].
pub(crate) fn store(claim: &ChunkClaim, graph: &ChatGraph) -> Result<()> {
    for table in ["entity_mention", "entity_relation"] {
        spi::run(
            &format!(
                "DELETE FROM rag.{table} WHERE domain_id = $1 AND document_id = $2 AND chunk_id = $3 AND by_chat"
            ),
            claim.args(),
        )?;
    }
    let entities = &graph.entities;
    let mut args = claim.args();
    args.extend([
        entities.iter().map(|e| e.key.clone()).collect::<Vec<_>>().into(),
        entities.iter().map(|e| e.kind.name()).collect::<Vec<_>>().into(),
        entities.iter().map(|e| e.name.clone()).collect::<Vec<_>>().into(),
        entities.iter().map(|e| e.weight).collect::<Vec<_>>().into(),
    ]);
    spi::run(
        "INSERT INTO rag.entity_mention (domain_id, document_id, chunk_id, key, kind, name, weight, by_chat)
         SELECT $1, $2, $3, m.*, true FROM unnest($4::text[], $5::text[], $6::text[], $7::real[]) m
         ON CONFLICT DO NOTHING",
        args,
    )?;
    let relations = &graph.relations;
    let mut args = claim.args();
    args.extend([
        relations.iter().map(|r| r.subject.clone()).collect::<Vec<_>>().into(),
        relations.iter().map(|r| r.verb.name()).collect::<Vec<_>>().into(),
        relations.iter().map(|r| r.object.clone()).collect::<Vec<_>>().into(),
    ]);
    spi::run(
        "INSERT INTO rag.entity_relation (domain_id, document_id, chunk_id, subject, relation, object, by_chat)
         SELECT $1, $2, $3, r.*, true FROM unnest($4::text[], $5::text[], $6::text[]) r
         ON CONFLICT DO NOTHING",
        args,
    )?;
    end(claim, "done", None)
}

/// Ends the job of a chunk that was skipped, or (`failed`) given up, with the reason.
pub(crate) fn give_up(claim: &ChunkClaim, state: &str, error: &str) -> Result<()> {
    end(claim, state, Some(error))
}

fn end(claim: &ChunkClaim, state: &str, error: Option<&str>) -> Result<()> {
    let mut args = claim.args();
    args.extend([state.into(), error.map(str::to_owned).into()]);
    spi::run(
        &format!(
            "UPDATE rag.graph_job j
             SET state = $4, error = $5, finished_at = clock_timestamp(), worker_pid = NULL, worker_start = NULL
             WHERE {MINE}"
        ),
        args,
    )
}

/// Forgets a job whose chunk is gone, or about which nothing is to be asked any more.
pub(crate) fn drop_claim(claim: &ChunkClaim) -> Result<()> {
    spi::run(&format!("DELETE FROM rag.graph_job j WHERE {MINE}"), claim.args())
}

/// Puts a chunk back into the queue, if this worker still has it; with a reason, as after a try that failed.
pub(crate) fn requeue(claim: &ChunkClaim, pause: Pause, error: Option<&str>) -> Result<()> {
    let mut args = claim.args();
    args.extend([pause.least_s.into(), error.map(str::to_owned).into()]);
    spi::run(
        &format!(
            "UPDATE rag.graph_job j
             SET state = 'queued', tries = tries + ($5 IS NOT NULL)::integer, error = coalesce($5, error),
                 worker_pid = NULL, worker_start = NULL, due_at = clock_timestamp() + $4 * interval '1 second'
             WHERE {MINE}"
        ),
        args,
    )
}

/// Puts chunks that nobody is at back into the queue. What somebody holds is left for another time.
pub(crate) fn reclaim_orphans() -> Result<()> {
    spi::run(
        &format!(
            "UPDATE rag.graph_job o SET state = 'queued', worker_pid = NULL, worker_start = NULL, due_at = now()
             FROM (SELECT j.domain_id, j.document_id, j.chunk_id FROM rag.graph_job j WHERE {IS_ORPHAN}
                   FOR UPDATE SKIP LOCKED) j
             WHERE o.domain_id = j.domain_id AND o.document_id = j.document_id AND o.chunk_id = j.chunk_id"
        ),
        vec![],
    )
}

/// Seconds until a queued chunk is due, or a running one that nobody is at is to be looked for again; `None` if there is
/// nothing of the kind that is not paused.
pub(crate) fn seconds_until_due() -> Result<Option<f64>> {
    let due = spi::read_latest_one(
        &format!(
            "SELECT extract(epoch FROM least(
                 (SELECT min(q.due_at) FROM rag.collection c JOIN rag.domain d ON d.collection_id = c.id
                  CROSS JOIN LATERAL (
                      SELECT j.due_at FROM rag.graph_job j WHERE j.domain_id = d.id AND j.state = 'queued'
                      ORDER BY j.due_at LIMIT 1) q
                  WHERE c.options ? 'graph' AND d.paused_at IS NULL AND c.paused_at IS NULL),
                 (SELECT clock_timestamp() FROM rag.graph_job j WHERE {IS_ORPHAN} LIMIT 1))
             - clock_timestamp())::float8"
        ),
        vec![],
        |row| Ok(row.get::<f64>(1)),
    )?;
    Ok(due.flatten())
}
