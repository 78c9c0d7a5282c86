//! PDFs, written by the tests themselves, and what becomes of them.
#![allow(clippy::unwrap_used)]

mod hostile;
mod paper;

use paper::{BOLD, FIXED, PLAIN, Paper};
use rag_core::document::ParsedDocument;
use rag_parse::{DocumentContent, ParseError, ParseErrorKind};

pub(crate) fn parse(bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
    rag_parse::parse(DocumentContent::Bytes(bytes), None)
}

fn read(paper: &Paper) -> ParsedDocument {
    parse(&paper.bytes()).unwrap()
}

fn page_text(document: &ParsedDocument, page: usize) -> &str {
    let from = document.pages[page - 1].offset;
    let to = document.pages.get(page).map_or(document.text.len(), |next| next.offset);
    &document.text[from..to]
}

#[test]
fn every_page_starts_at_its_first_character_even_an_empty_one() {
    let paper = Paper::new()
        .page()
        .lines(72.0, 600.0, &["Alpha stands on the first page."])
        .page()
        .page()
        .lines(72.0, 600.0, &["Gamma stands on the third."]);
    let document = read(&paper);
    assert_eq!(document.media_type, "application/pdf");
    assert_eq!(document.text, "Alpha stands on the first page.\n\nGamma stands on the third.\n");
    assert_eq!(document.pages.iter().map(|start| start.page).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(page_text(&document, 1).trim(), "Alpha stands on the first page.");
    assert_eq!(page_text(&document, 2), "");
    assert_eq!(page_text(&document, 3).trim(), "Gamma stands on the third.");
}

#[test]
fn paragraph_goes_on_over_a_page_break_and_the_page_starts_inside_it() {
    let full = "This line of a paragraph is about as long as the column that it stands in, and so it";
    let paper = Paper::new()
        .page()
        .lines(
            72.0,
            112.0,
            &[full, "is followed by another one that is as long and ends in the middle of a sent-"],
        )
        .page()
        .lines(72.0, 700.0, &["ence that goes on here. It has an end.", "Then more."]);
    let document = read(&paper);
    assert!(document.text.contains("in the middle of a sentence that goes on here. It has an end."));
    // The page begins inside the word that was parted.
    assert!(page_text(&document, 2).starts_with("ence that goes on"));
    assert!(document.text.is_char_boundary(document.pages[1].offset));
}

#[test]
fn words_parted_at_line_ends_are_joined_and_compounds_keep_their_hyphens() {
    let paper = Paper::new().page().lines(
        72.0,
        700.0,
        &[
            "The configuration of a well-known server is written down in the configu-",
            "ration file, which any well-",
            "known editor opens. A self-",
            "contained server reads what the ASCII-",
            "Tables say.",
        ],
    );
    let text = read(&paper).text;
    assert_eq!(
        text,
        "The configuration of a well-known server is written down in the configuration file, which any well-known \
         editor opens. A self-contained server reads what the ASCII-Tables say.\n"
    );
}

#[test]
fn running_headers_footers_and_page_numbers_are_left_out() {
    let bodies = ["One apple a day.", "Two pears at noon.", "Three plums at night.", "Four figs at last."];
    let mut paper = Paper::new();
    for (index, body) in bodies.iter().enumerate() {
        paper = paper
            .page()
            .text(PLAIN, 9.0, 72.0, 760.0, "Handbook of Fruit")
            .text(PLAIN, 9.0, 500.0, 760.0, &format!("{}", index + 11))
            .lines(72.0, 600.0, &[body])
            .text(PLAIN, 9.0, 250.0, 30.0, &format!("Page {} of 4", index + 1));
    }
    assert_eq!(
        read(&paper).text,
        "One apple a day.\n\nTwo pears at noon.\n\nThree plums at night.\n\nFour figs at last.\n"
    );
}

#[test]
fn lines_that_begin_each_page_and_say_different_things_stay() {
    let firsts = ["Anna lives in Rome.", "Bert lives in Oslo.", "Cleo lives in Bonn.", "Dora lives in Bern."];
    let mut paper = Paper::new();
    for first in firsts {
        paper = paper.page().lines(72.0, 740.0, &[first, "And so on."]);
    }
    let text = read(&paper).text;
    for first in firsts {
        assert!(text.contains(first), "{first}");
    }
}

#[test]
fn larger_and_bold_lines_are_headings_by_size() {
    let paper = Paper::new()
        .page()
        .text(BOLD, 20.0, 72.0, 720.0, "The whole thing")
        .text(BOLD, 14.0, 72.0, 680.0, "1 A chapter")
        .lines(72.0, 660.0, &["Some text of the chapter that is long enough to be the usual size."])
        .text(BOLD, 10.0, 72.0, 630.0, "1.1 A section")
        .lines(72.0, 616.0, &["More text of the section, in the usual size as well, and then some."])
        .text(BOLD, 14.0, 72.0, 580.0, "2 Another chapter")
        .lines(72.0, 560.0, &["The end of the text."]);
    let document = read(&paper);
    let headings: Vec<(u8, &str)> =
        document.headings.iter().map(|heading| (heading.level, heading.title.as_str())).collect();
    assert_eq!(
        headings,
        [(1, "The whole thing"), (2, "1 A chapter"), (3, "1.1 A section"), (2, "2 Another chapter")]
    );
    assert_eq!(document.title.as_deref(), Some("The whole thing"));
    for heading in &document.headings {
        assert!(document.text[heading.bytes.clone()].ends_with(&heading.title));
    }
}

#[test]
fn outline_says_which_lines_are_headings_and_how_deep() {
    let mut paper = Paper::new().page();
    for (index, title) in ["Basics", "Doors", "Windows", "Roof"].iter().enumerate() {
        let y = 720.0 - 100.0 * index as f32;
        paper = paper
            .text(BOLD, 12.0, 72.0, y, title)
            .lines(72.0, y - 20.0, &["Some text that stands below the heading and is not part of it."])
            .text(BOLD, 10.0, 72.0, y - 45.0, "Note")
            .lines(72.0, y - 57.0, &["A remark that has a label above it which the outline does not name."]);
    }
    let paper = paper
        .bookmark(1, "Basics", 0)
        .bookmark(2, "Doors", 0)
        .bookmark(3, "Windows", 0)
        .bookmark(2, "Roof", 0);
    let headings: Vec<(u8, String)> =
        read(&paper).headings.into_iter().map(|heading| (heading.level, heading.title)).collect();
    let expected = [(1, "Basics"), (2, "Doors"), (3, "Windows"), (2, "Roof")];
    assert_eq!(headings, expected.map(|(level, title)| (level, title.to_owned())));
}

#[test]
fn two_columns_are_read_one_after_the_other() {
    let left = [
        "The left column begins here and it",
        "goes on with a second line and then",
        "with a third, a fourth and a fifth",
        "line, until it ends down here.",
    ];
    let right = [
        "The right column is read after all",
        "of the left one was read, although",
        "its lines stand beside those of the",
        "other one on the very same page.",
    ];
    let paper = Paper::new()
        .page()
        .text(BOLD, 16.0, 150.0, 720.0, "A title that goes over both of the columns")
        .lines(72.0, 680.0, &left)
        .lines(320.0, 680.0, &right);
    assert_eq!(
        read(&paper).text,
        format!(
            "# A title that goes over both of the columns\n\n{}\n\n{}\n",
            left.join(" "),
            right.join(" ")
        )
    );
}

#[test]
fn rows_and_columns_become_a_table() {
    let mut paper = Paper::new().page().lines(72.0, 720.0, &["These are the figures of last year, by town:"]);
    let rows = [["Town", "Shops", "Staff"], ["Rome", "12", "340"], ["Oslo", "7", "95"], ["Bonn", "3", "28"]];
    for (index, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let (x, y) = (72.0 + 120.0 * column as f32, 690.0 - 14.0 * index as f32);
            paper = paper.text(PLAIN, 10.0, x, y, cell);
        }
    }
    let paper = paper.lines(72.0, 610.0, &["That was all."]);
    assert_eq!(
        read(&paper).text,
        "These are the figures of last year, by town:\n\n\
         | Town | Shops | Staff |\n| --- | --- | --- |\n| Rome | 12 | 340 |\n| Oslo | 7 | 95 |\n| Bonn | 3 | 28 |\n\n\
         That was all.\n"
    );
}

