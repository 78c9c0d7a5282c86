//! Word, PowerPoint and Excel files (ECMA-376), as small as their readers allow.

use crate::package::Package;
use crate::{Original, file};

const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const RELATIONSHIPS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const WORD: &str = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const SHEET: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const SLIDE: &str = "http://schemas.openxmlformats.org/presentationml/2006/main";
const DRAWING: &str = "http://schemas.openxmlformats.org/drawingml/2006/main";
const TYPE: &str = "application/vnd.openxmlformats-officedocument";

pub(crate) fn originals() -> Vec<Original> {
    let original = |name: &str, package: Package, says| Original { file: file(name, package.zip()), says };
    vec![
        original("minutes.docx", docx(WORDS), "wagtail"),
        original("talk.pptx", pptx(), "kingfisher"),
        original("counts.xlsx", xlsx(ROWS), "dipper"),
    ]
}

/// Types of the parts, with those of parts that have no extension of their own.
fn content_types(parts: &[(&str, &str)]) -> String {
    let overrides: String = parts
        .iter()
        .map(|(name, kind)| format!("<Override PartName=\"/{name}\" ContentType=\"{TYPE}.{kind}+xml\"/>"))
        .collect();
    format!(
        "{XML}<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>{overrides}</Types>"
    )
}

/// A part's relationships: kind and target, numbered from `rId1`.
fn relationships(targets: &[(&str, &str)]) -> String {
    let all: String = targets
        .iter()
        .enumerate()
        .map(|(n, (kind, target))| {
            format!("<Relationship Id=\"rId{}\" Type=\"{OFFICE}/{kind}\" Target=\"{target}\"/>", n + 1)
        })
        .collect();
    format!("{XML}<Relationships xmlns=\"{RELATIONSHIPS}\">{all}</Relationships>")
}

pub(crate) const WORDS: &str = "<w:p><w:pPr><w:pStyle w:val=\"Heading1\"/></w:pPr><w:r><w:t>Minutes</w:t></w:r></w:p>\
    <w:p><w:r><w:t xml:space=\"preserve\">The </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>wagtail</w:t></w:r>\
    <w:r><w:t xml:space=\"preserve\"> bobs its tail at the river.</w:t></w:r></w:p>\
    <w:tbl><w:tr><w:tc><w:p><w:r><w:t>Bird</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>Count</w:t></w:r></w:p></w:tc></w:tr>\
    <w:tr><w:tc><w:p><w:r><w:t>Heron</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>7</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";

/// A Word document with this body.
pub(crate) fn docx(body: &str) -> Package {
    let styles = format!(
        "{XML}<w:styles xmlns:w=\"{WORD}\"><w:style w:type=\"paragraph\" w:styleId=\"Heading1\">\
         <w:name w:val=\"heading 1\"/><w:pPr><w:outlineLvl w:val=\"0\"/></w:pPr></w:style></w:styles>"
    );
    Package::new(&[
        (
            "[Content_Types].xml",
            &content_types(&[
                ("word/document.xml", "wordprocessingml.document.main"),
                ("word/styles.xml", "wordprocessingml.styles"),
            ]),
        ),
        ("_rels/.rels", &relationships(&[("officeDocument", "word/document.xml")])),
        ("word/document.xml", &word_part(body)),
        ("word/_rels/document.xml.rels", &relationships(&[("styles", "styles.xml")])),
        ("word/styles.xml", &styles),
    ])
}

/// The main part of a Word document.
pub(crate) fn word_part(body: &str) -> String {
    format!("{XML}<w:document xmlns:w=\"{WORD}\" xmlns:r=\"{OFFICE}\"><w:body>{body}</w:body></w:document>")
}

