//! Files that are small and ask for much: memory, time, stack or text without end. Those of PDF stand beside this file.
//!
//! What a parser may rightly take for text is kept to some thousand words, since the tests' server embeds it.

use crate::package::Package;
use crate::zip::{Archive, Packed};
use crate::{TestFile, epub, file, mail, office, pdf_bomb};

/// Bytes that a packed part unfolds to.
const UNFOLDED: usize = 1 << 30;

/// One of each.
pub fn bombs() -> Vec<TestFile> {
    let mut files = archives();
    files.extend(office_files());
    files.extend(markup());
    files.extend(plain());
    files.extend(mails());
    files.extend(pdf_bomb::files());
    files
}

/// A gigabyte of `block`.
fn unfolding(head: &str, block: &str, tail: &str) -> Packed {
    let block = block.repeat((1 << 20) / block.len());
    Packed::repeated(head.as_bytes(), block.as_bytes(), UNFOLDED / block.len(), tail.as_bytes())
}

fn split(part: &str) -> (&str, &str) {
    part.split_once("MIDDLE").unwrap()
}

fn archives() -> Vec<TestFile> {
    let docx = office::docx("<w:p><w:r><w:t>The wagtail bobs its tail.</w:t></w:r></w:p>");
    let part = office::word_part("<w:p><w:r><w:t>MIDDLE</w:t></w:r></w:p>");
    let (head, tail) = split(&part);
    let main = "word/document.xml";
    let spaces = unfolding(head, " ", tail);
    let words = unfolding(head, "word ", tail);
    let paragraphs = unfolding("", "<w:p><w:r><w:t>x</w:t></w:r></w:p>", "");
    let small = Packed::deflated(part.as_bytes());
    let encrypted = Packed { flags: 1, ..small.clone() };
    let says_little = Packed { size: 10, ..spaces.clone() };
    let says_much = Packed { size: u32::MAX - 1, ..small.clone() };
    let wrong_sum = Packed { crc: 1, ..small.clone() };
    let odd_method = Packed { method: 14, ..small.clone() };

    let mut many = Archive::default();
    let nothing = Packed::stored(b"");
    (0..60_000).for_each(|n| {
        many.add(&format!("{n}"), &nothing);
    });
    // One kernel of packed bytes that many entries share (D. Fifield, "A better zip bomb", WOOT 2019).
    let mut shared = Archive::default();
    let kernel = unfolding("", "0", "");
    let offset = shared.add("word/document.xml", &kernel);
    (0..1000).for_each(|n| shared.list(&format!("word/media/{n}.xml"), &kernel, offset));
    let mut doubled = Archive::default();
    for (name, bytes) in docx.parts.iter().chain(&docx.parts) {
        doubled.add(name, &Packed::deflated(bytes));
    }
    let zip_in_zip = (0..10).fold(docx.zip(), |inner, _| {
        let mut archive = Archive::default();
        archive.add("inner.zip", &Packed::deflated(&inner));
        archive.finish()
    });
    let escaping = docx.clone().with("../../etc/passwd", "root").with("/etc/shadow", "root");
    let itself = office::docx("<w:altChunk r:id=\"rId1\"/>").with(
        "word/_rels/document.xml.rels",
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" \
         Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk\" Target=\"document.xml\"/></Relationships>",
    );
    vec![
        file("bomb of spaces.docx", docx.zip_with(&[(main, spaces)])),
        file("bomb of words.docx", docx.zip_with(&[(main, words)])),
        file("bomb of paragraphs.docx", docx.zip_with(&[(main, paragraphs.clone())])),
        file("bomb in styles.docx", docx.zip_with(&[("word/styles.xml", paragraphs.clone())])),
        file("bomb in content types.docx", docx.zip_with(&[("[Content_Types].xml", paragraphs)])),
        file("encrypted entry.docx", docx.zip_with(&[(main, encrypted)])),
        file("says little.docx", docx.zip_with(&[(main, says_little)])),
        file("says much.docx", docx.zip_with(&[(main, says_much)])),
        file("wrong sum.docx", docx.zip_with(&[(main, wrong_sum)])),
        file("odd method.docx", docx.zip_with(&[(main, odd_method)])),
        file("many entries.zip", many.finish()),
        file("shared bytes.docx", shared.finish()),
        file("doubled names.docx", doubled.finish()),
        file("zip in zip.zip", zip_in_zip),
        file("escaping names.docx", escaping.zip()),
        file("includes itself.docx", itself.zip()),
    ]
}