#[test]
fn ruled_table_keeps_the_lines_of_a_cell_together() {
    let mut paper = Paper::new().page();
    for y in [700.0, 680.0, 640.0, 620.0] {
        paper = paper.rule((72.0, y), (400.0, y));
    }
    for x in [72.0, 200.0, 400.0] {
        paper = paper.rule((x, 700.0), (x, 620.0));
    }
    let paper = paper
        .text(PLAIN, 10.0, 76.0, 686.0, "Name")
        .text(PLAIN, 10.0, 204.0, 686.0, "Meaning")
        .text(PLAIN, 10.0, 76.0, 666.0, "alpha")
        .text(PLAIN, 10.0, 204.0, 666.0, "the first letter of the")
        .text(PLAIN, 10.0, 204.0, 652.0, "Greek | alphabet")
        .text(PLAIN, 10.0, 76.0, 626.0, "omega")
        .text(PLAIN, 10.0, 204.0, 626.0, "the last one");
    assert_eq!(
        read(&paper).text,
        "| Name | Meaning |\n| --- | --- |\n| alpha | the first letter of the Greek \\| alphabet |\n\
         | omega | the last one |\n"
    );
}

#[test]
fn lists_keep_their_items_and_levels() {
    let paper = Paper::new().page().lines(72.0, 720.0, &["What to bring to the picnic on Sunday:"]);
    let paper = paper
        .text(PLAIN, 10.0, 82.0, 706.0, "\\225 bread and butter, enough for all who come, and some more for")
        .text(PLAIN, 10.0, 92.0, 694.0, "those who come late")
        .text(PLAIN, 10.0, 100.0, 680.0, "\\225 rye bread")
        .text(PLAIN, 10.0, 82.0, 666.0, "\\225 apples")
        .text(PLAIN, 10.0, 72.0, 640.0, "Then, in this order:")
        .text(PLAIN, 10.0, 82.0, 626.0, "1. eat")
        .text(PLAIN, 10.0, 82.0, 612.0, "2. sleep");
    // The writer above escapes backslashes; the bullets are octal escapes.
    let bytes = paper.bytes();
    let bytes = String::from_utf8_lossy(&bytes).replace("\\\\225", "\\225").into_bytes();
    assert_eq!(
        parse(&bytes).unwrap().text,
        "What to bring to the picnic on Sunday:\n\n\
         - bread and butter, enough for all who come, and some more for those who come late\n  - rye bread\n- apples\n\n\
         Then, in this order:\n\n1. eat\n2. sleep\n"
    );
}

