//! What an HTML page says about itself: title and metadata.

use super::dom::{Dom, NodeId};
use super::properties::{
    AUTHOR, CREATED, DESCRIPTION, KEYWORDS, LANGUAGE, MAX_VALUE_BYTES, MODIFIED, SUBJECT, one_line,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Names of `<meta>` elements in falling order of preference, and the key of each.
const NAMES: &[(&str, &str)] = &[
    ("author", AUTHOR),
    ("article:author", AUTHOR),
    ("dc.creator", AUTHOR),
    ("dcterms.creator", AUTHOR),
    ("citation_author", AUTHOR),
    ("date", CREATED),
    ("article:published_time", CREATED),
    ("dc.date", CREATED),
    ("dcterms.date", CREATED),
    ("dcterms.created", CREATED),
    ("citation_publication_date", CREATED),
    ("article:modified_time", MODIFIED),
    ("dcterms.modified", MODIFIED),
    ("last-modified", MODIFIED),
    ("description", DESCRIPTION),
    ("og:description", DESCRIPTION),
    ("dc.description", DESCRIPTION),
    ("keywords", KEYWORDS),
    ("language", LANGUAGE),
    ("content-language", LANGUAGE),
    ("dc.language", LANGUAGE),
    ("og:locale", LANGUAGE),
    ("dc.subject", SUBJECT),
    ("dcterms.subject", SUBJECT),
];

/// The page's title and its author, dates, description, keywords, subject and language, as far as it names them.
///
/// The `lang` attribute of the page goes before what a `<meta>` element says.
pub(crate) fn read(dom: &Dom) -> (Option<String>, Map<String, Value>) {
    let mut title = None;
    let mut og_title = None;
    // Per key, the rank of the element that named it, and its value.
    let mut found: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    if let Some(language) = html(dom).and_then(|html| language_of(dom, html)) {
        found.insert(LANGUAGE, (0, language));
    }
    let mut at = Some(0);
    while let Some(id) = at {
        let name = dom.name(id);
        if name == Some("title") && dom.parent(id).and_then(|parent| dom.name(parent)) == Some("head") {
            title = title.or_else(|| one_line(&dom.text_below(id, MAX_VALUE_BYTES)));
        } else if name == Some("meta")
            && let Some((key, content)) = meta(dom, id)
        {
            if key == "og:title" {
                og_title.get_or_insert(content);
            } else if let Some(rank) = NAMES.iter().position(|(name, _)| *name == key) {
                let own = found.entry(NAMES[rank].1).or_insert((usize::MAX, String::new()));
                // Ranks of elements start at 1; 0 is the page's own attribute.
                if rank + 1 < own.0 {
                    *own = (rank + 1, content);
                }
            }
        }
        // Metadata stands in the head; some pages put it elsewhere, but never inside these.
        let below = !matches!(name, Some("p" | "ul" | "ol" | "dl" | "table" | "pre" | "svg"));
        at = dom.following(id, 0, below);
    }
    let metadata = found.into_iter().map(|(key, (_, value))| (key.to_owned(), Value::from(value))).collect();
    (title.or(og_title), metadata)
}

/// Name, in lower case, and content of a `<meta>` element.
fn meta(dom: &Dom, id: NodeId) -> Option<(String, String)> {
    let key = ["name", "property", "http-equiv"].into_iter().find_map(|key| dom.attribute(id, key))?;
    Some((key.trim().to_ascii_lowercase(), dom.attribute(id, "content").and_then(one_line)?))
}

fn html(dom: &Dom) -> Option<NodeId> {
    dom.children(0).find(|child| dom.name(*child) == Some("html"))
}

fn language_of(dom: &Dom, html: NodeId) -> Option<String> {
    dom.attribute(html, "lang").or_else(|| dom.attribute(html, "xml:lang")).and_then(one_line)
}
