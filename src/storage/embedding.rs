//! Embeddings: vector spaces, their partitions, writing, and comparing.

use super::{Id, id, uuid, uuids};
use crate::error::{Error, Result};
use crate::pg::{Oid, elevation, relation, spi};
use pgrx::Uuid;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};

/// A model's vector space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorSpace {
    pub(crate) id: Id,
    pub(crate) dimension: u32,
}

thread_local! {
    /// Schema of pgvector: its name, and the same quoted.
    static VECTOR_SCHEMA: RefCell<Option<(CString, String)>> = const { RefCell::new(None) };
}

/// Where pgvector is.
struct Pgvector {
    /// Its schema, quoted. It may be anything, and our search path has none but `pg_catalog`.
    schema: String,
    halfvec: Oid,
}

impl Pgvector {
    /// Its schema may become another one, so what is remembered is looked up.
    fn find() -> Result<Self> {
        let of_schema = |(name, schema): (CString, String)| {
            relation::type_in_schema(&name, c"halfvec").map(|halfvec| Self { schema, halfvec })
        };
        if let Some(found) = VECTOR_SCHEMA.with_borrow(Clone::clone).and_then(of_schema) {
            return Ok(found);
        }
        let (name, quoted) = spi::read_snapshot_one(
            "SELECT n.nspname::text, quote_ident(n.nspname)
             FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'",
            vec![],
            |row| {
                let name = CString::new(row.require::<String>(1)?);
                Ok((
                    name.map_err(|_| Error::internal("a name contains a NUL byte"))?,
                    row.require::<String>(2)?,
                ))
            },
        )?
        .ok_or_else(|| {
            Error::not_ready("the extension vector is not installed").hint("CREATE EXTENSION vector;")
        })?;
        VECTOR_SCHEMA.set(Some((name.clone(), quoted.clone())));
        of_schema((name, quoted)).ok_or_else(|| {
            Error::not_ready("the extension vector has no type halfvec")
                .hint("ALTER EXTENSION vector UPDATE;")
        })
    }
}

/// The space of a model, if anything was embedded by it. Elevated.
pub(crate) fn vector_space(model: &str) -> Result<Option<VectorSpace>> {
    spi::read_snapshot_one(SPACE, vec![model.into()], space_of_row)
}

/// [`vector_space`] with what was committed last. Elevated, or for workers.
pub(super) fn latest_vector_space(model: &str) -> Result<Option<VectorSpace>> {
    spi::read_latest_one(SPACE, vec![model.into()], space_of_row)
}

const SPACE: &str = "SELECT id, dimension FROM rag.vector_space WHERE model = $1";

fn space_of_row(row: &spi::Row) -> Result<VectorSpace> {
    Ok(VectorSpace { id: id(row.require(1)?), dimension: row.require::<i32>(2)? as u32 })
}

/// The space of a model, made with its partition if it is not there yet. Elevated.
pub(crate) fn ensure_vector_space(model: &str, dimension: u32) -> Result<VectorSpace> {
    let mut found = latest_vector_space(model)?;
    if found.is_none() {
        // Two transactions must not both make it; readers go on.
        spi::run("LOCK TABLE rag.vector_space IN SHARE ROW EXCLUSIVE MODE", vec![])?;
        found = latest_vector_space(model)?;
    }
    let space = match found {
        Some(space) => space,
        None => create_space(model, dimension)?,
    };
    if space.dimension != dimension {
        return Err(Error::not_ready(format!(
            "model {model} makes vectors of {dimension} dimensions, but its stored ones have {}",
            space.dimension
        ))
        .hint("A different model needs a different name."));
    }
    Ok(space)
}

