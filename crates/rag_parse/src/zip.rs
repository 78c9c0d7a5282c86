//! ZIP archives, read in memory and within limits.
//!
//! The container of the office formats and of EPUB. An entry is unpacked only when a parser asks for it by name,
//! so what an archive holds beside a document's parts costs nothing. What the parts mean is left to the formats.

use crate::{ParseError, ParseErrorKind};
use encoding_rs::{Encoding, UTF_8};
use flate2::read::DeflateDecoder;
use rag_core::option::quoted;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};
use std::cell::Cell;
use std::collections::HashMap;
use std::io::Read;

/// What an archive may hold.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Most entries.
    entries: usize,
    /// Most bytes of one entry, unpacked.
    entry_bytes: u64,
    /// Most bytes that are unpacked altogether.
    total_bytes: u64,
    /// Most bytes that one byte of an entry may become, once it is larger than `free_bytes`. Deflate can reach
    /// 1,032; the XML of office documents stays below 100.
    ratio: u64,
    /// Bytes of an entry up to which its ratio does not matter.
    free_bytes: u64,
}

const LIMITS: Limits = Limits {
    entries: 65_536,
    entry_bytes: 128 << 20,
    total_bytes: 256 << 20,
    ratio: 250,
    free_bytes: 8 << 20,
};

/// Longest name of an entry in bytes; entries with longer ones are passed over.
const MAX_NAME_BYTES: usize = 1_024;

/// An archive with its directory read.
pub(crate) struct Archive<'a> {
    archive: ZipSliceArchive<&'a [u8]>,
    entries: Vec<Entry>,
    /// Index of an entry by its name in lower case: the names of package parts are compared without case.
    by_name: HashMap<String, usize>,
    unpacked: Cell<u64>,
    limits: Limits,
}

struct Entry {
    name: String,
    at: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
}

