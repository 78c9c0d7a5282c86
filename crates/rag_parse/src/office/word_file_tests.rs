//! Pages of text documents, and files that are broken or hostile.
#![allow(clippy::unwrap_used)]

use super::tests::{TYPES, WORD, cell, check, file, item, p, parsed};
use super::*;
use crate::zip::tests::archive;
use crate::{DocumentContent, parse};
use proptest::prelude::*;
use rag_core::document::PageStart;

fn pages(body: &str) -> (String, Vec<(u32, String)>) {
    let document = parsed(body);
    let first = |start: &PageStart| {
        let word = document.text[start.offset..].split_whitespace().next().unwrap_or_default();
        (start.page, word.to_owned())
    };
    let pages = document.pages.iter().map(first).collect();
    (document.text, pages)
}

fn starts(pages: &[(u32, &str)]) -> Vec<(u32, String)> {
    pages.iter().map(|(page, word)| (*page, (*word).to_owned())).collect()
}

#[test]
fn pages_are_those_that_word_laid_out() {
    let body = r#"<w:p><w:r><w:t>one</w:t></w:r></w:p><w:p><w:r><w:t xml:space="preserve">still </w:t></w:r><w:r><w:lastRenderedPageBreak/><w:t>two</w:t></w:r><w:r><w:br w:type="page"/></w:r></w:p><w:p><w:r><w:lastRenderedPageBreak/><w:t>three</w:t></w:r></w:p>"#;
    let (text, found) = pages(body);
    assert_eq!(text, "one\n\nstill two\n\nthree\n");
    assert_eq!(found, starts(&[(1, "one"), (2, "two"), (3, "three")]));
}

#[test]
fn breaks_of_the_author_count_where_word_has_laid_out_nothing() {
    let body = format!(
        r#"<w:p><w:pPr><w:pageBreakBefore/></w:pPr><w:r><w:t>one</w:t></w:r></w:p><w:p><w:pPr><w:pageBreakBefore/></w:pPr><w:r><w:t>two</w:t></w:r></w:p>{section}{three}{continuous}{still}<w:sectPr><w:type w:val="continuous"/></w:sectPr>"#,
        section = r#"<w:p><w:pPr><w:sectPr/></w:pPr></w:p>"#,
        three = p("three"),
        continuous = r#"<w:p><w:pPr><w:sectPr><w:type w:val="nextPage"/></w:sectPr></w:pPr></w:p>"#,
        still = p("still")
    );
    assert_eq!(pages(&body).1, starts(&[(1, "one"), (2, "two"), (3, "three")]));
    assert_eq!(pages(&p("no page is known")).1, []);
}

#[test]
fn a_page_after_a_heading_or_code_does_not_begin_with_it() {
    let heading = |style: &str, before: &str, after: &str| {
        format!(
            r#"<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r>{before}<w:t>h</w:t>{after}</w:r></w:p>"#
        )
    };
    let rendered = "<w:lastRenderedPageBreak/>";
    let set = r#"<w:br w:type="page"/>"#;
    let body =
        [heading("berschrift1", rendered, set), p("a"), heading("Code", rendered, set), p("b")].concat();
    let (text, found) = pages(&body);
    assert_eq!(text, "## Part I: h\n\na\n\n```\nh\n```\n\nb\n");
    assert_eq!(found, starts(&[(2, "##"), (3, "a"), (4, "```"), (5, "b")]));
}

#[test]
fn pages_begin_with_rows_of_a_table() {
    let row = |mark: &str, text: &str| {
        format!(
            "<w:tr><w:tc><w:p><w:r>{mark}<w:t>{text}</w:t></w:r></w:p></w:tc><w:tc>{}</w:tc></w:tr>",
            p("x")
        )
    };
    let body = ["<w:tbl>", &row("", "a"), &row("<w:lastRenderedPageBreak/>", "b"), &row("", "c"), "</w:tbl>"]
        .concat();
    let (text, found) = pages(&body);
    assert_eq!(found, starts(&[(1, "|"), (2, "|")]));
    let second = parsed(&body).pages[1].offset;
    assert!(text[second..].starts_with("| b | x |"), "{text}");
}

#[test]
fn a_million_nested_elements_are_refused() {
    let cases = [
        ("w:p", 1_000_000),
        ("w:tbl", 1_000),
        ("w:sdt", 1_000),
        ("mc:AlternateContent", 1_000),
        ("w:ins", 1_000),
    ];
    for (name, depth) in cases {
        let bytes = file(&format!("<{name}>").repeat(depth));
        let error = parse(DocumentContent::Bytes(&bytes), None).unwrap_err();
        assert_eq!(error.kind, ParseErrorKind::LimitExceeded, "{name}: {error}");
    }
}

#[test]
fn tables_nested_as_deep_as_allowed_are_read() {
    let depth = 80;
    let body = format!(
        "{}{}{}",
        "<w:tbl><w:tr><w:tc>".repeat(depth),
        p("deep"),
        "</w:tc></w:tr></w:tbl>".repeat(depth)
    );
    check(&body, "deep");
}

