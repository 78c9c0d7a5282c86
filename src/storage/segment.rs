//! Keyword segments as rows: listing, loading, writing, and what a merge needs.

use super::blob::{self, BlobHeader};
use super::{Id, id, uuid, uuids, vector_codes};
use crate::error::Result;
use crate::pg::{random, spi};
use pgrx::Uuid;
use rag_core::merging::SegmentSize;
use std::io::Read;

/// A segment without its bytes.
#[derive(Debug, Clone)]
pub(crate) struct SegmentHeader {
    pub(crate) blob: BlobHeader,
    pub(crate) language: String,
    pub(crate) analyser_version: u32,
    pub(crate) entries: u32,
}

impl SegmentHeader {
    pub(crate) fn id(&self) -> Id {
        self.blob.id
    }

    /// Its size, as long as nobody has looked for deleted entries.
    pub(crate) fn size(&self) -> SegmentSize {
        SegmentSize { entries: self.entries, deleted: 0, bytes: self.blob.bytes }
    }
}

impl AsRef<BlobHeader> for SegmentHeader {
    fn as_ref(&self) -> &BlobHeader {
        &self.blob
    }
}

/// Segments of domains, under the active snapshot, in a fixed order.
pub(crate) fn list(domains: &[Id]) -> Result<Vec<SegmentHeader>> {
    spi::look_up(
        "SELECT domain_id, language, analyser_version, entries, id, bytes, sha256, xmin
         FROM rag.segment WHERE domain_id = ANY ($1) AND part = 0 ORDER BY domain_id, id",
        vec![uuids(domains.iter().copied()).into()],
        header_of_row,
    )
}

fn header_of_row(row: &spi::Row) -> Result<SegmentHeader> {
    Ok(SegmentHeader {
        blob: blob::header_of_row(row, id(row.require(1)?), 5)?,
        language: row.require(2)?,
        analyser_version: row.require::<i32>(3)? as u32,
        entries: row.require::<i32>(4)? as u32,
    })
}

/// Stores a segment of these chunks, whose vectors are already there, and the codes of these. `open` begins to read its
/// bytes. Elevated.
pub(crate) fn insert<R: Read>(
    domain: Id,
    (language, model): (&str, &str),
    chunks: &[Id],
    open: impl Fn() -> R,
) -> Result<()> {
    let segment = Id::from_be_bytes(random::new_id()?);
    let measured = blob::measure(open())?;
    blob::store_parts(open(), |part, data| {
        spi::run(
            "INSERT INTO rag.segment (domain_id, id, part, parts, language, analyser_version, entries, bytes, sha256, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            vec![
                uuid(domain).into(),
                uuid(segment).into(),
                part.into(),
                (measured.parts() as i32).into(),
                language.into(),
                (rag_bm25::ANALYSER_VERSION as i32).into(),
                (chunks.len() as i32).into(),
                (measured.bytes as i64).into(),
                measured.sha256.to_vec().into(),
                data.into(),
            ],
        )
    })?;
    vector_codes::write(domain, segment, model, chunks)
}

/// What the segments of a domain want.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wants {
    pub(crate) domain: Id,
    /// There are many, or some of an older analyser.
    pub(crate) merge: bool,
    /// So many chunks were deleted, a twentieth, that their entries are to go.
    pub(crate) is_worn: bool,
    /// One that is large enough has no codes of its vectors.
    pub(crate) codes: bool,
}

/// Looks at the segments of some domains, those after this one in their order: what is done at a time must not grow with the
/// number of domains. Fewer than [`LOOKED_AT`] are the last ones. For background workers.
pub(crate) fn look_at(after: Id, many: usize) -> Result<Vec<Wants>> {
    spi::look_up_latest(
        "SELECT d.id, coalesce(s.segments >= $2 OR s.analyser < $3, false),
                coalesce(t.chunks > 0 AND t.chunks * 20 >= s.entries, false),
                s.largest >= $4 AND EXISTS (
                    SELECT FROM rag.segment l JOIN rag.collection c ON c.id = d.collection_id
                    JOIN rag.vector_space v ON v.model = c.model
                    WHERE l.domain_id = d.id AND l.part = 0 AND l.entries >= $4
                      AND NOT EXISTS (SELECT FROM rag.segment_codes k
                                      WHERE k.domain_id = d.id AND k.segment_id = l.id AND k.part = 0
                                        AND k.vector_space_id = v.id))
         FROM (SELECT id, collection_id FROM rag.domain
               WHERE id > $1 AND collection_id IS NOT NULL ORDER BY id LIMIT $5) d
         CROSS JOIN LATERAL (
             SELECT count(*) AS segments, sum(entries) AS entries, min(analyser_version) AS analyser,
                    coalesce(max(entries), 0) AS largest
             FROM rag.segment WHERE domain_id = d.id AND part = 0) s
         CROSS JOIN LATERAL (SELECT sum(chunks) AS chunks FROM rag.deletion_count WHERE domain_id = d.id) t
         ORDER BY d.id",
        vec![
            uuid(after).into(),
            (many as i64).into(),
            (rag_bm25::ANALYSER_VERSION as i32).into(),
            (vector_codes::FEWEST_ENTRIES as i32).into(),
            (LOOKED_AT as i64).into(),
        ],
        |row| {
            Ok(Wants {
                domain: id(row.require(1)?),
                merge: row.require(2)?,
                is_worn: row.require(3)?,
                codes: row.require(4)?,
            })
        },
    )
}

/// Domains that [`look_at`] looks at.
pub(crate) const LOOKED_AT: usize = 1_000;