fn create_space(model: &str, dimension: u32) -> Result<VectorSpace> {
    let Pgvector { schema, .. } = Pgvector::find()?;
    let space = spi::execute_one(
        "INSERT INTO rag.vector_space (model, dimension) VALUES ($1, $2) RETURNING id",
        vec![model.into(), (dimension as i32).into()],
        |row| row.require::<Uuid>(1).map(id),
    )?
    .ok_or_else(|| Error::internal("rag.vector_space took no row"))?;
    let leaf = leaf_name(space);
    // An ordinary table, not a member of the extension, so that pg_dump takes definition and rows along.
    // ATTACH takes a weaker lock on the parent than CREATE … PARTITION OF.
    for statement in [
        format!("CREATE TABLE rag.{leaf} (LIKE rag.embedding INCLUDING ALL)"),
        format!("ALTER TABLE rag.{leaf} ALTER vector SET STORAGE PLAIN, ALTER vector SET STATISTICS 0"),
        format!(
            "ALTER TABLE rag.{leaf} ADD CONSTRAINT {leaf}_dimension CHECK ({schema}.vector_dims(vector) = {dimension})"
        ),
        format!("ALTER TABLE rag.{leaf} ADD PRIMARY KEY (domain_id, chunk_id)"),
        format!("ALTER TABLE rag.{leaf} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"),
        format!("ALTER TABLE rag.embedding ATTACH PARTITION rag.{leaf} FOR VALUES IN ('{}')", uuid(space)),
    ] {
        spi::run(&statement, vec![])?;
    }
    Ok(VectorSpace { id: space, dimension })
}

/// Name of a space's partition: letters, digits and underscores, so it needs no quotes.
pub(super) fn leaf_name(space: Id) -> String {
    format!("embedding_{space:032x}")
}

/// Vectors of texts with these hashes, as far as the domain has chunks of such a text: one of each, however many chunks have it.
pub(crate) fn by_hash(
    domain: Id,
    space: VectorSpace,
    hashes: &[[u8; 32]],
) -> Result<HashMap<Vec<u8>, Vec<f32>>> {
    let rows = spi::look_up_latest(
        "SELECT h.sha256, n.vector::real[]
         FROM unnest($2::bytea[]) h (sha256)
         CROSS JOIN LATERAL (
             SELECT e.vector
             FROM (SELECT id FROM rag.chunk WHERE domain_id = $1 AND sha256 = h.sha256 OFFSET 0) c
             JOIN rag.embedding e ON e.vector_space_id = $3 AND e.domain_id = $1 AND e.chunk_id = c.id
             LIMIT 1) n",
        vec![
            uuid(domain).into(),
            hashes.iter().map(|h| h.to_vec()).collect::<Vec<_>>().into(),
            uuid(space.id).into(),
        ],
        |row| Ok((row.require::<Vec<u8>>(1)?, row.require::<Vec<f32>>(2)?)),
    )?;
    Ok(rows.into_iter().collect())
}

/// A vector as pgvector reads it.
fn vector_text(values: &[f32]) -> String {
    let mut text = String::with_capacity(values.len() * 12 + 2);
    text.push('[');
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&value.to_string());
    }
    text.push(']');
    text
}

/// Which of these chunks, by position, have no vector in the space. Elevated, or for workers.
pub(crate) fn missing(domain: Id, space: VectorSpace, chunks: &[Id]) -> Result<Vec<usize>> {
    let found = spi::read_latest(
        "SELECT chunk_id FROM rag.embedding
         WHERE vector_space_id = $1 AND domain_id = $2 AND chunk_id = ANY ($3)",
        vec![uuid(space.id).into(), uuid(domain).into(), uuids(chunks.iter().copied()).into()],
        |row| row.require::<Uuid>(1).map(id),
    )?;
    let found: HashSet<Id> = found.into_iter().collect();
    Ok((0..chunks.len()).filter(|position| !found.contains(&chunks[*position])).collect())
}