#[test]
fn missing_and_broken_parts_are_named() {
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("[Content_Types].xml", TYPES)], "document has no part \"word/document.xml\""),
        (
            &[("[Content_Types].xml", TYPES), ("word/document.xml", "<w:document><w:body>")],
            "\"word/document.xml\" ends inside an element",
        ),
        (
            &[("[Content_Types].xml", TYPES), ("word/document.xml", "<w:document></w:body>")],
            "\"word/document.xml\" is not well-formed",
        ),
        (&[("word/document.xml", "<html/>")], ""),
    ];
    for (parts, message) in cases {
        match parse(DocumentContent::Bytes(&archive(parts)), Some(WORD)) {
            Ok(document) => assert!(message.is_empty() && document.text.is_empty()),
            Err(error) => {
                assert_eq!(error.kind, ParseErrorKind::NotParsable);
                assert!(!message.is_empty() && error.message.starts_with(message), "{error}");
            }
        }
    }
}

#[test]
fn a_password_is_named() {
    let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    bytes.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
    for media_type in [None, Some(WORD)] {
        let error = parse(DocumentContent::Bytes(&bytes), media_type).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ParseErrorKind::NotParsable, "document is protected by a password")
        );
    }
}

#[test]
fn a_truncated_file_is_refused_at_every_length() {
    let bytes = file(&p("some text"));
    for length in (0..bytes.len()).step_by(97) {
        let result = parse(DocumentContent::Bytes(&bytes[..length]), Some(WORD));
        assert!(
            matches!(&result, Err(error) if error.kind == ParseErrorKind::NotParsable),
            "{length}: {result:?}"
        );
    }
}

#[test]
fn work_is_linear_in_many_notes_rows_and_items() {
    let many = 3_000;
    let notes: String =
        (0..many).map(|id| format!(r#"<w:r><w:footnoteReference w:id="{id}"/></w:r>"#)).collect();
    let rows = format!("<w:tr>{}{}</w:tr>", cell(r#"<w:vMerge/>"#, &p("a")), cell("", &p("b"))).repeat(many);
    let body = [format!("<w:p>{notes}</w:p><w:tbl>{rows}</w:tbl>"), item(1, 1, "i").repeat(many)].concat();
    let text = parsed(&body).text;
    assert_eq!(text.matches("| b |").count(), many);
    assert_eq!(text.matches(" i\n").count(), many);
}

/// A document with a bit of everything.
fn everything() -> String {
    let table = format!(
        "<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl>",
        cell(r#"<w:vMerge w:val="restart"/>"#, &p("ä")),
        cell("", &item(1, 2, "€")),
        cell("<w:vMerge/>", &p("")),
        cell(r#"<w:gridSpan w:val="3"/>"#, "<w:p><w:r><w:lastRenderedPageBreak/><w:t>x</w:t></w:r></w:p>")
    );
    let paragraph = r#"<w:p><w:pPr><w:pStyle w:val="berschrift2"/><w:sectPr/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t>H</w:t></w:r></w:p><w:p><w:hyperlink r:id="web"><w:r><w:rPr><w:i/></w:rPr><w:t xml:space="preserve">a b </w:t></w:r></w:hyperlink><w:r><w:br w:type="page"/></w:r><w:r><w:footnoteReference w:id="1"/></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num></m:f></m:oMath><w:sdt><w:sdtContent><w:r><w:drawing><w:txbxContent><w:p/></w:txbxContent></w:drawing></w:r></w:sdtContent></w:sdt></w:p>"#;
    [paragraph, &table, &item(1, 1, "i"), &item(2, 0, "j")].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Elements in any order, whether they make sense or not.
    #[test]
    fn any_order_of_elements_gives_sound_positions(order in proptest::collection::vec(0usize..200, 0..80)) {
        let everything = everything();
        let tags: Vec<&str> = everything.split_inclusive('>').collect();
        // Well-formed, so that the walk comes to an end.
        let mut body = String::new();
        let mut open = Vec::new();
        for tag in order.iter().map(|index| tags[index % tags.len()]) {
            let (text, tag) = tag.rsplit_once('<').unwrap_or(("", tag));
            body.push_str(text);
            if tag.starts_with('/') {
                if let Some(name) = open.pop() {
                    body.push_str(&format!("</{name}>"));
                }
            } else {
                if !tag.ends_with("/>") {
                    open.push(tag.split([' ', '>']).next().unwrap_or_default());
                }
                body.push('<');
                body.push_str(tag);
            }
        }
        while let Some(name) = open.pop() {
            body.push_str(&format!("</{name}>"));
        }
        let document = parsed(&body);
        for heading in &document.headings {
            let line = format!("{} {}", "#".repeat(heading.level.into()), heading.title);
            prop_assert_eq!(&document.text[heading.bytes.clone()], line);
        }
        let starts: Vec<(u32, usize)> = document.pages.iter().map(|start| (start.page, start.offset)).collect();
        prop_assert!(starts.is_sorted() && starts.iter().all(|(_, offset)| document.text.is_char_boundary(*offset)));
    }

    /// Bytes of the file that are not what they were.
    #[test]
    fn damaged_files_are_parsed_or_refused(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = file(&everything());
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = parse(DocumentContent::Bytes(&bytes), Some(WORD));
    }
}
