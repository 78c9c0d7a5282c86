//! What text documents become.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::zip::tests::archive;

const STYLES: &str = r#"<w:styles xmlns:w="w"><w:docDefaults><w:rPrDefault><w:rPr><w:lang w:val="de-AT"/></w:rPr></w:rPrDefault></w:docDefaults>
<w:style w:type="paragraph" w:default="1" w:styleId="Standard"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="Author"><w:name w:val="Author"/><w:basedOn w:val="Titel"/></w:style>
<w:style w:type="paragraph" w:styleId="OurTitle"><w:name w:val="Our Title"/><w:basedOn w:val="Titel"/></w:style>
<w:style w:type="paragraph" w:styleId="ListContinue"><w:name w:val="List Continue"/></w:style>
<w:style w:type="paragraph" w:styleId="Untertitel"><w:name w:val="Subtitle"/><w:basedOn w:val="Titel"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="7"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Eigene"><w:name w:val="My own"/><w:basedOn w:val="berschrift2"/></w:style>
<w:style w:type="paragraph" w:styleId="Heading4"><w:name w:val="Titre 4"/></w:style>
<w:style w:type="paragraph" w:styleId="Loop1"><w:name w:val="a"/><w:basedOn w:val="Loop2"/></w:style>
<w:style w:type="paragraph" w:styleId="Loop2"><w:name w:val="b"/><w:basedOn w:val="Loop1"/></w:style>
<w:style w:type="paragraph" w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Source Code"/></w:style>
<w:style w:type="paragraph" w:styleId="Zitat"><w:name w:val="Intense Quote"/></w:style>
<w:style w:type="paragraph" w:styleId="ListBullet"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="ListBullet2"><w:name w:val="List Bullet 2"/><w:pPr><w:numPr><w:numId w:val="6"/></w:numPr></w:pPr></w:style>
<w:style w:type="character" w:styleId="Fett"><w:name w:val="Strong"/><w:rPr><w:b/></w:rPr></w:style>
<w:style w:type="character" w:styleId="VerbatimChar"><w:name w:val="Verbatim Char"/></w:style>
</w:styles>"#;

const NUMBERING: &str = r#"<w:numbering xmlns:w="w">
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%2)"/></w:lvl>
<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="%1.%2.%3"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="6"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="5"><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/><w:lvlText w:val=" "/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="Part %1:"/><w:pStyle w:val="berschrift1"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="8"><w:numStyleLink w:val="Liste"/></w:abstractNum>
<w:abstractNum w:abstractNumId="9"><w:styleLink w:val="Liste"/><w:lvl w:ilvl="0"><w:start w:val="5"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1)"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="2"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="4"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>
<w:num w:numId="6"><w:abstractNumId w:val="6"/></w:num><w:num w:numId="5"><w:abstractNumId w:val="5"/></w:num><w:num w:numId="7"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="8"><w:abstractNumId w:val="8"/></w:num>
<w:num w:numId="99"><w:abstractNumId w:val="99"/></w:num>
</w:numbering>"#;

const LINKS: &str = r#"<Relationships>
<Relationship Id="s" Type="http://purl.oclc.org/ooxml/officeDocument/relationships/styles" Target="styles.xml"/>
<Relationship Id="n" Type="http://x/relationships/numbering" Target="/word/numbering.xml"/>
<Relationship Id="f" Type="http://x/relationships/footnotes" Target="footnotes.xml"/>
<Relationship Id="e" Type="http://x/relationships/endnotes" Target="endnotes.xml"/>
<Relationship Id="web" Type="http://x/relationships/hyperlink" Target="https://example.org/a b" TargetMode="External"/>
<Relationship Id="evil" Type="http://x/relationships/hyperlink" Target="javascript:alert(1)" TargetMode="External"/>
<Relationship Id="chart" Type="http://x/relationships/chart" Target="charts/chart1.xml"/>
</Relationships>"#;

