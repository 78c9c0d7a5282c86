//! The graph at search: what is related to what the query and the best hits name, and documents that are linked to those
//! of the best hits. All of it read as the caller, within the search's domains: what they may not see is not there.

use super::allowed::Allowed;
use super::keyword::KeywordRetriever;
use super::options::GraphUse;
use super::retriever::retrieve;
use super::scope::Scope;
use super::{SearchRequest, diagnostics::Stages, scored};
use crate::error::Result;
use crate::storage::Id;
use crate::storage::graph::{self, LinkNature, LinkRow, MentionRow, RelationRow};
use rag_core::fuse::{RRF_K, Ranked, rrf};
use rag_core::graph::{asks_for_relations, names_in};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Best hits from whose entities and documents the graph goes on.
const HITS: usize = 5;
/// Best documents whose links are followed.
const LINKING_DOCUMENTS: usize = 3;
/// Linked documents that lend chunks, the least strength of their link, and how many chunks each lends.
const LENDING_DOCUMENTS: usize = 2;
const LEAST_STRENGTH: f64 = 0.5;
const LENT_CHUNKS: usize = 3;
/// Linked documents that are looked into.
const MOST_CANDIDATES: usize = 60;
/// Chunks of one linked document that are looked at.
const MOST_CHUNKS_OF_DOCUMENT: usize = 2_000;
/// Where a caller sees more domains than this, the graph looks at those of the best hits alone: each name is looked up in
/// each domain.
pub(super) const MOST_DOMAINS: usize = 64;
/// What more documents or places name than this connects nothing.
const MOST_DOCUMENTS: usize = 50;
const MOST_PLACES: usize = 400;
/// Entities that one step goes on from.
const MOST_ENTITIES: usize = 24;
/// Relations of one entity and direction.
const MOST_RELATIONS: usize = 50;
/// Links of one document.
const MOST_LINKS: usize = 200;
/// Share of an entity that the best hit is all about; those of the query are the measure, and have 1.
const HIT_SHARE: f64 = 0.4;
/// Share of an entity beside the one that it is related to.
const STEP_SHARE: f64 = 0.7;
/// What counts of chunks that name what the query names, and of chunks of the hits' documents: both are found anyway.
const NAMED_SHARE: f64 = 0.2;
const SAME_DOCUMENT: f64 = 0.5;
/// What counts of all but the best reason for a chunk.
const OTHERS_SHARE: f64 = 0.2;
/// Weight of the hits' own order among the chunks that the graph brings.
const KNOWN_WEIGHT: f32 = 0.3;
/// Chunks that the graph brings.
const MOST_CHUNKS: usize = 50;
/// Weight of the graph's list beside the fused one: its first chunk comes behind the first hit.
const LIST_WEIGHT: f32 = 0.985;

/// Whether a search is to use the graph.
pub(super) fn is_wanted(request: &SearchRequest<'_>) -> bool {
    match request.options.graph {
        GraphUse::Off => false,
        GraphUse::On => true,
        GraphUse::Auto => asks_for_relations(request.query),
    }
}

/// Merges what the graph brings into the order of the hits, as a stage.
pub(super) fn extend(
    scope: &Scope,
    request: &SearchRequest<'_>,
    allowed: Option<&Allowed<'_>>,
    order: &mut Vec<Ranked>,
    stages: &mut Stages,
) -> Result<()> {
    let expansion = |_| Expansion::of(scope, request.query, allowed, order);
    if let Some((watch, expansion)) = stages.attempt("graph", "hits without the graph", expansion)? {
        let (given, method) = (order.len(), expansion.method());
        let brought = expansion.list(order);
        if !brought.is_empty() {
            *order = merged(order, &brought);
        }
        stages.done_as(watch, given, order.len(), method);
        stages.ranked("graph", scored(order));
    }
    Ok(())
}

/// Two lists as one: a chunk has the better of its two reciprocal ranks, where those of the further list count a little
/// less. So the lists alternate from the second place on, and neither crowds the other out. 1 for the first chunk.
pub(super) fn merged(order: &[Ranked], further: &[Ranked]) -> Vec<Ranked> {
    let mut best: HashMap<Id, f32> = HashMap::new();
    for (list, weight) in [(order, 1.0), (further, LIST_WEIGHT)] {
        for (index, hit) in list.iter().enumerate() {
            let score = weight * (RRF_K + 1.0) / (RRF_K + 1.0 + index as f32);
            let known = best.entry(hit.id).or_default();
            *known = known.max(score);
        }
    }
    let mut merged: Vec<Ranked> = best.into_iter().map(|(id, score)| Ranked { id, score }).collect();
    merged.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    merged
}

