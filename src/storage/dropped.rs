//! Domains whose collection was deleted: nobody sees them, and what is in them is cleared away in batches.
//!
//! The foreign key of `rag.domain` has cut them off; policies hide what belongs to no collection. A batch takes
//! only rows that nobody holds, so clearing never waits for a session, nor one session long for it.

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::spi;
use pgrx::Uuid;

/// Chunks of a batch, with their vectors.
const CHUNKS: i64 = 4000;

/// What is cleared, in this order: documents come after all that was made of them, so that whoever still
/// writes for one is waited for.
const TABLES: [(&str, i64); 15] = [
    ("job", 10_000),
    ("graph_job", 10_000),
    ("chunk", CHUNKS),
    ("section", 10_000),
    ("metadata_value", 10_000),
    ("mined_acronym", 10_000),
    ("entity_mention", 10_000),
    ("entity_relation", 10_000),
    ("document_link", 10_000),
    ("attached_row", 10_000),
    ("feedback", 10_000),
    ("segment", 64),
    ("document", 200),
    ("deletion_count", 10_000),
    ("merge_failure", 10_000),
];

/// How far the clearing of a domain has come, so that no batch looks again at what earlier ones deleted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    domain: Id,
    table: usize,
    /// The last chunk that was deleted.
    after: Id,
    /// Whether this round through the tables deleted anything.
    fruitful: bool,
}

impl Progress {
    /// Goes on with another domain: somebody holds what is next in this one.
    pub(crate) fn pass_over(&mut self) {
        *self = Self { domain: self.domain.wrapping_add(1), ..Self::default() };
    }
}

/// Clears one batch; false if no collection's remains are left.
pub(crate) fn clear_some(progress: &mut Progress) -> Result<bool> {
    let next = "SELECT id FROM rag.domain WHERE collection_id IS NULL AND id >= $1 ORDER BY id LIMIT 1";
    let find =
        |from: Id| spi::read_latest_one(next, vec![uuid(from).into()], |row| row.require::<Uuid>(1).map(id));
    let found = match find(progress.domain)? {
        None if progress.domain != 0 => find(0)?,
        found => found,
    };
    let Some(domain) = found else { return Ok(false) };
    if domain != progress.domain {
        *progress = Progress { domain, ..Progress::default() };
    }
    while let Some((table, rows)) = TABLES.get(progress.table) {
        let cleared =
            if *table == "chunk" { clear_chunks(progress)? } else { clear_rows(domain, table, *rows)? };
        if cleared {
            progress.fruitful = true;
            return Ok(true);
        }
        progress.table += 1;
    }
    let is_over = delete_if_empty(domain)? || progress.fruitful;
    // What somebody holds, or wrote meanwhile, is taken in another round, after the other domains.
    *progress = Progress { domain: domain.wrapping_add(1), ..Progress::default() };
    Ok(is_over || find(progress.domain)?.is_some())
}

fn clear_chunks(progress: &mut Progress) -> Result<bool> {
    let gone = spi::execute(
        "DELETE FROM rag.chunk c USING (
             SELECT p.id FROM rag.chunk p WHERE p.domain_id = $1 AND p.id > $2 ORDER BY p.id LIMIT $3
             FOR UPDATE SKIP LOCKED) p
         WHERE c.domain_id = $1 AND c.id = p.id RETURNING c.id",
        vec![uuid(progress.domain).into(), uuid(progress.after).into(), CHUNKS.into()],
        |row| row.require::<Uuid>(1).map(id),
    )?;
    let Some(last) = gone.iter().copied().max() else { return Ok(false) };
    spi::run(
        "DELETE FROM rag.embedding WHERE domain_id = $1 AND chunk_id = ANY ($2)",
        vec![uuid(progress.domain).into(), uuids(gone).into()],
    )?;
    progress.after = last;
    Ok(true)
}

fn clear_rows(domain: Id, table: &str, rows: i64) -> Result<bool> {
    let gone = spi::execute(
        &format!(
            "DELETE FROM rag.{table} WHERE domain_id = $1 AND ctid = ANY (ARRAY(
                 SELECT t.ctid FROM rag.{table} t WHERE t.domain_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
             RETURNING 1"
        ),
        vec![uuid(domain).into(), rows.into()],
        |_| Ok(()),
    )?;
    Ok(!gone.is_empty())
}

/// Deletes the domain itself, unless somebody holds it, as whoever adds a document to it at this moment does.
fn delete_if_empty(domain: Id) -> Result<bool> {
    let gone = spi::execute_one(
        "DELETE FROM rag.domain d
         WHERE d.id = (SELECT o.id FROM rag.domain o WHERE o.id = $1 AND o.collection_id IS NULL FOR UPDATE SKIP LOCKED)
           AND NOT EXISTS (SELECT FROM rag.document t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.chunk t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.section t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.metadata_value t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.mined_acronym t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.entity_mention t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.entity_relation t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.document_link t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.graph_job t WHERE t.domain_id = $1)
           AND NOT EXISTS (SELECT FROM rag.deletion_count t WHERE t.domain_id = $1)
         RETURNING true",
        vec![uuid(domain).into()],
        |row| row.require::<bool>(1),
    )?;
    Ok(gone.unwrap_or(false))
}
