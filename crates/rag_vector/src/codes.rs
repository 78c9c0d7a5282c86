//! A blob opened for reading.

use crate::Error;
use crate::fine::row_bytes;
use crate::layout::{HEADER_BYTES, Header};
use std::ops::Deref;
use std::sync::Arc;

/// Where the bytes of a blob are: on the heap, or a mapped file.
pub type Bytes = Arc<dyn Deref<Target = [u8]> + Send + Sync>;

/// The codes of a set of vectors, immutable and cheap to clone.
#[derive(Clone)]
pub struct Codes {
    bytes: Bytes,
    header: Header,
}

impl Codes {
    /// Opens a blob and checks all of it: one pass over the bytes, at the speed of CRC-32.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that [`crate::Encoder`] has not made or that were changed since,
    /// [`Error::FormatVersion`] for another version's layout.
    pub fn open(bytes: impl Deref<Target = [u8]> + Send + Sync + 'static) -> Result<Codes, Error> {
        let header = Header::read(&bytes)?;
        Ok(Codes { bytes: Arc::new(bytes), header })
    }

    /// How many entries there are, absent ones included.
    pub fn len(&self) -> usize {
        self.header.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dimensions of the vectors.
    pub fn dimension(&self) -> usize {
        self.header.dimension
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    pub(crate) fn centre(&self) -> Vec<f32> {
        let bytes = &self.bytes[HEADER_BYTES..HEADER_BYTES + 4 * self.header.dimension];
        let (values, _) = bytes.as_chunks::<4>();
        values.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }

    /// The blocks, one after the other.
    pub(crate) fn blocks(&self) -> &[u8] {
        &self.bytes[self.header.blocks_at()..self.header.rows_at()]
    }

    /// The row of an entry.
    pub(crate) fn row(&self, entry: usize) -> &[u8] {
        let bytes = row_bytes(self.header.dimension);
        &self.bytes[self.header.rows_at() + entry * bytes..][..bytes]
    }
}