/// What the graph brings beside the best hits: chunks that name related entities, and chunks of linked documents.
struct Expansion {
    related: Vec<Ranked>,
    lent: Vec<Ranked>,
}

impl Expansion {
    fn of(scope: &Scope, query: &str, allowed: Option<&Allowed<'_>>, order: &[Ranked]) -> Result<Self> {
        let (hits, domains) = Hits::of(scope, order)?;
        let scores = related_chunks(&domains, query, &hits)?;
        let lent = lent_chunks(scope, &domains, query, allowed, &hits, &scores)?;
        Ok(Self { related: best_visible(scope, allowed, &scores)?, lent })
    }

    /// Its chunks in one order, to which that of the hits adds what it knows of them.
    fn list(&self, order: &[Ranked]) -> Vec<Ranked> {
        let brought = merged(&self.related, &self.lent);
        let ids: HashSet<Id> = brought.iter().map(|hit| hit.id).collect();
        let known: Vec<Ranked> = order.iter().filter(|hit| ids.contains(&hit.id)).copied().collect();
        rrf(&[(&brought, 1.0), (&known, KNOWN_WEIGHT)], RRF_K)
    }

    fn method(&self) -> &'static str {
        match (self.related.is_empty(), self.lent.is_empty()) {
            (true, true) => "none",
            (false, true) => "entities",
            (true, false) => "links",
            (false, false) => "entities and links",
        }
    }
}

/// The best hits with their documents.
struct Hits {
    /// Best first.
    chunks: Vec<Id>,
    /// Without repetition, that of the best hit first.
    documents: Vec<Id>,
}

impl Hits {
    /// The hits, and the domains in which the graph is looked at.
    fn of(scope: &Scope, order: &[Ranked]) -> Result<(Self, Vec<Id>)> {
        let mut domains = scope.ids();
        let chunks: Vec<Id> = order.iter().take(HITS).map(|hit| hit.id).collect();
        let found = graph::places_of(&domains, &chunks)?;
        if domains.len() > MOST_DOMAINS {
            domains.retain(|domain| found.iter().any(|place| place.domain == *domain));
        }
        let document_of: HashMap<Id, Id> =
            found.into_iter().map(|place| (place.chunk, place.document)).collect();
        let mut documents: Vec<Id> = Vec::new();
        for document in chunks.iter().filter_map(|chunk| document_of.get(chunk)) {
            if !documents.contains(document) {
                documents.push(*document);
            }
        }
        Ok((Self { chunks, documents }, domains))
    }

    /// Entities that the hits name and the query does not, with their share: the more a better hit is about one, the
    /// greater.
    fn entities(&self, domains: &[Id], named: &HashSet<String>) -> Result<HashMap<String, f64>> {
        let rank: HashMap<Id, usize> =
            self.chunks.iter().enumerate().map(|(index, chunk)| (*chunk, index + 1)).collect();
        let mut shares: HashMap<String, f64> = HashMap::new();
        for mention in graph::mentions_in_chunks(domains, &self.documents, &self.chunks)? {
            if let Some(rank) = rank.get(&mention.chunk)
                && !named.contains(&mention.key)
            {
                *shares.entry(mention.key).or_default() += HIT_SHARE * mention.weight / *rank as f64;
            }
        }
        Ok(shares)
    }
}

/// Where entities are named; those that too many name are left out.
#[derive(Default)]
struct Places {
    of: HashMap<String, Vec<MentionRow>>,
    asked: HashSet<String>,
}

impl Places {
    /// Looks up the keys that were not asked for before.
    fn look_up(&mut self, domains: &[Id], keys: impl IntoIterator<Item = String>) -> Result<()> {
        let new: Vec<String> = keys.into_iter().filter(|key| self.asked.insert(key.clone())).collect();
        let mut found: HashMap<String, Vec<MentionRow>> = HashMap::new();
        for mention in graph::mentions_of(domains, &new, MOST_PLACES)? {
            found.entry(mention.key.clone()).or_default().push(mention);
        }
        found.retain(|_, places| places.len() < MOST_PLACES && documents_in(places) <= MOST_DOCUMENTS);
        self.of.extend(found);
        Ok(())
    }