fn office_files() -> Vec<TestFile> {
    let packed = |name: &str, package: Package| file(name, package.zip());
    let laughs = |element: &str| {
        let entities: String =
            (1..30).map(|n| format!("<!ENTITY l{n} \"&l{};&l{};\">", n - 1, n - 1)).collect();
        format!(
            "<!DOCTYPE x [<!ENTITY l0 \"ha\">{entities}<!ENTITY f SYSTEM \"file:///etc/passwd\">]>{element}"
        )
    };
    let declared = |part: String| {
        let (declaration, rest) = part.split_at(part.find("?>").unwrap() + 2);
        format!("{declaration}{}", laughs(rest))
    };
    let deep = |open: &str, middle: &str, close: &str, times: usize| {
        format!("{}{middle}{}", open.repeat(times), close.repeat(times))
    };
    let paragraph = "<w:p><w:r><w:t>x</w:t></w:r></w:p>";
    let tables = deep("<w:tbl><w:tr><w:tc>", paragraph, "</w:tc></w:tr></w:tbl>", 60_000);
    let boxes =
        deep("<w:p><w:r><w:pict><w:txbxContent>", paragraph, "</w:txbxContent></w:pict></w:r></w:p>", 60_000);
    let wide =
        "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val=\"2147483647\"/></w:tcPr><w:p/></w:tc></w:tr></w:tbl>";
    let lists =
        "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"4294967295\"/><w:numId w:val=\"-1\"/></w:numPr></w:pPr></w:p>";
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=\"\"")).collect();
    let groups = deep("<p:grpSp>", "", "</p:grpSp>", 200_000);
    let slides: String = (0..2_000).map(|n| format!("<p:sldId id=\"{n}\" r:id=\"rId1\"/>")).collect();
    let presentation = |list: &str| {
        let package = office::pptx();
        let part = &package.parts.iter().find(|(name, _)| name == "ppt/presentation.xml").unwrap().1;
        let part = String::from_utf8(part.clone())
            .unwrap()
            .replace("</p:sldIdLst>", &format!("{list}</p:sldIdLst>"));
        package.with("ppt/presentation.xml", part)
    };
    let corners = "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row><row r=\"1048576\"><c r=\"XFD1048576\"><v>2</v></c></row>";
    let merged = "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row></sheetData><mergeCells><mergeCell ref=\"A1:XFD1048576\"/>\
        </mergeCells><sheetData>";
    let beyond = "<row r=\"99999999999\"><c r=\"ZZZZZZZZ99999999999\"><v>1e400</v></c><c r=\"-1\" t=\"s\"><v>99999999</v></c></row>";
    let sheet = "xl/worksheets/sheet1.xml";
    let cells = "<row><c t=\"inlineStr\"><is><t></t></is></c></row>";
    let part = office::sheet_part("MIDDLE");
    let (head, tail) = split(&part);
    let empty_rows = office::xlsx("").zip_with(&[(sheet, unfolding(head, cells, tail))]);
    let strings = office::xlsx("")
        .zip_with(&[("xl/sharedStrings.xml", unfolding("<sst>", "<si><t>x</t></si>", "</sst>"))]);
    let repeated = "<row><c t=\"s\"><v>0</v></c><c t=\"s\"><v>0</v></c></row>".repeat(20_000);
    let one_string = format!("<sst><si><t>{}</t></si></sst>", "The measured river is deep. ".repeat(50));
    let again = vec!["c1"; 200_000];
    let long = format!("<p>{}</p>", "words again ".repeat(500));
    let words = office::word_part(paragraph);
    vec![
        packed(
            "laughs.docx",
            office::docx("").with(
                "word/document.xml",
                declared(office::word_part("<w:p><w:r><w:t>&l29;&f;</w:t></w:r></w:p>")),
            ),
        ),
        packed(
            "laughs.xlsx",
            office::xlsx("").with(sheet, declared(office::sheet_part("<row><c><v>&l29;</v></c></row>"))),
        ),
        packed("nested tables.docx", office::docx(&tables)),
        packed("nested text boxes.docx", office::docx(&boxes)),
        packed("nested unknowns.docx", office::docx(&deep("<a>", "", "</a>", 1_000_000))),
        packed("never closed.docx", office::docx(&"<w:p><w:r>".repeat(500_000))),
        packed("wide cell.docx", office::docx(wide)),
        packed("odd lists.docx", office::docx(lists)),
        packed("many attributes.docx", office::docx(&format!("<w:p{attributes}/>"))),
        packed(
            "utf16 promised.docx",
            office::docx("").with("word/document.xml", words.replace("UTF-8", "UTF-16")),
        ),
        packed(
            "nested groups.pptx",
            office::pptx().with("ppt/slides/slide1.xml", office::slide_part(&groups)),
        ),
        packed("one slide many times.pptx", presentation(&slides)),
        packed("missing slides.pptx", presentation("<p:sldId id=\"1\" r:id=\"rId77\"/><p:sldId/>")),
        packed("corners.xlsx", office::xlsx(corners)),
        packed("merged sheet.xlsx", office::xlsx(merged)),
        packed("beyond the sheet.xlsx", office::xlsx(beyond)),
        file("empty rows.xlsx", empty_rows),
        file("many strings.xlsx", strings),
        packed(
            "one string many times.xlsx",
            office::xlsx(&repeated).with("xl/sharedStrings.xml", one_string),
        ),
        packed("one chapter many times.epub", epub::epub(&[("c1", &long)], &again)),
        packed("nested chapter.epub", epub::epub(&[("c1", &deep("<div>", "x", "</div>", 500_000))], &["c1"])),
        packed("missing chapters.epub", epub::epub(&[("c1", "<p>x</p>")], &["c2", "c3"])),
        packed("no package.epub", epub::epub(&[], &[]).without("OEBPS/book.opf")),
    ]
}

