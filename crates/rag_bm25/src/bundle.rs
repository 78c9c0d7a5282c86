//! The layout of a blob and its checks.
//!
//! All numbers are little-endian. The header names everything that follows it and ends with a checksum of
//! itself; the checksum of the rest stands in the header.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic |
//! | 4, 4 | format version, analyser version |
//! | 2, 2 | language code, number of sections |
//! | 4 | entries |
//! | 8, 8 | terms in all texts, terms in titles that are kept apart |
//! | 8 | length of the blob |
//! | 4, 4 | CRC-32 of everything after the header, 0 |
//! | 24 each | section table: kind (4), 0 (4), offset (8), length (8) |
//! | 4, 4 | CRC-32 of the header so far, 0 |
//!
//! Sections lie in the order of the table without gaps: the ids (16 bytes each, most significant first), the
//! lengths of both fields in terms (4 + 4 bytes per entry), and tantivy's files as tantivy wrote them.

use std::io::{self, Read};
use std::ops::Range;

use tantivy::HasLen;
use tantivy::directory::FileSlice;

use crate::interrupt::{GoesOn, check};
use crate::{Error, Language};

/// The version of the layout. A blob of another version does not open.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"ragbm25\0";
const FIXED_BYTES: usize = 56;
const ROW_BYTES: usize = 24;
const CHECK_BYTES: usize = 8;
pub(crate) const ID_BYTES: usize = 16;
pub(crate) const LENGTHS_BYTES: usize = 8;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Section {
    Ids,
    Lengths,
    Terms,
    Postings,
    Positions,
    FieldNorms,
    FastFields,
    Store,
}

impl Section {
    pub(crate) const ALL: [Section; 8] = [
        Section::Ids,
        Section::Lengths,
        Section::Terms,
        Section::Postings,
        Section::Positions,
        Section::FieldNorms,
        Section::FastFields,
        Section::Store,
    ];
}

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) analyser_version: u32,
    pub(crate) language: Language,
    pub(crate) entries: u32,
    /// Terms of each field in all entries.
    pub(crate) tokens: [u64; 2],
    /// CRC-32 of everything after the header.
    pub(crate) checksum: u32,
    /// Where each section lies in the blob.
    pub(crate) sections: [Range<usize>; Section::ALL.len()],
}

impl Header {
    /// Where a section lies in the blob, in bytes.
    pub(crate) fn section(&self, section: Section) -> Range<usize> {
        self.sections[section as usize].clone()
    }

    /// Reads and checks the header: everything but the checksum of the sections.
    pub(crate) fn read(blob: &[u8]) -> Result<Header, Error> {
        let mut reader = HeaderReader { bytes: blob, at: 0 };
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(corrupt("it does not start with the magic bytes"));
        }
        let found = reader.u32()?;
        if found != FORMAT_VERSION {
            return Err(Error::FormatVersion { found, expected: FORMAT_VERSION });
        }
        let analyser_version = reader.u32()?;
        let language = reader.u16()?;
        if usize::from(reader.u16()?) != Section::ALL.len() {
            return Err(corrupt("the number of sections is wrong"));
        }
        let entries = reader.u32()?;
        let tokens = [reader.u64()?, reader.u64()?];
        let length = reader.u64()?;
        let checksum = reader.u32()?;
        reader.u32()?;
        let mut sections: [Range<usize>; Section::ALL.len()] = Default::default();
        let mut end = header_bytes();
        for (kind, section) in sections.iter_mut().enumerate() {
            let (named, _, offset, size) = (reader.u32()?, reader.u32()?, reader.u64()?, reader.u64()?);
            let next = usize::try_from(size).ok().and_then(|size| end.checked_add(size));
            let Some(next) = next.filter(|_| named as usize == kind && offset == end as u64) else {
                return Err(corrupt("the table of sections is wrong"));
            };
            *section = end..next;
            end = next;
        }
        let named = crc32fast::hash(&blob[..reader.at]);
        if reader.u32()? != named || reader.u32()? != 0 {
            return Err(corrupt("the checksum of the header is wrong"));
        }
        if length != blob.len() as u64 || end != blob.len() {
            return Err(corrupt(&format!("it has {} bytes, its header names {length}", blob.len())));
        }
        let count = entries as usize;
        if sections[Section::Ids as usize].len() != count * ID_BYTES
            || sections[Section::Lengths as usize].len() != count * LENGTHS_BYTES
        {
            return Err(corrupt("the table of entries is wrong"));
        }
        let language = Language::from_code(language).ok_or_else(|| corrupt("the language is unknown"))?;
        Ok(Header { analyser_version, language, entries, tokens, checksum, sections })
    }

    /// Whether the sections are what was written. Reads the whole blob.
    pub(crate) fn verify(&self, blob: &[u8]) -> Result<(), Error> {
        if crc32fast::hash(&blob[header_bytes()..]) != self.checksum {
            return Err(corrupt("the checksum of the sections is wrong"));
        }
        Ok(())
    }
}

/// What is written besides tantivy's files.
pub(crate) struct Contents {
    pub(crate) analyser_version: u32,
    pub(crate) language: Language,
    pub(crate) ids: Vec<u128>,
    /// Lengths of the fields in terms, one pair per entry.
    pub(crate) lengths: Vec<[u32; 2]>,
}

