//! The sound files, given to the parsers directly.

#![allow(clippy::unwrap_used)]

use rag_parse::DocumentContent;
use rag_test_files::{Original, originals};

#[test]
fn every_original_is_parsed_and_says_what_it_should() {
    for Original { file, says } in originals() {
        let parsed = rag_parse::parse(DocumentContent::Bytes(&file.bytes), file.media_type);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.name));
        assert!(parsed.text.contains(says), "{}: {}", file.name, parsed.text);
    }
}
