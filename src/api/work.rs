//! Steering background work: pausing, ordering, cancelling and retrying it, and deleting collections.
//!
//! What is the caller's is decided here, as the caller; only then is it changed with the extension's rights.

use super::{call, required};
use crate::collection::name::{candidates, choose, split_name};
use crate::collection::rights::own_collection;
use crate::config;
use crate::error::{Error, Result};
use crate::pg::ErrorReport;
use crate::pg::{elevation, interrupts, server, transaction};
use crate::rights;
use crate::search::scope::Scope;
use crate::storage::steering::{self, Steered};
use crate::storage::{Id, collection, document, graph_job, id, job};
use crate::workers;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// What a priority may be.
pub(super) const PRIORITIES: RangeInclusive<i64> = -100..=100;

#[pg_extern(sql = false)]
fn rag_pause(collection: Option<&str>) -> std::result::Result<i64, ErrorReport> {
    call(|| set_paused(collection, true))
}

#[pg_extern(sql = false)]
fn rag_resume(collection: Option<&str>) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let resumed = set_paused(collection, false)?;
        if resumed > 0 {
            workers::wake_at_commit();
        }
        Ok(resumed)
    })
}

fn set_paused(name: Option<&str>, paused: bool) -> Result<i64> {
    let (collections, domains) = match name {
        None => (collection::owned(sees_everything())?, collection::domains_elsewhere(None)?),
        Some(name) => match managed(name)? {
            Managed::Collection(collection) => (vec![collection], Vec::new()),
            Managed::Domains(domains) => (Vec::new(), domains),
        },
    };
    elevation::elevated(|| collection::set_paused(&collections, &domains, paused))
}

/// What of a collection is the caller's to steer.
enum Managed {
    /// All of it.
    Collection(Id),
    /// Their own documents in another's collection.
    Domains(Vec<Id>),
}

fn managed(name: &str) -> Result<Managed> {
    let visible = candidates(name)?;
    let refused = match own_collection(&visible, name) {
        Ok(own) => return Ok(Managed::Collection(own.id)),
        Err(refused) => refused,
    };
    let (owner, _) = split_name(name)?;
    let Some(other) = choose(&visible, owner, name)? else { return Err(hinted(refused, name)) };
    let domains = collection::domains_elsewhere(Some(other.id))?;
    if domains.is_empty() { Err(refused) } else { Ok(Managed::Domains(domains)) }
}

/// What a caller sees of a collection, or of all.
pub(super) fn scope_of(name: Option<&str>) -> Result<Scope> {
    Scope::resolve(name).map_err(|error| match name {
        Some(name) => hinted(error, name),
        None => error,
    })
}

/// A uuid as a literal is taken for a name.
fn hinted(error: Error, name: &str) -> Error {
    let is_uuid = name.len() == 36 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if is_uuid { error.hint("A document is named by a value of type uuid: '…'::uuid.") } else { error }
}

fn sees_everything() -> bool {
    config::all_domains() && server::user_is_superuser()
}

#[pg_extern(sql = false)]
fn rag_set_priority(collection: Option<&str>, priority: Option<i32>) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let name = required(collection, "collection")?;
        let priority = checked_priority(priority)?;
        let domains = match managed(name)? {
            Managed::Domains(domains) => domains,
            Managed::Collection(id) => elevation::elevated(|| collection::owners_domain(id))?,
        };
        elevation::elevated(|| {
            domains.iter().try_for_each(|domain| collection::set_priority(*domain, priority))
        })
    })
}

#[pg_extern(sql = false)]
fn rag_set_document_priority(
    document_id: Option<pgrx::Uuid>,
    priority: Option<i32>,
) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let (domain, document) = own_document(document_id)?;
        let priority = checked_priority(priority)?;
        elevation::elevated(|| job::set_priority(domain, document, priority))
    })
}

fn checked_priority(priority: Option<i32>) -> Result<i32> {
    let priority = required(priority, "priority")?;
    if PRIORITIES.contains(&i64::from(priority)) {
        return Ok(priority);
    }
    let (least, most) = PRIORITIES.into_inner();
    Err(Error::invalid(format!("priority must be between {least} and {most}, not {priority}")))
}