#[test]
fn typewriter_lines_are_code_with_their_indentation() {
    let paper = Paper::new()
        .page()
        .lines(72.0, 720.0, &["A function in some language, with nothing around it that would matter:"])
        .text(FIXED, 10.0, 90.0, 700.0, "fn main() {")
        .text(FIXED, 10.0, 114.0, 688.0, "say(\"hi\");")
        .text(FIXED, 10.0, 90.0, 676.0, "}")
        .lines(72.0, 650.0, &["It says hi, and that is all that it does."]);
    let text = read(&paper).text;
    assert!(text.contains("\n\n```\nfn main() {\n    say(\"hi\");\n}\n```\n\n"), "{text}");
}

#[test]
fn ligatures_and_code_maps_become_letters() {
    let mut paper = Paper::new().page();
    let map = "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> endcodespacerange \
               2 beginbfchar <41> <00480069> <42> <fb01> endbfchar endcmap end";
    let map = String::from_utf8(paper::stream("", map.as_bytes(), false)).unwrap();
    let map = paper.object(map);
    let font =
        paper.object(format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
    let paper = paper
        .text(&format!("X{font}"), 10.0, 72.0, 700.0, "A")
        .draw(&format!("BT /X{font} 10 Tf 100 700 Td (B) Tj ET BT /F1 10 Tf 105 700 Td (sh) Tj ET\n"));
    assert_eq!(read(&paper).text, "Hi fish\n");
}

#[test]
fn gaps_are_spaces_and_kerning_is_not() {
    let paper = Paper::new()
        .page()
        .draw("BT /F1 10 Tf 72 700 Td [(T) 80 (wo) -300 (words) -20 (.)] TJ 0 -12 Td (and) Tj 20 0 Td (more) Tj ET\n");
    assert_eq!(read(&paper).text, "Two words. and more\n");
}

#[test]
fn text_of_a_turned_page_is_read_upright() {
    let paper = Paper::new()
        .page()
        .draw("BT /F1 10 Tf 0 1 -1 0 100 72 Tm (First line) Tj ET BT /F1 10 Tf 0 1 -1 0 112 72 Tm (second line.) Tj ET\n")
        .page_entries("/Rotate 90");
    assert_eq!(read(&paper).text, "First line second line.\n");
}

#[test]
fn text_from_right_to_left_is_stored_in_reading_order() {
    let mut paper = Paper::new().page();
    let map = "begincmap 1 begincodespacerange <00> <ff> endcodespacerange \
               4 beginbfchar <41> <05e9> <42> <05dc> <43> <05d5> <44> <05dd> endbfchar endcmap";
    let map = String::from_utf8(paper::stream("", map.as_bytes(), false)).unwrap();
    let map = paper.object(map);
    let font =
        paper.object(format!("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode {map} 0 R >>"));
    // On the page, the first letter stands rightmost.
    let paper = paper.text(&format!("X{font}"), 10.0, 72.0, 700.0, "DCBA");
    assert_eq!(read(&paper).text, "שלום\n");
}

#[test]
fn what_a_file_says_about_itself_is_metadata() {
    let paper = Paper::new().page().lines(72.0, 700.0, &["Text."]).info(
        "/Title (Annual Report) /Author <FEFF00C4006E006E0065> /CreationDate (D:20240229120000+01'00')",
    );
    let document = read(&paper);
    assert_eq!(document.title.as_deref(), Some("Annual Report"));
    let metadata: serde_json::Value = serde_json::from_str(&document.metadata_json).unwrap();
    assert_eq!(metadata["title"], "Annual Report");
    assert_eq!(metadata["author"], "Änne");
    assert_eq!(metadata["created"], "2024-02-29T12:00:00+01:00");
    assert_eq!(metadata["language"], "en-GB");
    assert_eq!(metadata["pages"], 1);
}

#[test]
fn name_of_a_file_is_no_title() {
    let paper = Paper::new().page().lines(72.0, 700.0, &["Text."]).info("/Title (Microsoft Word - a.doc)");
    assert_eq!(read(&paper).title, None);
}

#[test]
fn headers_marked_as_such_are_left_out() {
    let paper = Paper::new()
        .page()
        .draw("/Artifact << /Type /Pagination >> BDC BT /F1 9 Tf 72 760 Td (Draft) Tj ET EMC\n")
        .lines(72.0, 700.0, &["The text itself."]);
    assert_eq!(read(&paper).text, "The text itself.\n");
}

#[test]
fn scan_is_refused_with_a_hint_at_character_recognition() {
    let mut paper = Paper::new().page().draw("q 612 0 0 792 0 0 cm /Im Do Q\n").page().draw("/Im Do\n");
    let image =
        "/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray";
    let image = paper.object(String::from_utf8(paper::stream(image, b"x", false)).unwrap());
    let paper = paper.resources(&format!("/XObject << /Im {image} 0 R >>"));
    let error = parse(&paper.bytes()).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::NotParsable);
    assert_eq!(error.message, "document has 2 pages and no text: it seems to be scanned");
    assert!(error.hint.unwrap().contains("optical character recognition"));
}

#[test]
fn text_under_a_scan_is_read() {
    let paper = Paper::new().page().draw("BT 3 Tr /F1 10 Tf 72 700 Td (Recognised words) Tj ET\n");
    assert_eq!(read(&paper).text, "Recognised words\n");
}

#[test]
fn encrypted_document_is_refused_by_name() {
    let locked = format!(
        "/Encrypt << /Filter /Standard /V 1 /R 2 /O <{0}> /U <{0}> /P -4 >> /ID [<00> <00>]",
        "5a".repeat(32)
    );
    let paper = Paper::new().page().lines(72.0, 700.0, &["Secret."]).trailer(&locked);
    let error = parse(&paper.bytes()).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::NotParsable);
    assert!(error.message.contains("encrypted"), "{}", error.message);
}
