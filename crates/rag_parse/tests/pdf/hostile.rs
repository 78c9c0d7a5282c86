//! PDFs that are broken, or made to hurt. None may panic, run on, or take memory without end.

use crate::paper::{self, Paper};
use crate::parse;
use proptest::prelude::*;
use rag_parse::ParseErrorKind;
use std::time::{Duration, Instant};

fn sample() -> Vec<u8> {
    Paper::new()
        .page()
        .lines(72.0, 700.0, &["A first page with some words.", "And a second line of them."])
        .page()
        .lines(72.0, 700.0, &["The second page."])
        .bookmark(1, "The second page.", 1)
        .info("/Title (A sample)")
        .compressed()
        .bytes()
}

#[test]
fn truncated_file_gives_what_is_left_or_a_reason() {
    let bytes = sample();
    let mut read = 0;
    for length in (0..bytes.len()).step_by(7) {
        match parse(&bytes[..length]) {
            Ok(document) => read += usize::from(document.text.contains("words")),
            Err(error) => assert!(!error.message.is_empty()),
        }
    }
    assert!(read > 0, "a file without its last bytes can be read");
}

#[test]
fn file_without_pages_is_damaged() {
    let error = parse(b"%PDF-1.7\nno more than this\n").unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::NotParsable);
    assert!(error.message.starts_with("PDF is damaged"), "{}", error.message);
}

#[test]
fn page_tree_that_bites_its_tail_ends() {
    let bytes = String::from_utf8_lossy(&Paper::new().page().lines(72.0, 700.0, &["x"]).bytes()).into_owned();
    let bytes = bytes.replace("/Kids [7 0 R ]", "/Kids [2 0 R 7 0 R 2 0 R]");
    assert_eq!(parse(bytes.as_bytes()).unwrap().text, "x\n");
}

#[test]
fn outline_that_bites_its_tail_ends() {
    let paper = Paper::new().page().lines(72.0, 700.0, &["One"]).bookmark(1, "One", 0).bookmark(1, "Two", 0);
    let bytes = String::from_utf8_lossy(&paper.bytes()).into_owned();
    let bytes = bytes.replace("/Next 11 0 R", "/Next 10 0 R");
    assert!(parse(bytes.as_bytes()).is_ok());
}

#[test]
fn form_that_draws_itself_ends() {
    let mut paper = Paper::new().page().draw("/Me Do\n");
    let form = "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> \
                /XObject << /Me 7 0 R >> >>";
    let content = b"BT /F1 10 Tf 72 700 Td (again) Tj ET /Me Do";
    let number = paper.object(String::from_utf8(paper::stream(form, content, false)).unwrap());
    assert_eq!(number, 7);
    let paper = paper.resources("/XObject << /Me 7 0 R >>");
    assert_eq!(parse(&paper.bytes()).unwrap().text, "again\n");
}

/// Sixteen forms that each draw the next one ten times would be 10¹⁶ drawings.
#[test]
fn forms_that_multiply_are_stopped() {
    let started = Instant::now();
    let mut paper = Paper::new().page().draw("/N Do\n");
    for depth in 0..16 {
        let form = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /N {} 0 R >> >>",
            8 + depth
        );
        paper.object(String::from_utf8(paper::stream(&form, "/N Do ".repeat(10).as_bytes(), false)).unwrap());
    }
    let paper = paper.resources("/XObject << /N 7 0 R >>");
    let error = parse(&paper.bytes()).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::LimitExceeded, "{}", error.message);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// A zlib stream that becomes this many megabytes of spaces: blocks of one megabyte, the same over and over.
fn bomb(megabytes: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 << 16);
    let mut encoder = flate2::Compress::new(flate2::Compression::best(), true);
    encoder.compress_vec(&vec![b' '; 1 << 20], &mut block, flate2::FlushCompress::Sync).unwrap();
    let (header, block) = block.split_at(2);
    [header, &block.repeat(megabytes)].concat()
}

#[test]
fn page_description_that_swells_is_refused_before_it_is_unpacked() {
    let bomb = bomb(300);
    let mut bytes = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
        2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n\
        3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>\nendobj\n"
        .to_vec();
    bytes.extend(format!("4 0 obj\n<< /Filter /FlateDecode /Length {} >>\nstream\n", bomb.len()).as_bytes());
    bytes.extend(&bomb);
    bytes.extend(b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R /Size 5 >>\n%%EOF\n");
    let error = parse(&bytes).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::LimitExceeded, "{}", error.message);
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let deep = "[".repeat(500_000);
    let paper = Paper::new().page().lines(72.0, 700.0, &["Still here."]).draw(&deep).draw(" TJ\n");
    let _ = parse(&paper.bytes());
    let paper = Paper::new().page().lines(72.0, 700.0, &["Still here."]).info(&format!("/Deep {deep}"));
    let _ = parse(&paper.bytes());
    let saved = "q ".repeat(500_000);
    let paper = Paper::new().page().draw(&saved).lines(72.0, 700.0, &["Still here."]);
    assert_eq!(parse(&paper.bytes()).unwrap().text, "Still here.\n");
}

#[test]
fn absurd_numbers_are_survived() {
    let huge = format!("1{}", "0".repeat(38));
    let tiny = format!("0.{}1", "0".repeat(38));
    let matrices = [
        format!("{huge} 0 0 {huge} {huge} {huge}"),
        "0 0 0 0 0 0".to_owned(),
        format!("1 0 0 1 -{huge} 0"),
        format!("{tiny} 0 0 1 0 0"),
    ];
    for matrix in matrices {
        let paper = Paper::new()
            .page()
            .draw(&format!(
                "q {matrix} cm BT /F1 {huge} Tf (lost) Tj 0 Tz (lost) Tj ET 0 0 {huge} {huge} re f Q\n"
            ))
            .lines(72.0, 700.0, &["found"]);
        assert!(parse(&paper.bytes()).unwrap().text.contains("found"), "{matrix}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn bytes_that_were_changed_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24),
    ) {
        let mut bytes = sample();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(document) = parse(&bytes) {
            prop_assert!(document.pages.windows(2).all(|pair| pair[0].offset <= pair[1].offset));
            prop_assert!(document.pages.iter().all(|start| document.text.is_char_boundary(start.offset)));
        }
    }

    #[test]
    fn any_operators_are_survived(content in "[\\[\\]()<>/ 0-9.a-zA-Z*'\"\\\\-]{0,400}") {
        let paper = Paper::new().page().draw(&content).draw("\n").lines(72.0, 700.0, &["end"]);
        let _ = parse(&paper.bytes());
    }
}
