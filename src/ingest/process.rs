//! One document: parse and embed it (the engine's work, no transaction needed), then write the results (one
//! transaction for a batch of documents of one domain).

use super::extract::FoundMetadata;
use crate::config;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::shared;
use crate::storage::collection::{self, Collection};
use crate::storage::document::{self, Completed, StoredDocument, VersionLock};
use crate::storage::embedding::{self, VectorSpace};
use crate::storage::graph::{ChatPart, FoundGraph};
use crate::storage::job::{self, Finished};
use crate::storage::replacement::{self, Replaced, Replacement};
use crate::storage::{Id, acronym, chunk, graph, graph_job, segment, vector_codes};
use pgrx::PgSqlErrorCode;
use rag_core::chunk::indexed_title;
use rag_core::collection::CollectionOptions;
use rag_core::document::PreparedDocument;
use rag_core::graph::{DocumentGraph, Extraction, Origin, graph_of};
use rag_wire::{Content, Lane, Prepare, TextRole};
use std::collections::{HashMap, HashSet};

/// Texts of one request to the engine: few enough for the bulk lane to stay fair, enough to fill a batch.
pub(crate) const TEXTS_PER_REQUEST: usize = 16;

/// Vectors of passages, in their order, by one request.
pub(crate) fn embed_passages(
    model: &str,
    texts: Vec<String>,
    lane: Lane,
    owner: &str,
) -> Result<Vec<Vec<f32>>> {
    let asked = texts.len();
    let answer = engine::embed(Some(model), TextRole::Passage, texts, lane, &[owner.to_owned()])?;
    let rows = answer.values.chunks_exact(answer.dimension.max(1) as usize);
    if rows.len() != asked {
        return Err(Error::internal(format!("{} vectors came for {asked} texts", rows.len())));
    }
    Ok(rows.map(<[f32]>::to_vec).collect())
}

/// Vectors by hash of the embedded text.
pub(crate) type Vectors = HashMap<[u8; 32], Vec<f32>>;

/// Whether the chat model is asked about chunks of a collection with these options.
fn asks_chat(options: &CollectionOptions) -> bool {
    config::graph() && options.graph == Extraction::Chat
}

/// A document that only has to be written.
pub(crate) struct ProcessedDocument {
    pub(crate) document: StoredDocument,
    prepared: PreparedDocument,
    hashes: Vec<[u8; 32]>,
    vectors: Vectors,
    dimension: u32,
    embedded: usize,
    found: FoundMetadata,
    graph: DocumentGraph,
}

impl ProcessedDocument {
    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.prepared.chunks.len()
    }

    /// About how much memory it takes: its content as it came, its text, and its vectors.
    pub(crate) fn bytes(&self) -> usize {
        let content = match &self.document.content {
            Content::Text(text) => text.len(),
            Content::Bytes(bytes) => bytes.len(),
        };
        let numbers: usize = self.vectors.values().map(Vec::len).sum();
        content + self.prepared.parsed.text.len() + numbers * size_of::<f32>()
    }
}

/// A parsed and chunked document, with what the database knows of its vectors still to be asked.
pub(crate) struct PreparedWork {
    document: StoredDocument,
    prepared: PreparedDocument,
    hashes: Vec<[u8; 32]>,
    found: FoundMetadata,
    graph: DocumentGraph,
}

/// Parses and chunks a document, and finds its metadata. It is cut for the model to come, where there is one, so
/// that the chunks fit it.
pub(crate) fn prepare(document: StoredDocument, collection: &Collection, lane: Lane) -> Result<PreparedWork> {
    let CollectionOptions { chunking, .. } = CollectionOptions::from_json(&collection.options)?;
    let prepare = |model: &str| {
        engine::prepare(
            Prepare {
                content: document.content.clone(),
                media_type: document.media_type.clone(),
                title: document.title.clone(),
                model: Some(model.to_owned()),
                language: Some(collection.language.clone()),
                chunking: chunking.clone(),
            },
            lane,
            std::slice::from_ref(&document.owner),
        )
    };
    let prepared = match &collection.next_model {
        None => prepare(&collection.model)?,
        Some(next) => match prepare(next) {
            // A model to come that cannot be used holds up its change, not the documents.
            Err(error)
                if matches!(
                    error.code,
                    PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT
                        | PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
                ) =>
            {
                prepare(&collection.model)?
            }
            prepared => prepared?,
        },
    };
    let hashes = chunk::hashes(&prepared);
    let found = FoundMetadata::of(&document, &prepared.parsed);
    let graph = if config::graph() { found_graph(&document, &prepared) } else { DocumentGraph::default() };
    Ok(PreparedWork { document, prepared, hashes, found, graph })
}

/// What a document names and points to. Addresses of hyperlinks are in the HTML that came, and not in its text.
fn found_graph(document: &StoredDocument, prepared: &PreparedDocument) -> DocumentGraph {
    let content = match &document.content {
        Content::Text(text) => Some(text.as_str()),
        Content::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
    };
    let is_html = prepared.parsed.media_type == "text/html";
    let origin = Origin {
        title: document.title.as_deref().or(prepared.parsed.title.as_deref()),
        uri: document.uri.as_deref(),
        html: content.filter(|_| is_html),
    };
    graph_of(prepared, &origin)
}

