//! The graph of a document: the things that it names (entities), what it says of two of them (relations), and the
//! documents that it points to (links). By rules and dictionaries, in one pass, with a limit on everything; what a chat
//! model may add, chunk by chunk, is in [`chat`].
//!
//! Precision goes before recall: an edge that is wrong leads a search astray, and one that is missing costs what flat
//! search costs anyway. Names are compared by [`key`]. What is stored knows nothing of other documents; which of them
//! a link means is decided when somebody looks, among what they may see.

mod address;
mod chat;
mod dictionary;
mod entity;
mod link;
mod question;
mod relation;

pub use address::resolved;
pub use chat::{
    ChatGraph, Extraction, FoundEntity, FoundRelation, GRAPH_SCHEMA, GRAPH_TOKENS, graph_prompt,
    graph_reminder, read_graph,
};
pub use entity::{Entity, Kind, entities};
pub use link::{Link, LinkKind};
pub use question::{asks_for_relations, names_in};
pub use relation::{Relation, Verb, relations};

use crate::document::PreparedDocument;
use crate::file_name::file_name;
use std::collections::HashMap;

/// Most bytes of a name; longer ones are none.
pub const MAX_NAME_BYTES: usize = 96;

/// Most mentions of one chunk; the heavier ones stay.
const MAX_MENTIONS_OF_CHUNK: usize = 24;

/// Most mentions of one document.
const MAX_MENTIONS: usize = 20_000;

/// Most relations of one document.
const MAX_RELATIONS: usize = 5_000;

/// Weight of a mention in the document's title or in the name of its file.
pub const TITLE_WEIGHT: f32 = 1.0;
/// Weight of a mention in the heading of the chunk's section.
const HEADING_WEIGHT: f32 = 0.9;
/// Weight of a mention that begins a line, as what is defined or listed does.
const LEADING_WEIGHT: f32 = 0.8;
/// Weight of a mention in the middle of a text, and what each further one adds, up to the weight of a leading one.
const PLAIN_WEIGHT: f32 = 0.4;
const REPEATED_WEIGHT: f32 = 0.1;

/// What is looked at beside the prepared text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// The title as it is shown.
    pub title: Option<&'a str>,
    /// Where the document comes from; relative links start there.
    pub uri: Option<&'a str>,
    /// The document as it came, where it is HTML: its text has lost the addresses.
    pub html: Option<&'a str>,
}

/// A chunk names an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    /// Index of the chunk.
    pub chunk: usize,
    /// What the entity is.
    pub kind: Kind,
    /// As it was written first in the chunk.
    pub name: String,
    /// [`key`] of the name.
    pub key: String,
    /// How much the chunk is about it, 0 to 1: 1 in the title, 0.9 in the heading, 0.8 at the start of a line, else 0.4
    /// and 0.1 more for each repetition, up to 0.8.
    pub weight: f32,
}

/// A sentence of a chunk relates two entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Index of the chunk.
    pub chunk: usize,
    /// [`key`] of the entity that does it.
    pub subject: String,
    /// What it does.
    pub verb: Verb,
    /// [`key`] of the entity to which it is done.
    pub object: String,
}

/// All that a document gives to the graph, in the order of its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentGraph {
    /// Which chunk names what.
    pub mentions: Vec<Mention>,
    /// Which chunk relates what.
    pub edges: Vec<Edge>,
    /// Which chunk points where.
    pub links: Vec<Link>,
}

/// What names are compared by: small letters, single blanks, no quotes, marks or possessive at the ends.
pub fn key(name: &str) -> String {
    let lower = name.to_lowercase().replace(['`', '*', '"'], "");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let joined = words.join(" ");
    let bare = joined.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare).to_owned()
}

/// The graph of a document that has been cut.
pub fn graph_of(prepared: &PreparedDocument, origin: &Origin<'_>) -> DocumentGraph {
    let mut graph = DocumentGraph::default();
    let headings: Vec<Vec<Entity>> = prepared
        .sections
        .iter()
        .map(|section| section.header_path.last().map(|heading| entities(heading)).unwrap_or_default())
        .collect();
    for (index, chunk) in prepared.chunks.iter().enumerate() {
        let text = prepared.chunk_text(chunk);
        let found = entities(text);
        let mut of_chunk = ChunkMentions::new(index);
        if index == 0 {
            let file = origin.uri.and_then(file_name);
            for title in origin.title.into_iter().chain(file.as_deref()) {
                entities(title).iter().for_each(|entity| of_chunk.add(title, entity, TITLE_WEIGHT));
            }
        }
        if let Some(heading) = prepared.sections[chunk.section].header_path.last() {
            headings[chunk.section].iter().for_each(|entity| of_chunk.add(heading, entity, HEADING_WEIGHT));
        }
        for entity in &found {
            let weight = if leads_line(text, entity.bytes.start) { LEADING_WEIGHT } else { PLAIN_WEIGHT };
            of_chunk.add(text, entity, weight);
        }
        graph.mentions.extend(of_chunk.heaviest());
        let edges = relations(text, &found).into_iter().map(|relation| Edge {
            chunk: index,
            subject: key(&text[found[relation.subject].bytes.clone()]),
            verb: relation.verb,
            object: key(&text[found[relation.object].bytes.clone()]),
        });
        graph.edges.extend(edges.filter(|edge| edge.subject != edge.object));
        if graph.mentions.len() >= MAX_MENTIONS || graph.edges.len() >= MAX_RELATIONS {
            break;
        }
    }
    graph.edges.dedup();
    graph.links = link::links(prepared, origin);
    graph
}

/// Whether nothing but marks of lists and emphasis stands between the line's start and this place.
fn leads_line(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..at].chars().all(|c| !c.is_alphanumeric())
}

struct ChunkMentions {
    chunk: usize,
    found: Vec<Mention>,
    places: HashMap<String, usize>,
}

impl ChunkMentions {
    fn new(chunk: usize) -> Self {
        Self { chunk, found: Vec::new(), places: HashMap::new() }
    }

    fn add(&mut self, text: &str, entity: &Entity, weight: f32) {
        let name = &text[entity.bytes.clone()];
        let key = key(name);
        if key.is_empty() {
            return;
        }
        if let Some(place) = self.places.get(&key) {
            let known = &mut self.found[*place];
            let repeated = (known.weight + REPEATED_WEIGHT).min(LEADING_WEIGHT);
            known.weight = known.weight.max(weight).max(repeated);
            return;
        }
        self.places.insert(key.clone(), self.found.len());
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        self.found.push(Mention { chunk: self.chunk, kind: entity.kind, name, key, weight });
    }

    fn heaviest(mut self) -> Vec<Mention> {
        // Stable: of equal weights the first ones stay.
        self.found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        self.found.truncate(MAX_MENTIONS_OF_CHUNK);
        self.found
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
