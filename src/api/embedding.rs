//! `rag_vectors`, and how far a model's vectors have come.

use super::{call, required};
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::pg::elevation::elevated;
use crate::rights;
use crate::storage::{chunk, collection, embedding, id, is_attached, uuid};
use pgrx::prelude::*;

/// Most chunks of one call.
const MAX_CHUNKS: usize = 10_000;

#[pg_extern(sql = false)]
fn rag_vectors(
    chunk_ids: Option<Vec<Option<pgrx::Uuid>>>,
) -> std::result::Result<
    TableIterator<'static, (name!(chunk_id, pgrx::Uuid), name!(model, String), name!(vector, Vec<f32>))>,
    ErrorReport,
> {
    let rows = call(|| {
        let ids: Vec<_> = required(chunk_ids, "chunk_ids")?.into_iter().flatten().map(id).collect();
        if ids.len() > MAX_CHUNKS {
            return Err(Error::limit(format!("{} chunks, but the limit is {MAX_CHUNKS}", ids.len())));
        }
        let domains = &rights::current()?.readable;
        let visible = chunk::existing(domains, &ids)?;
        elevated(|| embedding::of_chunks(domains, &visible))
    })?;
    Ok(TableIterator::new(rows.into_iter().map(|(chunk, model, vector)| (uuid(chunk), model, vector))))
}

#[pg_extern(sql = false)]
fn embedded_chunks(domain: pgrx::Uuid, model: &str) -> std::result::Result<Option<i64>, ErrorReport> {
    call(|| -> Result<Option<i64>> {
        let (rights, domain) = (rights::current()?, id(domain));
        if rights::may_hide_rows() || rights.readable.binary_search(&domain).is_err() {
            return Ok(None);
        }
        elevated(|| {
            // Of an attached table the count is about all rows, so it is the collection's owner's alone.
            let collection = if is_attached(domain) { collection::of_domain(domain)? } else { None };
            let is_hidden = collection.is_some_and(|c| rights.own_collections.binary_search(&c.id).is_err());
            if is_hidden { Ok(None) } else { embedding::count(domain, model).map(Some) }
        })
    })
}
