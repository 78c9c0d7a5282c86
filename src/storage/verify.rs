//! What rag_verify compares, and what it mends: documents with their chunks, vectors, and the keyword index.
//!
//! Elevated: whoever calls has found out whose domains these are.

use super::graph::{ChatPart, FoundGraph};
use super::segment::SegmentHeader;
use super::{Id, graph, id, replacement, uuid};
use crate::error::Result;
use crate::pg::spi;
use pgrx::Uuid;
use rag_core::graph::DocumentGraph;

/// A document and the chunks that were made of it.
pub(crate) struct CheckedDocument {
    pub(crate) text: Option<String>,
    /// How many chunks it says it has.
    pub(crate) counted: i64,
    pub(crate) is_done: bool,
    pub(crate) chunks: Vec<CheckedChunk>,
    /// Chunks whose section is not there.
    pub(crate) without_section: i64,
}

/// Where a chunk says that its content stands.
pub(crate) struct CheckedChunk {
    pub(crate) char_from: i32,
    pub(crate) char_to: i32,
    pub(crate) content: String,
}

/// Ids of the documents of a domain.
pub(crate) fn documents(domain: Id) -> Result<Vec<Id>> {
    ids("SELECT id FROM rag.document WHERE domain_id = $1 ORDER BY id", domain)
}

/// Ids of the chunks of a domain.
pub(crate) fn chunks(domain: Id) -> Result<Vec<Id>> {
    ids("SELECT id FROM rag.chunk WHERE domain_id = $1", domain)
}

fn ids(sql: &str, domain: Id) -> Result<Vec<Id>> {
    spi::read_snapshot(sql, vec![uuid(domain).into()], |row| row.require::<Uuid>(1).map(id))
}

/// A document with its chunks.
pub(crate) fn document(domain: Id, document: Id) -> Result<Option<CheckedDocument>> {
    spi::read_snapshot_one(
        "SELECT d.text, coalesce(d.chunks, 0)::bigint, d.status = 'done', c.char_from, c.char_to, c.content, c.without_section
         FROM rag.document d, LATERAL (
             SELECT coalesce(array_agg(k.char_from ORDER BY k.ordinal), '{}') AS char_from,
                    coalesce(array_agg(k.char_to ORDER BY k.ordinal), '{}') AS char_to,
                    coalesce(array_agg(k.content ORDER BY k.ordinal), '{}') AS content,
                    count(*) FILTER (WHERE NOT EXISTS (
                        SELECT FROM rag.section s WHERE s.domain_id = k.domain_id AND s.id = k.section_id)) AS without_section
             FROM rag.chunk k WHERE k.domain_id = d.domain_id AND k.document_id = d.id) c
         WHERE d.domain_id = $1 AND d.id = $2",
        vec![uuid(domain).into(), uuid(document).into()],
        |row| {
            let from: Vec<i32> = row.require(4)?;
            let to: Vec<i32> = row.require(5)?;
            let content: Vec<String> = row.require(6)?;
            let chunks = from.into_iter().zip(to).zip(content);
            Ok(CheckedDocument {
                text: row.get(1),
                counted: row.require(2)?,
                is_done: row.require(3)?,
                chunks: chunks
                    .map(|((char_from, char_to), content)| CheckedChunk { char_from, char_to, content })
                    .collect(),
                without_section: row.require(7)?,
            })
        },
    )
}

/// How many chunks of a domain belong to no document.
pub(crate) fn stray_chunks(domain: Id) -> Result<i64> {
    count(
        "SELECT count(*) FROM rag.chunk c WHERE c.domain_id = $1
           AND NOT EXISTS (SELECT FROM rag.document d WHERE d.domain_id = c.domain_id AND d.id = c.document_id)",
        domain,
    )
}

/// How many vectors of a domain belong to no chunk.
pub(crate) fn stray_vectors(domain: Id) -> Result<i64> {
    count(
        "SELECT count(*) FROM rag.embedding e WHERE e.domain_id = $1
           AND NOT EXISTS (SELECT FROM rag.chunk c WHERE c.domain_id = e.domain_id AND c.id = e.chunk_id)",
        domain,
    )
}

/// Deleted chunks of a domain that are counted until they leave the keyword index.
pub(crate) fn deleted_chunks(domain: Id) -> Result<i64> {
    count("SELECT coalesce(sum(chunks), 0)::bigint FROM rag.deletion_count WHERE domain_id = $1", domain)
}

fn count(sql: &str, domain: Id) -> Result<i64> {
    let found = spi::read_snapshot_one(sql, vec![uuid(domain).into()], |row| row.require::<i64>(1))?;
    Ok(found.unwrap_or(0))
}

