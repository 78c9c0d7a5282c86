//! Tests of mail.
#![allow(clippy::unwrap_used)]

use super::super::{DocumentContent, ParseErrorKind, detect, parse};
use super::*;
use std::time::{Duration, Instant};

const HEADER: &str = "From: Ann <ann@example.org>\nTo: Bob <bob@example.org>\nDate: Wed, 1 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\nSubject: Plans\n";

fn mail(text: &str) -> ParsedDocument {
    parse(DocumentContent::Bytes(text.as_bytes()), Some("message/rfc822")).unwrap()
}

#[track_caller]
fn check_body(headers_and_body: &str, expected: &str) {
    let parsed = mail(&format!("{HEADER}{headers_and_body}"));
    let body = parsed.text.split_once("+02:00\n").unwrap().1;
    assert_eq!(body.trim(), expected, "{}", parsed.text);
}

#[test]
fn a_message_becomes_its_subject_a_few_lines_and_its_words() {
    let text =
        format!("{HEADER}In-Reply-To: <0@example.org>\n\nHello Bob,\n\n> you wrote\nsee you.\n-- \nAnn\n");
    assert_eq!(detect(text.as_bytes()), "message/rfc822");
    let parsed = parse(DocumentContent::Bytes(text.replace('\n', "\r\n").as_bytes()), None).unwrap();
    assert_eq!(parsed.title.as_deref(), Some("Plans"));
    assert_eq!(
        parsed.text,
        "# Plans\n\nFrom: Ann <ann@example.org>\nTo: Bob <bob@example.org>\nDate: 2024-05-01T10:00:00+02:00\n\nHello Bob,\n\n> you wrote\nsee you.\n\\--\nAnn\n"
    );
    assert_eq!(
        parsed.metadata_json,
        r#"{"author":"Ann <ann@example.org>","created":"2024-05-01T10:00:00+02:00","from":"Ann <ann@example.org>","in_reply_to":"0@example.org","message_id":"1@example.org","subject":"Plans","title":"Plans","to":"Bob <bob@example.org>"}"#
    );
}

#[test]
fn bodies_are_decoded_and_encoded_words_are_read() {
    let parsed = mail("Subject: =?utf-8?B?R3LDvMOfZQ==?= =?iso-8859-1?Q?_=E4?=\nFrom: a@b\n\nx");
    assert_eq!(parsed.title.as_deref(), Some("Grüße ä"));
    check_body(
        "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=\n=DFe",
        "Grüße",
    );
    check_body(
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nR3LDvMOf\nZQ==\n",
        "Grüße",
    );
    let mut bytes = HEADER.as_bytes().to_vec();
    bytes.extend(b"X-Name: Zo\xeb\n\nDer gr\xfcne B\xe4r l\xe4uft \xfcber die Stra\xdfe.");
    let text = parse(DocumentContent::Bytes(&bytes), None).unwrap().text;
    assert!(text.contains("Der grüne Bär läuft über die Straße."), "{text}");
    check_body(
        "Content-Type: text/plain; format=flowed\n\none \ntwo\nthree \n> four",
        "one two\nthree\n> four",
    );
}

#[test]
fn the_plain_version_is_taken_unless_the_other_says_more() {
    let versions = |plain: &str, rich: &str| {
        format!(
            "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n{plain}\n--b\nContent-Type: text/html\n\n{rich}\n--b--\n"
        )
    };
    check_body(&versions("One two three.", "<p>One <b>two</b> three.</p>"), "One two three.");
    let table = "<table><tr><th>a<th>b<tr><td>1<td>2</table><h2>More</h2><p>words and words</p>";
    check_body(
        &versions("See HTML.", table),
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n### More\n\nwords and words",
    );
    check_body("Content-Type: text/html\n\n<p>only</p>", "only");
}

