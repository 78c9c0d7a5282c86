//! Codes of the vectors of a keyword segment's chunks, in the order of its entries: what vector search goes over before it
//! compares the nearest ones exactly. See `rag_vector`.
//!
//! They are written with the segment, in its transaction, and deleted with it. Where there are none, as after a restore
//! or a change of the model, exact search does, until a worker has made them.

use super::blob::{self, BlobHeader};
use super::embedding::{self, VectorSpace};
use super::segment::{self, SegmentHeader};
use super::{Id, id, uuid, uuids};
use crate::error::{Error, Result};
use crate::pg::scratch_folder::ScratchFolder;
use crate::pg::{interrupts, spi};
use pgrx::PgSqlErrorCode;
use rag_vector::Encoder;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

/// Fewest entries of a segment that gets codes: fewer are compared one by one.
pub(crate) const FEWEST_ENTRIES: u32 = 64;

/// Most chunks whose codes are made in memory, half a megabyte of them by most models; those of more in a file.
const MOST_IN_MEMORY: usize = 2_000;

/// Vectors that are in memory at a time.
const BATCH: usize = 1000;

/// Headers of the codes in a vector space of segments of these domains. Elevated: of vectors nobody else is told.
pub(crate) fn list(domains: &[Id], space: VectorSpace) -> Result<Vec<BlobHeader>> {
    spi::look_up(
        "SELECT domain_id, segment_id, bytes, sha256, xmin FROM rag.segment_codes
         WHERE domain_id = ANY ($1) AND vector_space_id = $2 AND part = 0",
        vec![uuids(domains.iter().copied()).into(), uuid(space.id).into()],
        header_of_row,
    )
}

/// Headers of all codes of a domain. Elevated.
pub(crate) fn of_domain(domain: Id) -> Result<Vec<BlobHeader>> {
    spi::read_snapshot(
        "SELECT domain_id, segment_id, bytes, sha256, xmin FROM rag.segment_codes WHERE domain_id = $1 AND part = 0",
        vec![uuid(domain).into()],
        header_of_row,
    )
}

fn header_of_row(row: &spi::Row) -> Result<BlobHeader> {
    blob::header_of_row(row, id(row.require(1)?), 2)
}

/// Makes the codes of a segment of these chunks from their vectors by a model, where they are enough. Elevated, or for
/// workers.
pub(super) fn write(domain: Id, segment: Id, model: &str, chunks: &[Id]) -> Result<()> {
    if chunks.len() < FEWEST_ENTRIES as usize {
        return Ok(());
    }
    let Some(space) = embedding::latest_vector_space(model)? else { return Ok(()) };
    let encoded = Encoded::of(domain, space, chunks)?;
    let measured = blob::measure(encoded.reader()?)?;
    blob::store_parts(encoded.reader()?, |part, data| {
        spi::run(
            "INSERT INTO rag.segment_codes (domain_id, segment_id, part, vector_space_id, bytes, sha256, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            vec![
                uuid(domain).into(),
                uuid(segment).into(),
                part.into(),
                uuid(space.id).into(),
                (measured.bytes as i64).into(),
                measured.sha256.to_vec().into(),
                data.into(),
            ],
        )
    })
}

/// A blob of codes before it is stored: its beginning, and the larger rest.
struct Encoded {
    beginning: Vec<u8>,
    rest: Rest,
}

enum Rest {
    InMemory(Vec<u8>),
    /// In the file `rest` of the folder.
    InFile(ScratchFolder),
}

impl Encoded {
    fn of(domain: Id, space: VectorSpace, chunks: &[Id]) -> Result<Self> {
        if chunks.len() <= MOST_IN_MEMORY {
            let (beginning, rest) = encode(domain, space, chunks, Vec::new())?;
            return Ok(Self { beginning, rest: Rest::InMemory(rest) });
        }
        let folder = ScratchFolder::new()?;
        let file = BufWriter::new(File::create_new(folder.path().join(REST)).map_err(of_file)?);
        let (beginning, mut file) = encode(domain, space, chunks, file)?;
        file.flush().map_err(of_file)?;
        Ok(Self { beginning, rest: Rest::InFile(folder) })
    }

    /// All of it, from the beginning.
    fn reader(&self) -> Result<impl Read> {
        let rest: Box<dyn Read> = match &self.rest {
            Rest::InMemory(rest) => Box::new(rest.as_slice()),
            Rest::InFile(folder) => Box::new(File::open(folder.path().join(REST)).map_err(of_file)?),
        };
        Ok(self.beginning.as_slice().chain(rest))
    }
}

