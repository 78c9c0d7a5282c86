//! From one embedding model to another: the chunks of a collection are embedded anew beside their old vectors, and
//! when none is missing the collection switches in one transaction.
//!
//! New documents are still embedded by the old model meanwhile, but already cut for the one to come; a chunk that is
//! too long for it has its document cut anew. Whoever writes chunks holds a lock that the switch waits for, so the
//! switch finds all of them.

use crate::error::{Error, Result};
use crate::ingest::process::{TEXTS_PER_REQUEST, embed_passages};
use crate::pg::{elevation, interrupts, worker};
use crate::storage::embedding::{self, VectorSpace};
use crate::storage::model_change::{self, MissingChunk, ModelChange};
use crate::storage::{Id, job};
use pgrx::PgSqlErrorCode;
use rag_wire::Lane;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Chunks embedded at a time: what one worker's death repeats, and the most that the switch still embeds itself.
const CHUNKS: i64 = 64;

/// Vectors of former models deleted at a time.
const DELETED: i64 = 2_000;

/// Pause before another try.
const RETRY_S: f64 = 10.0;

/// Pause while documents whose chunks are too long are cut anew.
const CUTTING_S: f64 = 1.0;

/// How long the switch waits for the engine while whoever writes chunks of the collection waits for the switch.
const MOST_WAIT: Duration = Duration::from_secs(5);

/// How far the look for chunks without a vector has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    collection: Id,
    /// Domain and id of the last chunk.
    after: (Id, Id),
}

/// Does a piece of the work on some change; false if there is none to do.
pub(super) fn do_some(progress: &mut Progress) -> Result<bool> {
    let Some(change) = worker::transaction(model_change::claim)? else {
        return Ok(worker::transaction(|| model_change::delete_unused_vectors(DELETED))? > 0);
    };
    worker::set_activity("rag_ext: embedding by another model");
    if progress.collection != change.collection {
        *progress = Progress { collection: change.collection, after: (0, 0) };
    }
    match embed_some(&change, progress) {
        Ok(()) => Ok(true),
        // The next worker begins where this one stood.
        Err(_) if worker::should_stop() => Ok(false),
        Err(error) => {
            let words = error.one_line();
            worker::transaction(|| model_change::put_off(change.collection, &words, RETRY_S))?;
            Ok(true)
        }
    }
}

fn embed_some(change: &ModelChange, progress: &mut Progress) -> Result<()> {
    let after = progress.after;
    let missing = worker::transaction(|| find(change, after))?;
    let Some(last) = missing.last() else {
        // What was written meanwhile may lie before the end.
        return match std::mem::take(&mut progress.after) {
            (0, 0) => switch(change),
            _ => Ok(()),
        };
    };
    match embed(change, &missing)? {
        Embedded::Vectors(vectors) => worker::transaction(|| store(change, &missing, &vectors))?,
        Embedded::TooLong(documents) => return cut_anew(change, documents),
    }
    progress.after = (last.domain, last.id);
    Ok(())
}

/// Some chunks without a vector of the model to come, behind a place in the order of domain and id.
fn find(change: &ModelChange, after: (Id, Id)) -> Result<Vec<MissingChunk>> {
    let space = embedding::vector_space(&change.model)?;
    model_change::missing(change.collection, space, after, CHUNKS)
}

/// Embeds what is still missing, with all who write chunks of the collection waiting, and switches.
fn switch(change: &ModelChange) -> Result<()> {
    let too_long = worker::transaction(|| {
        // Behind a transaction that stays open, documents of others would wait for this one.
        let locked =
            elevation::with_settings(&[(c"lock_timeout", c"2s")], || model_change::lock_for_switch(change))?;
        if !locked {
            return Ok(None);
        }
        let missing = find(change, (0, 0))?;
        match interrupts::while_wanted(while_others_wait(), || embed(change, &missing))? {
            Embedded::TooLong(documents) => return Ok(Some(documents)),
            Embedded::Vectors(vectors) => store(change, &missing, &vectors)?,
        }
        if (missing.len() as i64) < CHUNKS {
            model_change::switch(change)?;
        }
        Ok(None)
    })?;
    match too_long {
        Some(documents) => cut_anew(change, documents),
        None => Ok(()),
    }
}

