//! Immutable bytes that are kept as rows, in parts: keyword segments, and the codes of their vectors.

use super::{Id, id, uuid, uuids};
use crate::error::{Error, Result};
use crate::pg::{interrupts, memory, spi, transaction};
use pgrx::PgSqlErrorCode;
use rag_core::hash::{Hasher, sha256};
use std::collections::HashMap;
use std::io::Read;

/// Most bytes of one row.
const PART_BYTES: u64 = 4 * 1024 * 1024;

/// What the bytes are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobKind {
    /// Rows of rag.segment.
    Segment,
    /// Rows of rag.segment_codes.
    Codes,
}

/// What is known of bytes without reading them.
#[derive(Debug, Clone)]
pub(crate) struct BlobHeader {
    pub(crate) domain: Id,
    /// Of the segment.
    pub(crate) id: Id,
    pub(crate) bytes: u64,
    pub(crate) sha256: [u8; 32],
    /// Written by the caller's own open transaction, so it may yet disappear.
    pub(crate) is_uncommitted: bool,
}

impl AsRef<BlobHeader> for BlobHeader {
    fn as_ref(&self) -> &BlobHeader {
        self
    }
}

/// What to do about damage.
pub(crate) const REPAIR: &str = "The documents' owner mends it by SELECT * FROM rag_verify(repair => true), a superuser with rag_ext.all_domains = on for all owners.";

impl BlobKind {
    /// What a user is told.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Segment => "keyword segment",
            Self::Codes => "keyword segment's vector codes",
        }
    }

    fn read_part(self) -> &'static str {
        match self {
            Self::Segment => "SELECT data FROM rag.segment WHERE domain_id = $1 AND id = $2 AND part = $3",
            Self::Codes => {
                "SELECT data FROM rag.segment_codes WHERE domain_id = $1 AND segment_id = $2 AND part = $3"
            }
        }
    }

    fn load_many(self) -> &'static str {
        match self {
            Self::Segment => {
                "SELECT s.id, s.data FROM unnest($1::uuid[], $2::uuid[]) w (domain_id, id)
                 JOIN rag.segment s ON s.domain_id = w.domain_id AND s.id = w.id ORDER BY s.id, s.part"
            }
            Self::Codes => {
                "SELECT s.segment_id, s.data FROM unnest($1::uuid[], $2::uuid[]) w (domain_id, id)
                 JOIN rag.segment_codes s ON s.domain_id = w.domain_id AND s.segment_id = w.id
                 ORDER BY s.segment_id, s.part"
            }
        }
    }

    fn digests(self) -> &'static str {
        match self {
            Self::Segment => "SELECT DISTINCT sha256 FROM rag.segment WHERE part = 0",
            Self::Codes => "SELECT DISTINCT sha256 FROM rag.segment_codes WHERE part = 0",
        }
    }
}

/// Of a row's id, number of bytes, digest and xmin, which stand from this column on.
pub(super) fn header_of_row(row: &spi::Row, domain: Id, first: i32) -> Result<BlobHeader> {
    let digest: &[u8] = row.require(first + 2)?;
    let xmin: crate::pg::TransactionId = row.require(first + 3)?;
    Ok(BlobHeader {
        domain,
        id: id(row.require(first)?),
        bytes: row.require::<i64>(first + 1)? as u64,
        // One that is damaged matches no bytes.
        sha256: digest.try_into().unwrap_or_default(),
        is_uncommitted: transaction::is_own_xid(xmin.into_inner()),
    })
}

/// Which rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Those of the active snapshot.
    Snapshot,
    /// What was committed last: for bytes that were found under a later snapshot than the active one.
    Latest,
}

/// Goes over all bytes, part by part, and then says whether they match their SHA-256: an error if they do not.
pub(crate) fn read(
    kind: BlobKind,
    header: &BlobHeader,
    view: View,
    mut each: impl FnMut(&[u8]),
) -> Result<()> {
    let mut hasher = Hasher::default();
    let mut bytes = 0;
    let mut part = 0;
    while part == 0 || bytes < header.bytes {
        interrupts::check();
        let args = vec![uuid(header.domain).into(), uuid(header.id).into(), part.into()];
        let take = |row: &spi::Row| {
            let data: &[u8] = row.require(1)?;
            hasher.update(data);
            bytes += data.len() as u64;
            each(data);
            Ok(())
        };
        let found = match view {
            View::Snapshot => spi::read_snapshot_one(kind.read_part(), args, take)?,
            View::Latest => spi::read_latest_one(kind.read_part(), args, take)?,
        };
        if found.is_none() {
            break;
        }
        part += 1;
    }
    if hasher.finish() == header.sha256 { Ok(()) } else { Err(mismatch(kind, header, bytes)) }
}

