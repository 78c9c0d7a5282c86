//! Immutable bytes that are kept as rows, in parts: keyword segments, and the codes of their vectors.

use super::{Id, id, uuid, uuids};
use crate::error::{Error, Result};
use crate::pg::{spi, transaction};
use rag_core::hash::sha256;
use std::collections::HashMap;

/// Most bytes of one row.
const PART_BYTES: usize = 4 * 1024 * 1024;

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

    fn load(self) -> &'static str {
        match self {
            Self::Segment => "SELECT data FROM rag.segment WHERE domain_id = $1 AND id = $2 ORDER BY part",
            Self::Codes => {
                "SELECT data FROM rag.segment_codes WHERE domain_id = $1 AND segment_id = $2 ORDER BY part"
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

/// All bytes under the active snapshot, checked against their SHA-256.
pub(crate) fn load(kind: BlobKind, header: &BlobHeader) -> Result<Vec<u8>> {
    let args = vec![uuid(header.domain).into(), uuid(header.id).into()];
    checked(kind, header, spi::read_snapshot(kind.load(), args, |row| row.require::<Vec<u8>>(1))?)
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

/// [`load`] of bytes that were found under a later snapshot than the active one. For merges.
pub(crate) fn load_latest(kind: BlobKind, header: &BlobHeader) -> Result<Vec<u8>> {
    let args = vec![uuid(header.domain).into(), uuid(header.id).into()];
    checked(kind, header, spi::read_latest(kind.load(), args, |row| row.require::<Vec<u8>>(1))?)
}

fn checked(kind: BlobKind, header: &BlobHeader, parts: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    let bytes = parts.concat();
    if sha256(&bytes) != header.sha256 {
        return Err(Error::damaged(format!("a {}'s bytes do not match their SHA-256", kind.noun()))
            .detail(format!("Segment {} has {} of {} bytes.", uuid(header.id), bytes.len(), header.bytes))
            .hint(REPAIR));
    }
    Ok(bytes)
}

/// Bytes in parts as large as a row may be; at least one.
pub(super) fn parts(bytes: &[u8]) -> Vec<&[u8]> {
    if bytes.is_empty() { vec![bytes] } else { bytes.chunks(PART_BYTES).collect() }
}

/// SHA-256 of everything that this database has, to tell which cached files are still of use.
pub(crate) fn all_digests() -> Result<Vec<Vec<u8>>> {
    let mut digests = Vec::new();
    for kind in [BlobKind::Segment, BlobKind::Codes] {
        digests.extend(spi::read_latest(kind.digests(), vec![], |row| row.require::<Vec<u8>>(1))?);
    }
    Ok(digests)
}
