//! XML that is sound, broken and hostile.
#![allow(clippy::unwrap_used)]

use super::*;

fn text_of(xml: &str) -> Result<String, ParseError> {
    let mut reader = Xml::new(xml, "part");
    let mut text = String::new();
    while let Some(piece) = reader.next()? {
        if let Piece::Text(more) = piece {
            text.push_str(&more);
        }
    }
    Ok(text)
}

#[test]
fn names_and_attributes_are_known_without_their_prefix() {
    let mut xml = Xml::new(r#"<ns0:p id="1" r:id="rId2" w:val=" a&amp;b "/>"#, "part");
    let element = xml.child().unwrap().unwrap();
    assert_eq!(element.name(), "p");
    assert_eq!(element.attribute("id").unwrap(), "1");
    assert_eq!(element.prefixed_attribute("id").unwrap(), "rId2");
    assert_eq!(element.attribute("val").unwrap(), " a&b ");
    assert!(xml.child().unwrap().is_none());
}

#[test]
fn references_are_resolved_and_entities_do_not_grow() {
    let laughs = r#"<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;">]><a>&lt;&#228;&#x20AC;&c;</a>"#;
    assert_eq!(text_of(laughs).unwrap(), "<ä€&c;");
    assert_eq!(text_of("<a><![CDATA[x & y]]> z</a>").unwrap(), "x & y z");
}

#[test]
fn depth_has_a_limit() {
    let deep = "<a>".repeat(1_000_000);
    assert_eq!(text_of(&deep).unwrap_err().kind, ParseErrorKind::LimitExceeded);
    let allowed = format!("{}x{}", "<a>".repeat(MAX_XML_DEPTH), "</a>".repeat(MAX_XML_DEPTH));
    assert_eq!(text_of(&allowed).unwrap(), "x");
}

#[test]
fn what_is_not_well_formed_is_refused_with_its_place() {
    for broken in ["<a><b></a>", "<a", "<a>", "<a><!-- ", "</a>"] {
        let error = text_of(broken).unwrap_err();
        assert_eq!(error.kind, ParseErrorKind::NotParsable, "{broken}");
        assert!(error.message.starts_with("\"part\" "), "{error}");
    }
}

#[test]
fn an_element_is_passed_over_with_all_it_holds() {
    let mut xml = Xml::new("<a><b><c>1</c>2<b/></b><d>3<e>4</e></d></a>", "part");
    xml.child().unwrap().unwrap();
    assert_eq!(xml.child().unwrap().unwrap().name(), "b");
    xml.skip().unwrap();
    assert_eq!(xml.child().unwrap().unwrap().name(), "d");
    assert_eq!(xml.text().unwrap(), "34");
    assert!(xml.child().unwrap().is_none());
}