    /// From 1 for what one document names downwards; None for what is named nowhere, or everywhere.
    fn rarity(&self, key: &str) -> Option<f64> {
        self.of.get(key).map(|places| 1.0 / (1.0 + documents_in(places) as f64).log2())
    }
}

fn documents_in(places: &[MentionRow]) -> usize {
    places.iter().map(|place| place.document).collect::<HashSet<Id>>().len()
}

/// The `MOST_ENTITIES` with the greatest shares, ties by key.
fn heaviest(shares: impl Iterator<Item = (String, f64)>) -> Vec<(String, f64)> {
    let mut sorted: Vec<(String, f64)> = shares.collect();
    sorted.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
    sorted.truncate(MOST_ENTITIES);
    sorted
}

/// Chunks that name what is related, over at most two steps, to what the query and the best hits name, with their scores.
/// Reasons for a chunk are the entities that it names, each with share × rarity × the mention's weight squared, and the
/// relations on the way that it states, each with share × rarity of what it leads to. See [`Score`].
fn related_chunks(domains: &[Id], query: &str, hits: &Hits) -> Result<HashMap<Id, f64>> {
    let mut places = Places::default();
    places.look_up(domains, names_in(query))?;
    let named: HashSet<String> = places.of.keys().cloned().collect();
    // In order, so that sums are the same each time.
    let mut shares: BTreeMap<String, f64> = named.iter().map(|key| (key.clone(), 1.0)).collect();
    let mut scores: HashMap<Id, Score> = HashMap::new();
    let mut frontier = heaviest(shares.clone().into_iter());
    let of_hits = heaviest(hits.entities(domains, &named)?.into_iter());
    for depth in 0..2 {
        let keys: Vec<String> = frontier.iter().map(|(key, _)| key.clone()).collect();
        let relations = graph::relations_of(domains, &keys, MOST_RELATIONS)?;
        let reached = reached(&frontier, &relations, &shares);
        places.look_up(domains, reached.keys().cloned())?;
        for relation in &relations {
            if let (Some(share), Some(rarity)) = (reached.get(&relation.to), places.rarity(&relation.to)) {
                scores.entry(relation.chunk).or_default().add(share * rarity);
            }
        }
        frontier = heaviest(reached.into_iter());
        if depth == 0 {
            frontier.extend(of_hits.iter().cloned());
        }
        for (key, share) in &frontier {
            let known = shares.entry(key.clone()).or_default();
            *known = known.max(*share);
        }
    }
    places.look_up(domains, shares.keys().cloned())?;
    for (key, share) in &shares {
        let (Some(rarity), Some(found)) = (places.rarity(key), places.of.get(key)) else { continue };
        let share = if named.contains(key) { NAMED_SHARE } else { *share };
        for place in found {
            let distance = if hits.documents.contains(&place.document) { SAME_DOCUMENT } else { 1.0 };
            let gain = share * rarity * place.weight * place.weight * distance;
            scores.entry(place.chunk).or_default().add(gain);
        }
    }
    scores.retain(|chunk, _| !hits.chunks.contains(chunk));
    Ok(scores.into_iter().map(|(chunk, score)| (chunk, score.value())).collect())
}

/// The score of a chunk: its best reason, and a part of the others. One thing that it defines says more than many that it
/// mentions.
#[derive(Default)]
struct Score {
    best: f64,
    sum: f64,
}

impl Score {
    fn add(&mut self, gain: f64) {
        self.best = self.best.max(gain);
        self.sum += gain;
    }

    fn value(&self) -> f64 {
        self.best + OTHERS_SHARE * (self.sum - self.best)
    }
}

/// What relations lead to from these entities, each with the greatest share that reaches it.
fn reached(
    frontier: &[(String, f64)],
    relations: &[RelationRow],
    known: &BTreeMap<String, f64>,
) -> HashMap<String, f64> {
    // What is both reached and named by a hit is there twice, and counts with the greater share.
    let mut from: HashMap<&str, f64> = HashMap::new();
    for (key, share) in frontier {
        let best = from.entry(key).or_default();
        *best = best.max(*share);
    }
    let mut reached: HashMap<String, f64> = HashMap::new();
    for relation in relations {
        let share = STEP_SHARE * from.get(relation.from.as_str()).copied().unwrap_or_default();
        if known.get(&relation.to).is_some_and(|known| *known >= share) {
            continue;
        }
        let best = reached.entry(relation.to.clone()).or_default();
        *best = best.max(share);
    }
    reached
}