#[test]
fn attached_text_follows_and_other_attachments_are_named() {
    let parsed = mail(&format!(
        "{HEADER}Content-Type: multipart/mixed; boundary=\"x y\"\n\npreamble\n--x y\n\nHello.\n--x y\nContent-Type: text/csv; name=t.csv\nContent-Disposition: attachment\n\na,b\n1,2\n--x y\nContent-Type: application/pdf\nContent-Disposition: attachment; filename*=utf-8''%C3%BCber.pdf\nContent-Transfer-Encoding: base64\n\nAAAA\n--x y\nContent-Type: image/png\n\nxyz\n--x y--\nepilogue\n"
    ));
    let body = parsed.text.split_once("+02:00\n\n").unwrap().1;
    assert_eq!(
        body,
        "Hello.\n\n## t.csv\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nAttachments:\n\n- über.pdf (application/pdf, 3 bytes)\n- image/png, 3 bytes\n"
    );
    assert!(
        parsed.metadata_json.contains(r#""attachments":["t.csv","über.pdf"]"#),
        "{}",
        parsed.metadata_json
    );
}

#[test]
fn a_forwarded_message_follows_under_its_own_subject() {
    check_body(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee below.\n--b\nContent-Type: message/rfc822\n\nFrom: c@d\nSubject: Inner\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\nInner words.\n--c--\n--b--\n",
        "See below.\n\n## Inner\n\nFrom: c@d\n\nInner words.",
    );
}

#[test]
fn a_mailbox_is_one_document_with_a_section_for_each_message() {
    let text = format!(
        "From ann@example.org Wed May  1 10:00:00 2024\n{HEADER}\nFirst.\n\nFrom bob@example.org Thu May  2 10:00:00 2024\nFrom: b@c\nDate: x\nSubject: Two\n\nFrom here on.\n"
    );
    let parsed = parse(DocumentContent::Text(&text), None).unwrap();
    let titles: Vec<&str> = parsed.headings.iter().map(|heading| heading.title.as_str()).collect();
    assert_eq!((titles, parsed.title), (vec!["Plans", "Two"], None));
    assert!(parsed.text.ends_with("From: b@c\n\nFrom here on.\n"), "{}", parsed.text);
}

#[test]
fn text_that_only_resembles_mail_stays_text() {
    for text in [
        "From: Ann\nTo: Bob\n\nA memo.",
        "Date: today\nFrom: the start\nthis is not a header\n\n",
        "From: x\nDate: y",
        "Note: this\n\nFrom: x\nDate: y\n\n",
        "",
    ] {
        assert_eq!(detect(text.as_bytes()), "text/plain", "{text}");
    }
}

#[test]
fn broken_boundaries_and_bodies_lose_no_words() {
    check_body("Content-Type: multipart/mixed; boundary=never\n\nwords\n", "words");
    check_body("Content-Type: multipart/mixed; boundary=b\n\n--b\n\nwords that", "words that");
    check_body("Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\nnot base64!", "not base64!");
    assert_eq!(mail("no header at all").text, "# Message\n");
    assert_eq!(mail("").text, "# Message\n");
}

#[test]
fn nesting_and_parts_have_limits() {
    let started = Instant::now();
    let forwarded = "Content-Type: message/rfc822\n\n".repeat(100_000);
    let nested: String =
        (0..1_000).map(|i| format!("Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n")).collect();
    let digest = "Content-Type: multipart/digest; boundary=b\n\n--b\n\n".repeat(10_000);
    let many = format!("Content-Type: multipart/mixed; boundary=b\n\n{}", "--b\n\nx\n".repeat(100_000));
    for text in [forwarded, nested, many] {
        let error = parse(DocumentContent::Text(&format!("{HEADER}{text}")), None).unwrap_err();
        assert_eq!(error.kind, ParseErrorKind::LimitExceeded, "{error}");
    }
    let _ = parse(DocumentContent::Text(&format!("{HEADER}{digest}")), None);
    let never =
        format!("{HEADER}Content-Type: multipart/mixed; boundary=b\n\n{}", "--c\n\nx\n".repeat(100_000));
    assert!(parse(DocumentContent::Text(&never), None).is_ok());
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

#[test]
fn a_nul_in_a_header_does_not_reach_the_text() {
    let parsed = mail("From: ann@example.org\nSubject: Seen\nContent-Type: \0\0\0text/plain\n\nDear Bob,\n");
    assert!(parsed.text.contains("Seen") && !parsed.text.contains('\0'), "{:?}", parsed.text);
    assert!(!parsed.metadata_json.contains("u0000"), "{}", parsed.metadata_json);
}
