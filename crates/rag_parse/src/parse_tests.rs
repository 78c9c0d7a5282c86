//! Tests of parsing. Pages with the Markdown they become are in `tests/golden`.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn html(text: &str) -> ParsedDocument {
    parse(DocumentContent::Text(text), Some("text/html")).unwrap()
}

#[track_caller]
fn check_html(page: &str, expected: &str) {
    assert_eq!(html(page).text.trim_end(), expected, "{page}");
}

#[test]
fn media_types_are_told_by_content() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "text/plain"),
        (b"just words", "text/plain"),
        (b"# Title\n\nwords", "text/markdown"),
        (b"Title\n=====\nwords", "text/markdown"),
        (b"---\ntitle: x\n---\nwords", "text/markdown"),
        (b"```\n# comment\n```", "text/plain"),
        (b"#hashtag", "text/plain"),
        (b"  <!DOCTYPE html><p>x", "text/html"),
        (b"<?xml version='1.0'?><!-- c --><!DOCTYPE html PUBLIC ''><html>", "text/html"),
        (b"<HTML><body>", "text/html"),
        (b"<p>One</p><p>Two</p>", "text/html"),
        (b"<p align=center>Logo</p>\n\n# Readme", "text/markdown"),
        (b"<b>bold</b> words", "text/plain"),
        (b"<html-like> words", "text/plain"),
        (b"<?xml version='1.0'?><svg/>", "application/xml"),
        (b"\xff\xfe<\0h\0t\0m\0l\0>\0", "text/html"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\x03\x04....word/document.xml", ZIP_WORD),
        (b"PK\x03\x04....", "application/zip"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"{\\rtf1 x}", "application/rtf"),
        (b"BM is short for benchmark", "text/plain"),
        (b"ID3 tags", "text/plain"),
        (b"\x00\x01\x02", "application/octet-stream"),
        (b"gr\xfcn", "text/plain"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(detect(bytes), *expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

const ZIP_WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

#[test]
fn text_is_kept_as_it_came() {
    for text in ["  a\r\n\tb  \n\n", "", "\u{a0}ünï\u{301}"] {
        assert_eq!(parse(DocumentContent::Text(text), None).unwrap().text, text);
        assert_eq!(parse(DocumentContent::Text(text), Some("text/markdown")).unwrap().text, text);
    }
    assert_eq!(parse(DocumentContent::Text("\u{feff}a"), None).unwrap().text, "a");
    assert_eq!(parse(DocumentContent::Bytes(b"\xef\xbb\xbfa"), None).unwrap().text, "a");
}

#[test]
fn the_given_media_type_goes_before_content() {
    let parsed = parse(DocumentContent::Text("# no heading"), Some("text/plain")).unwrap();
    assert_eq!((parsed.headings.len(), parsed.media_type.as_str()), (0, "text/plain"));
    let parsed =
        parse(DocumentContent::Text("no <b>html</b> page"), Some("Text/HTML; charset=utf-8")).unwrap();
    assert_eq!((parsed.text.as_str(), parsed.media_type.as_str()), ("no html page\n", "text/html"));
    assert_eq!(
        parse(DocumentContent::Bytes(b"a\xa4"), Some("text/plain; charset=iso-8859-15")).unwrap().text,
        "a€"
    );
    assert_eq!(parse(DocumentContent::Text("a,b"), Some("text/csv")).unwrap().media_type, "text/csv");
}

#[test]
fn what_cannot_be_parsed_is_refused_by_name() {
    let cases = [
        (
            DocumentContent::Bytes(b"\x89PNG\r\n\x1a\n"),
            None,
            ParseErrorKind::Unsupported,
            "media type \"image/png\" is not supported",
        ),
        (
            DocumentContent::Bytes(b"%PDF-1.4"),
            Some("text/plain"),
            ParseErrorKind::NotParsable,
            "content is application/pdf, not text/plain",
        ),
        (
            DocumentContent::Text("x"),
            Some("application/pdf"),
            ParseErrorKind::NotParsable,
            "content is text/plain, not application/pdf",
        ),
        (
            DocumentContent::Text("a\0b"),
            None,
            ParseErrorKind::NotParsable,
            "document contains a NUL character",
        ),
        (
            DocumentContent::Bytes(b"\xff\xfea\0\0\0"),
            None,
            ParseErrorKind::NotParsable,
            "document contains a NUL character",
        ),
        (
            DocumentContent::Text("x"),
            Some("nonsense"),
            ParseErrorKind::Unsupported,
            "media type \"nonsense\" is not supported",
        ),
    ];
    for (source, media_type, kind, message) in cases {
        let error = parse(source, media_type).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
        assert!(error.hint.is_some());
    }
    let big = "x".repeat(MAX_DOCUMENT_BYTES + 1);
    assert_eq!(parse(DocumentContent::Text(&big), None).unwrap_err().kind, ParseErrorKind::LimitExceeded);
    assert_eq!(html("a\0b").text, "ab\n");
}

#[test]
fn text_stays_in_proportion_to_its_file() {
    assert!(check_proportion(10, FREE_TEXT_BYTES).is_ok());
    assert!(check_proportion(FREE_TEXT_BYTES, MOST_TEXT_PER_BYTE * FREE_TEXT_BYTES).is_ok());
    let error = check_proportion(7_499, 59_000_000).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::LimitExceeded);
    assert_eq!(
        error.message,
        "document of 7499 bytes has 59000000 bytes of text, more than 100 times as much"
    );
}

#[test]
fn markdown_headings_are_found_where_they_are() {
    let text = "intro\n\n# One `code` *em*\ntext\n\n  ## Two ##\n\nThree\nlines\n---\n\n```\n# no\n```\n> # quoted\n\n- # item\n\n#\n\n    # code\n";
    let parsed = parse(DocumentContent::Text(text), None).unwrap();
    let found: Vec<(u8, &str, &str)> = parsed
        .headings
        .iter()
        .map(|heading| (heading.level, heading.title.as_str(), &text[heading.bytes.clone()]))
        .collect();
    let expected = [
        (1, "One code em", "# One `code` *em*"),
        (2, "Two", "  ## Two ##"),
        (2, "Three lines", "Three\nlines\n---"),
        (1, "", "#"),
    ];
    assert_eq!(found, expected);
    assert_eq!(parsed.title.as_deref(), Some("One code em"));
}

#[test]
fn front_matter_gives_title_and_metadata() {
    let text = "---\ntitle: \"A: title\"\nauthors:\n  - Ada\n  - 'Grace'\ntags: [a, \"b, c\"]\nnested:\n  key: value\ndate: 2024-01-02\ntext: |\n  long\n---\n\n# Heading\n";
    let parsed = parse(DocumentContent::Text(text), None).unwrap();
    assert_eq!(parsed.title.as_deref(), Some("A: title"));
    assert_eq!(
        parsed.metadata_json,
        r#"{"author":["Ada","Grace"],"authors":["Ada","Grace"],"created":"2024-01-02","date":"2024-01-02","keywords":["a","b, c"],"tags":["a","b, c"],"title":"A: title"}"#
    );
    assert_eq!(parsed.headings.len(), 1);
    assert_eq!(parsed.text, text);
    let toml = "+++\ntitle = \"T\"\ntags = ['x']\n+++\nwords";
    let parsed = parse(DocumentContent::Text(toml), None).unwrap();
    assert_eq!(parsed.metadata_json, r#"{"keywords":"x","tags":"x","title":"T"}"#);
}

#[test]
fn tables_with_spans_keep_their_columns() {
    check_html(
        "<table><tr><th>a<th colspan=2>b<tr><td rowspan=3>x<td>1<td rowspan=2>2<tr><td>3<tr><td colspan=2>4</table>",
        "| a | b | |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x | 3 | 2 |\n| x | 4 | |",
    );
    let wide = html("<table><tr><td colspan=99999>a<td>b<tr><td>c</table>").text;
    assert_eq!(wide.lines().next().unwrap().matches('|').count(), 257);
    assert!(wide.contains("| b |"), "{}", wide.len());
}

#[test]
fn inline_markup_keeps_words_apart_and_together() {
    check_html("<p>a<b>b</b>c <i> d </i>e<span>f</span>\n<a href=x>link</a>.</p>", "abc d ef link.");
    check_html(
        "<p>x<sup>2</sup> and 10<sup>th</sup>, H<sub>2</sub>O, note<sup>[1]</sup></p>",
        "x^2 and 10^th, H2O, note[1]",
    );
    check_html("<p>a <code> b  c </code> d<code></code>e</p>", "a `b c` de");
    check_html("<p>one<div>two</div>three", "one\n\ntwo\n\nthree");
    check_html("<ul><li><pre>code</pre></li><li>b</li></ul>", "- ```\n  code\n  ```\n- b");
    check_html("<pre>a\n\n  b</pre>", "```\na\n\n  b\n```");
    check_html("<ol><li><p>a</p><ul><li>b</ul><li>c</ol>", "1. a\n   - b\n2. c");
    check_html("<a href=x>Heading</a> <a href=#x>¶</a>", "Heading");
}

#[test]
fn nesting_of_any_depth_neither_overflows_nor_hangs() {
    let started = Instant::now();
    for tag in
        ["div", "b", "ul><li", "blockquote", "table><tr><td", "p", "span", "font id=1", "a", "svg", "dl><dt"]
    {
        let page = format!("<{tag}>").repeat(50_000);
        match parse(DocumentContent::Text(&page), Some("text/html")) {
            Ok(parsed) => assert!(parsed.text.len() < 100, "{tag}"),
            Err(error) => assert_eq!(error.kind, ParseErrorKind::LimitExceeded, "{tag}"),
        }
    }
    let page = "<div>".repeat(1_000_000);
    let kind = parse(DocumentContent::Text(&page), Some("text/html")).unwrap_err().kind;
    assert_eq!(kind, ParseErrorKind::LimitExceeded);
    let deep = format!("{}text{}", "<div>".repeat(2_000), "</div>".repeat(2_000));
    assert_eq!(html(&deep).text, "text\n");
    // Minutes if any of it were quadratic in the page.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn a_tag_of_many_attributes_is_refused_and_a_long_script_is_not() {
    let many = |count: usize| (0..count).map(|n| format!(" a{n}=\"x y\"")).collect::<String>();
    let page =
        |attributes: &str| parse(DocumentContent::Text(&format!("<p{attributes}>x</p>")), Some("text/html"));
    assert!(page(&many(4_000)).is_ok());
    let error = page(&many(6_000)).unwrap_err();
    assert_eq!(error.message, "HTML document has more than 5000 attributes in a tag");
    assert!(page(&" a=1".repeat(500_000)).is_err());
    assert_eq!(html(&format!("<script>if (a <b) {}</script>x", "word ".repeat(10_000))).text, "x\n");
}

#[test]
fn markup_that_multiplies_is_stopped() {
    let formats: String = (0..200).map(|i| format!("<b id={i}>")).collect();
    let page = format!("<p>{formats}</p>{}", "<p>x</p>".repeat(20_000));
    let kind = parse(DocumentContent::Text(&page), Some("text/html"))
        .map(|parsed| parsed.text.len())
        .unwrap_err()
        .kind;
    assert_eq!(kind, ParseErrorKind::LimitExceeded);
    let row = format!("<td rowspan=65000>{}</td>", "long ".repeat(30)).repeat(200);
    let page = format!("<table><tr>{row}</tr>{}</table>", "<tr><td></tr>".repeat(5_000));
    assert!(html(&page).text.len() < 8 << 20);
    let page = format!("<table>{}</table>", "<tr><td colspan=256>a<td>b".repeat(10_000));
    assert!(html(&page).text.len() < 8 << 20);
}

#[test]
fn markdown_of_any_kind_is_read_in_reasonable_time() {
    let started = Instant::now();
    for piece in
        ["> ", "- ", "[", "*", "`", "# x\n", "a\n-\n", "<", "![](", "| a ", "&", "\\", "1. ", "    ", "***"]
    {
        let text = piece.repeat(200_000 / piece.len());
        parse(DocumentContent::Text(&text), Some("text/markdown")).unwrap();
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn any_html_gives_a_document_that_keeps_its_promises(
        page in "(</?(p|div|ul|ol|li|dl|dt|dd|table|tr|td|th|caption|thead|h1|h3|pre|code|blockquote|b|a|br|sup|aside|template|svg|select|body)>|[a-z ]{1,5}|&nbsp;|&#0;|\\PC|\n|#|`|\\|){0,60}",
    ) {
        let parsed = html(&page);
        prop_assert!(!parsed.text.contains(['\0', '\u{a0}']), "odd characters");
        let mut last = 0;
        for heading in &parsed.headings {
            prop_assert!(heading.bytes.start >= last);
            prop_assert_eq!(&parsed.text[heading.bytes.clone()], format!("{} {}", "#".repeat(heading.level.into()), heading.title));
            prop_assert!(heading.bytes.start == 0 || parsed.text[..heading.bytes.start].ends_with('\n'));
            last = heading.bytes.end;
        }
        serde_json::from_str::<serde_json::Value>(&parsed.metadata_json).unwrap();
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(parsed) = parse(DocumentContent::Bytes(&bytes), None) {
            prop_assert!(!parsed.text.contains('\0'));
        }
        let _ = parse(DocumentContent::Bytes(&bytes), Some("text/html"));
    }

    #[test]
    fn words_of_a_page_are_not_lost(words in proptest::collection::vec("[a-z]{3,8}", 1..20), tags in proptest::collection::vec(0usize..9, 20)) {
        let names = ["p", "div", "li", "td", "dd", "dt", "blockquote", "h2", "code"];
        let page: String = words.iter().zip(&tags).map(|(word, tag)| format!("<{0}>{word}</{0}>", names[*tag])).collect();
        let text = html(&page).text;
        for word in &words {
            prop_assert!(text.contains(word.as_str()), "{word} of {page} in {text}");
        }
    }
}