impl<'a> Archive<'a> {
    /// Reads the directory.
    ///
    /// Errors: [`ParseErrorKind::NotParsable`] if it is missing or damaged, [`ParseErrorKind::LimitExceeded`]
    /// beyond 65,536 entries.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Self::open_within(bytes, LIMITS)
    }

    fn open_within(bytes: &'a [u8], limits: Limits) -> Result<Self, ParseError> {
        let archive = ZipArchive::from_slice(bytes).map_err(|_| {
            ParseError::new(
                ParseErrorKind::NotParsable,
                format!("archive of {} bytes has no directory at its end", bytes.len()),
                Some("The file is truncated or damaged."),
            )
        })?;
        let mut entries = Vec::new();
        let mut by_name = HashMap::new();
        for (index, record) in archive.entries().enumerate() {
            if index >= limits.entries {
                return Err(limit(format!("archive has more than {} entries", limits.entries)));
            }
            let record = record.map_err(|error| damaged("its directory", &error))?;
            let raw = record.file_path();
            let raw: &[u8] = raw.as_ref();
            if record.is_dir() || raw.len() > MAX_NAME_BYTES {
                continue;
            }
            let name = normalized(&String::from_utf8_lossy(raw));
            // Of entries with the same name, the first counts.
            by_name.entry(name.to_lowercase()).or_insert(entries.len());
            let flags = record.flags();
            let method = record.compression_method();
            entries.push(Entry {
                name,
                at: record.wayfinder(),
                method,
                is_encrypted: flags.is_encrypted() || method == CompressionMethod::AES,
            });
        }
        Ok(Self { archive, entries, by_name, unpacked: Cell::new(0), limits })
    }

    /// Whether there is an entry of this name; case does not matter.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(&name.to_lowercase())
    }

    /// Unpacks an entry; `None` if there is none of this name. Case does not matter.
    ///
    /// Errors: [`ParseErrorKind::NotParsable`] if it is encrypted, packed by another method than deflate, or
    /// damaged; [`ParseErrorKind::LimitExceeded`] beyond 128 MiB, 250 times its size, or 256 MiB of
    /// the archive altogether.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ParseError> {
        let Some(index) = self.by_name.get(&name.to_lowercase()) else { return Ok(None) };
        let entry = &self.entries[*index];
        if entry.is_encrypted {
            return Err(ParseError::new(
                ParseErrorKind::NotParsable,
                format!("archive entry {} is encrypted", quoted(&entry.name)),
                Some("Remove the password."),
            ));
        }
        let found = self.archive.get_entry(entry.at).map_err(|error| damaged(&entry.name, &error))?;
        let packed = found.data();
        let content = match entry.method {
            CompressionMethod::STORE => self.take(entry, packed, packed.len())?,
            CompressionMethod::DEFLATE => self.take(entry, DeflateDecoder::new(packed), packed.len())?,
            other => {
                return Err(ParseError::new(
                    ParseErrorKind::NotParsable,
                    format!("archive entry {} is packed by method {}", quoted(&entry.name), other.as_u16()),
                    Some("Pack it with deflate."),
                ));
            }
        };
        let verified = found.verifying_reader(content.as_slice());
        std::io::copy(&mut { verified }, &mut std::io::sink())
            .map_err(|error| damaged(&entry.name, &error))?;
        Ok(Some(content))
    }

    /// Unpacks an entry of text: UTF-8, or UTF-16 with a byte order mark, as packages allow; what is wrong in it
    /// becomes U+FFFD.
    ///
    /// Errors as [`Self::read`].
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ParseError> {
        let Some(bytes) = self.read(name)? else { return Ok(None) };
        if Encoding::for_bom(&bytes).is_some() {
            return Ok(Some(UTF_8.decode(&bytes).0.into_owned()));
        }
        let text = String::from_utf8(bytes);
        Ok(Some(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())))
    }

    /// Reads as long as the limits allow; what an entry says of its own size is not relied upon.
    fn take(&self, entry: &Entry, reader: impl Read, packed: usize) -> Result<Vec<u8>, ParseError> {
        let Limits { entry_bytes, total_bytes, ratio, free_bytes, .. } = self.limits;
        let by_ratio = (packed as u64).saturating_mul(ratio).max(free_bytes);
        let left = total_bytes - self.unpacked.get();
        let allowed = by_ratio.min(entry_bytes).min(left);
        let claimed = entry.at.uncompressed_size_hint();
        let mut content = Vec::new();
        if claimed <= allowed {
            // An entry that lies about its size must not reserve memory for it.
            content.reserve(usize::try_from(claimed.min(4 << 20)).unwrap_or_default());
            reader
                .take(allowed + 1)
                .read_to_end(&mut content)
                .map_err(|error| damaged(&entry.name, &error))?;
        }
        if claimed > allowed || content.len() as u64 > allowed {
            let name = quoted(&entry.name);
            return Err(limit(if allowed == left {
                format!("archive holds more than {total_bytes} bytes when unpacked")
            } else if allowed == entry_bytes {
                format!("archive entry {name} has more than {entry_bytes} bytes when unpacked")
            } else {
                format!("archive entry {name} of {packed} bytes unpacks to more than {ratio} times that")
            }));
        }
        self.unpacked.set(self.unpacked.get() + content.len() as u64);
        Ok(content)
    }
}

/// A name with `/` between folders, without a leading one, and without `.` and `..`.
pub(crate) fn normalized(name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn damaged(what: &str, error: &dyn std::fmt::Display) -> ParseError {
    ParseError::new(
        ParseErrorKind::NotParsable,
        format!("archive is damaged at {}: {error}", quoted(what)),
        Some("The file is truncated or damaged."),
    )
}

fn limit(message: String) -> ParseError {
    ParseError::new(ParseErrorKind::LimitExceeded, message, Some("Is it a document at all?"))
}

#[cfg(test)]
#[path = "zip_tests.rs"]
pub(crate) mod tests;
