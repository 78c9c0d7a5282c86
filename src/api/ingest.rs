//! Ingestion: storing documents and waiting for them.

use super::work::PRIORITIES;
use super::{call, options_of, required};
use crate::config;
use crate::error::{Error, Result};
use crate::ingest::{process, target};
use crate::pg::ErrorReport;
use crate::pg::{elevation, interrupts, principal, server, server_file, transaction};
use crate::rights;
use crate::search::scope::Scope;
use crate::storage::document::NewDocument;
use crate::storage::{Id, attachment, collection, document, id, job, uuid};
use pgrx::JsonB;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use rag_core::file_name::{file_uri, media_type_hint};
use rag_core::hash::sha256;
use rag_core::option::OptionReader;
use rag_wire::Lane;
use std::time::{Duration, Instant};

#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn rag_ingest(
    content: Option<&str>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<JsonB>,
    options: Option<JsonB>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let content = required(content, "content")?;
        store(Some(content), None, content.as_bytes(), title, uri, collection, metadata, options, None)
    })
}

#[pg_extern(sql = false)]
fn rag_ingest_bytes(
    content: Option<&[u8]>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<JsonB>,
    options: Option<JsonB>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let content = required(content, "content")?;
        store(None, Some(content), content, title, uri, collection, metadata, options, None)
    })
}

#[pg_extern(sql = false)]
fn rag_ingest_file(
    path: Option<&str>,
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<JsonB>,
    options: Option<JsonB>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let file = server_file::read(required(path, "path")?, config::max_document_bytes())?;
        let found_uri = file_uri(&file.path.to_string_lossy());
        let uri = uri.unwrap_or(&found_uri);
        let hint = media_type_hint(&found_uri, &file.bytes);
        store(None, Some(&file.bytes), &file.bytes, title, Some(uri), collection, metadata, options, hint)
    })
}

#[allow(clippy::too_many_arguments)]
fn store(
    content: Option<&str>,
    file: Option<&[u8]>,
    bytes: &[u8],
    title: Option<&str>,
    uri: Option<&str>,
    collection: Option<&str>,
    metadata: Option<JsonB>,
    options: Option<JsonB>,
    type_hint: Option<&str>,
) -> Result<pgrx::Uuid> {
    check_size(bytes.len())?;
    let collection = required(collection, "collection")?;
    let metadata = required(metadata, "metadata")?.0;
    let options = options_of(options)?;
    let mut reader = OptionReader::new(&options, "rag_ingest")?;
    let media_type = reader.text("media_type", 128)?.or(type_hint);
    let priority = reader.integer("priority", PRIORITIES)?;
    let sync = reader.boolean("sync")?.unwrap_or_else(config::is_sync);
    reader.finish()?;

    let new = NewDocument { content, file, title, uri, collection, media_type, metadata };
    let goes_to = target::resolve(collection, &principal::current_owner()?)?;
    let same = match uri {
        Some(_) => None,
        None => document::find_by_hash(goes_to.domain, &sha256(bytes))?,
    };
    let stored = match (same, uri) {
        (Some(same), _) => same,
        (None, _) => match (document::upsert(&new)?, uri) {
            (Some(changed), _) => changed,
            (None, Some(uri)) => document::find_by_uri(&goes_to.collection, &goes_to.owner, uri)?
                .ok_or_else(|| Error::internal("an upsert found neither a new nor an old row"))?,
            (None, None) => return Err(Error::internal("a row without key was not inserted")),
        },
    };
    if let Some(priority) = priority
        && let Some((domain, ..)) = document::locate(stored)?
    {
        elevation::elevated(|| job::set_priority(domain, stored, priority as i32))?;
    }
    if sync {
        process_now(stored)?;
    }
    Ok(uuid(stored))
}

#[pg_extern(sql = false)]
fn process_document_now(document_id: Option<pgrx::Uuid>) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let document = id(required(document_id, "document_id")?);
        // Background work is done in turn, whoever has set what for all sessions.
        if !server::is_client() {
            return Ok(());
        }
        let Some((domain, ..)) = document::locate(document)? else { return Ok(()) };
        if !server::user_is_superuser() && rights::writable(&[domain])?.is_empty() {
            return Ok(());
        }
        process_now(document)
    })
}

/// Processes a document in the caller's transaction.
fn process_now(stored: Id) -> Result<()> {
    let Some((domain, _, status)) = document::locate(stored)? else { return Ok(()) };
    if status == "done" {
        return Ok(());
    }
    // The document is the caller's own: he has just written it under the table's policies.
    let (loaded, collection) = elevation::elevated(|| {
        Ok::<_, Error>((document::load(domain, stored)?, collection::of_domain(domain)?))
    })?;
    let (Some(loaded), Some(collection)) = (loaded, collection) else { return Ok(()) };
    let work = process::prepare(loaded, &collection, Lane::Interactive)?;
    let known = elevation::elevated(|| work.known_vectors(&collection.model))?;
    let processed = work.embed(known, &collection.model, Lane::Interactive)?;
    let written = elevation::elevated(|| process::write(domain, &collection, &[&processed]))?;
    if written.done.is_empty() {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            "the document is being changed by another transaction",
        )
        .hint("Retry, or do without {\"sync\": true} and rag_ext.sync."));
    }
    Ok(())
}

/// What a caller waits for.
struct Awaited {
    /// Domains whose jobs he is shown as himself.
    domains: Vec<Id>,
    /// Attached collections of his own. All their documents are his, and asking the table for each would take long.
    own_attached: Vec<Id>,
    /// Attached collections of others.
    attached: Vec<Id>,
}