/// The chunks of the highest scores that the filter and the caller's rights let through, ties by id.
fn best_visible(
    scope: &Scope,
    allowed: Option<&Allowed<'_>>,
    scores: &HashMap<Id, f64>,
) -> Result<Vec<Ranked>> {
    let ids: Vec<Id> = scores.keys().copied().collect();
    let passing = allowed.map(|allowed| allowed.chunks(&ids)).transpose()?;
    let mut ranked: Vec<Ranked> = scores
        .iter()
        .filter(|(chunk, _)| passing.as_ref().is_none_or(|passing| passing.contains(chunk)))
        .map(|(id, score)| Ranked { id: *id, score: *score as f32 })
        .collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    ranked.truncate(4 * MOST_CHUNKS);
    let visible = scope.visible(&ranked.iter().map(|hit| hit.id).collect::<Vec<Id>>())?;
    ranked.retain(|hit| visible.contains(&hit.id));
    ranked.truncate(MOST_CHUNKS);
    Ok(ranked)
}

/// Chunks of the two documents most strongly linked to those of the best hits; of equally strong links, that of the better
/// hit, then the document that matches better. Of each its best three, by reciprocal ranks of what matches the query and
/// of what names related entities.
fn lent_chunks(
    scope: &Scope,
    domains: &[Id],
    query: &str,
    allowed: Option<&Allowed<'_>>,
    hits: &Hits,
    scores: &HashMap<Id, f64>,
) -> Result<Vec<Ranked>> {
    let candidates = candidates(domains, allowed, hits)?;
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let documents: Vec<Id> = candidates.iter().map(|candidate| candidate.document).collect();
    let chunks = graph::chunks_of(domains, &documents, MOST_CHUNKS_OF_DOCUMENT)?;
    let within = Allowed::of(documents, chunks.into_iter().collect());
    let mut retriever = KeywordRetriever::open(scope, query, Some(&within))?;
    let matching = retrieve(&mut retriever, MOST_CHUNKS, None, |unknown| scope.visible(unknown))?;
    let naming = best_visible(scope, Some(&within), scores)?;
    let found = rrf(&[(&matching, 1.0), (&naming, 1.0)], RRF_K);
    let ids: Vec<Id> = found.iter().map(|hit| hit.id).collect();
    let places = graph::places_of(domains, &ids)?;
    let document_of: HashMap<Id, Id> =
        places.into_iter().map(|place| (place.chunk, place.document)).collect();
    let mut of_document: HashMap<Id, Vec<Ranked>> = HashMap::new();
    for hit in found {
        if let Some(document) = document_of.get(&hit.id) {
            of_document.entry(*document).or_default().push(hit);
        }
    }
    let mut lending: Vec<(Candidate, Vec<Ranked>)> = candidates
        .into_iter()
        .filter_map(|candidate| of_document.remove(&candidate.document).map(|chunks| (candidate, chunks)))
        .collect();
    lending.sort_by(|(a, x), (b, y)| a.order(b).then(y[0].score.total_cmp(&x[0].score)));
    lending.truncate(LENDING_DOCUMENTS);
    let mut lent: Vec<Ranked> =
        lending.into_iter().flat_map(|(_, chunks)| chunks.into_iter().take(LENT_CHUNKS)).collect();
    lent.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    Ok(lent)
}

/// A document that is linked to that of a hit.
struct Candidate {
    document: Id,
    strength: f64,
    /// Place of the hit's document, from 0.
    place: usize,
}

impl Candidate {
    /// The stronger link first, then that of the better hit.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        other.strength.total_cmp(&self.strength).then(self.place.cmp(&other.place))
    }
}