const FOOTNOTES: &str = r#"<w:footnotes xmlns:w="w"><w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>
<w:footnote w:id="1"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> First note.</w:t></w:r></w:p><w:p><w:r><w:t>It goes on.</w:t></w:r></w:p></w:footnote>
<w:footnote w:id="2"><w:p><w:r><w:t>Second note.</w:t></w:r></w:p></w:footnote></w:footnotes>"#;

const ENDNOTES: &str = r#"<w:endnotes xmlns:w="w"><w:endnote w:id="1"><w:p><w:r><w:t>At the end.</w:t></w:r></w:p></w:endnote></w:endnotes>"#;

const CORE: &str = r#"<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t"><dc:title>Pumps</dc:title><dc:creator>Ada; Grace</dc:creator>
<dcterms:created>2024-05-06T07:08:09Z</dcterms:created><dcterms:modified>2025-01-02T03:04:05Z</dcterms:modified>
<dc:subject>S</dc:subject><cp:keywords>k, l</cp:keywords><cp:lastModifiedBy>Eve</cp:lastModifiedBy></cp:coreProperties>"#;

pub(super) const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

pub(super) const TYPES: &str = r#"<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;

pub(super) fn file(body: &str) -> Vec<u8> {
    let document = format!(r#"<w:document xmlns:w="w"><w:body>{body}</w:body></w:document>"#);
    archive(&[
        ("[Content_Types].xml", TYPES),
        ("word/_rels/document.xml.rels", LINKS),
        ("word/document.xml", &document),
        ("word/styles.xml", STYLES),
        ("word/numbering.xml", NUMBERING),
        ("word/footnotes.xml", FOOTNOTES),
        ("word/endnotes.xml", ENDNOTES),
        ("word/charts/chart1.xml", CHART),
        ("docProps/core.xml", CORE),
    ])
}

const CHART: &str = r#"<c:chartSpace><c:chart><c:title><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:title><c:plotArea>
<c:ser><c:tx><c:strRef><c:f>Sheet1!B1</c:f><c:strCache><c:pt idx="0"><c:v>2023</c:v></c:pt></c:strCache></c:strRef></c:tx>
<c:cat><c:strRef><c:strCache><c:pt idx="0"><c:v>East</c:v></c:pt><c:pt idx="1"><c:v>West</c:v></c:pt></c:strCache></c:strRef></c:cat>
<c:val><c:numRef><c:f>x</c:f><c:numCache><c:pt idx="0"><c:v>4.3</c:v></c:pt><c:pt idx="1"><c:v>2</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser>
</c:plotArea></c:chart></c:chartSpace>"#;

pub(super) fn parsed(body: &str) -> ParsedDocument {
    crate::parse(crate::DocumentContent::Bytes(&file(body)), None).unwrap()
}

pub(super) fn check(body: &str, expected: &str) {
    assert_eq!(parsed(body).text.trim_end(), expected, "{body}");
}

pub(super) fn p(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

pub(super) fn styled(style: &str, text: &str) -> String {
    format!(r#"<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#)
}

pub(super) fn item(list: u32, level: u32, text: &str) -> String {
    format!(
        r#"<w:p><w:pPr><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#
    )
}

pub(super) fn cell(properties: &str, content: &str) -> String {
    format!("<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>")
}

fn run(properties: &str, content: &str) -> String {
    format!("<w:r><w:rPr>{properties}</w:rPr>{content}</w:r>")
}

#[test]
fn headings_are_known_by_their_styles_in_any_language() {
    let body = [
        styled("Titel", "The title"),
        styled("Untertitel", "A subtitle"),
        styled("Author", "Ada Lovelace"),
        styled("OurTitle", "Another"),
        styled("berschrift1", "One"),
        styled("berschrift2", "Two"),
        styled("Eigene", "Own"),
        styled("Heading4", "Quatre"),
        r#"<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>By outline</w:t></w:r></w:p>"#.to_owned(),
        r#"<w:p><w:pPr><w:pStyle w:val="berschrift2"/><w:outlineLvl w:val="9"/></w:pPr><w:r><w:t>No longer</w:t></w:r></w:p>"#.to_owned(),
        styled("Loop1", "In a circle"),
        styled("berschrift2", &"long ".repeat(100)),
    ]
    .concat();
    let document = parsed(&body);
    let headings: Vec<_> =
        document.headings.iter().map(|heading| (heading.level, heading.title.as_str())).collect();
    let expected = [
        (1, "The title"),
        (1, "Another"),
        (2, "Part I: One"),
        (3, "Two"),
        (3, "Own"),
        (5, "Quatre"),
        (4, "By outline"),
    ];
    assert_eq!(headings, expected);
    for heading in &document.headings {
        let line = format!("{} {}", "#".repeat(heading.level.into()), heading.title);
        assert_eq!(document.text[heading.bytes.clone()], line);
    }
}

#[test]
fn a_heading_is_its_words_without_formatting() {
    let body = r#"<w:p><w:pPr><w:pStyle w:val="berschrift2"/></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t>Bold</w:t></w:r><w:r><w:br/><w:t>word</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>"#;
    check(body, "### Bold word[^1]\n\n[^1]: Second note.");
}

#[test]
fn lists_are_numbered_as_word_shows_them() {
    let body = [
        item(1, 0, "a"),
        item(1, 1, "b"),
        item(1, 1, "c"),
        item(1, 2, "d"),
        p("between"),
        item(1, 0, "e"),
        item(1, 1, "f"),
        item(3, 0, "shares its counter"),
        item(4, 0, "begins anew"),
        item(4, 0, "goes on"),
        item(8, 0, "by a linked style"),
        item(99, 0, "no such definition"),
        item(0, 0, "no list"),
    ]
    .concat();
    check(
        &body,
        "1. a\n   - (a) b\n   - (b) c\n     - 1.b.i d\n\nbetween\n\n2. e\n   - (a) f\n\n3. shares its counter\n\n1. begins anew\n2. goes on\n\n5) by a linked style\n\nno such definition\n\nno list",
    );
}

#[test]
fn bullets_nest_and_come_from_styles() {
    check(
        &[styled("ListBullet", "a"), styled("ListBullet2", "b"), styled("ListBullet", "c")].concat(),
        "- a\n  - b\n- c",
    );
    let body = [styled("ListBullet", "a"), item(2, 1, "b"), item(2, 1, ""), item(2, 0, "c"), p("d")].concat();
    check(&body, "- a\n  - b\n- c\n\nd");
}

#[test]
fn items_of_several_paragraphs_stay_together() {
    let body = [
        item(1, 0, "a"),
        item(1, 1, "b"),
        item(5, 1, "goes on"),
        styled("ListContinue", "and on"),
        item(1, 0, "c"),
        p("d"),
    ]
    .concat();
    check(&body, "1. a\n   - (a) b\n\n     goes on\n\n     and on\n2. c\n\nd");
    check(&styled("ListContinue", "nothing before"), "nothing before");
}

#[test]
fn formatting_of_runs_is_kept() {
    let body = format!(
        "<w:p>{}{}{}{}{}{}{}</w:p>",
        run("<w:b/>", "<w:t>bold</w:t>"),
        run("", r#"<w:t xml:space="preserve"> not </w:t>"#),
        run(r#"<w:rStyle w:val="Fett"/><w:i/>"#, r#"<w:t xml:space="preserve">both </w:t>"#),
        run(r#"<w:b w:val="0"/><w:strike/>"#, "<w:t>gone</w:t>"),
        run("", "<w:tab/><w:t>x</w:t>"),
        run(r#"<w:vertAlign w:val="superscript"/>"#, "<w:t>2</w:t>"),
        run("<w:vanish/>", "<w:t>hidden</w:t>")
    );
    check(&body, "**bold** not ***both*** ~~gone~~ x^2");
    let code = format!(
        "<w:p>{}{}</w:p>",
        run("", r#"<w:t xml:space="preserve">call </w:t>"#),
        run(r#"<w:rFonts w:ascii="Consolas"/>"#, "<w:t>f(*x)</w:t>")
    );
    check(&code, "call `f(*x)`");
    let symbols = format!(
        "<w:p>{}{}</w:p>",
        run(r#"<w:rFonts w:ascii="Symbol"/>"#, "<w:t>\u{f061} = \u{f0a5}</w:t>"),
        run(
            "",
            r#"<w:sym w:font="Wingdings" w:char="F0E0"/><w:sym w:font="Wingdings" w:char="F001"/><w:t>b</w:t>"#
        )
    );
    check(&symbols, "α = ∞→b");
    check(
        r#"<w:p><w:pPr><w:framePr w:dropCap="drop"/></w:pPr><w:r><w:t>T</w:t></w:r></w:p><w:p><w:r><w:t>he end</w:t></w:r></w:p>"#,
        "The end",
    );
}

#[test]
fn links_lead_outside_or_are_plain_text() {
    let body = r#"<w:p><w:hyperlink r:id="web"><w:r><w:t>site</w:t></w:r></w:hyperlink><w:r><w:t xml:space="preserve"> and </w:t></w:r><w:hyperlink r:id="evil"><w:r><w:t>script</w:t></w:r></w:hyperlink><w:hyperlink w:anchor="top"><w:r><w:t xml:space="preserve"> top</w:t></w:r></w:hyperlink></w:p>"#;
    check(body, "[site](https://example.org/a%20b) and script top");
    let field = r#"<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> HYPERLINK "http://x.y" </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>here</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>!</w:t></w:r></w:p>"#;
    check(field, "[here](http://x.y)!");
}

#[test]
fn fields_show_their_results() {
    let begin = r#"<w:r><w:fldChar w:fldCharType="begin"/></w:r>"#;
    let separate = r#"<w:r><w:fldChar w:fldCharType="separate"/></w:r>"#;
    let end = r#"<w:r><w:fldChar w:fldCharType="end"/></w:r>"#;
    let instruction = r#"<w:r><w:instrText>REF x</w:instrText></w:r>"#;
    let nested = format!(
        "<w:p>{begin}{instruction}{begin}{instruction}{separate}<w:r><w:t>inner</w:t></w:r>{end}{separate}<w:r><w:t>outer</w:t></w:r>{end}</w:p>"
    );
    check(&nested, "outer");
    let open = format!("<w:p>{begin}{instruction}</w:p>{}", p("after"));
    check(&open, "after");
    let deep = format!(
        "<w:p>{}<w:r><w:t>x</w:t></w:r>{}</w:p>{}",
        format!("{begin}{separate}").repeat(50_000),
        end.repeat(50_000),
        p("y")
    );
    check(&deep, "x\n\ny");
    check(r#"<w:p><w:fldSimple w:instr="DATE"><w:r><w:t>today</w:t></w:r></w:fldSimple></w:p>"#, "today");
}

#[test]
fn deletions_are_left_out_and_insertions_kept() {
    let body = r#"<w:p><w:r><w:t>a</w:t></w:r><w:del><w:r><w:delText>b</w:delText></w:r></w:del><w:ins><w:r><w:t>c</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>d</w:t></w:r></w:moveFrom></w:p><w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t xml:space="preserve">joined </w:t></w:r></w:p><w:p><w:r><w:t>up</w:t></w:r></w:p>"#;
    check(body, "ac\n\njoined up");
}

#[test]
fn notes_stand_after_the_paragraph_that_calls_them() {
    let body = format!(
        r#"<w:p><w:r><w:t>Text</w:t></w:r><w:r><w:footnoteReference w:id="1"/></w:r><w:r><w:t xml:space="preserve"> and</w:t></w:r><w:r><w:endnoteReference w:id="1"/></w:r></w:p>{}<w:p><w:r><w:t>Again</w:t></w:r><w:r><w:footnoteReference w:id="1"/></w:r><w:r><w:footnoteReference w:id="404"/></w:r></w:p>"#,
        p("next")
    );
    check(
        &body,
        "Text[^1] and[^i]\n\n[^1]: First note. It goes on.\n\n[^i]: At the end.\n\nnext\n\nAgain[^1]",
    );
}

#[test]
fn notes_of_list_items_wait_for_the_end_of_the_list() {
    let body = [
        r#"<w:p><w:pPr><w:pStyle w:val="ListBullet"/></w:pPr><w:r><w:t>a</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>"#,
        &styled("ListBullet", "b"),
        &p("c"),
    ]
    .concat();
    check(&body, "- a[^1]\n- b\n\n[^1]: Second note.\n\nc");
}

#[test]
fn tables_keep_merged_cells_in_their_columns() {
    let body = format!(
        "<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}{}</w:tr><w:tr>{}{}{}</w:tr></w:tbl>",
        cell(r#"<w:gridSpan w:val="2"/>"#, &p("wide")),
        cell("", &p("C")),
        cell(r#"<w:vMerge w:val="restart"/>"#, &p("tall")),
        cell("", &format!("{}{}", p("one"), p("two|three"))),
        cell("", &p("c1")),
        cell("<w:vMerge/>", "<w:p/>"),
        cell("", &[item(2, 0, "x"), item(2, 0, "y"), item(1, 0, "z")].concat()),
        cell(r#"<w:gridSpan w:val="4000000000"/>"#, &p("c2"))
    );
    let text = parsed(&body).text;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("| wide | wide | C |"), "{text}");
    assert!(lines[2].starts_with(r"| tall | one; two\|three | c1 |"), "{text}");
    assert!(lines[3].starts_with("| tall | x; y; 1. z | c2 |"), "{text}");
}

#[test]
fn a_table_in_a_cell_is_a_line_and_one_cell_is_no_table() {
    let inner = format!(
        "<w:tbl><w:tr>{}{}</w:tr><w:tr>{}{}</w:tr></w:tbl><w:p/>",
        cell("", &p("a")),
        cell("", &p("b")),
        cell("", &p("c")),
        cell("", &p("d"))
    );
    let outer = format!(
        "<w:tbl><w:tr>{}{}</w:tr></w:tbl>",
        cell("", &p("left")),
        cell("", &format!("{}{inner}", p("right")))
    );
    check(&outer, "| left | right; a, b; c, d |\n| --- | --- |");
    let one = format!(
        "<w:tbl><w:tr>{}</w:tr></w:tbl>",
        cell("", &[styled("berschrift2", "H"), p("x"), item(2, 0, "y")].concat())
    );
    check(&one, "### H\n\nx\n\n- y");
}

#[test]
fn deleted_rows_are_left_out_and_content_controls_looked_into() {
    let body = format!(
        "<w:sdt><w:sdtPr/><w:sdtContent><w:tbl><w:tr>{a}{b}</w:tr><w:tr><w:trPr><w:del/></w:trPr>{a}{b}</w:tr><w:sdt><w:sdtContent><w:tr><w:sdt><w:sdtContent>{a}</w:sdtContent></w:sdt>{b}</w:tr></w:sdtContent></w:sdt></w:tbl></w:sdtContent></w:sdt>",
        a = cell("", &p("a")),
        b = cell("", &p("b"))
    );
    check(&body, "| a | b |\n| --- | --- |\n| a | b |");
    check(
        r#"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent><w:p><w:r><w:t>Click here</w:t></w:r></w:p></w:sdtContent></w:sdt><w:p><w:sdt><w:sdtContent><w:r><w:t>kept</w:t></w:r></w:sdtContent></w:sdt></w:p>"#,
        "kept",
    );
}

#[test]
fn boxes_to_tick_are_tasks() {
    let ticked = |is: u8| {
        format!(
            r#"<w:p><w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{is}"/></w14:checkbox></w:sdtPr><w:sdtContent><w:r><w:t>☒</w:t></w:r></w:sdtContent></w:sdt><w:r><w:t xml:space="preserve"> task {is}</w:t></w:r></w:p>"#
        )
    };
    check(&[ticked(1), ticked(0)].concat(), "- [x] task 1\n- [ ] task 0");
    check(&[item(2, 0, "☐ open"), p("☒done"), p("a ☐")].concat(), "- [ ] open\n\n- [x] done\n\na ☐");
    check(
        r#"<w:p><w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r><w:r><w:instrText>FORMCHECKBOX</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t xml:space="preserve"> done</w:t></w:r></w:p>"#,
        "- [x] done",
    );
}

#[test]
fn text_boxes_are_written_once_after_their_paragraph() {
    let body = format!(
        r#"<w:p><w:r><w:t>Around</w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:docPr id="1" descr="A pump in section"/><wps:txbx><w:txbxContent>{box}</w:txbxContent></wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>{box}</w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>{next}"#,
        box = p("boxed"),
        next = p("next")
    );
    check(&body, "Around ![A pump in section]()\n\nboxed\n\nnext");
}

#[test]
fn charts_are_tables_of_their_values() {
    check(
        r#"<w:p><w:r><w:drawing><c:chart r:id="chart"/></w:drawing></w:r></w:p>"#,
        "Sales\n\n| | 2023 |\n| --- | --- |\n| East | 4.3 |\n| West | 2 |",
    );
}

#[test]
fn formulas_are_written_as_latex() {
    let r = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let body = format!(
        r#"<w:p><w:r><w:t xml:space="preserve">So </w:t></w:r><m:oMath><m:f><m:num>{a}</m:num><m:den><m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/><m:e>{b}</m:e></m:rad></m:den></m:f>{eq}<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{i}</m:sub><m:sup>{n}</m:sup><m:e><m:sSup><m:e>{x}</m:e><m:sup>{i}</m:sup></m:sSup></m:e></m:nary></m:oMath></w:p>"#,
        a = r("a"),
        b = r("b"),
        eq = r("="),
        i = r("i"),
        n = r("n"),
        x = r("x")
    );
    check(&body, r"So $\frac{a}{\sqrt{b}}=\sum_{i}^{n} x^{i}$");
}

#[test]
fn code_and_quotations_are_blocks() {
    let body = [
        styled("Code", "fn main() {"),
        r#"<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr><w:r><w:t xml:space="preserve">    x();</w:t><w:br/><w:t>}</w:t></w:r></w:p>"#.to_owned(),
        styled("Zitat", "Said so."),
    ]
    .concat();
    check(&body, "```\nfn main() {\n    x();\n}\n```\n\n> Said so.");
}

#[test]
fn a_table_of_contents_is_left_out_unless_it_is_all_there_is() {
    let contents = styled("TOC1", "One 1");
    check(&[contents.clone(), styled("berschrift2", "One")].concat(), "### One");
    check(&[contents, p("x")].concat(), "One 1\n\nx");
}

#[test]
fn metadata_is_read_and_the_title_is_the_authors() {
    let document = parsed(&p("x"));
    assert_eq!(document.media_type, WORD);
    assert_eq!(document.title.as_deref(), Some("Pumps"));
    assert_eq!(
        document.metadata_json,
        r#"{"author":["Ada","Grace"],"created":"2024-05-06T07:08:09Z","keywords":"k, l","language":"de-AT","last_modified_by":"Eve","modified":"2025-01-02T03:04:05Z","subject":"S","title":"Pumps"}"#
    );
}
