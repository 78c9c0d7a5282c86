//! ZIP archives, also such as no archiver writes: with lying sizes, shared bytes, flags that promise encryption.

use flate2::write::DeflateEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use std::io::Write;

/// Compressed content of an entry with what its headers say about it.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) crc: u32,
    pub(crate) bytes: Vec<u8>,
    /// Size after unpacking, as the headers say it.
    pub(crate) size: u32,
}

impl Packed {
    pub(crate) fn stored(bytes: &[u8]) -> Self {
        Self { method: 0, flags: 0, crc: crc(bytes), bytes: bytes.to_vec(), size: bytes.len() as u32 }
    }

    pub(crate) fn deflated(bytes: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        let packed = encoder.finish().unwrap();
        Self { method: 8, flags: 0, crc: crc(bytes), bytes: packed, size: bytes.len() as u32 }
    }

    /// `head`, then `block` so many times, then `tail`, without ever being as long as that.
    pub(crate) fn repeated(head: &[u8], block: &[u8], times: usize, tail: &[u8]) -> Self {
        let mut sum = Crc::new();
        sum.update(head);
        let mut one = Crc::new();
        one.update(block);
        (0..times).for_each(|_| sum.combine(&one));
        let mut end = Crc::new();
        end.update(tail);
        sum.combine(&end);
        let bytes = repeated_deflate(head, block, times, tail);
        Self {
            method: 8,
            flags: 0,
            crc: sum.sum(),
            bytes,
            size: (head.len() + block.len() * times + tail.len()) as u32,
        }
    }
}

/// A raw deflate stream of `head`, `times` × `block` and `tail`. Each part is flushed fully, so that the packed block can
/// be repeated as it is.
pub(crate) fn repeated_deflate(head: &[u8], block: &[u8], times: usize, tail: &[u8]) -> Vec<u8> {
    let part = |bytes: &[u8], flush| {
        let mut packed = Vec::with_capacity(bytes.len() / 2 + 1024);
        Compress::new(Compression::best(), false).compress_vec(bytes, &mut packed, flush).unwrap();
        packed
    };
    let mut stream = part(head, FlushCompress::Full);
    let block = part(block, FlushCompress::Full);
    (0..times).for_each(|_| stream.extend_from_slice(&block));
    stream.extend(part(tail, FlushCompress::Finish));
    stream
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// An archive being written.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

impl Archive {
    /// Adds an entry and says where its local header stands.
    pub(crate) fn add(&mut self, name: &str, packed: &Packed) -> u32 {
        let offset = self.bytes.len() as u32;
        self.bytes.extend(b"PK\x03\x04\x14\0");
        self.bytes.extend(header(name, packed));
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(&packed.bytes);
        self.list(name, packed, offset);
        offset
    }

    /// Adds an entry to the directory alone, for bytes that stand at `offset` already.
    pub(crate) fn list(&mut self, name: &str, packed: &Packed, offset: u32) {
        self.directory.extend(b"PK\x01\x02\x14\0\x14\0");
        self.directory.extend(header(name, packed));
        // Comment, disk, internal and external attributes.
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries = self.entries.wrapping_add(1);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let start = self.bytes.len() as u32;
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend(self.entries.to_le_bytes());
        self.bytes.extend((self.directory.len() as u32).to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        self.bytes.extend([0; 2]);
        self.bytes
    }
}

/// What local header and directory say alike, from the flags on.
fn header(name: &str, packed: &Packed) -> Vec<u8> {
    let mut header = Vec::with_capacity(24);
    header.extend(packed.flags.to_le_bytes());
    header.extend(packed.method.to_le_bytes());
    // Midnight of 1980-01-01.
    header.extend([0, 0, 0x21, 0]);
    header.extend(packed.crc.to_le_bytes());
    header.extend((packed.bytes.len() as u32).to_le_bytes());
    header.extend(packed.size.to_le_bytes());
    header.extend((name.len() as u16).to_le_bytes());
    header.extend([0; 2]);
    header
}
