//! What is related to a document or an entity, as far as the caller sees the documents that say so.

use super::graph::{MOST_DOMAINS, linked_documents};
use super::scope::Scope;
use crate::error::Result;
use crate::storage::Id;
use crate::storage::graph::{self, LinkNature, MentionRow, RelationRow, Title};
use rag_core::graph::key;
use std::collections::{HashMap, HashSet};

/// Places of one entity, and relations of one entity and direction, that are read.
const MOST_PLACES: usize = 1_000;
/// Names of a document.
const MOST_NAMES: usize = 1_000;
/// Entities that a second step goes on from.
const MOST_ENTITIES: usize = 100;
/// Strength of a relation that a sentence states; over two steps it is this times this.
const STATED: f64 = 0.9;

/// Something that is related to the subject.
#[derive(Debug, Clone)]
pub(crate) struct Related {
    /// `document`, or the kind of the entity.
    pub(crate) kind: String,
    /// Of an entity.
    pub(crate) name: Option<String>,
    pub(crate) relation: String,
    /// From the subject to this, the other way, or neither.
    pub(crate) direction: &'static str,
    pub(crate) strength: f64,
    pub(crate) depth: i32,
    /// The related document; of an entity, the document that says so.
    pub(crate) document: Id,
    pub(crate) title: Option<String>,
    pub(crate) uri: Option<String>,
    /// The chunk that says so.
    pub(crate) chunk: Id,
}

/// The `k` strongest relations of a document, by id or uri, or else of the entity of this name; ties by depth, relation, name
/// and chunk. Empty for what is nowhere to be seen. Of more than 64 domains those are looked at that name the entity, at most
/// 64, or of a document its own.
pub(crate) fn related(scope: &Scope, subject: &str, k: usize, depth: i32) -> Result<Vec<Related>> {
    let mut domains = scope.ids();
    let document = graph::document_called(&domains, subject.trim())?;
    let subject = key(subject);
    if domains.len() > MOST_DOMAINS {
        domains = graph::domains_with(&domains, document, &subject, MOST_DOMAINS)?;
    }
    let mut rows = match document {
        Some(document) => of_document(&domains, document)?,
        None => of_entity(&domains, subject, depth)?,
    };
    rows.sort_by(|a, b| {
        let order = b.strength.total_cmp(&a.strength).then(a.depth.cmp(&b.depth));
        order.then_with(|| {
            (&a.relation, &a.name, a.document, a.chunk).cmp(&(&b.relation, &b.name, b.document, b.chunk))
        })
    });
    rows.truncate(k);
    let documents: HashSet<Id> = rows.iter().map(|row| row.document).collect();
    let documents: Vec<Id> = documents.into_iter().collect();
    let titles: HashMap<Id, Title> = graph::titles(&domains, &documents)?.into_iter().collect();
    for row in &mut rows {
        if let Some(Title { title, uri }) = titles.get(&row.document) {
            (row.title, row.uri) = (title.clone(), uri.clone());
        }
    }
    Ok(rows)
}

fn of_document(domains: &[Id], document: Id) -> Result<Vec<Related>> {
    let mut best: HashMap<(Id, LinkNature), Related> = HashMap::new();
    for link in linked_documents(domains, &[document])? {
        let (relation, direction) = match link.nature {
            LinkNature::To => ("links_to", "out"),
            LinkNature::From => ("links_to", "in"),
            LinkNature::Shared => ("shares_entities", "both"),
        };
        let row = Related {
            kind: "document".to_owned(),
            name: None,
            relation: relation.to_owned(),
            direction,
            strength: link.strength,
            depth: 1,
            document: link.to,
            title: None,
            uri: None,
            chunk: link.chunk,
        };
        let known = best.entry((link.to, link.nature)).or_insert_with(|| row.clone());
        if (row.strength, known.chunk) > (known.strength, row.chunk) {
            *known = row;
        }
    }
    let names = graph::names_of_documents(domains, &[document], MOST_NAMES)?;
    Ok(best.into_values().chain(names.into_iter().map(|name| named(name, "names", "out"))).collect())
}

/// A mention as a relation of a document and an entity.
fn named(mention: MentionRow, relation: &str, direction: &'static str) -> Related {
    Related {
        kind: mention.kind,
        name: Some(mention.name),
        relation: relation.to_owned(),
        direction,
        strength: mention.weight,
        depth: 1,
        document: mention.document,
        title: None,
        uri: None,
        chunk: mention.chunk,
    }
}

fn of_entity(domains: &[Id], subject: String, depth: i32) -> Result<Vec<Related>> {
    let mut seen: HashSet<String> = HashSet::from([subject.clone()]);
    let mut frontier = vec![subject.clone()];
    let mut found: Vec<(RelationRow, i32)> = Vec::new();
    for step in 1..=depth {
        let relations = graph::relations_of(domains, &frontier, MOST_PLACES)?;
        let new: Vec<RelationRow> = relations.into_iter().filter(|row| !seen.contains(&row.to)).collect();
        frontier = new.iter().map(|row| row.to.clone()).filter(|to| seen.insert(to.clone())).collect();
        frontier.sort();
        frontier.truncate(MOST_ENTITIES);
        found.extend(new.into_iter().map(|row| (row, step)));
    }
    let keys: HashSet<String> = found.iter().map(|(row, _)| row.to.clone()).collect();
    let mut called: HashMap<String, MentionRow> = HashMap::new();
    for mention in graph::mentions_of(domains, &keys.into_iter().collect::<Vec<String>>(), 1)? {
        called.insert(mention.key.clone(), mention);
    }
    let relations = found.into_iter().map(|(row, step)| {
        let mention = called.get(&row.to);
        Related {
            kind: mention.map_or_else(|| "term".to_owned(), |mention| mention.kind.clone()),
            name: Some(mention.map_or(row.to, |mention| mention.name.clone())),
            relation: row.relation,
            direction: if row.is_subject { "out" } else { "in" },
            strength: STATED.powi(step),
            depth: step,
            document: row.document,
            title: None,
            uri: None,
            chunk: row.chunk,
        }
    });
    let mut rows: Vec<Related> = relations.collect();
    let mut places: HashMap<Id, MentionRow> = HashMap::new();
    for place in graph::mentions_of(domains, &[subject], MOST_PLACES)? {
        let known = places.entry(place.document).or_insert_with(|| place.clone());
        if (place.weight, known.chunk) > (known.weight, place.chunk) {
            *known = place;
        }
    }
    rows.extend(places.into_values().map(|place| Related {
        kind: "document".to_owned(),
        name: None,
        ..named(place, "names", "in")
    }));
    Ok(rows)
}
