//! Files of every format, made by code: sound ones, damaged ones, and ones that are meant to do harm.
//!
//! The tests of the server ingest them all, the fuzz targets begin from them, and this package's own tests give them to
//! the parsers directly. Nothing here is random between runs: the same call makes the same bytes.

#![allow(clippy::unwrap_used, reason = "made for tests")]

mod bomb;
mod damage;
mod epub;
mod mail;
mod office;
mod package;
mod pdf;
mod pdf_bomb;
mod random;
mod text;
mod zip;

pub use bomb::bombs;
pub use damage::{damaged, wrong_types};
pub use package::PackageKind;
pub use random::Random;

/// A file and what is known about it.
#[derive(Debug, Clone)]
pub struct TestFile {
    /// Unique among all files; its end is a file name's.
    pub name: String,
    /// Media type that the user gives, if they give one.
    pub media_type: Option<&'static str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

fn file(name: impl Into<String>, bytes: impl AsRef<[u8]>) -> TestFile {
    TestFile { name: name.into(), media_type: None, bytes: bytes.as_ref().to_vec() }
}

impl TestFile {
    fn said_to_be(mut self, media_type: &'static str) -> Self {
        self.media_type = Some(media_type);
        self
    }
}

/// A sound file, and words that every parser of its format finds in it.
#[derive(Debug, Clone)]
pub struct Original {
    /// The file.
    pub file: TestFile,
    /// Stands in its text.
    pub says: &'static str,
}

/// One sound file of each format and variant.
pub fn originals() -> Vec<Original> {
    let mut all = text::originals();
    all.extend(office::originals());
    all.extend(epub::originals());
    all.extend(mail::originals());
    all.extend(pdf::originals());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn there_are_hundreds_and_no_two_have_the_same_name() {
        let originals = originals();
        let hostile = [damaged(&originals), wrong_types(&originals), bombs()].concat();
        assert!(hostile.len() >= 200, "{}", hostile.len());
        let names: HashSet<&str> =
            originals.iter().map(|o| &o.file).chain(&hostile).map(|file| &file.name[..]).collect();
        assert_eq!(names.len(), originals.len() + hostile.len());
    }
}
