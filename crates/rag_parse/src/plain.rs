//! Plain text: kept as it came, without headings.

use crate::properties::Properties;
use rag_core::document::ParsedDocument;

/// A document without structure.
pub(crate) fn parse(text: &str, media_type: String, properties: Properties) -> ParsedDocument {
    ParsedDocument {
        media_type,
        title: None,
        text: text.to_owned(),
        headings: Vec::new(),
        pages: Vec::new(),
        metadata_json: properties.into_json(),
    }
}