fn markup() -> Vec<TestFile> {
    let page = |name: &str, body: String| file(name, format!("<!DOCTYPE html><html><body>{body}"));
    let misnested: String =
        (0..20_000).map(|n| ["<a href=x>", "<b>", "</a>", "<i>", "<p>", "</b>"][n % 6]).collect();
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=x")).collect();
    let text = |name: &str, text: String| file(name, text).said_to_be("text/markdown");
    let references: String = (0..1_000).map(|n| format!("[r{n}]: /x\n")).collect();
    let ticks: String = (1..120).map(|n| format!("a{}", "`".repeat(n))).collect();
    vec![
        page("nested divs.html", "<div>".repeat(1_000_000)),
        page("nested tables.html", "<table><tr><td>".repeat(50_000)),
        page("nested lists.html", "<ul><li>".repeat(50_000)),
        page("nested quotes.html", "<blockquote>".repeat(50_000)),
        page("nested svg.html", "<svg><g>".repeat(100_000)),
        page("nested templates.html", "<template>".repeat(50_000)),
        page("nested formatting.html", "<b><i><u><s>".repeat(20_000)),
        page("misnested.html", misnested),
        page("wide cell.html", "<table><tr><td colspan=4294967295 rowspan=4294967295>x<td>y</table>".into()),
        page(
            "wide cells.html",
            format!("<table>{}</table>", "<tr><td colspan=1000 rowspan=65534>x".repeat(20)),
        ),
        page("many attributes.html", format!("<p{attributes}>x")),
        page("long attribute.html", format!("<a href=\"{}\">x</a>", "x".repeat(10_000_000))),
        page("open comment.html", format!("<!--{}", "-".repeat(5_000_000))),
        page("open script.html", format!("<script>{}", "<!--<script>".repeat(200_000))),
        page("entities.html", "&amp;&#x110000;&#0;&nosuch;&#99999999999999;&lt".repeat(200)),
        page("nul.html", "a\0b<\0p>".repeat(100)),
        page("frames.html", "<frameset><frame src=x>".repeat(10_000)),
        page("selects.html", "<select><option>".repeat(20_000)),
        page("empty paragraphs.html", "<p>".repeat(1_000_000)),
        page("empty headings.html", "<h1></h1>".repeat(100_000)),
        page("lying charset.html", "<meta charset=utf-16le>\u{e9}\u{e8}".into()),
        text("brackets.md", "[".repeat(10_000)),
        text("nested links.md", format!("{}x{}", "[".repeat(2_000), "](x)".repeat(2_000))),
        text("images.md", "![".repeat(4_000)),
        text("stars.md", "*a **b ".repeat(3_000)),
        text("nested quotes.md", "> ".repeat(5_000) + "deep"),
        text("nested lists.md", (0..1_500).map(|n| " ".repeat(n) + "- \n").collect()),
        text("references.md", references),
        text("ticks.md", ticks),
        text("wide table.md", format!("{}\n{}\n", "|".repeat(3_000), "|-".repeat(3_000))),
        text("headings.md", "# \n".repeat(5_000)),
        text("front matter.md", format!("---\n{}: [\n---\n", "a: {".repeat(3_000))),
        text("html within.md", "<div>\n\n".repeat(2_000)),
    ]
}