/// A presentation of two slides.
pub(crate) fn pptx() -> Package {
    let first = slide("River birds", "The kingfisher dives from a branch.");
    let second = slide("Where to look", "Slow water, steep banks.");
    let presentation = format!(
        "{XML}<p:presentation xmlns:p=\"{SLIDE}\" xmlns:r=\"{OFFICE}\" xmlns:a=\"{DRAWING}\"><p:sldIdLst>\
         <p:sldId id=\"256\" r:id=\"rId1\"/><p:sldId id=\"257\" r:id=\"rId2\"/></p:sldIdLst></p:presentation>"
    );
    Package::new(&[
        (
            "[Content_Types].xml",
            &content_types(&[
                ("ppt/presentation.xml", "presentationml.presentation.main"),
                ("ppt/slides/slide1.xml", "presentationml.slide"),
                ("ppt/slides/slide2.xml", "presentationml.slide"),
            ]),
        ),
        ("_rels/.rels", &relationships(&[("officeDocument", "ppt/presentation.xml")])),
        ("ppt/presentation.xml", &presentation),
        (
            "ppt/_rels/presentation.xml.rels",
            &relationships(&[("slide", "slides/slide1.xml"), ("slide", "slides/slide2.xml")]),
        ),
        ("ppt/slides/slide1.xml", &first),
        ("ppt/slides/slide2.xml", &second),
    ])
}

fn slide(title: &str, text: &str) -> String {
    let shape = |id: u32, kind: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:cNvPr id=\"{id}\" name=\"{kind} {id}\"/><p:cNvSpPr/><p:nvPr><p:ph type=\"{kind}\"/></p:nvPr>\
             </p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    };
    slide_part(&(shape(2, "title", title) + &shape(3, "body", text)))
}

/// A slide's part with these shapes.
pub(crate) fn slide_part(shapes: &str) -> String {
    format!(
        "{XML}<p:sld xmlns:p=\"{SLIDE}\" xmlns:a=\"{DRAWING}\" xmlns:r=\"{OFFICE}\"><p:cSld><p:spTree>\
         <p:nvGrpSpPr><p:cNvPr id=\"1\" name=\"\"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{shapes}\
         </p:spTree></p:cSld></p:sld>"
    )
}

pub(crate) const ROWS: &str = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c></row>\
    <row r=\"2\"><c r=\"A2\" t=\"s\"><v>2</v></c><c r=\"B2\"><v>12</v></c></row>";

/// A workbook of one sheet with these rows.
pub(crate) fn xlsx(rows: &str) -> Package {
    let workbook = format!(
        "{XML}<workbook xmlns=\"{SHEET}\" xmlns:r=\"{OFFICE}\"><sheets>\
         <sheet name=\"River\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    );
    let strings = format!(
        "{XML}<sst xmlns=\"{SHEET}\" count=\"3\" uniqueCount=\"3\"><si><t>Bird</t></si><si><t>Count</t></si>\
         <si><t>dipper</t></si></sst>"
    );
    let styles = format!(
        "{XML}<styleSheet xmlns=\"{SHEET}\"><fonts count=\"1\"><font/></fonts><fills count=\"1\"><fill/></fills>\
         <borders count=\"1\"><border/></borders><cellXfs count=\"1\"><xf numFmtId=\"0\"/></cellXfs></styleSheet>"
    );
    Package::new(&[
        (
            "[Content_Types].xml",
            &content_types(&[
                ("xl/workbook.xml", "spreadsheetml.sheet.main"),
                ("xl/worksheets/sheet1.xml", "spreadsheetml.worksheet"),
                ("xl/sharedStrings.xml", "spreadsheetml.sharedStrings"),
                ("xl/styles.xml", "spreadsheetml.styles"),
            ]),
        ),
        ("_rels/.rels", &relationships(&[("officeDocument", "xl/workbook.xml")])),
        ("xl/workbook.xml", &workbook),
        (
            "xl/_rels/workbook.xml.rels",
            &relationships(&[
                ("worksheet", "worksheets/sheet1.xml"),
                ("sharedStrings", "sharedStrings.xml"),
                ("styles", "styles.xml"),
            ]),
        ),
        ("xl/worksheets/sheet1.xml", &sheet_part(rows)),
        ("xl/sharedStrings.xml", &strings),
        ("xl/styles.xml", &styles),
    ])
}

/// A sheet's part with these rows.
pub(crate) fn sheet_part(rows: &str) -> String {
    format!("{XML}<worksheet xmlns=\"{SHEET}\"><sheetData>{rows}</sheetData></worksheet>")
}
