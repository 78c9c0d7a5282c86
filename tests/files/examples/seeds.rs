//! Writes what the fuzz targets begin from: `seeds FOLDER` makes `FOLDER/<target>/<file>`.

#![allow(clippy::unwrap_used, reason = "a tool of the tests")]

use rag_test_files::{PackageKind, TestFile, bombs, damaged, originals, wrong_types};
use std::fs;
use std::path::PathBuf;

/// Longer files slow a fuzzer down more than they tell it.
const MOST_BYTES: usize = 16 << 10;

/// Targets and the ends of the names of their files.
const ENDS: [(&str, &[&str]); 7] = [
    ("text", &["txt", "md", "html", "csv", "eml", "utf16", "bin", "rtf", "xml"]),
    ("markdown", &["md", "txt"]),
    ("html", &["html"]),
    ("csv", &["csv"]),
    ("mail", &["eml"]),
    ("archive", &["docx", "pptx", "xlsx", "epub", "zip"]),
    ("pdf", &["pdf"]),
];

const PACKAGES: [(&str, PackageKind); 4] = [
    ("docx", PackageKind::Docx),
    ("pptx", PackageKind::Pptx),
    ("xlsx", PackageKind::Xlsx),
    ("epub", PackageKind::Epub),
];

const JSON: [&str; 4] = [
    r#"{"lang": "en", "year": {"gte": 2000, "lt": 2020.5}, "tag": {"in": ["a", "b"]}}"#,
    r#"{"and": [{"or": [{"a": true}, {"b": null}]}, {"not": {"c": {"exists": true}}}]}"#,
    r#"{"title": "x", "tags": ["a", 1, false, null, {"deep": [1e308, -0.0]}]}"#,
    r#"{"method": "recursive", "max_tokens": 480, "overlap_tokens": 64}"#,
];

/// The beginning of a frame with a request for the engine's status.
const FRAME: &[u8] = &[6, 0, 0, 0, 0, 1, 1, b'a', 0, 0];

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("the folder to write to"));
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = folder.join(target);
        fs::create_dir_all(&folder).unwrap();
        let name: String =
            name.chars().map(|c| if c.is_alphanumeric() || c == '.' { c } else { '_' }).collect();
        fs::write(folder.join(name), bytes).unwrap();
    };
    let originals = originals();
    let sound: Vec<TestFile> = originals.iter().map(|original| original.file.clone()).collect();
    let all = [sound, damaged(&originals), wrong_types(&originals), bombs()].concat();
    for file in all.iter().filter(|file| file.bytes.len() <= MOST_BYTES) {
        let extension = file.name.rsplit('.').next().unwrap();
        for (target, _) in ENDS.iter().filter(|(_, ends)| ends.contains(&extension)) {
            write(target, &file.name, &file.bytes);
        }
    }
    for (target, kind) in PACKAGES {
        write(target, "sound", &kind.parts());
    }
    for (number, text) in JSON.iter().enumerate() {
        write("json", &number.to_string(), text.as_bytes());
    }
    write("frame", "whole", FRAME);
    write("frame", "payload", &FRAME[4..]);
}