impl PreparedWork {
    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.prepared.chunks.len()
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> &str {
        &self.document.owner
    }

    /// With the vectors of its texts: those that the domain had, and those of [`embed_new`].
    pub(crate) fn with_vectors(self, known: &Vectors, new: &Vectors) -> ProcessedDocument {
        let vector = |hash: &[u8; 32]| Some((*hash, known.get(hash).or_else(|| new.get(hash))?.clone()));
        let vectors: Vectors = self.hashes.iter().filter_map(vector).collect();
        ProcessedDocument {
            dimension: vectors.values().next().map_or(0, Vec::len) as u32,
            embedded: vectors.keys().filter(|hash| !known.contains_key(*hash)).count(),
            document: self.document,
            prepared: self.prepared,
            hashes: self.hashes,
            vectors,
            found: self.found,
            graph: self.graph,
        }
    }
}

/// Vectors that the domain of these documents already has of equal texts. Needs a transaction.
pub(crate) fn known_vectors(works: &[PreparedWork], model: &str) -> Result<Vectors> {
    let Some(first) = works.first() else { return Ok(Vectors::new()) };
    let Some(space) = embedding::vector_space(model)? else { return Ok(Vectors::new()) };
    let hashes: Vec<[u8; 32]> = works.iter().flat_map(|work| &work.hashes).copied().collect();
    let found = embedding::by_hash(first.document.domain, space, &hashes)?;
    Ok(found.into_iter().filter_map(|(hash, v)| Some((<[u8; 32]>::try_from(hash).ok()?, v))).collect())
}

/// Vectors of the texts of these documents, all of one owner and domain, that are not known: those of several documents in
/// the same requests. An error says nothing about which of them it is about.
pub(crate) fn embed_new(works: &[PreparedWork], known: &Vectors, model: &str, lane: Lane) -> Result<Vectors> {
    let Some(first) = works.first() else { return Ok(Vectors::new()) };
    let mut missing: Vec<([u8; 32], String)> = Vec::new();
    let mut seen: HashSet<[u8; 32]> = HashSet::new();
    for PreparedWork { prepared, hashes, .. } in works {
        for (chunk, hash) in prepared.chunks.iter().zip(hashes) {
            if !known.contains_key(hash) && seen.insert(*hash) {
                missing.push((*hash, prepared.embedded_text(chunk)));
            }
        }
    }
    let mut new = Vectors::with_capacity(missing.len());
    for batch in missing.chunks(TEXTS_PER_REQUEST) {
        let texts = batch.iter().map(|(_, text)| text.clone()).collect();
        let rows = embed_passages(model, texts, lane, first.owner())?;
        new.extend(batch.iter().map(|(hash, _)| *hash).zip(rows));
    }
    Ok(new)
}

/// What writing a batch came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Documents that are done now.
    pub(crate) done: Vec<Id>,
    /// Documents that changed meanwhile.
    pub(crate) stale: Vec<Id>,
    /// Documents that somebody else holds, or is changing.
    pub(crate) busy: Vec<Id>,
}

/// Writes documents of one domain with their chunks, vectors and one keyword segment: all visible with the
/// commit, or none. Elevated.
pub(crate) fn write(domain: Id, collection: &Collection, batch: &[&ProcessedDocument]) -> Result<Written> {
    let mut written = Written::default();
    if !collection::lock_as_it_is(collection)? {
        // Cut or embedded in a way that is no longer the collection's.
        written.stale = batch.iter().map(|processed| processed.document.id).collect();
        return Ok(written);
    }
    let chat = match asks_chat(&CollectionOptions::from_json(&collection.options)?) {
        true => ChatPart::Kept,
        false => ChatPart::Dropped,
    };
    let dimension = batch.iter().map(|d| d.dimension).max().unwrap_or(0);
    let space = if dimension > 0 {
        Some(embedding::ensure_vector_space(&collection.model, dimension)?)
    } else {
        None
    };
    let versions: Vec<(Id, i64)> = batch.iter().map(|d| (d.document.id, d.document.version)).collect();
    let mut held: Vec<&ProcessedDocument> = Vec::with_capacity(batch.len());
    for (processed, lock) in batch.iter().zip(document::lock_versions(domain, &versions)?) {
        let id = processed.document.id;
        match lock {
            // One that was cancelled and queued again meanwhile may be there twice, in the same version.
            VersionLock::Held if written.done.contains(&id) => {}
            VersionLock::Held => {
                written.done.push(id);
                held.push(processed);
            }
            VersionLock::Busy => written.busy.push(id),
            VersionLock::Changed => written.stale.push(id),
        }
    }
    if held.is_empty() {
        return Ok(written);
    }
    let entries = write_rows(domain, space, &held, chat)?;
    document::complete(domain, &held.iter().map(|processed| processed.completed()).collect::<Vec<_>>())?;
    job::finish(domain, &held.iter().map(|processed| processed.finished()).collect::<Vec<_>>())?;
    if !entries.is_empty() {
        let language = rag_bm25::Language::from_name(&collection.language)
            .ok_or_else(|| Error::invalid(format!("unknown language \"{}\"", collection.language)))?;
        let bytes = rag_bm25::build(
            language,
            entries.iter().map(|(id, title, body)| rag_bm25::Entry { id: *id, title, body }),
        )?;
        let chunks: Vec<Id> = entries.iter().map(|(id, _, _)| *id).collect();
        segment::insert(domain, (&collection.language, &collection.model), &chunks, || bytes.as_slice())?;
    }
    Ok(written)
}

