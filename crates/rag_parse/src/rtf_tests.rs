//! Tests of Rich Text Format.
#![allow(clippy::unwrap_used)]

use crate::{DocumentContent, ParseErrorKind, detect, parse};
use rag_core::document::ParsedDocument;
use std::time::{Duration, Instant};

fn rtf(body: &str) -> ParsedDocument {
    parse(DocumentContent::Bytes(format!("{{\\rtf1\\ansi {body}}}").as_bytes()), None).unwrap()
}

#[track_caller]
fn check(body: &str, expected: &str) {
    assert_eq!(rtf(body).text.trim_end(), expected, "{body}");
}

#[test]
fn paragraphs_are_text_and_what_is_none_is_passed_over() {
    let text = "{\\fonttbl{\\f0\\fswiss Arial;}}{\\colortbl;\\red0;}{\\stylesheet{\\s1 heading 1;}}{\\*\\generator x;}{\\pict 0102}{\\header page}\\pard One {\\b two} three.\\par\r\nFour\\line five\\~six.{\\*\\unknown gone}\\par";
    assert_eq!(detect(b"{\\rtf1 x}"), "application/rtf");
    check(text, "One two three.\n\nFour\nfive six.");
    for media_type in ["application/rtf", "text/rtf"] {
        assert!(parse(DocumentContent::Bytes(b"{\\rtf1 x}"), Some(media_type)).is_ok());
    }
}

#[test]
fn characters_are_read_in_every_way_that_they_are_written() {
    check("\\'e4\\u8364?\\u-10179?\\u-8704? \\{x\\} \\uc0\\u228 y", "ä€😀 {x} äy");
    check("\\ansicpg1251 \\'ef\\'f0\\'e8\\'e2\\'e5\\'f2", "привет");
    check("{\\fonttbl{\\f0 A;}{\\f1\\fcharset128 B;}}\\f1\\'82\\'a0\\f0 x", "あx");
    check("a\\emdash b\\lquote c\\rquote", "a—b‘c’");
    check("{\\v hidden}shown", "shown");
}

#[test]
fn headings_lists_and_tables_are_told_by_their_paragraphs() {
    check(
        "\\pard\\outlinelevel0 Title\\par\\pard\\outlinelevel1 {\\listtext 1.\\tab}Part\\par\\pard Text\\par{\\pntext\\'b7\\tab}one\\par{\\listtext 2)\\tab}two\\par\\pard after\\par",
        "# Title\n\n## 1. Part\n\nText\n\n- one\n2) two\n\nafter",
    );
    check(
        "\\trowd\\pard\\intbl a\\cell b|c\\cell\\row\\trowd\\pard\\intbl 1\\par 2\\cell\\cell\\row\\pard after\\par",
        "| a | b\\|c |\n| --- | --- |\n| 1 2 | |\n\nafter",
    );
}

#[test]
fn properties_fields_and_boxes_are_read() {
    let parsed = rtf(
        "{\\info{\\title A {\\b title}}{\\author Ann}{\\creatim\\yr2024\\mo5\\dy1\\hr1}{\\company x}}{\\field{\\*\\fldinst HYPERLINK \"http://x\"}{\\fldrslt link}}{\\shp{\\*\\shpinst{\\sp{\\sn a}{\\sv 1}}{\\shptxt boxed\\par}}}\\par",
    );
    assert_eq!(parsed.title.as_deref(), Some("A title"));
    assert_eq!(
        parsed.metadata_json,
        r#"{"author":"Ann","created":"2024-05-01","encoding":"windows-1252","title":"A title"}"#
    );
    assert_eq!(parsed.text, "linkboxed\n");
}

#[test]
fn broken_and_hostile_files_come_to_an_end() {
    let started = Instant::now();
    for body in [
        "}}}}",
        "\\",
        "\\'",
        "\\'zz",
        "\\u",
        "\\bin99999999999 x",
        "{\\*",
        "\\u55357",
        "{{{{",
        "\\cell\\cell",
    ] {
        let _ = rtf(body);
    }
    let deep = "{\\rtf1 ".to_owned() + &"{".repeat(1_000_000);
    assert_eq!(
        parse(DocumentContent::Bytes(deep.as_bytes()), None).unwrap_err().kind,
        ParseErrorKind::LimitExceeded
    );
    rtf(&"\\cell ".repeat(300_000));
    rtf(&"{\\b x}".repeat(200_000));
    rtf(&"x\\par ".repeat(100_000));
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
