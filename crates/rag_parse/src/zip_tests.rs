//! Archives that are sound, damaged and hostile.
#![allow(clippy::unwrap_used)]

use super::*;
use rawzip::ZipArchiveWriter;
use std::io::Write;

/// An archive of deflated entries: name and content.
pub(crate) fn archive<C: AsRef<[u8]>>(entries: &[(&str, C)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ZipArchiveWriter::new(&mut bytes);
    for (name, content) in entries {
        let (mut entry, config) =
            writer.new_file(name).compression_method(CompressionMethod::DEFLATE).start().unwrap();
        let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
        let mut data = config.wrap(encoder);
        data.write_all(content.as_ref()).unwrap();
        let (encoder, descriptor) = data.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

#[test]
fn entries_are_found_by_name_whatever_its_case_and_slashes() {
    let bytes = archive(&[("Word\\Document.xml", "<a/>"), ("/x/../mimetype", "m")]);
    let archive = Archive::open(&bytes).unwrap();
    assert_eq!(archive.read("word/document.xml").unwrap().unwrap(), b"<a/>");
    assert!(archive.has("MIMETYPE") && archive.read("none").unwrap().is_none());
}

const SMALL: Limits =
    Limits { entries: 2, entry_bytes: 40_000, total_bytes: 100_000, ratio: 50, free_bytes: 10_000 };

/// Reads an entry until that is refused: the bytes read until then, and the refusal.
fn refused(bytes: &[u8], name: &str) -> (usize, ParseError) {
    let archive = Archive::open_within(bytes, SMALL).unwrap();
    let mut read = 0;
    loop {
        match archive.read(name) {
            Ok(content) => read += content.unwrap().len(),
            Err(error) => return (read, error),
        }
    }
}

/// Bytes that deflate finds little in.
fn noise(length: u32) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn an_entry_that_grows_too_much_is_refused() {
    let bytes = archive(&[("bomb", vec![0; 20_000])]);
    let (read, error) = refused(&bytes, "bomb");
    assert_eq!((read, error.kind), (0, ParseErrorKind::LimitExceeded));
    assert!(error.message.ends_with("unpacks to more than 50 times that"), "{error}");
}

#[test]
fn an_entry_and_an_archive_have_a_size_beyond_which_they_are_refused() {
    let (read, error) = refused(&archive(&[("big", noise(40_001))]), "big");
    assert_eq!((read, error.kind), (0, ParseErrorKind::LimitExceeded));
    let (read, error) = refused(&archive(&[("a", vec![0; 10_000])]), "a");
    assert_eq!((read, error.kind), (100_000, ParseErrorKind::LimitExceeded));
    assert_eq!(error.message, "archive holds more than 100000 bytes when unpacked");
}

#[test]
fn entries_have_a_number_beyond_which_an_archive_is_refused() {
    let bytes = archive(&[("a", ""), ("b", ""), ("c", "")]);
    let error = Archive::open_within(&bytes, SMALL).err().unwrap();
    assert_eq!(error.message, "archive has more than 2 entries");
}

#[test]
fn a_size_that_is_a_lie_is_damage() {
    let mut bytes = archive(&[("a", "hello hello hello")]);
    // The uncompressed size in the central directory, 24 bytes into its record.
    let at = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap() + 24;
    bytes[at..at + 4].copy_from_slice(&5u32.to_le_bytes());
    let error = Archive::open(&bytes).unwrap().read("a").unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::NotParsable);
}

#[test]
fn a_truncated_archive_is_refused_at_every_length() {
    let bytes = archive(&[("a", "some words"), ("b", "more words")]);
    for length in 0..bytes.len() {
        let result = Archive::open(&bytes[..length]).and_then(|archive| archive.read("a"));
        assert!(!matches!(result, Ok(Some(_))), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn a_changed_byte_never_gives_changed_content() {
    let bytes = archive(&[("a", "some words that are long enough to be packed, some words")]);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        if let Ok(Some(content)) = Archive::open(&changed).and_then(|archive| archive.read("a")) {
            assert_eq!(content, b"some words that are long enough to be packed, some words", "byte {at}");
        }
    }
}

#[test]
fn an_encrypted_entry_is_named() {
    let mut bytes = archive(&[("a", "some words")]);
    // The flags in the local header and in the central directory.
    let at = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    bytes[6] |= 1;
    bytes[at + 8] |= 1;
    let error = Archive::open(&bytes).unwrap().read("a").unwrap_err();
    assert_eq!(error.message, "archive entry \"a\" is encrypted");
}
