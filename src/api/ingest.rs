//! Ingestion: storing documents and waiting for them.

use super::work::{PRIORITIES, scope_of};
use super::{call, options_of, required};
use crate::config;
use crate::document::store::{process_now, store};
use crate::document::wait::{Awaited, Work, wait_while};
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{server, server_file};
use crate::storage::document::NewDocument;
use crate::storage::{document, id, uuid};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use rag_core::file_name::{file_uri, media_type_hint};
use rag_core::option::OptionReader;
use std::time::Duration;

#[pg_extern(sql = false)]
fn rag_ingest(
    content: Option<&str>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let content = Some(required(content, "content")?);
        Given { content, file: None, title, uri, collection, metadata, media_type: None }.store(options)
    })
}

#[pg_extern(sql = false)]
fn rag_ingest_bytes(
    content: Option<&[u8]>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let file = Some(required(content, "content")?);
        Given { content: None, file, title, uri, collection, metadata, media_type: None }.store(options)
    })
}

#[pg_extern(sql = false)]
fn rag_ingest_file(
    path: Option<&str>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let file = server_file::read(required(path, "path")?, config::max_document_bytes())?;
        let found_uri = file_uri(&file.path.to_string_lossy());
        let uri = uri.or(Some(&found_uri));
        let media_type = media_type_hint(&found_uri, &file.bytes);
        let file = Some(file.bytes.as_slice());
        Given { content: None, file, title, uri, collection, metadata, media_type }.store(options)
    })
}

/// Arguments that the functions have in common.
struct Given<'a> {
    content: Option<&'a str>,
    file: Option<&'a [u8]>,
    title: Option<&'a str>,
    uri: Option<&'a str>,
    collection: Option<&'a str>,
    metadata: Option<GivenJsonb>,
    /// Where the options name none.
    media_type: Option<&'a str>,
}

impl Given<'_> {
    fn store(self, options: Option<GivenJsonb>) -> Result<pgrx::Uuid> {
        let Self { content, file, title, uri, collection, metadata, media_type } = self;
        let collection = required(collection, "collection")?;
        let metadata = required(metadata, "metadata")?.0;
        let options = options_of(options)?;
        let mut reader = OptionReader::new(&options, "rag_ingest")?;
        let media_type = reader.text("media_type", 128)?.or(media_type);
        let priority = reader.integer("priority", PRIORITIES)?.map(|priority| priority as i32);
        let sync = reader.boolean("sync")?.unwrap_or(false);
        reader.finish()?;
        let new = NewDocument { content, file, title, uri, collection, media_type, metadata };
        store(&new, priority, sync).map(uuid)
    }
}

/// What triggers call under `rag_ext.sync`; see `rag.document_after_insert()`.
#[pg_extern(sql = false)]
fn process_documents(document_ids: Option<Vec<pgrx::Uuid>>) -> std::result::Result<(), ErrorReport> {
    call(|| {
        // Whoever has set it for all sessions: background work is done in turn.
        let of_client = document_ids.filter(|_| server::is_client());
        of_client.unwrap_or_default().into_iter().try_for_each(|document| process_now(id(document)))
    })
}

#[pg_extern(sql = false)]
fn rag_wait(collection: Option<&str>, timeout: Option<Interval>) -> std::result::Result<bool, ErrorReport> {
    call(|| {
        let patience = patience(timeout)?;
        let scope = scope_of(collection)?;
        let own_attached = scope.attached_collections(true);
        let domains = scope.ids_outside(&own_attached);
        let awaited = Awaited { domains, own_attached, attached: scope.attached_collections(false) };
        wait_while(patience, || awaited.work())
    })
}

#[pg_extern(sql = false)]
fn rag_wait_document(
    document_id: Option<pgrx::Uuid>,
    timeout: Option<Interval>,
) -> std::result::Result<bool, ErrorReport> {
    call(|| {
        let document = required(document_id, "document_id")?;
        let patience = patience(timeout)?;
        wait_while(patience, || {
            let missing = || Error::missing(format!("document {document} does not exist"));
            let (domain, ..) = document::locate(id(document))?.ok_or_else(missing)?;
            Ok(Work::of_document(domain, id(document)))
        })
    })
}

fn patience(timeout: Option<Interval>) -> Result<Duration> {
    let timeout = required(timeout, "timeout")?;
    Ok(Duration::from_micros(timeout.as_micros().clamp(0, i128::from(i64::MAX)) as u64))
}
