//! What callers ask of the work on their documents, all of it or one document's: what is left, to try again, to cancel.

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;

/// Unfinished work of the caller's domains.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unfinished {
    /// Jobs that run, or will.
    pub(crate) jobs: i64,
    /// Queued jobs that nobody will take while they are paused.
    pub(crate) paused: i64,
    pub(crate) failed: i64,
}

/// Whether any are left that run, or will. The order is that in which workers look for the next turn, for the same reason: what
/// it costs does not grow with the jobs.
pub(crate) fn is_left(of: Steered<'_>) -> Result<bool> {
    let statement = match of {
        Steered::Domains(_) => {
            "SELECT EXISTS (
                 SELECT FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id
                 CROSS JOIN LATERAL (
                     (SELECT FROM rag.job j WHERE j.domain_id = d.id AND j.state = 'running' LIMIT 1)
                     UNION ALL
                     (SELECT FROM rag.job j
                      WHERE j.domain_id = d.id AND j.state = 'queued' AND d.paused_at IS NULL AND c.paused_at IS NULL
                      ORDER BY j.priority, j.due_at DESC, j.document_id DESC LIMIT 1)) one
                 WHERE d.id = ANY ($1))"
        }
        Steered::Document(..) => {
            "SELECT EXISTS (
                 SELECT FROM rag.job j JOIN rag.domain d ON d.id = j.domain_id JOIN rag.collection c ON c.id = d.collection_id
                 WHERE j.domain_id = ANY ($1) AND j.document_id = $2
                   AND (j.state = 'running' OR j.state = 'queued' AND d.paused_at IS NULL AND c.paused_at IS NULL))"
        }
    };
    let is_left = spi::look_up_latest_one(statement, of.args(), |row| row.require::<bool>(1))?;
    Ok(is_left.unwrap_or(false))
}

/// Counts jobs that are queued or running, and those that failed: goes over all of these, not over what is done.
pub(crate) fn unfinished(of: Steered<'_>) -> Result<Unfinished> {
    let jobs = match of {
        Steered::Domains(_) => "rag.job j WHERE j.domain_id = p.id",
        // Its job is found first, not those that are in the state.
        Steered::Document(..) => {
            "(SELECT state FROM rag.job WHERE domain_id = p.id AND document_id = $2 OFFSET 0) j WHERE true"
        }
    };
    let found = spi::look_up_latest_one(
        &format!("SELECT coalesce(sum(running.jobs + CASE WHEN p.paused THEN 0 ELSE queued.jobs END), 0)::int8,
                coalesce(sum(CASE WHEN p.paused THEN queued.jobs ELSE 0 END), 0)::int8, coalesce(sum(failed.jobs), 0)::int8
         FROM (SELECT d.id, d.paused_at IS NOT NULL OR c.paused_at IS NOT NULL AS paused
               FROM rag.domain d JOIN rag.collection c ON c.id = d.collection_id WHERE d.id = ANY ($1)) p
         CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM {jobs} AND j.state = 'running') running
         CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM {jobs} AND j.state = 'queued') queued
         CROSS JOIN LATERAL (SELECT count(*) AS jobs FROM {jobs} AND j.state = 'failed') failed"),
        of.args(),
        |row| Ok(Unfinished { jobs: row.require(1)?, paused: row.require(2)?, failed: row.require(3)? }),
    )?;
    Ok(found.unwrap_or_default())
}

/// Documents of these domains whose work is not done, with their domains: those that the caller sees.
pub(crate) fn shown(domains: &[Id]) -> Result<Vec<(Id, Id)>> {
    spi::read_latest(
        "SELECT j.domain_id, j.document_id FROM rag.job j WHERE j.domain_id = ANY ($1) AND j.state <> 'done' ORDER BY j.document_id",
        vec![uuids(domains.iter().copied()).into()],
        |row| Ok((id(row.require(1)?), id(row.require(2)?))),
    )
}

