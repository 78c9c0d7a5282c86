//! What presentations become.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::zip::tests::archive;
use proptest::prelude::*;

const TYPES: &str = r#"<Types><Override PartName="/ppt/presentation.xml" ContentType="application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml"/></Types>"#;

const LAYOUT: &str = r#"<p:sldLayout><p:cSld><p:spTree>
<p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="900" cy="100"/></a:xfrm></p:spPr></p:sp>
<p:sp><p:nvSpPr><p:nvPr><p:ph type="subTitle" idx="9"/></p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:lstStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></a:lstStyle></p:txBody></p:sp>
<p:sp><p:nvSpPr><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="0" y="200"/><a:ext cx="400" cy="700"/></a:xfrm></p:spPr></p:sp>
<p:sp><p:nvSpPr><p:nvPr><p:ph idx="2"/></p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x="500" y="200"/><a:ext cx="400" cy="700"/></a:xfrm></p:spPr></p:sp>
</p:spTree></p:cSld></p:sldLayout>"#;

const MASTER: &str = r#"<p:sldMaster><p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type="body" idx="1"/></p:nvPr></p:nvSpPr><p:spPr/></p:sp></p:spTree></p:cSld>
<p:txStyles><p:titleStyle><a:lvl1pPr><a:buNone/></a:lvl1pPr></p:titleStyle><p:bodyStyle><a:lvl1pPr><a:buChar char="•"/></a:lvl1pPr><a:lvl2pPr><a:buChar char="–"/></a:lvl2pPr></p:bodyStyle></p:txStyles></p:sldMaster>"#;

