//! Following attached tables, as part of an ingest worker's round: one step, one transaction.
//!
//! Code of the tables' owners runs then, for as long as it is let. So at most half of a database's workers are at such
//! tables at any time, at most one of them at those of one owner, and what a worker is at is committed before.

use crate::error::{Error, Result, sqlstate_text, unless_locked};
use crate::pg::shared::{self, Following};
use crate::pg::worker;
use crate::storage::attached_run::{self, Run};
use crate::storage::{Id, attachment};
use crate::{attach, config};

/// Takes leftovers away, if nobody is using them.
pub(super) fn clean_up() -> Result<()> {
    unless_locked(worker::transaction(attach::clean_up)).map(|_| ())
}

/// Lets go of tables whose worker has ended.
pub(super) fn take_lost() -> Result<()> {
    unless_locked(worker::transaction(attach::take_lost)).map(|_| ())
}

/// Does a step of the next attached table; false if there was nothing to do. A table whose step fails is tried
/// again later, and the others go on.
pub(super) fn follow_once(last: &mut Id) -> Result<bool> {
    let Some(following) = Following::begin(most_following()) else { return Ok(false) };
    worker::set_activity("rag_ext: following an attached table");
    let others = following.owners_of_others();
    let Some(run) = worker::transaction(|| attached_run::begin(*last, others))? else { return Ok(false) };
    *last = run.collection;
    // It may take minutes, in which the owner of the last documents has another worker.
    shared::serve_nobody();
    if !following.take(run.owner) {
        // Another worker came to this owner at the same moment.
        worker::transaction(|| attached_run::end(&run))?;
        return Ok(false);
    }
    match worker::transaction(|| attach::step(run.collection)) {
        Ok(true) => Ok(true),
        Ok(false) => worker::transaction(|| attached_run::end(&run)).map(|()| false),
        Err(error) => fail(&run, &error).map(|()| true),
    }
}

fn fail(run: &Run, error: &Error) -> Result<()> {
    worker::transaction(|| {
        let tries = attachment::tries(run.collection)?.unwrap_or(0);
        attach::fail(run.collection, tries, &sqlstate_text(error.code), error)
    })
}

/// Whether as many workers of this database are at attached tables as may be.
pub(super) fn is_full() -> bool {
    Following::begin(most_following()).is_none()
}

fn most_following() -> usize {
    (config::ingest_workers() / 2).max(1)
}