/// Transactions that queued the unfinished jobs, as far as the jobs were not touched since.
pub(crate) fn queueing_transactions(of: Steered<'_>) -> Result<Vec<u32>> {
    let is_meant = of.condition();
    spi::read_latest(
        &format!("SELECT DISTINCT j.xmin::text FROM rag.job j WHERE {is_meant} AND j.state = 'queued'"),
        of.args(),
        |row| Ok(row.require::<String>(1)?.parse().unwrap_or(0)),
    )
}

/// What is steered: all documents of domains, or one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Steered<'a> {
    Domains(&'a [Id]),
    Document(Id, Id),
}

impl Steered<'_> {
    /// Domains, and the document or null, as the first two arguments of a statement.
    pub(super) fn args(self) -> Vec<spi::Arg> {
        let (domains, document) = match self {
            Steered::Domains(domains) => (domains.to_vec(), None),
            Steered::Document(domain, document) => (vec![domain], Some(uuid(document))),
        };
        vec![uuids(domains).into(), document.into()]
    }

    /// Which rows `j` of a statement with these arguments are meant. One document is looked up, not sought among all.
    pub(super) fn condition(self) -> &'static str {
        match self {
            Steered::Domains(_) => "j.domain_id = ANY ($1)",
            Steered::Document(..) => "j.domain_id = ANY ($1) AND j.document_id = $2",
        }
    }
}

/// Queues failed documents once more, and returns how many. Elevated.
///
/// Documents are locked before their jobs, as by whoever changes a document.
pub(crate) fn retry_failed(steered: Steered<'_>) -> Result<i64> {
    let is_meant = steered.condition();
    let rows = spi::execute(
        &format!("WITH failed AS MATERIALIZED (
             SELECT d.domain_id, d.id FROM rag.job j
             JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
             WHERE {is_meant} AND j.state = 'failed'
             ORDER BY d.id FOR UPDATE OF d
         ), retried AS (
             UPDATE rag.job j SET state = 'queued', kind = 'process', tries = 0, due_at = clock_timestamp(),
                    queued_at = clock_timestamp(), started_at = NULL, finished_at = NULL, sqlstate = NULL, error = NULL
             FROM failed f WHERE j.domain_id = f.domain_id AND j.document_id = f.id AND j.state = 'failed'
             RETURNING j.domain_id, j.document_id
         )
         UPDATE rag.document d SET status = 'pending', error = NULL FROM retried r
         WHERE d.domain_id = r.domain_id AND d.id = r.document_id
         RETURNING 1"),
        steered.args(),
        |_| Ok(()),
    )?;
    Ok(rows.len() as i64)
}

/// Ends queued and running work as failed with SQLSTATE 57014, and returns on how many documents. Elevated.
///
/// Documents are locked before their jobs, as by whoever changes a document. A worker that is at one finds its
/// claim gone.
pub(crate) fn cancel(steered: Steered<'_>) -> Result<i64> {
    let is_meant = steered.condition();
    let rows = spi::execute(
        &format!(
            "WITH wanted AS MATERIALIZED (
             SELECT d.domain_id, d.id FROM rag.job j
             JOIN rag.document d ON d.domain_id = j.domain_id AND d.id = j.document_id
             WHERE {is_meant} AND j.state IN ('queued', 'running')
             ORDER BY d.id FOR UPDATE OF d
         ), cancelled AS (
             UPDATE rag.job j SET state = 'failed', finished_at = clock_timestamp(), sqlstate = '57014',
                    error = 'cancelled', worker_pid = NULL, worker_start = NULL
             FROM wanted w
             WHERE j.domain_id = w.domain_id AND j.document_id = w.id AND j.state IN ('queued', 'running')
             RETURNING j.domain_id, j.document_id
         )
         UPDATE rag.document d SET status = 'failed', error = 'cancelled' FROM cancelled c
         WHERE d.domain_id = c.domain_id AND d.id = c.document_id
         RETURNING 1"
        ),
        steered.args(),
        |_| Ok(()),
    )?;
    Ok(rows.len() as i64)
}