/// A presentation whose slides hold these shapes; the last one has notes.
fn file(slides: &[&str]) -> Vec<u8> {
    let mut parts: Vec<(String, String)> = vec![
        ("[Content_Types].xml".to_owned(), TYPES.to_owned()),
        ("ppt/slideLayouts/slideLayout1.xml".to_owned(), LAYOUT.to_owned()),
        ("ppt/slideMasters/slideMaster1.xml".to_owned(), MASTER.to_owned()),
        (
            "ppt/slideLayouts/_rels/slideLayout1.xml.rels".to_owned(),
            r#"<Relationships><Relationship Id="m" Type="x/slideMaster" Target="../slideMasters/slideMaster1.xml"/></Relationships>"#.to_owned(),
        ),
        (
            "ppt/notesSlides/notesSlide1.xml".to_owned(),
            format!(
                r#"<p:notes><p:cSld><p:spTree>{}{}</p:spTree></p:cSld></p:notes>"#,
                shape(r#"<p:ph type="body" idx="1"/>"#, "", &["Say hello.", "Then go on."]),
                shape(r#"<p:ph type="sldNum"/>"#, "", &["7"])
            ),
        ),
    ];
    let mut ids = String::new();
    let mut links = String::new();
    // The numbers of files tell nothing of the order.
    for (index, shapes) in slides.iter().enumerate() {
        let file = slides.len() - index;
        ids.push_str(&format!(r#"<p:sldId id="{}" r:id="r{index}"/>"#, 256 + index));
        links.push_str(&format!(
            r#"<Relationship Id="r{index}" Type="x/slide" Target="slides/slide{file}.xml"/>"#
        ));
        parts.push((
            format!("ppt/slides/slide{file}.xml"),
            format!(
                "<p:sld><p:cSld><p:spTree><p:nvGrpSpPr/><p:grpSpPr/>{shapes}</p:spTree></p:cSld></p:sld>"
            ),
        ));
        let notes = if index + 1 == slides.len() {
            r#"<Relationship Id="n" Type="x/notesSlide" Target="../notesSlides/notesSlide1.xml"/>"#
        } else {
            ""
        };
        parts.push((
            format!("ppt/slides/_rels/slide{file}.xml.rels"),
            format!(
                r#"<Relationships><Relationship Id="l" Type="x/slideLayout" Target="../slideLayouts/slideLayout1.xml"/><Relationship Id="web" Type="x/hyperlink" Target="https://example.org" TargetMode="External"/><Relationship Id="d" Type="x/diagramData" Target="../diagrams/data1.xml"/>{notes}</Relationships>"#
            ),
        ));
    }
    parts.push((
        "ppt/diagrams/data1.xml".to_owned(),
        r#"<dgm:dataModel><dgm:ptLst><dgm:pt type="doc"><dgm:t><a:p><a:r><a:t>none</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>Do</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"#.to_owned(),
    ));
    parts.push((
        "ppt/presentation.xml".to_owned(),
        format!("<p:presentation><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"),
    ));
    parts.push((
        "ppt/_rels/presentation.xml.rels".to_owned(),
        format!("<Relationships>{links}</Relationships>"),
    ));
    let parts: Vec<(&str, &str)> = parts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    archive(&parts)
}

fn shape(placeholder: &str, place: &str, paragraphs: &[&str]) -> String {
    let paragraphs: String = paragraphs
        .iter()
        .map(|text| match text.strip_prefix('<') {
            Some(_) => format!("<a:p>{text}</a:p>"),
            None => format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"),
        })
        .collect();
    format!(
        "<p:sp><p:nvSpPr><p:cNvPr id=\"1\" name=\"x\"/><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr><p:spPr>{place}</p:spPr><p:txBody>{paragraphs}</p:txBody></p:sp>"
    )
}

fn at(left: i64, top: i64, width: i64, height: i64) -> String {
    format!(r#"<a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>"#)
}

fn parsed(slides: &[&str]) -> ParsedDocument {
    crate::parse(crate::DocumentContent::Bytes(&file(slides)), None).unwrap()
}

/// What a slide becomes, without the notes that the last one has.
fn check(shapes: &str, expected: &str) {
    assert_eq!(parsed(&[shapes, ""]).text, format!("{expected}\n\n{NOTES}"), "{shapes}");
}

const NOTES: &str = "> Notes: Say hello.\n\n> Then go on.\n";

const TITLE: &str = r#"<p:ph type="title"/>"#;

#[test]
fn slides_are_pages_in_the_order_of_the_presentation() {
    let first = shape(r#"<p:ph type="ctrTitle"/>"#, "", &["Pumps", "and how they work"]);
    let third = shape(TITLE, "", &["Third"]);
    let document = parsed(&[&first, "", &third]);
    assert_eq!(document.text, format!("# Pumps and how they work\n\n# Third\n\n{NOTES}"));
    let pages: Vec<_> =
        document.pages.iter().map(|start| (start.page, &document.text[start.offset..][..3])).collect();
    assert_eq!(pages, [(1, "# P"), (3, "# T")]);
    assert_eq!(document.media_type, "application/vnd.ms-powerpoint.presentation.macroenabled.12");
    assert_eq!(document.title.as_deref(), Some("Pumps and how they work"));
    assert_eq!(document.metadata_json, r#"{"pages":3}"#);
}

#[test]
fn bullets_are_inherited_from_layout_and_master() {
    let body = shape(
        r#"<p:ph idx="1"/>"#,
        "",
        &[
            "one",
            r#"<a:pPr lvl="1"/><a:r><a:t>two</a:t></a:r>"#,
            r#"<a:pPr lvl="2"/><a:r><a:t>the master says nothing of this level</a:t></a:r>"#,
            r#"<a:pPr><a:buNone/></a:pPr><a:r><a:t>none</a:t></a:r>"#,
        ],
    );
    check(&body, "- one\n  - two\n\nthe master says nothing of this level\n\nnone");
    check(&shape(r#"<p:ph type="subTitle" idx="9"/>"#, "", &["plain"]), "plain");
    check(&shape("", "", &["a text box has none"]), "a text box has none");
}

#[test]
fn numbers_are_counted_by_level() {
    let numbered = |level: u32, scheme: &str, text: &str| {
        format!(r#"<a:pPr lvl="{level}"><a:buAutoNum type="{scheme}"/></a:pPr><a:r><a:t>{text}</a:t></a:r>"#)
    };
    let paragraphs = [
        numbered(0, "arabicPeriod", "a"),
        numbered(1, "alphaLcParenR", "b"),
        numbered(1, "alphaLcParenR", "c"),
        numbered(0, "arabicPeriod", "d"),
        numbered(1, "alphaLcParenR", "e"),
        r#"<a:pPr><a:buAutoNum type="romanUcParenBoth" startAt="4"/></a:pPr><a:r><a:t>f</a:t></a:r>"#
            .to_owned(),
    ];
    let paragraphs: Vec<&str> = paragraphs.iter().map(String::as_str).collect();
    check(&shape("", "", &paragraphs), "1. a\n   - a) b\n   - b) c\n2. d\n   - a) e\n- (IV) f");
}

#[test]
fn shapes_are_read_in_the_order_of_their_places() {
    let shapes = [
        shape(r#"<p:ph idx="2"/>"#, "", &["<a:pPr><a:buNone/></a:pPr><a:r><a:t>right</a:t></a:r>"]),
        shape("", &at(0, 950, 900, 40), &["below"]),
        shape(r#"<p:ph idx="1"/>"#, "", &["<a:pPr><a:buNone/></a:pPr><a:r><a:t>left</a:t></a:r>"]),
        shape(TITLE, "", &["Title"]),
        shape(r#"<p:ph type="ftr" idx="11"/>"#, "", &["footer"]),
    ]
    .concat();
    check(&shapes, "# Title\n\nleft\n\nright\n\nbelow");
}

#[test]
fn groups_stay_together_and_hidden_shapes_out() {
    let hidden = shape("", &at(0, 0, 9, 9), &["hidden"]).replace("id=\"1\"", "id=\"1\" hidden=\"1\"");
    let shapes = format!(
        "{}<p:grpSp><p:nvGrpSpPr/><p:grpSpPr>{}</p:grpSpPr>{}{}{hidden}</p:grpSp>",
        shape("", &at(0, 500, 100, 100), &["after"]),
        at(0, 0, 100, 100),
        shape("", &at(0, 900_000, 10, 10), &["second"]),
        shape("", &at(0, 100, 10, 10), &["first"]),
    );
    check(&shapes, "first\n\nsecond\n\nafter");
}

#[test]
fn tables_diagrams_and_pictures_say_what_they_hold() {
    let cell = |attributes: &str, text: &str| {
        format!("<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>")
    };
    let table = format!(
        "<p:graphicFrame><p:nvGraphicFramePr/><p:xfrm/><a:graphic><a:graphicData><a:tbl><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr><a:tr>{}{}</a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>",
        cell(r#"gridSpan="2""#, "head"),
        cell(r#"hMerge="1""#, ""),
        cell(r#"rowSpan="2""#, "a"),
        cell("", "b"),
        cell(r#"vMerge="1""#, ""),
        cell("", "c")
    );
    check(&table, "| head | |\n| --- | --- |\n| a | b |\n| a | c |");
    let diagram = r#"<p:graphicFrame><a:graphic><a:graphicData><dgm:relIds r:dm="d" r:lo="x"/></a:graphicData></a:graphic></p:graphicFrame>"#;
    check(diagram, "- Plan\n- Do");
    let picture = r#"<p:pic><p:nvPicPr><p:cNvPr id="4" descr="A duck with paper&#10;&#10;Description automatically generated"/></p:nvPicPr></p:pic><p:pic><p:nvPicPr><p:cNvPr id="5" descr="image1.png"/></p:nvPicPr></p:pic>"#;
    check(picture, "![A duck with paper]()");
}

#[test]
fn formatting_links_breaks_and_fields_are_kept() {
    let paragraph = r#"<a:r><a:rPr b="1"/><a:t>bold</a:t></a:r><a:r><a:t> 10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>6</a:t></a:r><a:br/><a:r><a:rPr><a:hlinkClick r:id="web"/></a:rPr><a:t>site</a:t></a:r><a:fld type="slidenum"><a:t>9</a:t></a:fld><a:fld type="datetime1"><a:t> May</a:t></a:fld>"#;
    check(&shape("", "", &[paragraph]), "**bold** 10^6\n[site](https://example.org) May");
}

#[test]
fn alternatives_are_read_once() {
    let inner = shape("", "", &["once"]);
    let shapes = format!(
        "<mc:AlternateContent><mc:Choice>{inner}</mc:Choice><mc:Fallback>{inner}</mc:Fallback></mc:AlternateContent>"
    );
    check(&shapes, "once");
}

#[test]
fn a_slide_named_twice_or_missing_is_read_once_or_not() {
    let bytes = archive(&[
        ("[Content_Types].xml", TYPES),
        (
            "ppt/_rels/presentation.xml.rels",
            r#"<Relationships><Relationship Id="a" Type="x/slide" Target="slides/slide1.xml"/><Relationship Id="b" Type="x/slide" Target="/ppt/slides/gone.xml"/></Relationships>"#,
        ),
        (
            "ppt/presentation.xml",
            r#"<p:presentation><p:sldId id="1" r:id="b"/><p:sldId id="2" r:id="a"/><p:sldId id="3" r:id="a"/><p:sldId id="4" r:id="none"/></p:presentation>"#,
        ),
        (
            "ppt/slides/slide1.xml",
            &format!("<p:sld><p:spTree>{}</p:spTree></p:sld>", shape("<p:ph idx=\"1\"/>", "", &["x"])),
        ),
    ]);
    let document = crate::parse(crate::DocumentContent::Bytes(&bytes), None).unwrap();
    assert_eq!((document.text.as_str(), document.pages[0].page), ("- x\n", 2));
}

#[test]
fn deep_groups_are_refused() {
    let bytes = file(&[&"<p:grpSp>".repeat(10_000)]);
    let error = crate::parse(crate::DocumentContent::Bytes(&bytes), None).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::LimitExceeded);
}

#[test]
fn many_shapes_are_read_in_linear_time() {
    let shapes: String = (0..3_000).map(|index| shape("", &at(0, -index, 5, 5), &["x"])).collect();
    assert_eq!(parsed(&[&shapes, ""]).text.matches('x').count(), 3_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Elements in any order, whether they make sense or not.
    #[test]
    fn any_order_of_elements_gives_sound_positions(order in proptest::collection::vec(0usize..200, 0..60)) {
        let everything = [
            shape(TITLE, "", &["Titel"]),
            shape(r#"<p:ph idx="1"/>"#, &at(0, i64::MAX, -1, i64::MAX), &[r#"<a:pPr lvl="99"><a:buAutoNum startAt="4294967295"/></a:pPr><a:r><a:rPr b="1"/><a:t>ä</a:t></a:r><a:br/>"#]),
            format!("<p:grpSp><p:grpSpPr>{}</p:grpSpPr></p:grpSp>", at(1, 2, 3, 4)),
            r#"<p:graphicFrame><p:xfrm/><a:tbl><a:tr><a:tc rowSpan="0" gridSpan="4294967296"><a:txBody><a:p><a:r><a:t>€</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame>"#.to_owned(),
        ]
        .concat();
        let tags: Vec<&str> = everything.split_inclusive('>').collect();
        let mut shapes = String::new();
        let mut open = Vec::new();
        for tag in order.iter().map(|index| tags[index % tags.len()]) {
            let (text, tag) = tag.rsplit_once('<').unwrap_or(("", tag));
            shapes.push_str(text);
            if tag.starts_with('/') {
                if let Some(name) = open.pop() {
                    shapes.push_str(&format!("</{name}>"));
                }
            } else {
                if !tag.ends_with("/>") {
                    open.push(tag.split([' ', '>']).next().unwrap_or_default());
                }
                shapes.push('<');
                shapes.push_str(tag);
            }
        }
        while let Some(name) = open.pop() {
            shapes.push_str(&format!("</{name}>"));
        }
        let document = parsed(&[&shapes, &shapes]);
        for heading in &document.headings {
            let line = format!("{} {}", "#".repeat(heading.level.into()), heading.title);
            prop_assert_eq!(&document.text[heading.bytes.clone()], line);
        }
        prop_assert!(document.pages.iter().all(|start| document.text.is_char_boundary(start.offset)));
    }
}