/// A blob that is not put together yet: its pieces one after the other.
pub(crate) struct Pieces {
    /// The header, then the sections in their order.
    pieces: Vec<Piece>,
    len: usize,
}

enum Piece {
    Bytes(Vec<u8>),
    File(FileSlice),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::File(file) => file.len(),
        }
    }

    fn read(&self, range: Range<usize>, into: &mut [u8]) -> io::Result<()> {
        match self {
            Piece::Bytes(bytes) => into.copy_from_slice(&bytes[range]),
            Piece::File(file) => into.copy_from_slice(&file.read_bytes_slice(range)?),
        }
        Ok(())
    }
}

impl Pieces {
    /// Puts the header before what is written. `files` are tantivy's, by section. Reads all of them once, for the
    /// checksum.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and what reading a file says.
    pub(crate) fn new(
        contents: &Contents,
        files: &[(Section, FileSlice)],
        goes_on: GoesOn,
    ) -> Result<Pieces, Error> {
        let mut pieces = Vec::with_capacity(1 + Section::ALL.len());
        for section in Section::ALL {
            pieces.push(match section {
                Section::Ids => Piece::Bytes(contents.ids.iter().flat_map(|id| id.to_be_bytes()).collect()),
                Section::Lengths => {
                    let lengths = contents.lengths.iter().flatten();
                    Piece::Bytes(lengths.flat_map(|length| length.to_le_bytes()).collect())
                }
                _ => {
                    let file = files.iter().find(|(kind, _)| *kind == section);
                    file.map_or(Piece::Bytes(Vec::new()), |(_, file)| Piece::File(file.clone()))
                }
            });
        }
        let len = pieces.iter().map(Piece::len).sum();
        let mut body = Pieces { pieces, len };
        let header = body.header(contents, body.checksum(goes_on)?);
        body.len += header.len();
        body.pieces.insert(0, Piece::Bytes(header));
        Ok(body)
    }

    /// Bytes of all pieces.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Reads from the beginning.
    pub(crate) fn reader(&self) -> PieceReader<'_> {
        PieceReader { pieces: &self.pieces, at: 0 }
    }

    /// All of it.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(self.len);
        self.reader().read_to_end(&mut bytes).map_err(Error::File)?;
        Ok(bytes)
    }

    fn checksum(&self, goes_on: GoesOn) -> Result<u32, Error> {
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = vec![0; READ_AT_ONCE.min(self.len)];
        let mut reader = self.reader();
        loop {
            check(goes_on)?;
            match reader.read(&mut buffer).map_err(Error::File)? {
                0 => return Ok(hasher.finalize()),
                read => hasher.update(&buffer[..read]),
            }
        }
    }

    /// The header of these sections.
    fn header(&self, contents: &Contents, checksum: u32) -> Vec<u8> {
        let tokens = |field: usize| contents.lengths.iter().map(|pair| u64::from(pair[field])).sum::<u64>();
        let mut header = Vec::with_capacity(header_bytes());
        header.extend(MAGIC);
        header.extend(FORMAT_VERSION.to_le_bytes());
        header.extend(contents.analyser_version.to_le_bytes());
        header.extend(contents.language.code().to_le_bytes());
        header.extend((Section::ALL.len() as u16).to_le_bytes());
        header.extend((contents.ids.len() as u32).to_le_bytes());
        header.extend(tokens(0).to_le_bytes());
        header.extend(tokens(1).to_le_bytes());
        header.extend((header_bytes() as u64 + self.len as u64).to_le_bytes());
        header.extend(checksum.to_le_bytes());
        header.extend(0u32.to_le_bytes());
        let mut offset = header_bytes() as u64;
        for (kind, piece) in (0u32..).zip(&self.pieces) {
            header.extend(kind.to_le_bytes());
            header.extend(0u32.to_le_bytes());
            header.extend(offset.to_le_bytes());
            header.extend((piece.len() as u64).to_le_bytes());
            offset += piece.len() as u64;
        }
        header.extend(crc32fast::hash(&header).to_le_bytes());
        header.extend(0u32.to_le_bytes());
        header
    }
}

/// Bytes of a file that are in memory at a time.
const READ_AT_ONCE: usize = 64 * 1024;

/// Reads the pieces of a blob as if it were put together.
pub(crate) struct PieceReader<'a> {
    pieces: &'a [Piece],
    /// Place in the first of the pieces that are left.
    at: usize,
}

impl Read for PieceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some((first, rest)) = self.pieces.split_first() {
            let count = (first.len() - self.at).min(buffer.len()).min(READ_AT_ONCE);
            if count > 0 || buffer.is_empty() {
                first.read(self.at..self.at + count, &mut buffer[..count])?;
                self.at += count;
                return Ok(count);
            }
            (self.pieces, self.at) = (rest, 0);
        }
        Ok(0)
    }
}

const fn header_bytes() -> usize {
    FIXED_BYTES + Section::ALL.len() * ROW_BYTES + CHECK_BYTES
}

fn corrupt(reason: &str) -> Error {
    Error::Corrupt(reason.to_owned())
}

struct HeaderReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> HeaderReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let taken =
            self.bytes.get(self.at..self.at + count).ok_or_else(|| corrupt("it ends within the header"))?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}