/// All bytes, checked against their SHA-256.
pub(crate) fn load(kind: BlobKind, header: &BlobHeader, view: View) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // What a damaged row says may be more than there is memory.
    let _ = bytes.try_reserve_exact(header.bytes as usize);
    read(kind, header, view, |part| bytes.extend_from_slice(part))?;
    Ok(bytes)
}

/// [`load`] of several at once, in their order: a caller may see thousands of small ones, and each statement computes
/// what they may see. A damaged one does not stop the others.
pub(crate) fn load_many(kind: BlobKind, headers: &[&BlobHeader]) -> Result<Vec<Result<Vec<u8>>>> {
    let rows = spi::read_snapshot(
        kind.load_many(),
        vec![uuids(headers.iter().map(|h| h.domain)).into(), uuids(headers.iter().map(|h| h.id)).into()],
        |row| Ok((id(row.require(1)?), row.require::<Vec<u8>>(2)?)),
    )?;
    let mut parts: HashMap<Id, Vec<Vec<u8>>> = HashMap::new();
    for (blob, data) in rows {
        parts.entry(blob).or_default().push(data);
    }
    Ok(headers
        .iter()
        .map(|header| checked(kind, header, parts.remove(&header.id).unwrap_or_default()))
        .collect())
}

fn checked(kind: BlobKind, header: &BlobHeader, parts: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    let bytes = parts.concat();
    if sha256(&bytes) == header.sha256 { Ok(bytes) } else { Err(mismatch(kind, header, bytes.len() as u64)) }
}

fn mismatch(kind: BlobKind, header: &BlobHeader, bytes: u64) -> Error {
    Error::damaged(format!("a {}'s bytes do not match their SHA-256", kind.noun()))
        .detail(format!("Segment {} has {bytes} of {} bytes.", uuid(header.id), header.bytes))
        .hint(REPAIR)
}

/// Bytes that are about to be stored.
pub(super) struct Measured {
    pub(super) bytes: u64,
    pub(super) sha256: [u8; 32],
}

impl Measured {
    /// Rows that they take.
    pub(super) fn parts(&self) -> u64 {
        self.bytes.div_ceil(PART_BYTES).max(1)
    }
}

/// Reads to the end.
pub(super) fn measure(mut reader: impl Read) -> Result<Measured> {
    let (mut bytes, mut hasher) = (0, Hasher::default());
    loop {
        let part = next_part(&mut reader)?;
        if part.is_empty() {
            return Ok(Measured { bytes, sha256: hasher.finish() });
        }
        bytes += part.len() as u64;
        hasher.update(&part);
    }
}

/// Stores what a reader gives in parts as large as a row may be, at least one: `store` takes the part's number and its
/// bytes. Of these no more than two are in memory.
pub(super) fn store_parts(
    mut reader: impl Read,
    mut store: impl FnMut(i32, Vec<u8>) -> Result<()>,
) -> Result<()> {
    for number in 0.. {
        let part = next_part(&mut reader)?;
        if part.is_empty() && number > 0 {
            break;
        }
        memory::scoped(|| store(number, part))?;
    }
    Ok(())
}

fn next_part(reader: &mut impl Read) -> Result<Vec<u8>> {
    interrupts::check();
    let mut part = Vec::new();
    match reader.take(PART_BYTES).read_to_end(&mut part) {
        Ok(_) => Ok(part),
        Err(error) => Err(Error::new(PgSqlErrorCode::ERRCODE_IO_ERROR, error.to_string())),
    }
}

/// SHA-256 of everything that this database has, to tell which cached files are still of use.
pub(crate) fn all_digests() -> Result<Vec<Vec<u8>>> {
    let mut digests = Vec::new();
    for kind in [BlobKind::Segment, BlobKind::Codes] {
        digests.extend(spi::read_latest(kind.digests(), vec![], |row| row.require::<Vec<u8>>(1))?);
    }
    Ok(digests)
}
