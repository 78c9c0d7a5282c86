//! Ids of sections and chunks: made from what they are, so that what stays the same keeps its id.

use super::indexed_title;
use crate::document::PreparedDocument;
use crate::hash::sha256;
use crate::ids::uuid_v8;
use std::collections::HashMap;

/// Ids of a document's sections and chunks, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identities {
    /// One per section.
    pub sections: Vec<[u8; 16]>,
    /// One per chunk.
    pub chunks: Vec<[u8; 16]>,
}

/// The ids of a document's sections and chunks. `title` is the document's as it is shown; may be empty.
///
/// A chunk's id is made from domain, document, what is searched of it (title and headings, context, text) and
/// its position among equal chunks of the document: so it survives when text is inserted or taken away before
/// it, and it is another one as soon as a search would read it otherwise. A section's id is made from its
/// headings and its position among sections under the same ones. UUIDs version 8; equal input, equal ids.
pub fn identities(
    domain: [u8; 16],
    document: [u8; 16],
    title: &str,
    prepared: &PreparedDocument,
) -> Identities {
    let mut naming = Naming { owner: [domain, document], seen: HashMap::new() };
    let sections = prepared
        .sections
        .iter()
        .map(|section| naming.id(b'S', section.header_path.iter().map(String::as_str)))
        .collect();
    let chunks = prepared
        .chunks
        .iter()
        .map(|chunk| {
            let headings = &prepared.sections[chunk.section].header_path;
            let indexed = indexed_title(title, headings, &chunk.context);
            naming.id(b'C', [indexed.as_str(), &chunk.context, prepared.chunk_text(chunk)].into_iter())
        })
        .collect();
    Identities { sections, chunks }
}

struct Naming {
    owner: [[u8; 16]; 2],
    /// How often each content came so far.
    seen: HashMap<[u8; 32], u32>,
}

impl Naming {
    fn id<'a>(&mut self, kind: u8, parts: impl Iterator<Item = &'a str>) -> [u8; 16] {
        let mut content = vec![kind];
        for part in parts {
            // With its length, or ("a", "bc") were ("ab", "c").
            content.extend((part.len() as u64).to_be_bytes());
            content.extend(part.as_bytes());
        }
        let content = sha256(&content);
        let before = self.seen.entry(content).or_insert(0);
        let named = [self.owner.as_flattened(), &content, &before.to_be_bytes()].concat();
        *before += 1;
        uuid_v8(sha256(&named))
    }
}
