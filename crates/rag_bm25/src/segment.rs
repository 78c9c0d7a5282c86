//! A blob opened for reading.

use std::fmt;
use std::sync::Arc;

use stable_deref_trait::StableDeref;
use tantivy::SegmentReader;
use tantivy::directory::OwnedBytes;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;

use crate::bundle::{Header, ID_BYTES, LENGTHS_BYTES, Section};
use crate::index::{self, FIELDS, Mounted, TEXT, TITLE};
use crate::weight::BlockBounds;
use crate::{Error, Language};

/// An immutable segment: cheap to clone, to be shared between threads, and everything that can be
/// parsed beforehand is. Takes about 2 KB besides its bytes.
#[derive(Clone)]
pub struct Segment {
    inner: Arc<Inner>,
}

struct Inner {
    bytes: OwnedBytes,
    header: Header,
    fields: [FieldReader; FIELDS],
}

/// What reading one field takes.
pub(crate) struct FieldReader {
    pub(crate) index: Arc<InvertedIndexReader>,
    pub(crate) norms: FieldNormReader,
    pub(crate) bounds: BlockBounds,
}

impl Segment {
    /// Opens a blob and checks all of it: one pass over the bytes, at the speed of CRC-32. The bytes may be a
    /// `Vec<u8>`, an `Arc<[u8]>` or a file mapped by memmap2 (with its feature `stable_deref_trait`).
    ///
    /// # Errors
    /// [`Error::Corrupt`] for bytes that were not made by [`crate::build`] or [`crate::merge`] or were
    /// changed since; [`Error::FormatVersion`] for another version's layout.
    pub fn open(bytes: impl StableDeref<Target = [u8]> + Send + Sync + 'static) -> Result<Segment, Error> {
        let bytes = OwnedBytes::new(bytes);
        let header = Header::read(&bytes)?;
        header.verify(&bytes)?;
        Segment::from_parts(bytes, header)
    }

    /// Opens a blob and checks its header only, so that a mapped file is not read through. For bytes that are
    /// known to be whole: with damage past the header, this call or a search may panic.
    ///
    /// # Errors
    /// As [`Segment::open`], for what the header and the length can tell.
    pub fn open_trusted(
        bytes: impl StableDeref<Target = [u8]> + Send + Sync + 'static,
    ) -> Result<Segment, Error> {
        let bytes = OwnedBytes::new(bytes);
        let header = Header::read(&bytes)?;
        Segment::from_parts(bytes, header)
    }

    fn from_parts(bytes: OwnedBytes, header: Header) -> Result<Segment, Error> {
        let mounted = Mounted::new(&bytes, &header)?;
        let reader = SegmentReader::open(mounted.segment())?;
        let open = |field: usize| -> Result<FieldReader, Error> {
            let index = reader.inverted_index(index::field(field))?;
            let norms = reader.get_fieldnorms_reader(index::field(field))?;
            let bounds = BlockBounds::new(index.total_num_tokens(), header.entries);
            Ok(FieldReader { index, norms, bounds })
        };
        let fields = [open(TEXT)?, open(TITLE)?];
        Ok(Segment { inner: Arc::new(Inner { bytes, header, fields }) })
    }

    /// Checks the bytes past the header against their checksum: for segments opened by
    /// [`Segment::open_trusted`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] when they were changed.
    pub fn verify(&self) -> Result<(), Error> {
        self.inner.header.verify(&self.inner.bytes)
    }

    /// How many entries the segment holds, dead ones included.
    pub fn len(&self) -> u32 {
        self.inner.header.entries
    }

    /// Whether the segment holds no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The language that its text was analysed in.
    pub fn language(&self) -> Language {
        self.inner.header.language
    }

    /// The version of the analyser that made its terms; see [`crate::ANALYSER_VERSION`].
    pub fn analyser_version(&self) -> u32 {
        self.inner.header.analyser_version
    }

    /// How many bytes the blob has.
    pub fn size(&self) -> usize {
        self.inner.bytes.len()
    }

    /// The ids of all entries, in the order they were built in.
    pub fn ids(&self) -> impl Iterator<Item = u128> + '_ {
        (0..self.len()).map(|entry| self.id(entry))
    }

    /// The id of an entry, which must be below [`Segment::len`].
    pub fn id(&self, entry: u32) -> u128 {
        u128::from_be_bytes(self.row(Section::Ids, entry))
    }

    /// The length of an entry's fields, in terms.
    pub(crate) fn lengths(&self, entry: u32) -> [u32; FIELDS] {
        let row: [u8; LENGTHS_BYTES] = self.row(Section::Lengths, entry);
        let number = |at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
        [number(0), number(4)]
    }

    fn row<const N: usize>(&self, section: Section, entry: u32) -> [u8; N] {
        const { assert!(N == ID_BYTES || N == LENGTHS_BYTES) };
        let start = self.inner.header.section(section).start + entry as usize * N;
        let mut row = [0; N];
        row.copy_from_slice(&self.inner.bytes[start..start + N]);
        row
    }

    /// Terms of each field in all entries.
    pub(crate) fn tokens(&self) -> [u64; FIELDS] {
        self.inner.header.tokens
    }

    pub(crate) fn field(&self, field: usize) -> &FieldReader {
        &self.inner.fields[field]
    }

    /// Makes the segment visible to tantivy's merge.
    pub(crate) fn mount(&self) -> Result<Mounted, Error> {
        Mounted::new(&self.inner.bytes, &self.inner.header)
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Segment").field("header", &self.inner.header).finish_non_exhaustive()
    }
}