/// Ends a wait for the engine during the switch: with it, somebody's documents would wait as long.
fn while_others_wait() -> impl Fn() -> Result<()> {
    let since = Instant::now();
    move || {
        if since.elapsed() < MOST_WAIT && !worker::should_stop() {
            return Ok(());
        }
        Err(Error::new(PgSqlErrorCode::ERRCODE_QUERY_CANCELED, "the engine takes too long for the switch"))
    }
}

enum Embedded {
    /// One per chunk.
    Vectors(Vec<Vec<f32>>),
    /// Documents, by domain, with chunks that the model does not take.
    TooLong(BTreeMap<Id, Vec<Id>>),
}

fn embed(change: &ModelChange, missing: &[MissingChunk]) -> Result<Embedded> {
    let mut vectors = Vec::with_capacity(missing.len());
    let mut too_long: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
    for batch in missing.chunks(TEXTS_PER_REQUEST) {
        match ask(change, batch) {
            Ok(found) => vectors.extend(found),
            Err(error) if is_too_long(&error) => {
                for one in batch {
                    match ask(change, std::slice::from_ref(one)) {
                        Ok(found) => vectors.extend(found),
                        Err(error) if is_too_long(&error) => {
                            let documents = too_long.entry(one.domain).or_default();
                            if documents.last() != Some(&one.document) {
                                documents.push(one.document);
                            }
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    if too_long.is_empty() { Ok(Embedded::Vectors(vectors)) } else { Ok(Embedded::TooLong(too_long)) }
}

fn is_too_long(error: &Error) -> bool {
    error.code == PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED
}

fn ask(change: &ModelChange, chunks: &[MissingChunk]) -> Result<Vec<Vec<f32>>> {
    let texts = chunks.iter().map(|chunk| chunk.text.clone()).collect();
    embed_passages(&change.model, texts, Lane::Bulk, &change.owner)
}

/// Stores the vectors of the chunks that are still there.
fn store(change: &ModelChange, missing: &[MissingChunk], vectors: &[Vec<f32>]) -> Result<()> {
    let Some(first) = vectors.first() else { return Ok(()) };
    let space: VectorSpace = embedding::ensure_vector_space(&change.model, first.len() as u32)?;
    let mut domains: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
    for (index, chunk) in missing.iter().enumerate() {
        domains.entry(chunk.domain).or_default().push(index);
    }
    for (domain, indexes) in domains {
        let ids: Vec<Id> = indexes.iter().map(|index| missing[*index].id).collect();
        let there = model_change::lock_chunks(domain, &ids)?;
        // A writer may have embedded some meanwhile.
        let wanted: Vec<Id> =
            embedding::missing(domain, space, &there)?.into_iter().map(|index| there[index]).collect();
        let new = indexes
            .iter()
            .filter(|index| wanted.contains(&missing[**index].id))
            .map(|index| (missing[*index].id, vectors[*index].as_slice()));
        let (ids, vectors): (Vec<Id>, Vec<&[f32]>) = new.unzip();
        embedding::insert(domain, space, &ids, &vectors)?;
    }
    Ok(())
}

/// Has documents cut anew, which is done for the model to come. One that failed at that holds up the change until
/// it is mended or deleted.
fn cut_anew(change: &ModelChange, documents: BTreeMap<Id, Vec<Id>>) -> Result<()> {
    worker::transaction(|| {
        let mut cut = 0;
        for (domain, documents) in &documents {
            cut += job::process_documents_anew(*domain, documents)?;
        }
        let (words, delay_s) = match cut {
            0 => (
                "chunks are too long for the model, and their documents wait or failed: see rag.job_status",
                RETRY_S,
            ),
            _ => ("some chunks are too long for the model: their documents are being cut anew", CUTTING_S),
        };
        model_change::put_off(change.collection, words, delay_s)
    })
}
