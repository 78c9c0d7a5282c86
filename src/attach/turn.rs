//! A worker's turn at an attached table: a step of it, and what becomes of it when that fails, or ends the worker.

use super::follow::Follower;
use super::origin;
use crate::config;
use crate::error::{Error, Result, excerpt};
use crate::pg::{elevation, interrupts};
use crate::storage::attached_run;
use crate::storage::relation::{self, TableLock};
use crate::storage::{Id, attachment, source};
use pgrx::PgSqlErrorCode;

/// Most characters of an error that are kept.
const ERROR_CHARS: usize = 300;

/// Longest pause before another try, after a failure and where somebody held the table.
const FAILED_DELAY_S: f64 = 300.0;
const LOCKED_DELAY_S: f64 = 15.0;

/// After a statement that took too long the table is left alone for this many times as long, at least.
const REST: u32 = 10;

/// How long a table is left alone whose owner's code ended a worker, unless it is attached again.
const ENDED_DELAY_S: f64 = 3600.0;

/// Pause after a worker ended otherwise, and how many may end in a row: a server that is stopped ends them too.
const LOST_DELAY_S: f64 = 15.0;
const MOST_LOST: i32 = 3;

/// What the owner of a table that is not followed any more can do.
const REMEDY: &str = "rag_attach the table again, or rag_detach it";

/// Does a step of the attachment that the worker is at, in the caller's transaction; `false` if nothing was done.
pub(crate) fn step(collection: Id) -> Result<bool> {
    let Some(attachment) = attachment::lock_running(collection)? else { return Ok(false) };
    // An owner who drops the table holds it, and waits for this worker: it must not wait for them.
    let table = match attachment.source.map(|table| (table, relation::try_lock(table))) {
        Some((table, TableLock::Held)) => table,
        Some((_, TableLock::Busy)) => {
            return Err(Error::locked("the table is locked by another transaction"));
        }
        Some((_, TableLock::Gone)) | None => {
            attachment::delete_collections(&[collection])?;
            return Ok(true);
        }
    };
    let Some(relation) = relation::relation(table)? else {
        attachment::delete_collections(&[collection])?;
        return Ok(true);
    };
    let stop = |reason: &str| attachment::stop(collection, "55000", &format!("{reason}: {REMEDY}"), 0.0);
    // The expressions are the collection's owner's, and run as the table's.
    if !attachment::may_act_for(collection, relation.owner)? {
        stop("the table has another owner now")?;
        return Ok(true);
    }
    let by_number = attachment.origin == origin(table);
    match source::resolve(relation, &attachment.definition, by_number)? {
        Ok(source) => {
            let Some(names) = attachment::name_and_owner(collection)? else { return Ok(true) };
            Follower::new(collection, table, names, source).step(&attachment)?;
        }
        Err(reason) => stop(&reason)?,
    }
    Ok(true)
}

/// Notes why a step failed, so that it is tried again later.
pub(crate) fn fail(collection: Id, tries: i32, sqlstate: &str, error: &Error) -> Result<()> {
    let growing = 2.0_f64.powi(tries.clamp(0, 16));
    let delay_s = match error.code {
        _ if error.is_about_a_lock() => growing.min(LOCKED_DELAY_S),
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED => (config::attached_timeout() * REST).as_secs_f64(),
        _ => growing.min(FAILED_DELAY_S),
    };
    attachment::fail(collection, sqlstate, &without_values(&error.message), delay_s)
}

/// Lets go of attachments whose worker has ended; those are stopped whose owner's code was the reason.
pub(crate) fn take_lost() -> Result<()> {
    let limit = config::attached_timeout();
    for run in attached_run::take_lost(limit + interrupts::GRACE, LOST_DELAY_S)? {
        let reason = if run.was_too_long {
            let limit = limit.as_secs_f64();
            format!("code of the table's owner took longer than {limit} s and could not be cancelled")
        } else if run.lost >= MOST_LOST {
            format!("{} workers ended while they read the table", run.lost)
        } else {
            continue;
        };
        attachment::stop(run.collection, "57014", &format!("{reason}: {REMEDY}"), ENDED_DELAY_S)?;
    }
    Ok(())
}

/// A message as it is kept: values of rows stand in quotes, and are cut. Its detail, which may be a whole row, is not.
pub(super) fn without_values(message: &str) -> String {
    let parts: Vec<String> = message
        .split('"')
        .enumerate()
        .map(|(i, part)| if i % 2 == 1 { excerpt(part) } else { part.to_owned() })
        .collect();
    parts.join("\"").chars().take(ERROR_CHARS).collect()
}

/// Takes leftovers away: notes for collections that are gone, and triggers of tables that nothing is attached to.
/// Waits for no lock of a user's: 55P03.
pub(crate) fn clean_up() -> Result<()> {
    for table in attachment::clean_up()? {
        elevation::with_settings(&[(c"lock_timeout", c"50ms")], || attachment::unwatch_if_free(table))?;
    }
    Ok(())
}
