//! Storing a document, and processing it in the same transaction where that is asked for.

use super::target;
use crate::config;
use crate::error::{Error, Result};
use crate::ingest::process;
use crate::pg::{elevation, principal};
use crate::storage::document::NewDocument;
use crate::storage::{Id, collection, document, job};
use pgrx::PgSqlErrorCode;
use rag_core::hash::sha256;
use rag_wire::Lane;

/// Stores a document of the caller's, or updates the one that has its uri, or leaves the one with its content as it is
/// where it has none; returns its id. With `sync` it is processed in this transaction.
///
/// 54000: it is too large. Others: see [`target::resolve`].
pub(crate) fn store(new: &NewDocument<'_>, priority: Option<i32>, sync: bool) -> Result<Id> {
    let bytes = new.content.map(str::as_bytes).or(new.file).unwrap_or_default();
    check_size(bytes.len())?;
    // A row that is written finds its place itself.
    let goes_to = || target::resolve(new.collection, &principal::current_owner()?);
    let lost = || Error::internal("neither a new nor an old row was found");
    let same = match new.uri {
        Some(_) => None,
        None => document::find_by_hash(goes_to()?.domain, &sha256(bytes))?,
    };
    let stored = match (same, new.uri) {
        (Some(same), _) => same,
        (None, None) => document::upsert(new)?.ok_or_else(lost)?,
        (None, Some(uri)) => match document::upsert(new)? {
            Some(stored) => stored,
            // The row says all that already.
            None => {
                let there = goes_to()?;
                document::find_by_uri(&there.collection, &there.owner, uri)?.ok_or_else(lost)?
            }
        },
    };
    if let Some(priority) = priority
        && let Some((domain, ..)) = document::locate(stored)?
    {
        elevation::elevated(|| job::set_priority(domain, stored, priority))?;
    }
    if sync {
        process_now(stored)?;
    }
    Ok(stored)
}

/// Processes a document in the caller's transaction.
pub(crate) fn process_now(stored: Id) -> Result<()> {
    let Some((domain, _, status)) = document::locate(stored)? else { return Ok(()) };
    if status == "done" {
        return Ok(());
    }
    // The document is the caller's own: they have just written it under the table's policies.
    let (loaded, collection) = elevation::elevated(|| {
        Ok::<_, Error>((document::load(domain, stored, &[])?.pop(), collection::of_domain(domain)?))
    })?;
    let (Some(loaded), Some(collection)) = (loaded, collection) else { return Ok(()) };
    let works = [process::prepare(loaded, &collection, Lane::Interactive)?];
    let known = elevation::elevated(|| process::known_vectors(&works, &collection.model))?;
    let new = process::embed_new(&works, &known, &collection.model, Lane::Interactive)?;
    let [processed] = works.map(|work| work.with_vectors(&known, &new));
    let written = elevation::elevated(|| process::write(domain, &collection, &[&processed]))?;
    if written.done.is_empty() {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            "the document, or its collection, is being changed by another transaction",
        )
        .hint("Retry, or leave out {\"sync\": true} and rag_ext.sync."));
    }
    Ok(())
}

/// Checked before bytes are copied around: 54000.
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    let limit = config::max_document_bytes();
    if bytes as u64 > limit {
        return Err(Error::limit(format!("document has {bytes} bytes, but the limit is {limit}"))
            .hint("A superuser can raise rag_ext.max_document_size."));
    }
    Ok(())
}