/// Writes the rows of documents that are held, and returns what the keyword index gets of them: id, title with headings, and
/// text of each new chunk.
fn write_rows<'a>(
    domain: Id,
    space: Option<VectorSpace>,
    held: &[&'a ProcessedDocument],
    chat: ChatPart,
) -> Result<Vec<(Id, String, &'a str)>> {
    let replacements: Vec<Replacement<'_>> = held.iter().map(|processed| processed.replacement()).collect();
    let replaced = replacement::replace(domain, &replacements)?;
    if let Some(space) = space {
        write_vectors(domain, space, held, &replaced)?;
    }
    let mined: Vec<_> = held.iter().map(|p| (p.document.id, p.found.acronyms.as_slice())).collect();
    acronym::replace(domain, &mined)?;
    let found = held.iter().zip(&replaced).map(|(processed, Replaced { ids, .. })| FoundGraph {
        document: processed.document.id,
        chunks: ids,
        graph: &processed.graph,
    });
    graph::replace(domain, &found.collect::<Vec<_>>(), chat)?;
    let mut entries = Vec::new();
    for (processed, replaced) in held.iter().zip(&replaced) {
        if chat == ChatPart::Kept && graph_job::queue(domain, processed.document.id, &replaced.ids)? {
            shared::request_work_at_commit();
        }
        let prepared = &processed.prepared;
        for index in &replaced.inserted {
            let part = &prepared.chunks[*index];
            let headings = &prepared.sections[part.section].header_path;
            let title = indexed_title(processed.shown_title(), headings, &part.context);
            entries.push((replaced.ids[*index], title, prepared.chunk_text(part)));
        }
    }
    Ok(entries)
}

/// Stores vectors of the chunks that have none: the new ones, and those that a restore or another model left without.
fn write_vectors(
    domain: Id,
    space: VectorSpace,
    held: &[&ProcessedDocument],
    replaced: &[Replaced],
) -> Result<()> {
    // Each chunk with the hash of its text, its document's vectors, and whether it is new.
    let mut chunks: Vec<(Id, &[u8; 32], &Vectors, bool)> = Vec::new();
    for (processed, Replaced { ids, inserted }) in held.iter().zip(replaced) {
        let new: HashSet<usize> = inserted.iter().copied().collect();
        let rows = ids.iter().zip(&processed.hashes).enumerate();
        chunks.extend(rows.map(|(index, (id, hash))| (*id, hash, &processed.vectors, new.contains(&index))));
    }
    let ids: Vec<Id> = chunks.iter().map(|(id, ..)| *id).collect();
    let missing = embedding::missing(domain, space, &ids)?;
    let vectors = missing
        .iter()
        .map(|index| chunks[*index].2.get(chunks[*index].1).map(Vec::as_slice))
        .collect::<Option<Vec<&[f32]>>>()
        .ok_or_else(|| Error::internal("a chunk has no vector"))?;
    let missing_ids: Vec<Id> = missing.iter().map(|index| ids[*index]).collect();
    embedding::insert(domain, space, &missing_ids, &vectors)?;
    if missing.iter().any(|index| !chunks[*index].3) {
        vector_codes::forget(domain)?;
        shared::request_work_at_commit();
    }
    Ok(())
}

impl ProcessedDocument {
    /// Its title as it will be shown: the given one, else that of the file.
    fn shown_title(&self) -> &str {
        let given = self.document.title.as_deref();
        given.or(self.prepared.parsed.title.as_deref()).unwrap_or_default()
    }

    fn replacement(&self) -> Replacement<'_> {
        Replacement {
            document: self.document.id,
            title: self.shown_title(),
            prepared: &self.prepared,
            hashes: &self.hashes,
        }
    }

    fn completed(&self) -> Completed<'_> {
        Completed {
            document: self.document.id,
            text: &self.prepared.parsed.text,
            title: self.prepared.parsed.title.as_deref(),
            media_type: &self.prepared.parsed.media_type,
            chunks: self.prepared.chunks.len(),
            file_metadata: &self.found.file,
            extracted: &self.found.extracted,
            uploaded_at: &self.document.uploaded_at,
        }
    }

    fn finished(&self) -> Finished {
        Finished {
            document: self.document.id,
            version: self.document.version,
            chunks: self.prepared.chunks.len(),
            embedded: self.embedded,
        }
    }
}
