//! Documents of each format. Packages are built around the bytes, which would otherwise hardly ever get behind the
//! checksums of an archive: their parts follow each other, with a NUL between them.

use rag_core::document::ParsedDocument;
use rag_parse::{DocumentContent, parse};
use rag_test_files::PackageKind;

pub(crate) fn text(data: &[u8]) {
    check(data, None);
}

pub(crate) fn markdown(data: &[u8]) {
    check(data, Some("text/markdown"));
}

pub(crate) fn html(data: &[u8]) {
    check(data, Some("text/html"));
}

pub(crate) fn csv(data: &[u8]) {
    check(data, Some("text/csv"));
}

pub(crate) fn mail(data: &[u8]) {
    check(data, Some("message/rfc822"));
}

pub(crate) fn archive(data: &[u8]) {
    check(&[b"PK\x03\x04", data].concat(), None);
    check(data, None);
}

pub(crate) fn docx(data: &[u8]) {
    check(&PackageKind::Docx.around(data), None);
}

pub(crate) fn pptx(data: &[u8]) {
    check(&PackageKind::Pptx.around(data), None);
}

pub(crate) fn xlsx(data: &[u8]) {
    check(&PackageKind::Xlsx.around(data), None);
}

pub(crate) fn epub(data: &[u8]) {
    check(&PackageKind::Epub.around(data), None);
}

pub(crate) fn pdf(data: &[u8]) {
    if data.starts_with(b"%PDF-") {
        check(data, None);
    } else {
        check(&[b"%PDF-1.7\n", data].concat(), None);
    }
}

fn check(bytes: &[u8], media_type: Option<&str>) {
    match parse(DocumentContent::Bytes(bytes), media_type) {
        Ok(parsed) => assert_possible(&parsed),
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.message.len() < 2_000, "a message repeats the document: {}", error.message);
        }
    }
}

/// What the engine refuses to believe of a child.
fn assert_possible(parsed: &ParsedDocument) {
    let text = &parsed.text;
    assert!(!text.contains('\0'));
    let mut last = 0;
    for heading in &parsed.headings {
        assert!((1..=6).contains(&heading.level));
        assert!(heading.bytes.start >= last && text.get(heading.bytes.clone()).is_some(), "{heading:?}");
        last = heading.bytes.start;
    }
    let mut last = 0;
    for page in &parsed.pages {
        assert!(page.offset >= last && text.is_char_boundary(page.offset), "{page:?}");
        last = page.offset;
    }
    let metadata = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&parsed.metadata_json);
    assert!(metadata.is_ok(), "{}", parsed.metadata_json);
    assert!(parsed.title.as_ref().is_none_or(|title| !title.contains('\0')));
}