/// Stores the vectors of chunks, all of the space's dimension.
pub(crate) fn insert(domain: Id, space: VectorSpace, chunks: &[Id], vectors: &[&[f32]]) -> Result<()> {
    let Pgvector { schema, .. } = Pgvector::find()?;
    // In one array, which is taken apart again: there is no array of arrays of different rows in SQL.
    spi::run(
        &format!(
            "INSERT INTO rag.embedding (vector_space_id, domain_id, chunk_id, vector)
             SELECT $1, $2, c.id, ($4::real[])[(c.n::int - 1) * $5 + 1 : c.n::int * $5]::{schema}.halfvec
             FROM unnest($3::uuid[]) WITH ORDINALITY AS c (id, n)"
        ),
        vec![
            uuid(space.id).into(),
            uuid(domain).into(),
            uuids(chunks.iter().copied()).into(),
            vectors.concat().into(),
            (space.dimension as i32).into(),
        ],
    )
}

/// Vectors of chunks of these domains, with their models. Elevated.
pub(crate) fn of_chunks(domains: &[Id], chunks: &[Id]) -> Result<Vec<(Id, String, Vec<f32>)>> {
    spi::read_snapshot(
        "SELECT e.chunk_id, s.model, e.vector::real[] FROM rag.vector_space s JOIN rag.embedding e ON e.vector_space_id = s.id
         WHERE e.domain_id = ANY ($1) AND e.chunk_id = ANY ($2) ORDER BY e.chunk_id, s.model",
        vec![uuids(domains.iter().copied()).into(), uuids(chunks.iter().copied()).into()],
        |row| Ok((id(row.require(1)?), row.require(2)?, row.require(3)?)),
    )
}

/// Vectors of chunks of a domain in a space, with what was committed last. Elevated, or for workers.
pub(super) fn latest_of_chunks(
    domain: Id,
    space: VectorSpace,
    chunks: &[Id],
) -> Result<HashMap<Id, Vec<f32>>> {
    let rows = spi::read_latest(
        "SELECT chunk_id, vector::real[] FROM rag.embedding
         WHERE vector_space_id = $1 AND domain_id = $2 AND chunk_id = ANY ($3)",
        vec![uuid(space.id).into(), uuid(domain).into(), uuids(chunks.iter().copied()).into()],
        |row| Ok((id(row.require(1)?), row.require::<Vec<f32>>(2)?)),
    )?;
    Ok(rows.into_iter().collect())
}

/// Chunks of a domain with a vector of this model. Elevated.
pub(crate) fn count(domain: Id, model: &str) -> Result<i64> {
    let count = spi::read_snapshot_one(
        "SELECT count(*) FROM rag.vector_space s JOIN rag.embedding e ON e.vector_space_id = s.id
         WHERE s.model = $2 AND e.domain_id = $1",
        vec![uuid(domain).into(), model.into()],
        |row| row.require::<i64>(1),
    )?;
    Ok(count.unwrap_or(0))
}

/// A hit of the vector retriever.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct VectorHit {
    pub(crate) chunk: Id,
    /// Cosine, from -1 to 1.
    pub(crate) score: f64,
}

fn hit_of_row(row: &spi::Row) -> Result<VectorHit> {
    Ok(VectorHit { chunk: id(row.require(1)?), score: row.require(2)? })
}

/// A vector to search for, as its statements take it.
pub(crate) struct QueryVector {
    value: spi::Arg,
    /// Of pgvector, quoted.
    schema: String,
}

impl QueryVector {
    /// For searches of the running call.
    pub(crate) fn new(values: &[f32]) -> Result<Self> {
        let Pgvector { schema, halfvec } = Pgvector::find()?;
        Ok(Self { value: spi::Arg::read_as(halfvec, &vector_text(values))?, schema })
    }
}