/// Documents of a domain with chunks that have no vector of a model, and how many.
pub(crate) fn without_vectors(domain: Id, model: &str) -> Result<Vec<(Id, i64)>> {
    spi::read_snapshot(
        "SELECT c.document_id, count(*)
         FROM rag.chunk c JOIN rag.document d ON d.domain_id = c.domain_id AND d.id = c.document_id
         WHERE c.domain_id = $1 AND NOT EXISTS (
             SELECT FROM rag.vector_space s JOIN rag.embedding e ON e.vector_space_id = s.id
             WHERE s.model = $2 AND e.domain_id = c.domain_id AND e.chunk_id = c.id)
         GROUP BY c.document_id ORDER BY c.document_id",
        vec![uuid(domain).into(), model.into()],
        |row| Ok((id(row.require(1)?), row.require(2)?)),
    )
}

/// Takes away chunks of a domain that belong to no document, with their vectors.
pub(crate) fn delete_stray_chunks(domain: Id) -> Result<()> {
    let stray = "c.domain_id = $1 AND NOT EXISTS (
        SELECT FROM rag.document d WHERE d.domain_id = c.domain_id AND d.id = c.document_id)";
    spi::run(
        &format!(
            "WITH gone AS (DELETE FROM rag.chunk c WHERE {stray} RETURNING c.id),
                  sections AS (DELETE FROM rag.section c WHERE {stray}),
                  vectors AS (DELETE FROM rag.embedding e USING gone WHERE e.domain_id = $1 AND e.chunk_id = gone.id)
             INSERT INTO rag.deletion_count (domain_id, chunks) SELECT $1, count(*) FROM gone HAVING count(*) > 0"
        ),
        vec![uuid(domain).into()],
    )
}

/// Takes away vectors of a domain that belong to no chunk.
pub(crate) fn delete_stray_vectors(domain: Id) -> Result<()> {
    spi::run(
        "DELETE FROM rag.embedding e WHERE e.domain_id = $1
           AND NOT EXISTS (SELECT FROM rag.chunk c WHERE c.domain_id = e.domain_id AND c.id = e.chunk_id)",
        vec![uuid(domain).into()],
    )
}

const STRAY_GRAPH: &str =
    "g.domain_id = $1 AND NOT EXISTS (SELECT FROM rag.chunk c
                                      WHERE c.domain_id = g.domain_id AND c.id = g.chunk_id AND c.document_id = g.document_id)";

/// How many rows of a domain's graph belong to no chunk.
pub(crate) fn stray_graph(domain: Id) -> Result<i64> {
    count(
        &format!(
            "SELECT (SELECT count(*) FROM rag.entity_mention g WHERE {STRAY_GRAPH})
                  + (SELECT count(*) FROM rag.entity_relation g WHERE {STRAY_GRAPH})
                  + (SELECT count(*) FROM rag.document_link g WHERE {STRAY_GRAPH})
                  + (SELECT count(*) FROM rag.graph_job g WHERE {STRAY_GRAPH})"
        ),
        domain,
    )
}

/// Takes away rows of a domain's graph that belong to no chunk.
pub(crate) fn delete_stray_graph(domain: Id) -> Result<()> {
    spi::run(
        &format!(
            "WITH relations AS (DELETE FROM rag.entity_relation g WHERE {STRAY_GRAPH}),
                  links AS (DELETE FROM rag.document_link g WHERE {STRAY_GRAPH}),
                  jobs AS (DELETE FROM rag.graph_job g WHERE {STRAY_GRAPH})
             DELETE FROM rag.entity_mention g WHERE {STRAY_GRAPH}"
        ),
        vec![uuid(domain).into()],
    )
}

/// Takes away the chunks of a document, with their vectors and what they name.
pub(crate) fn delete_chunks(domain: Id, document: Id) -> Result<()> {
    let nothing = FoundGraph { document, chunks: &[], graph: &DocumentGraph::default() };
    graph::replace(domain, &[nothing], ChatPart::Dropped)?;
    replacement::delete_others(domain, &[document], &[])
}

