//! Tests of books.
#![allow(clippy::unwrap_used)]

use crate::zip::tests::archive;
use crate::{DocumentContent, ParseErrorKind, detect, parse};
use std::time::{Duration, Instant};

const CONTAINER: &str =
    r#"<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"#;

/// A book of chapters, each a file name and what stands in its body.
fn book(chapters: &[(&str, &str)], parts: &[(&str, &str)]) -> Vec<u8> {
    let mut manifest = String::from(
        r#"<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/><item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/><item id="css" href="a.css" media-type="text/css"/>"#,
    );
    let mut spine = String::from(r#"<itemref idref="nav"/>"#);
    let mut all = vec![
        ("mimetype".to_owned(), "application/epub+zip".to_owned()),
        ("META-INF/container.xml".into(), CONTAINER.into()),
    ];
    for (index, (name, body)) in chapters.iter().enumerate() {
        manifest
            .push_str(&format!(r#"<item id="c{index}" href="{name}" media-type="application/xhtml+xml"/>"#));
        // The reading order is not that of the files.
        spine.insert_str(0, &format!(r#"<itemref idref="c{index}"/>"#));
        let page = format!(
            r#"<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head><body>{body}</body></html>"#
        );
        all.push((format!("OEBPS/{}", name.replace("%20", " ")), page));
    }
    all.push(("OEBPS/book.opf".into(), format!(
        r#"<package><metadata xmlns:dc="d"><dc:title>A Book</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator><dc:language>en</dc:language><dc:date>2024-05-01</dc:date><meta property="dcterms:modified">2024-06-01T00:00:00Z</meta></metadata><manifest>{manifest}</manifest><spine toc="ncx">{spine}</spine></package>"#
    )));
    all.extend(parts.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())));
    let all: Vec<(&str, &[u8])> =
        all.iter().map(|(name, content)| (name.as_str(), content.as_bytes())).collect();
    archive(&all)
}

#[test]
fn chapters_follow_each_other_in_reading_order() {
    let bytes = book(
        &[
            ("two.xhtml", "<h1>Two</h1><p>b<a id='x'/> c</p>"),
            ("ch%20one.xhtml", "<h1>One</h1><p>a</p><img src='i.png'/>"),
        ],
        &[],
    );
    assert_eq!(detect(&bytes), "application/epub+zip");
    let parsed = parse(DocumentContent::Bytes(&bytes), None).unwrap();
    assert_eq!(parsed.text, "# One\n\na\n\n# Two\n\nb c\n");
    assert_eq!(parsed.title.as_deref(), Some("A Book"));
    assert_eq!(
        parsed.metadata_json,
        r#"{"author":["Ann","Bob"],"created":"2024-05-01","language":"en","modified":"2024-06-01T00:00:00Z","title":"A Book"}"#
    );
    assert!(parsed.pages.is_empty());
}

#[test]
fn a_chapter_without_heading_has_that_of_the_table_of_contents() {
    let nav = r#"<html xmlns:e="e"><nav e:type="toc"><ol><li><a href="a.xhtml">The <b>first</b></a><ol><li><a href="b.xhtml#p">Part</a></li></ol></li></ol></nav></html>"#;
    let ncx = r#"<ncx><navMap><navPoint><navLabel><text>Old</text></navLabel><content src="c.xhtml"/></navPoint></navMap></ncx>"#;
    let chapters = [("c.xhtml", "<p>z</p>"), ("b.xhtml", "<p>y</p>"), ("a.xhtml", "<p>x</p>")];
    let bytes = book(&chapters, &[("OEBPS/nav.xhtml", nav), ("OEBPS/toc.ncx", ncx)]);
    let parsed = parse(DocumentContent::Bytes(&bytes), None).unwrap();
    assert_eq!(parsed.text, "# The first\n\nx\n\n## Part\n\ny\n\n# Old\n\nz\n");
}

#[test]
fn a_protected_book_is_refused_in_words_and_scrambled_fonts_are_no_protection() {
    let encryption = |algorithm: &str| {
        format!(
            r#"<encryption><EncryptedData><EncryptionMethod Algorithm="{algorithm}"/></EncryptedData></encryption>"#
        )
    };
    let chapters = [("a.xhtml", "<p>x</p>")];
    let fonts = encryption("http://www.idpf.org/2008/embedding");
    let bytes = book(&chapters, &[("META-INF/encryption.xml", &fonts)]);
    assert_eq!(parse(DocumentContent::Bytes(&bytes), None).unwrap().text, "x\n");
    let text = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc");
    let bytes = book(&chapters, &[("META-INF/encryption.xml", &text)]);
    let error = parse(DocumentContent::Bytes(&bytes), None).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::NotParsable);
    assert_eq!(error.message, "book is protected by digital rights management");
}

#[test]
fn damaged_and_hostile_books_are_refused_and_missing_chapters_passed_over() {
    let without = archive(&[("mimetype", b"application/epub+zip")]);
    assert_eq!(
        parse(DocumentContent::Bytes(&without), None).unwrap_err().message,
        "book has no package document"
    );
    let bytes = book(&[("a.xhtml", &"<div>".repeat(100_000))], &[]);
    assert_eq!(parse(DocumentContent::Bytes(&bytes), None).unwrap_err().kind, ParseErrorKind::LimitExceeded);
    let bytes = book(&[("a.xhtml", "<p>x</p>")], &[]);
    for length in [1, bytes.len() / 2, bytes.len() - 1] {
        assert!(
            parse(DocumentContent::Bytes(&bytes[..length]), Some("application/epub+zip")).is_err(),
            "{length}"
        );
    }
    let opf = r#"<package><manifest><item id="a" href="../../gone.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>"#;
    let bytes =
        archive(&[("META-INF/container.xml", CONTAINER.as_bytes()), ("OEBPS/book.opf", opf.as_bytes())]);
    assert_eq!(parse(DocumentContent::Bytes(&bytes), None).unwrap().text, "");
}

#[test]
fn one_file_named_many_times_does_not_multiply_without_end() {
    let started = Instant::now();
    let page = format!("<html><body>{}</body></html>", "<p>words and words</p>".repeat(20_000));
    let opf = format!(
        r#"<package><manifest><item id="a" href="a.xhtml"/></manifest><spine>{}</spine></package>"#,
        r#"<itemref idref="a"/>"#.repeat(40_000)
    );
    let bytes = archive(&[
        ("META-INF/container.xml", CONTAINER.as_bytes()),
        ("OEBPS/book.opf", opf.as_bytes()),
        ("OEBPS/a.xhtml", page.as_bytes()),
    ]);
    // A chapter is read once, however often it is named.
    assert_eq!(parse(DocumentContent::Bytes(&bytes), None).unwrap().text.lines().count(), 39_999);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