/// The nearest chunks of the domains by comparing all of them. Elevated: hits are shown to nobody before they were looked
/// up as the caller.
///
/// ORDER BY has a second key, so no approximate index that somebody may have made can serve it; and what others have in
/// the space is not read, however cheap the planner thinks a sequential scan. The distance is computed once per vector.
pub(crate) fn nearest_exact(
    space: VectorSpace,
    domains: &[Id],
    QueryVector { value, schema }: &QueryVector,
    limit: usize,
) -> Result<Vec<VectorHit>> {
    let sql = format!(
        "SELECT n.chunk_id, 1 - n.distance
         FROM (SELECT e.chunk_id, e.vector OPERATOR({schema}.<=>) $3 AS distance
               FROM rag.embedding e WHERE e.vector_space_id = $1 AND e.domain_id = ANY ($2)
               ORDER BY distance, e.chunk_id LIMIT $4) n"
    );
    let args = vec![
        uuid(space.id).into(),
        uuids(domains.iter().copied()).into(),
        value.clone(),
        (limit as i64).into(),
    ];
    elevation::with_settings(BY_BITMAP, || spi::read_snapshot(&sql, args, hit_of_row))
}

/// Planner settings for vectors that are read in the order of the table, in two thirds to half of the time of an index scan.
const BY_BITMAP: &[(&CStr, &CStr)] = &[(c"enable_seqscan", c"off"), (c"enable_indexscan", c"off")];

/// Most domains whose chunks are compared by a statement each.
const MOST_BY_ITSELF: usize = 8;

/// At least the nearest `limit` of some chunks, each with its domain, by comparing them; in no order. Elevated, as
/// [`nearest_exact`].
pub(crate) fn nearest_among(
    space: VectorSpace,
    chunks: impl Iterator<Item = (Id, Id)>,
    query: &QueryVector,
    limit: usize,
) -> Result<Vec<VectorHit>> {
    let mut by_domain: HashMap<Id, Vec<Id>> = HashMap::new();
    for (domain, chunk) in chunks {
        by_domain.entry(domain).or_default().push(chunk);
    }
    if by_domain.len() > MOST_BY_ITSELF {
        return nearest_of_many(space, &by_domain, query, limit);
    }
    let QueryVector { value, schema } = query;
    let sql = format!(
        "SELECT n.chunk_id, 1 - n.distance
         FROM (SELECT e.chunk_id, e.vector OPERATOR({schema}.<=>) $4 AS distance
               FROM rag.embedding e
               WHERE e.vector_space_id = $1 AND e.domain_id = $2 AND e.chunk_id = ANY ($3)
               ORDER BY distance, e.chunk_id LIMIT $5) n"
    );
    let mut hits = Vec::new();
    for (domain, chunks) in by_domain {
        let args = vec![
            uuid(space.id).into(),
            uuid(domain).into(),
            uuids(chunks).into(),
            value.clone(),
            (limit as i64).into(),
        ];
        let read = || spi::read_snapshot(&sql, args, hit_of_row);
        hits.extend(elevation::with_settings(BY_BITMAP, read)?);
    }
    Ok(hits)
}

/// [`nearest_among`] of any number of domains: pairs are looked up one by one, for a bitmap would be of all chunks for each
/// domain.
fn nearest_of_many(
    space: VectorSpace,
    chunks: &HashMap<Id, Vec<Id>>,
    QueryVector { value, schema }: &QueryVector,
    limit: usize,
) -> Result<Vec<VectorHit>> {
    let pairs = chunks.iter().flat_map(|(domain, chunks)| chunks.iter().map(|chunk| (*domain, *chunk)));
    let (domains, chunks): (Vec<Id>, Vec<Id>) = pairs.unzip();
    let sql = format!(
        "SELECT n.chunk_id, 1 - n.distance
         FROM (SELECT e.chunk_id, e.vector OPERATOR({schema}.<=>) $4 AS distance
               FROM unnest($2::uuid[], $3::uuid[]) c (domain_id, chunk_id)
               JOIN rag.embedding e ON e.domain_id = c.domain_id AND e.chunk_id = c.chunk_id
               WHERE e.vector_space_id = $1 ORDER BY distance, e.chunk_id LIMIT $5) n"
    );
    let args = vec![
        uuid(space.id).into(),
        uuids(domains).into(),
        uuids(chunks).into(),
        value.clone(),
        (limit as i64).into(),
    ];
    spi::look_up(&sql, args, hit_of_row)
}
