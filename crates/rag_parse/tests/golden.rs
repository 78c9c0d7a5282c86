//! HTML pages and the Markdown they become: `tests/golden/NAME.html` and `NAME.md`.
//!
//! `RAG_BLESS=1 cargo test -p rag_parse --test golden` writes the Markdown anew; look at the difference.
#![allow(clippy::unwrap_used)]

use rag_parse::{DocumentContent, parse};
use std::fmt::Write;
use std::path::Path;

#[test]
fn pages_become_the_markdown_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut pages: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "html"))
        .collect();
    pages.sort();
    assert!(pages.len() >= 6, "golden pages are missing");
    for page in pages {
        let parsed = parse(DocumentContent::Bytes(&std::fs::read(&page).unwrap()), None).unwrap();
        let mut found = String::new();
        writeln!(found, "media type: {}", parsed.media_type).unwrap();
        writeln!(found, "title: {}", parsed.title.as_deref().unwrap_or("(none)")).unwrap();
        writeln!(found, "metadata: {}", parsed.metadata_json).unwrap();
        for heading in &parsed.headings {
            let line = &parsed.text[heading.bytes.clone()];
            assert_eq!(line, format!("{} {}", "#".repeat(heading.level.into()), heading.title));
            assert!(heading.bytes.start == 0 || parsed.text[..heading.bytes.start].ends_with('\n'));
        }
        writeln!(found, "headings: {}", parsed.headings.len()).unwrap();
        write!(found, "-----\n{}", parsed.text).unwrap();
        let expected = page.with_extension("md");
        if std::env::var_os("RAG_BLESS").is_some() {
            std::fs::write(&expected, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert!(found == expected, "{}\n{found}", page.display());
    }
}