/// What is left to do.
#[derive(Default)]
struct Look {
    unfinished: job::Unfinished,
    /// Whether an attached table has rows that no job is about yet.
    is_following: bool,
    queued_by: Vec<u32>,
}

impl Awaited {
    fn of(scope: &Scope) -> Self {
        let own_attached = scope.attached_collections(true);
        let domains = scope.ids_outside(&own_attached);
        Self { domains, own_attached, attached: scope.attached_collections(false) }
    }

    fn look(&self) -> Result<Look> {
        let followed = |collections: &[Id]| match collections {
            [] => Ok(attachment::Unfinished::default()),
            some => elevation::elevated(|| attachment::unfinished(some)),
        };
        // Before the jobs: what a worker has looked at is a job by then. Rows may have owners that are new.
        let (own, others) = (followed(&self.own_attached)?, followed(&self.attached)?);
        let mut domains = self.domains.clone();
        domains.extend(others.domains.iter().filter(|id| !self.domains.contains(id)));
        let mut unfinished = job::unfinished(&domains)?;
        let mut queued_by = job::queueing_transactions(&domains)?;
        if !own.domains.is_empty() {
            let (of_own, by) = elevation::elevated(|| {
                Ok::<_, Error>((job::unfinished(&own.domains)?, job::queueing_transactions(&own.domains)?))
            })?;
            unfinished.jobs += of_own.jobs;
            unfinished.paused += of_own.paused;
            unfinished.failed += of_own.failed;
            queued_by.extend(by);
        }
        queued_by.extend(own.changed_by.into_iter().chain(others.changed_by));
        Ok(Look { unfinished, is_following: own.is_following || others.is_following, queued_by })
    }
}

/// Longest pause between two looks, unless looking takes long.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

#[pg_extern(sql = false)]
fn rag_wait(collection: Option<&str>, timeout: Option<Interval>) -> std::result::Result<bool, ErrorReport> {
    call(|| {
        let timeout = required(timeout, "timeout")?;
        let awaited = Awaited::of(&Scope::resolve(collection)?);
        let Some(failed) = wait(timeout, || awaited.look())? else { return Ok(false) };
        if failed > 0 {
            pgrx::warning!("rag_ext: {failed} documents failed, see rag.failed_job");
        }
        Ok(true)
    })
}

#[pg_extern(sql = false)]
fn rag_wait_document(
    document_id: Option<pgrx::Uuid>,
    timeout: Option<Interval>,
) -> std::result::Result<bool, ErrorReport> {
    call(|| {
        let document = required(document_id, "document_id")?;
        let timeout = required(timeout, "timeout")?;
        let missing = || Error::missing(format!("document {document} does not exist"));
        let look = || {
            let (domain, _, status) = document::locate(id(document))?.ok_or_else(missing)?;
            let mut look = Look::default();
            match status.as_str() {
                "done" => {}
                "failed" => look.unfinished.failed = 1,
                _ => match job::queued(domain, id(document))? {
                    Some((_, true)) => look.unfinished.paused = 1,
                    Some((by, false)) => (look.unfinished.jobs, look.queued_by) = (1, vec![by]),
                    // A worker is at it.
                    None => look.unfinished.jobs = 1,
                },
            }
            Ok(look)
        };
        let Some(failed) = wait(timeout, look)? else { return Ok(false) };
        if failed > 0 {
            let why = document::error(id(document))?.unwrap_or_default();
            pgrx::warning!("rag_ext: document {document} failed: {why}");
        }
        Ok(failed == 0)
    })
}

/// Waits until nothing is left to do, and returns how many documents have failed; `None` if something is left.
fn wait(timeout: Interval, look: impl Fn() -> Result<Look>) -> Result<Option<i64>> {
    let patience = Duration::from_micros(timeout.as_micros().clamp(0, i128::from(i64::MAX)) as u64);
    let until = Instant::now().checked_add(patience);
    let mut pause = Duration::from_millis(10);
    loop {
        let looking = Instant::now();
        let Look { unfinished, is_following, queued_by } = look()?;
        if unfinished.jobs == 0 && !is_following && unfinished.paused > 0 {
            pgrx::notice!("rag_ext: {} documents are paused, see rag_resume", unfinished.paused);
            return Ok(None);
        }
        if unfinished.jobs == 0 && !is_following {
            return Ok(Some(unfinished.failed));
        }
        if queued_by.into_iter().any(transaction::is_own_xid) {
            return Err(Error::not_ready(
                "documents of this transaction cannot be waited for before it commits",
            )
            .hint("COMMIT first, or write them with SET LOCAL rag_ext.sync = on."));
        }
        if !transaction::sees_new_commits() {
            return Err(Error::not_ready(
                "this transaction's snapshot is fixed, so it cannot see work being done",
            )
            .hint("Call rag_wait in a READ COMMITTED transaction."));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(None);
        }
        // Looking at many thousands of jobs takes a while: it is not to take what they need.
        pause = pause.max(looking.elapsed() * 20);
        interrupts::pause(left.map_or(pause, |left| left.min(pause)));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Checked before bytes are copied around: 54000.
pub(super) fn check_size(bytes: usize) -> Result<()> {
    let limit = config::max_document_bytes();
    if bytes as u64 > limit {
        return Err(Error::limit(format!("document has {bytes} bytes, but the limit is {limit}"))
            .hint("A superuser can raise rag_ext.max_document_size."));
    }
    Ok(())
}