const REST: &str = "rest";

fn of_file(error: io::Error) -> Error {
    Error::new(PgSqlErrorCode::ERRCODE_IO_ERROR, format!("a file of vector codes cannot be used: {error}"))
}

fn encode<W: Write>(domain: Id, space: VectorSpace, chunks: &[Id], rest: W) -> Result<(Vec<u8>, W)> {
    let sample: Vec<Id> = chunks.iter().copied().step_by(chunks.len().div_ceil(BATCH)).collect();
    let sample = embedding::latest_of_chunks(domain, space, &sample)?;
    let centre = rag_vector::centre(sample.values().map(Vec::as_slice));
    let mut encoder = Encoder::new(centre.unwrap_or_else(|| vec![0.0; space.dimension as usize]), rest);
    for batch in chunks.chunks(BATCH) {
        interrupts::check();
        let vectors = embedding::latest_of_chunks(domain, space, batch)?;
        for chunk in batch {
            encoder.push(vectors.get(chunk).map(Vec::as_slice)).map_err(of_file)?;
        }
    }
    Ok(encoder.finish())
}

/// Deletes the codes of segments. Elevated, or for workers.
pub(super) fn delete(domain: Id, segments: &[Id]) -> Result<()> {
    spi::run(
        "DELETE FROM rag.segment_codes WHERE domain_id = $1 AND segment_id = ANY ($2)",
        vec![uuid(domain).into(), uuids(segments.iter().copied()).into()],
    )
}

/// Deletes all codes of a domain, to be made anew by a worker: vectors have come to chunks that were there before.
/// Waits for whoever makes some at the moment, from what was committed before. Elevated, or for workers.
pub(crate) fn forget(domain: Id) -> Result<()> {
    spi::run(
        "SELECT FROM rag.segment WHERE domain_id = $1 AND part = 0 ORDER BY id FOR NO KEY UPDATE",
        vec![uuid(domain).into()],
    )?;
    spi::run("DELETE FROM rag.segment_codes WHERE domain_id = $1", vec![uuid(domain).into()])
}

/// A segment whose codes are to be made.
#[derive(Debug, Clone)]
pub(crate) struct MissingCodes {
    domain: Id,
    segment: Id,
    model: String,
}

impl MissingCodes {
    /// Where the next look may begin.
    pub(crate) fn place(&self) -> (Id, Id) {
        (self.domain, self.segment)
    }
}

/// The next segment, after a place in the order of domain and id, that has no codes in the space of its collection's
/// model. For workers.
pub(crate) fn missing(after: (Id, Id)) -> Result<Option<MissingCodes>> {
    spi::read_latest_one(
        "SELECT s.domain_id, s.id, c.model
         FROM rag.segment s JOIN rag.domain d ON d.id = s.domain_id JOIN rag.collection c ON c.id = d.collection_id
         JOIN rag.vector_space v ON v.model = c.model
         WHERE s.part = 0 AND s.entries >= $3 AND (s.domain_id, s.id) > ($1, $2)
           AND NOT EXISTS (SELECT FROM rag.segment_codes k
                           WHERE k.domain_id = s.domain_id AND k.segment_id = s.id AND k.part = 0
                             AND k.vector_space_id = v.id)
         ORDER BY s.domain_id, s.id LIMIT 1",
        vec![uuid(after.0).into(), uuid(after.1).into(), (FEWEST_ENTRIES as i32).into()],
        |row| {
            Ok(MissingCodes {
                domain: id(row.require(1)?),
                segment: id(row.require(2)?),
                model: row.require(3)?,
            })
        },
    )
}

/// Makes missing codes; not those of a segment that somebody is replacing. `chunks` tells what is in it. For workers.
pub(crate) fn make(
    missing: &MissingCodes,
    chunks: impl FnOnce(&SegmentHeader) -> Result<Vec<Id>>,
) -> Result<()> {
    // Against `forget`, and against merges.
    let header: Option<SegmentHeader> = segment::lock_to_read(missing.domain, missing.segment)?;
    let Some(header) = header else { return Ok(()) };
    let chunks = chunks(&header)?;
    delete(missing.domain, &[missing.segment])?;
    write(missing.domain, missing.segment, &missing.model, &chunks)
}
