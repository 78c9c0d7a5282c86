//! The bytes of a blob and its checks.
//!
//! All numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic |
//! | 4, 4 | format version, dimension D |
//! | 4, 4 | entries, CRC-32 of everything after the header |
//! | 8 | length of the blob |
//! | 4, 4 | CRC-32 of the header so far, 0 |
//! | 4 D | the centre, single precision |
//! | blocks | [`BLOCK`] entries each, the last one filled up with absent ones |
//! | rows | one per entry: see `fine` |
//!
//! A block has the scales and the offsets of its entries (single precision), then for each 64 dimensions a word of bits
//! per entry, so that a vector register takes the same dimensions of all its entries. With x the vector of length 1, c
//! the centre and o = x - c, the bit of a dimension tells whether o is positive there, the scale is |o|² / Σ|oᵢ| and the
//! offset o · c; an absent entry has the offset -∞.

use crate::Error;
use crate::fine::row_bytes;

/// The version of the layout. A blob of another version does not open.
pub const FORMAT_VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"ragvec\0\0";
pub(crate) const HEADER_BYTES: usize = 40;

/// Entries of a block.
pub(crate) const BLOCK: usize = 8;

/// Most dimensions of a vector.
const MOST_DIMENSIONS: usize = 65_536;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dimension: usize,
    pub(crate) entries: usize,
}

impl Header {
    /// Words of bits per entry.
    pub(crate) fn words(self) -> usize {
        self.dimension.div_ceil(64)
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(self) -> usize {
        BLOCK * (4 + 4 + 8 * self.words())
    }

    /// Where the blocks begin, and where the rows do.
    pub(crate) fn blocks_at(self) -> usize {
        HEADER_BYTES + 4 * self.dimension
    }

    pub(crate) fn rows_at(self) -> usize {
        self.blocks_at() + self.entries.div_ceil(BLOCK) * self.block_bytes()
    }

    /// Length of the blob.
    pub(crate) fn blob_bytes(self) -> usize {
        self.rows_at() + self.entries * row_bytes(self.dimension)
    }

    /// The header, and what stands before the rows, whose checksum so far is this.
    pub(crate) fn write(self, body: &[u8], rows: &crc32fast::Hasher) -> Vec<u8> {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(body);
        checksum.combine(rows);
        let mut blob = Vec::with_capacity(HEADER_BYTES + body.len());
        blob.extend(MAGIC);
        blob.extend(FORMAT_VERSION.to_le_bytes());
        blob.extend((self.dimension as u32).to_le_bytes());
        blob.extend((self.entries as u32).to_le_bytes());
        blob.extend(checksum.finalize().to_le_bytes());
        blob.extend((self.blob_bytes() as u64).to_le_bytes());
        blob.extend(crc32fast::hash(&blob).to_le_bytes());
        blob.extend([0; 4]);
        blob.extend(body);
        blob
    }

    /// Reads the header and checks the whole blob.
    pub(crate) fn read(blob: &[u8]) -> Result<Header, Error> {
        if blob.len() < HEADER_BYTES {
            return Err(corrupt("it ends within the header"));
        }
        if blob[..8] != MAGIC {
            return Err(corrupt("it does not start with the magic bytes"));
        }
        let number = |at: usize| u32::from_le_bytes([blob[at], blob[at + 1], blob[at + 2], blob[at + 3]]);
        let found = number(8);
        if found != FORMAT_VERSION {
            return Err(Error::FormatVersion { found, expected: FORMAT_VERSION });
        }
        if crc32fast::hash(&blob[..32]) != number(32) || number(36) != 0 {
            return Err(corrupt("the checksum of the header is wrong"));
        }
        let header = Header { dimension: number(12) as usize, entries: number(16) as usize };
        let length = u64::from(number(24)) | u64::from(number(28)) << 32;
        if header.dimension == 0
            || header.dimension > MOST_DIMENSIONS
            || length != blob.len() as u64
            || blob.len() != header.blob_bytes()
        {
            return Err(corrupt(&format!("it has {} bytes, its header names {length}", blob.len())));
        }
        if crc32fast::hash(&blob[HEADER_BYTES..]) != number(20) {
            return Err(corrupt("the checksum of the codes is wrong"));
        }
        Ok(header)
    }
}

fn corrupt(reason: &str) -> Error {
    Error::Corrupt(reason.to_owned())
}