/// Queues a document once more, whatever became of it; false where that cannot help: it failed before.
pub(crate) fn queue(domain: Id, document: Id) -> Result<bool> {
    let queued = spi::execute_one(
        "INSERT INTO rag.job AS j (domain_id, document_id, version)
         SELECT d.domain_id, d.id, d.version FROM rag.document d WHERE d.domain_id = $1 AND d.id = $2
         ON CONFLICT (domain_id, document_id) DO UPDATE
             SET state = CASE j.state WHEN 'done' THEN 'queued' ELSE j.state END, kind = 'process', tries = 0,
                 due_at = clock_timestamp(), queued_at = clock_timestamp()
         RETURNING state <> 'failed'",
        vec![uuid(domain).into(), uuid(document).into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(queued.unwrap_or(false))
}

/// Counts deleted chunks that were not counted.
pub(crate) fn add_deletion_count(domain: Id, chunks: i64) -> Result<()> {
    spi::run(
        "INSERT INTO rag.deletion_count (domain_id, chunks) VALUES ($1, $2)",
        vec![uuid(domain).into(), i32::try_from(chunks).unwrap_or(i32::MAX).into()],
    )
}

/// Holds all segments of a domain until the transaction ends, waiting for merges; returns which there are.
pub(crate) fn lock_segments(domain: Id) -> Result<Vec<Id>> {
    let rows = spi::read_latest(
        "SELECT id FROM rag.segment WHERE domain_id = $1 ORDER BY id, part FOR UPDATE",
        vec![uuid(domain).into()],
        |row| row.require::<Uuid>(1).map(id),
    )?;
    Ok(distinct(rows))
}

/// Which segments of a domain the active snapshot shows.
pub(crate) fn segment_ids(domain: Id) -> Result<Vec<Id>> {
    Ok(distinct(ids("SELECT id FROM rag.segment WHERE domain_id = $1", domain)?))
}

fn distinct(mut ids: Vec<Id>) -> Vec<Id> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Segments of a domain, under the active snapshot.
pub(crate) fn segments(domain: Id) -> Result<Vec<SegmentHeader>> {
    super::segment::list(&[domain])
}

/// Takes away vectors that belong to no chunk, as when one was computed while its chunk was deleted. As many as said are
/// looked at, from a place that is chosen by chance, and then on from the beginning. Returns how many were taken away.
/// For workers.
pub(crate) fn sweep_stray_vectors(looked_at: i64) -> Result<usize> {
    let start = spi::read_latest_one(
        "SELECT coalesce((SELECT e.domain_id FROM rag.embedding e WHERE e.domain_id >= r.domain
                          ORDER BY e.domain_id LIMIT 1), r.domain), r.chunk
         FROM (SELECT gen_random_uuid() AS domain, gen_random_uuid() AS chunk) r",
        vec![],
        |row| Ok((row.require::<Uuid>(1)?, row.require::<Uuid>(2)?)),
    )?;
    let Some(start) = start else { return Ok(0) };
    let (mut stray, looked) = stray_after(start, looked_at)?;
    if looked < looked_at {
        stray.extend(stray_after((uuid(0), uuid(0)), looked_at - looked)?.0);
    }
    if stray.is_empty() {
        return Ok(0);
    }
    let (domains, chunks): (Vec<Uuid>, Vec<Uuid>) = stray.into_iter().unzip();
    let gone = spi::execute_by_index(
        "DELETE FROM rag.embedding e USING unnest($1::uuid[], $2::uuid[]) AS s (domain_id, id)
         WHERE e.domain_id = s.domain_id AND e.chunk_id = s.id
           AND NOT EXISTS (SELECT FROM rag.chunk c WHERE c.domain_id = s.domain_id AND c.id = s.id)
         RETURNING 1",
        vec![domains.into(), chunks.into()],
        |_| Ok(()),
    )?;
    Ok(gone.len())
}

/// Vectors without a chunk among the first `limit` behind a place, and how many were looked at.
fn stray_after(place: (Uuid, Uuid), limit: i64) -> Result<(Vec<(Uuid, Uuid)>, i64)> {
    let rows = spi::look_up_latest(
        "SELECT l.domain_id, l.chunk_id, c.id IS NULL, l.total
         FROM (SELECT e.domain_id, e.chunk_id, row_number() OVER () AS place, count(*) OVER () AS total
               FROM (SELECT e.domain_id, e.chunk_id FROM rag.embedding e
                     WHERE (e.domain_id, e.chunk_id) > ($1, $2) ORDER BY e.domain_id, e.chunk_id LIMIT $3) e) l
         LEFT JOIN rag.chunk c ON c.domain_id = l.domain_id AND c.id = l.chunk_id
         WHERE c.id IS NULL OR l.place = l.total",
        vec![place.0.into(), place.1.into(), limit.into()],
        |row| {
            Ok((row.require::<Uuid>(1)?, row.require::<Uuid>(2)?, row.require::<bool>(3)?, row.require::<i64>(4)?))
        },
    )?;
    let looked = rows.first().map_or(0, |row| row.3);
    Ok((rows.into_iter().filter(|row| row.2).map(|row| (row.0, row.1)).collect(), looked))
}