fn plain() -> Vec<TestFile> {
    let text = |name: &str, text: String| file(name, text);
    let table = |name: &str, text: String| file(name, text).said_to_be("text/csv");
    vec![
        text("one word.txt", "x".repeat(200_000)),
        text("no spaces.txt", "漢".repeat(10_000)),
        text("combining.txt", format!("a{}", "\u{301}".repeat(100_000))),
        text("directions.txt", "\u{202e}\u{2066}".repeat(50_000) + "text"),
        text("line ends.txt", "\r\n".repeat(2_000_000)),
        text("spaces.txt", " ".repeat(10_000_000)),
        text("form feeds.txt", "\u{c}".repeat(1_000_000)),
        table("wide.csv", ",".repeat(5_000)),
        table("open quote.csv", format!("a,b\n\"{}", "x\"\"".repeat(1_000))),
        table("ragged.csv", (0..60).map(|n| ",".repeat(n) + "x\n").collect()),
        table("widening.csv", (0..60).map(|n| ",".repeat(n) + "\n").collect()),
        table("nul.csv", "a\0,b\nc,\0\n".repeat(50)),
        table("no separator.csv", "\n".repeat(100_000)),
    ]
}

fn mails() -> Vec<TestFile> {
    let mail = |name: &str, headers: &str, body: &str| file(name, mail::mail(headers, body));
    let nested: String = (0..5_000)
        .map(|n| format!("--b{n}\r\nContent-Type: multipart/mixed; boundary=b{}\r\n\r\n", n + 1))
        .collect();
    let messages = "Content-Type: message/rfc822\r\n\r\n".repeat(20_000);
    let parts = "--b\r\nContent-Type: text/plain\r\n\r\n\r\n".repeat(100_000);
    let headers: String = (0..20_000).map(|n| format!("X-{n}: y\r\n")).collect();
    let words = "=?utf-8?B?w6k=?= ".repeat(2_000);
    let html = "Content-Type: text/html; charset=utf-8";
    vec![
        mail("nested parts.eml", "Content-Type: multipart/mixed; boundary=b0", &nested),
        mail("nested messages.eml", "Content-Type: message/rfc822", &messages),
        mail("many parts.eml", "Content-Type: multipart/mixed; boundary=b", &parts),
        mail("no boundary.eml", "Content-Type: multipart/mixed", "--\r\n\r\ntext"),
        mail("boundary that never comes.eml", "Content-Type: multipart/mixed; boundary=\"never\"", "text"),
        mail("many headers.eml", &format!("{headers}X-End: x"), "text"),
        mail("long header.eml", &format!("X-Long: {}", "x".repeat(5_000_000)), "text"),
        mail("encoded words.eml", &format!("Comments: {words}"), "text"),
        mail("broken base64.eml", "Content-Transfer-Encoding: base64", "=====!!!!\u{e9}QQ=Q=Q"),
        mail(
            "broken quoted printable.eml",
            "Content-Transfer-Encoding: quoted-printable",
            "=\r\n==Z=F=\r\n=G1 text =",
        ),
        mail("unknown charset.eml", "Content-Type: text/plain; charset=klingon", "text \u{e9}"),
        mail("bomb of tags.eml", html, &"<div>".repeat(500_000)),
    ]
}