/// Linked documents that may lend chunks, each with its strongest link.
fn candidates(domains: &[Id], allowed: Option<&Allowed<'_>>, hits: &Hits) -> Result<Vec<Candidate>> {
    let linking = &hits.documents[..hits.documents.len().min(LINKING_DOCUMENTS)];
    let links = linked_documents(domains, linking)?;
    let linked: Vec<Id> = links.iter().map(|link| link.to).collect();
    let within = allowed.map(|allowed| allowed.documents(&linked)).transpose()?;
    let mut strengths: HashMap<(Id, Id), BTreeMap<LinkNature, f64>> = HashMap::new();
    for link in links {
        let is_allowed = within.as_ref().is_none_or(|within| within.contains(&link.to));
        if link.strength >= LEAST_STRENGTH && !hits.documents.contains(&link.to) && is_allowed {
            let of_pair = strengths.entry((link.from, link.to)).or_default();
            let strength = of_pair.entry(link.nature).or_default();
            *strength = strength.max(link.strength);
        }
    }
    let mut best: HashMap<Id, Candidate> = HashMap::new();
    for ((from, document), natures) in strengths {
        let place = linking.iter().position(|linking| *linking == from).unwrap_or(linking.len());
        // As if each were a chance of its own that the two belong together.
        let strength = 1.0 - natures.values().map(|strength| 1.0 - strength).product::<f64>();
        let candidate = Candidate { document, strength, place };
        match best.get(&document) {
            Some(known) if known.order(&candidate).is_le() => {}
            _ => drop(best.insert(document, candidate)),
        }
    }
    let mut candidates: Vec<Candidate> = best.into_values().collect();
    candidates.sort_by(|a, b| a.order(b).then(a.document.cmp(&b.document)));
    candidates.truncate(MOST_CANDIDATES);
    Ok(candidates)
}

/// Documents that are linked to these: those that they point to, those that point to them, and those that share two
/// or more entities with them.
pub(crate) fn linked_documents(domains: &[Id], documents: &[Id]) -> Result<Vec<LinkRow>> {
    let mut links = graph::links_from(domains, documents, MOST_LINKS)?;
    links.extend(graph::links_to(domains, documents, MOST_LINKS)?);
    links.extend(shared_links(domains, documents)?);
    Ok(links)
}

/// Links by entities in common, of those that documents are most about and no more than 50 documents name.
fn shared_links(domains: &[Id], documents: &[Id]) -> Result<Vec<LinkRow>> {
    let names = graph::names_of_documents(domains, documents, MOST_ENTITIES)?;
    let mut places = Places::default();
    places.look_up(domains, names.iter().map(|name| name.key.clone()))?;
    let mut shared: HashMap<(Id, Id), (usize, Id)> = HashMap::new();
    for name in &names {
        let Some(found) = places.of.get(&name.key) else { continue };
        let others: HashSet<Id> = found.iter().map(|place| place.document).collect();
        for other in others.into_iter().filter(|other| *other != name.document) {
            shared.entry((name.document, other)).or_insert((0, name.chunk)).0 += 1;
        }
    }
    let links = shared.into_iter().filter(|(_, (count, _))| *count >= 2);
    let mut links: Vec<LinkRow> = links
        .map(|((from, to), (count, chunk))| {
            let strength = shared_strength(count);
            LinkRow { from, to, nature: LinkNature::Shared, strength, chunk }
        })
        .collect();
    links.sort_by_key(|link| (link.from, link.to));
    Ok(links)
}

/// 0.5 for two entities in common and 0.05 more for each further one, at most 0.75: less than a hyperlink.
fn shared_strength(count: usize) -> f64 {
    (0.5 + 0.05 * count.saturating_sub(2) as f64).min(0.75)
}

/// The entity that the best hits are most about, that the query does not name and that few documents name.
pub(super) fn next_entity(scope: &Scope, query: &str, order: &[Ranked]) -> Result<Option<String>> {
    let (hits, domains) = Hits::of(scope, order)?;
    let named: HashSet<String> = names_in(query).into_iter().collect();
    let candidates = heaviest(hits.entities(&domains, &named)?.into_iter());
    let mut places = Places::default();
    places.look_up(&domains, candidates.iter().map(|(key, _)| key.clone()))?;
    let mut weighed: Vec<(f64, String)> = candidates
        .into_iter()
        .filter_map(|(key, share)| Some((share * places.rarity(&key)?, key)))
        // What one document alone names leads nowhere else.
        .filter(|(_, key)| places.of.get(key).is_some_and(|found| documents_in(found) > 1))
        .collect();
    weighed.sort_by(|(x, a), (y, b)| y.total_cmp(x).then_with(|| a.cmp(b)));
    Ok(weighed.into_iter().next().map(|(_, key)| places.of[&key][0].name.clone()))
}