/// Whether merging a domain failed, and is not to be tried again yet. For background workers.
pub(crate) fn is_merge_put_off(domain: Id) -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT true FROM rag.merge_failure WHERE domain_id = $1 AND due_at > clock_timestamp()",
        vec![uuid(domain).into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Notes that merging a domain failed: it is tried again after a minute, then two, then four, up to an hour. For
/// background workers.
pub(crate) fn put_off_merge(domain: Id, sqlstate: &str, error: &str) -> Result<()> {
    spi::run(
        "INSERT INTO rag.merge_failure AS f (domain_id, due_at, sqlstate, error)
         VALUES ($1, clock_timestamp() + interval '1 minute', $2, $3)
         ON CONFLICT (domain_id) DO UPDATE
             SET tries = f.tries + 1, sqlstate = excluded.sqlstate, error = excluded.error,
                 due_at = clock_timestamp() + least(interval '1 hour', interval '1 minute' * 2 ^ least(f.tries, 10))",
        vec![uuid(domain).into(), sqlstate.into(), error.into()],
    )
}

/// Forgets that merging a domain failed. Elevated.
pub(crate) fn forget_merge_failure(domain: Id) -> Result<()> {
    spi::run("DELETE FROM rag.merge_failure WHERE domain_id = $1", vec![uuid(domain).into()])
}

/// The segments of a domain, with what was committed last. For merges.
pub(crate) fn latest(domain: Id) -> Result<Vec<SegmentHeader>> {
    spi::read_latest(
        "SELECT domain_id, language, analyser_version, entries, id, bytes, sha256, xmin
         FROM rag.segment WHERE domain_id = $1 AND part = 0",
        vec![uuid(domain).into()],
        header_of_row,
    )
}

/// Locks these segments of a domain against another merge; those that another one holds are left out, and all while
/// somebody deletes the domain's collection.
pub(crate) fn lock_for_merge(domain: Id, segments: &[Id]) -> Result<Vec<SegmentHeader>> {
    spi::read_latest(
        "SELECT domain_id, language, analyser_version, entries, id, bytes, sha256, xmin
         FROM rag.segment
         WHERE domain_id = $1 AND part = 0 AND id = ANY ($2)
           AND EXISTS (SELECT FROM rag.domain d WHERE d.id = $1 FOR KEY SHARE SKIP LOCKED)
         ORDER BY entries, id FOR UPDATE SKIP LOCKED",
        vec![uuid(domain).into(), uuids(segments.iter().copied()).into()],
        header_of_row,
    )
}

/// Locks a segment against merges, and against whoever adds vectors to its chunks; `None` where one of them is at it, or
/// it is gone.
pub(super) fn lock_to_read(domain: Id, segment: Id) -> Result<Option<SegmentHeader>> {
    spi::read_latest_one(
        "SELECT domain_id, language, analyser_version, entries, id, bytes, sha256, xmin
         FROM rag.segment WHERE domain_id = $1 AND id = $2 AND part = 0 FOR SHARE SKIP LOCKED",
        vec![uuid(domain).into(), uuid(segment).into()],
        header_of_row,
    )
}

/// Deletes segments that a merge has replaced, with the codes of their vectors.
pub(crate) fn delete(domain: Id, segments: &[Id]) -> Result<()> {
    vector_codes::delete(domain, segments)?;
    spi::run(
        "DELETE FROM rag.segment WHERE domain_id = $1 AND id = ANY ($2)",
        vec![uuid(domain).into(), uuids(segments.iter().copied()).into()],
    )
}

/// Takes entries that a merge has left out off the counts of deleted chunks. Whatever else is counted meanwhile stays so.
pub(crate) fn uncount_deleted(domain: Id, entries: i64) -> Result<()> {
    spi::run(
        "WITH gone AS (DELETE FROM rag.deletion_count WHERE domain_id = $1 RETURNING chunks)
         INSERT INTO rag.deletion_count (domain_id, chunks)
         SELECT $1, sum(chunks) - $2 FROM gone HAVING coalesce(sum(chunks), 0) <> $2",
        vec![uuid(domain).into(), entries.into()],
    )
}

/// Ids of the counts of deleted chunks of a domain. For workers.
pub(crate) fn deletion_counts(domain: Id) -> Result<Vec<Id>> {
    spi::read_latest(
        "SELECT id FROM rag.deletion_count WHERE domain_id = $1",
        vec![uuid(domain).into()],
        |row| row.require::<Uuid>(1).map(id),
    )
}

/// Puts one count in the place of these, unless somebody else has changed them meanwhile. For workers.
pub(crate) fn recount_deleted(domain: Id, counts: &[Id], entries: i64) -> Result<()> {
    let locked = spi::read_latest(
        "SELECT FROM rag.deletion_count WHERE domain_id = $1 AND id = ANY ($2) FOR UPDATE",
        vec![uuid(domain).into(), uuids(counts.iter().copied()).into()],
        |_| Ok(()),
    )?;
    if locked.len() < counts.len() {
        return Ok(());
    }
    spi::run(
        "WITH gone AS (DELETE FROM rag.deletion_count WHERE domain_id = $1 AND id = ANY ($2))
         INSERT INTO rag.deletion_count (domain_id, chunks) SELECT $1, $3 WHERE $3 > 0",
        vec![uuid(domain).into(), uuids(counts.iter().copied()).into(), entries.into()],
    )
}

/// Takes the counts of a domain away, under the snapshot of the statement.
pub(crate) fn delete_deletion_counts(domain: Id) -> Result<()> {
    spi::run("DELETE FROM rag.deletion_count WHERE domain_id = $1", vec![uuid(domain).into()])
}
