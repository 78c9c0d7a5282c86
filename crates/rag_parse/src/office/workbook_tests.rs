//! Tests of workbooks.
#![allow(clippy::unwrap_used)]

use crate::zip::tests::archive as zipped;
use crate::{DocumentContent, ParseErrorKind, detect, parse};
use rag_core::document::ParsedDocument;
use std::time::{Duration, Instant};

const TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// A workbook of sheets, each a name (with a state after `|`) and what stands inside `<worksheet>`, with more parts.
fn workbook(sheets: &[(&str, &str)], parts: &[(&str, &str)]) -> Vec<u8> {
    let mut names = String::new();
    let mut links = String::new();
    let mut all = Vec::new();
    for (index, (name, content)) in sheets.iter().enumerate() {
        let (name, state) = name.split_once('|').unwrap_or((name, "visible"));
        names.push_str(&format!(
            r#"<sheet name="{name}" sheetId="{index}" state="{state}" r:id="s{index}"/>"#
        ));
        links.push_str(&format!(
            r#"<Relationship Id="s{index}" Type="http://x/worksheet" Target="worksheets/sheet{index}.xml"/>"#
        ));
        all.push((
            format!("xl/worksheets/sheet{index}.xml"),
            format!(r#"<worksheet xmlns="m"><dimension ref="A1:XFD1048576"/>{content}</worksheet>"#),
        ));
    }
    links.push_str(r#"<Relationship Id="t" Type="http://x/sharedStrings" Target="/xl/sharedStrings.xml"/><Relationship Id="y" Type="http://x/styles" Target="styles.xml"/><Relationship Id="p" Type="http://x/person" Target="persons/person.xml"/>"#);
    let office = format!(r#"<workbook xmlns:r="r"><workbookPr/><sheets>{names}</sheets></workbook>"#);
    all.push(("xl/workbook.xml".into(), office));
    all.push(("xl/_rels/workbook.xml.rels".into(), format!("<Relationships>{links}</Relationships>")));
    all.push((
        "[Content_Types].xml".into(),
        format!(r#"<Types><Override PartName="/xl/workbook.xml" ContentType="{TYPE}.main+xml"/></Types>"#),
    ));
    all.extend(parts.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())));
    let all: Vec<(&str, &[u8])> =
        all.iter().map(|(name, content)| (name.as_str(), content.as_bytes())).collect();
    zipped(&all)
}

fn parsed(sheets: &[(&str, &str)], parts: &[(&str, &str)]) -> ParsedDocument {
    parse(DocumentContent::Bytes(&workbook(sheets, parts)), None).unwrap()
}

/// A sheet of inline texts: rows of `A1=text` words.
fn cells(list: &str) -> String {
    let mut rows: std::collections::BTreeMap<u32, String> = std::collections::BTreeMap::new();
    for cell in list.split_whitespace() {
        let (name, text) = cell.split_once('=').unwrap();
        let row: u32 = name.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().unwrap();
        rows.entry(row)
            .or_default()
            .push_str(&format!(r#"<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>"#));
    }
    let rows: String = rows.iter().map(|(row, cells)| format!(r#"<row r="{row}">{cells}</row>"#)).collect();
    format!("<sheetData>{rows}</sheetData>")
}

#[track_caller]
fn check(content: &str, expected: &str) {
    let text = parsed(&[("S", content)], &[]).text;
    assert_eq!(text.strip_prefix("## S\n\n").unwrap().trim_end(), expected);
}

#[test]
fn each_sheet_is_a_page_under_its_name() {
    let bytes = workbook(
        &[
            ("One", &cells("A1=a B1=b A2=c B2=d")),
            ("No|hidden", &cells("A1=x")),
            ("Empty", ""),
            ("Two", &cells("A1=e")),
        ],
        &[("docProps/core.xml", "<p><title>Sales</title><creator>Ann</creator></p>")],
    );
    assert_eq!(detect(&bytes), TYPE);
    let parsed = parse(DocumentContent::Bytes(&bytes), Some(TYPE)).unwrap();
    assert_eq!(parsed.text, "## One\n\n| a | b |\n| --- | --- |\n| c | d |\n\n## Two\n\ne\n");
    let pages: Vec<(u32, &str)> =
        parsed.pages.iter().map(|page| (page.page, &parsed.text[page.offset..page.offset + 6])).collect();
    assert_eq!(pages, [(1, "## One"), (3, "## Two")]);
    assert_eq!(parsed.title.as_deref(), Some("Sales"));
    assert_eq!(parsed.metadata_json, r#"{"author":"Ann","hidden_sheets":1,"pages":3,"title":"Sales"}"#);
}

#[test]
fn values_are_shown_as_a_reader_sees_them() {
    let styles = r##"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="#,##0.00 &quot;EUR&quot;"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/><xf numFmtId="164"/></cellXfs></styleSheet>"##;
    let texts = r#"<sst><si><t>plain</t></si><si><r><t>ri</t></r><r><t xml:space="preserve">ch </t></r><rPh><t>aloud</t></rPh></si><si><t>a_x000D_b|c</t></si></sst>"#;
    let sheet = r##"<sheetData><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>2</v></c><c t="s"><v>99</v></c></row><row><c s="1"><v>45413</v></c><c s="2"><v>0.125</v></c><c s="3"><v>1234.5</v></c><c><v>0.30000000000000004</v></c></row><row><c t="b"><v>1</v></c><c t="e"><v>#DIV/0!</v></c><c t="str"><f>A1&amp;"x"</f><v>plainx</v></c><c><f>SUM(A1:A2)</f></c></row></sheetData>"##;
    let text = parsed(&[("S", sheet)], &[("xl/styles.xml", styles), ("xl/sharedStrings.xml", texts)]).text;
    assert_eq!(
        text,
        "## S\n\n| plain | rich | a b\\|c | |\n| --- | --- | --- | --- |\n| 2024-05-01 | 12.50% | 1,234.50 EUR | 0.3 |\n| TRUE | #DIV/0! | plainx | =SUM(A1:A2) |\n"
    );
}

#[test]
fn gaps_part_tables_and_labels_stay_with_their_values() {
    check(
        &cells("A1=a B1=b A2=1 B2=2 D1=c E1=d D2=3 E2=4 A5=e B5=f A6=5 B6=6"),
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |\n| --- | --- |\n| 3 | 4 |\n\n| e | f |\n| --- | --- |\n| 5 | 6 |",
    );
    check(
        &cells("B2=Voltage E2=kV F2=130 B3=Phases F3=3"),
        "| Voltage | kV | 130 |\n| --- | --- | --- |\n| Phases | | 3 |",
    );
    check(
        &cells("A1=a B1=b A2=1 B2=2 C3=c D3=d C4=3 D4=4"),
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |\n| --- | --- |\n| 3 | 4 |",
    );
    check(&cells("A1=a B1=b A3=1 B3=2 A5=3 B5=4"), "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |");
}

#[test]
fn values_above_a_table_are_its_caption() {
    check(
        &cells("A1=Report A2=draft A3=a B3=b A4=1 B4=2"),
        "Report\n\ndraft\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
    );
    check(&cells("A1=Industry A2=Sales A3=Other"), "| Industry |\n| --- |\n| Sales |\n| Other |");
}

#[test]
fn merged_cells_repeat_their_value() {
    let merged = |list: &str, ranges: &[&str]| {
        let ranges: String = ranges.iter().map(|range| format!(r#"<mergeCell ref="{range}"/>"#)).collect();
        format!("{}<mergeCells>{ranges}</mergeCells>", cells(list))
    };
    check(
        &merged("A1=Title A2=Year B2=Sold A3=2024 B3=1 C3=2 B4=3 C4=4", &["A1:C1", "B2:C2", "A3:A4"]),
        "Title\n\n| Year | Sold | Sold |\n| --- | --- | --- |\n| 2024 | 1 | 2 |\n| 2024 | 3 | 4 |",
    );
    check(&merged("A1=x B1=y A2=z", &["A2:XFD1048576"]), "| x | y |\n| --- | --- |\n| z | |");
}

#[test]
fn comments_boxes_and_charts_follow_their_sheet() {
    let rels = |links: &str| format!("<Relationships>{links}</Relationships>");
    let sheet = rels(
        r#"<Relationship Id="a" Type="x/comments" Target="../comments1.xml"/><Relationship Id="b" Type="x/threadedComment" Target="../threads.xml"/><Relationship Id="c" Type="x/drawing" Target="../drawings/d.xml"/>"#,
    );
    let text = parsed(
        &[("S", &cells("A1=a"))],
        &[
            ("xl/worksheets/_rels/sheet0.xml.rels", &sheet),
            ("xl/comments1.xml", r#"<comments><authors><author>Ann</author><author>tc={1}</author></authors><commentList><comment ref="A1" authorId="0"><text><r><t>Ann:</t></r><r><t>
why?</t></r></text></comment><comment ref="B2" authorId="1"><text><t>[Threaded comment]</t></text></comment></commentList></comments>"#),
            ("xl/threads.xml", r#"<ThreadedComments><threadedComment ref="B2" dT="2026-06-18T17:12:57.35" personId="{p}"><text>because</text></threadedComment></ThreadedComments>"#),
            ("xl/persons/person.xml", r#"<personList><person displayName="Bob" id="{p}"/></personList>"#),
            ("xl/drawings/d.xml", r#"<wsDr><sp><txBody><p><r><t>In a </t></r><r><t>box</t></r></p></txBody></sp></wsDr>"#),
            ("xl/drawings/_rels/d.xml.rels", &rels(r#"<Relationship Id="a" Type="x/chart" Target="../charts/c.xml"/>"#)),
            ("xl/charts/c.xml", r#"<chartSpace><chart><title><tx><rich><p><r><t>Ducks</t></r></p></rich></tx></title><ser><tx><v>Sea</v></tx><cat><pt idx="0"><v>2019</v></pt></cat><val><pt idx="0"><v>80</v></pt></val></ser></chart></chartSpace>"#),
        ],
    )
    .text;
    assert_eq!(
        text,
        "## S\n\na\n\nDucks\n\n| | Sea |\n| --- | --- |\n| 2019 | 80 |\n\nIn a box\n\nComment on A1 by Ann: why?\n\nComment on B2 by Bob, 2026-06-18: because\n"
    );
}

#[test]
fn a_damaged_or_hostile_workbook_is_refused_and_an_odd_one_is_read() {
    let refused =
        |sheet: &str| parse(DocumentContent::Bytes(&workbook(&[("S", sheet)], &[])), None).unwrap_err().kind;
    assert_eq!(refused("<sheetData><row><c>"), ParseErrorKind::NotParsable);
    assert_eq!(refused(&"<a>".repeat(1_000_000)), ParseErrorKind::LimitExceeded);
    let bytes = workbook(&[("S", &cells("A1=a"))], &[]);
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        assert!(parse(DocumentContent::Bytes(&bytes[..length]), Some(TYPE)).is_err(), "{length}");
    }
    assert_eq!(
        parse(DocumentContent::Text("a,b"), Some(TYPE)).unwrap_err().message,
        format!("content is text/plain, not {TYPE}")
    );
    let odd = r#"<sheetData><row r="0"><c r="A0" t="s"><v>-1</v></c><c r="ZZZZZZZZZZ9"><v>1</v></c><c r="1A"><v>x y</v></c></row><row r="99999999999"><c r="A4294967295"><v>1</v></c></row></sheetData><mergeCells><mergeCell ref="B2:A1"/><mergeCell ref=":"/></mergeCells>"#;
    assert_eq!(parsed(&[("S", odd)], &[]).text, "## S\n\n| 1 | x y |\n| --- | --- |\n");
}

#[test]
fn large_and_sparse_sheets_are_read_in_linear_time() {
    let started = Instant::now();
    let row = |n: usize| format!(r#"<row r="{n}"><c><v>{n}</v></c><c><v>1</v></c></row>"#);
    let dense: String = (1..=50_000).map(row).collect();
    assert_eq!(
        parsed(&[("S", &format!("<sheetData>{dense}</sheetData>"))], &[]).text.lines().count(),
        50_003
    );
    // A chess board: every cell is alone.
    let board: String = (1..=2_000)
        .map(|n| {
            let cells: String = (0..20)
                .map(|i| format!(r#"<c r="{}{n}"><v>1</v></c>"#, char::from(b'A' + (i + n as u8 % 2) % 26)))
                .collect();
            format!(r#"<row r="{n}">{cells}</row>"#)
        })
        .collect();
    parsed(&[("S", &format!("<sheetData>{board}</sheetData>"))], &[]);
    // Rows far apart, and a value at the end of each.
    let far: String = (1..=2_000)
        .map(|n| {
            format!(
                r#"<row r="{}"><c r="A{}"><v>1</v></c><c r="XFD{0}"><v>2</v></c></row>"#,
                n * 500,
                n * 500
            )
        })
        .collect();
    parsed(&[("S", &format!("<sheetData>{far}</sheetData>"))], &[]);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