#[pg_extern(sql = false)]
fn rag_cancel(collection: Option<&str>) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let domains = changeable_domains(collection)?;
        steer_all(&domains, cancel)
    })
}

#[pg_extern(sql = false)]
fn rag_cancel_document(document_id: Option<pgrx::Uuid>) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let (domain, document) = own_document(document_id)?;
        cancel(Steered::Document(domain, document))
    })
}

#[pg_extern(sql = false)]
fn rag_retry(collection: Option<&str>) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let domains = changeable_domains(collection)?;
        steer_all(&domains, retry)
    })
}

#[pg_extern(sql = false)]
fn rag_retry_document(document_id: Option<pgrx::Uuid>) -> std::result::Result<i64, ErrorReport> {
    call(|| {
        let (domain, document) = own_document(document_id)?;
        retry(Steered::Document(domain, document))
    })
}

/// Runs work on many documents, elevated, in the order of their ids, while statements of others change them in orders of their
/// own. So that neither ends in a deadlock, this one gives way, before the server looks for one, and comes again.
fn giving_way(mut work: impl FnMut() -> Result<i64>) -> Result<i64> {
    for _ in 0..TRIES {
        let outcome = elevation::with_settings(&[(c"lock_timeout", LOCK_TIMEOUT)], || {
            transaction::attempt(|| elevation::elevated(&mut work))
        });
        match outcome {
            Err(error) if error.is_about_a_lock() => interrupts::pause(PAUSE),
            outcome => return outcome,
        }
    }
    elevation::elevated(work)
}

/// Well below `deadlock_timeout`.
const LOCK_TIMEOUT: &CStr = c"100ms";

/// Between two tries, of which there are so many that whoever holds a document for half a minute is waited for.
const PAUSE: Duration = Duration::from_millis(50);
const TRIES: usize = 200;

/// Steers the work on documents of domains: where policies that were added may hide some, of each that the caller sees.
fn steer_all(domains: &[Id], steer: impl Fn(Steered<'_>) -> Result<i64>) -> Result<i64> {
    if !rights::may_hide_rows() {
        return steer(Steered::Domains(domains));
    }
    let shown = steering::shown(domains)?;
    shown.into_iter().map(|(domain, document)| steer(Steered::Document(domain, document))).sum()
}

fn cancel(steered: Steered<'_>) -> Result<i64> {
    giving_way(|| {
        let cancelled = steering::cancel(steered)?;
        graph_job::cancel(steered)?;
        Ok(cancelled)
    })
}

fn retry(steered: Steered<'_>) -> Result<i64> {
    let mut asks_again = false;
    let retried = giving_way(|| {
        let retried = steering::retry_failed(steered)?;
        asks_again = graph_job::retry(steered)?;
        Ok(retried)
    })?;
    if retried > 0 || asks_again {
        workers::wake_at_commit();
    }
    Ok(retried)
}

/// Domains of a collection, or of all that are the caller's, whose documents they may change.
fn changeable_domains(name: Option<&str>) -> Result<Vec<Id>> {
    let scope = scope_of(name)?;
    if sees_everything() {
        return Ok(scope.ids());
    }
    rights::writable(&scope.ids())
}

/// Domain and id of a document that the caller may change. 42704 is the same for one that does not exist and
/// one that they may not see.
fn own_document(document_id: Option<pgrx::Uuid>) -> Result<(Id, Id)> {
    let document = required(document_id, "document_id")?;
    let missing = || Error::missing(format!("document {document} does not exist"));
    let (domain, ..) = document::locate(id(document))?.ok_or_else(missing)?;
    if server::user_is_superuser() || rights::writable(&[domain])?.contains(&domain) {
        return Ok((domain, id(document)));
    }
    Err(Error::forbidden(format!("permission denied for document {document}"))
        .hint("Its owner, or who may write to its shared collection, can do this."))
}

#[pg_extern(sql = false)]
fn rag_drop_collection(collection: Option<&str>) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let name = required(collection, "collection")?;
        let visible = candidates(name)?;
        let own = own_collection(&visible, name)?;
        elevation::elevated(|| collection::delete(own.id))
    })
}
