//! The HNSW indexes of vector spaces: which are to be built, and how.
//!
//! They are built concurrently, so that ingestion goes on: outside of a transaction, by a worker of its own.

use super::embedding::{VectorSpace, index_name, leaf_name, vector_schema};
use super::id;
use crate::error::Result;
use crate::pg::spi;

/// An index that is to be built.
#[derive(Debug, Clone)]
pub(crate) struct MissingIndex {
    table: String,
    name: String,
    /// The statement that builds it; not within a transaction.
    pub(crate) statement: String,
}

/// The next vector space that has more rows than exact search is meant for, and no index.
///
/// Rows are counted by the size of the table: what the planner knows may be old, or nothing.
pub(crate) fn missing(exact_limit: i64) -> Result<Option<MissingIndex>> {
    let found = spi::read_latest_one(
        "SELECT s.id, s.dimension
         FROM rag.vector_space s
         JOIN pg_class c ON c.relnamespace = 'rag'::regnamespace
                        AND c.relname = 'embedding_' || replace(s.id::text, '-', ''),
              current_setting('block_size') b (size)
         WHERE pg_relation_size(c.oid) / b.size::int
               * CASE WHEN c.reltuples > 0 AND c.relpages > 0 THEN c.reltuples / c.relpages
                      ELSE floor(b.size::int / (72 + 2 * s.dimension)) END > $1
           AND NOT EXISTS (SELECT FROM pg_class x JOIN pg_index i ON i.indexrelid = x.oid
                           WHERE x.relnamespace = c.relnamespace AND x.relname = c.relname || '_hnsw' AND i.indisvalid)
         ORDER BY s.id LIMIT 1",
        vec![(exact_limit as f64).into()],
        |row| Ok(VectorSpace { id: id(row.require(1)?), dimension: row.require::<i32>(2)? as u32 }),
    )?;
    let Some(space) = found else { return Ok(None) };
    let (table, name, schema) = (leaf_name(space.id), index_name(space.id), vector_schema()?);
    let statement = format!(
        "CREATE INDEX CONCURRENTLY {name} ON rag.{table} USING hnsw ((vector::{schema}.halfvec({})) {schema}.halfvec_cosine_ops)",
        space.dimension
    );
    Ok(Some(MissingIndex { table, name, statement }))
}

/// Takes away what an earlier try may have left. 55P03 while somebody builds, or otherwise uses the table alone.
pub(crate) fn remove_remains(missing: &MissingIndex) -> Result<()> {
    // Held by whoever builds an index of the table.
    spi::run(&format!("LOCK TABLE rag.{} IN SHARE UPDATE EXCLUSIVE MODE NOWAIT", missing.table), vec![])?;
    spi::run("SET LOCAL lock_timeout = '2s'", vec![])?;
    spi::run(&format!("DROP INDEX IF EXISTS rag.{}", missing.name), vec![])
}
