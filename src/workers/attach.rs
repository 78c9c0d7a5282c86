//! Following attached tables, as part of an ingest worker's round: one step, one transaction.

use super::ingest::sqlstate_text;
use crate::attach;
use crate::error::{Result, unless_locked};
use crate::pg::worker;
use crate::storage::{Id, attachment};

/// Takes leftovers away, if nobody is using them.
pub(super) fn clean_up() -> Result<()> {
    unless_locked(worker::transaction(attach::clean_up)).map(|_| ())
}

/// Does a step of the next attached table; false if there was nothing to do. A table whose step fails is tried
/// again later, and the others go on.
pub(super) fn follow_once(last: &mut Id) -> Result<bool> {
    worker::set_activity("rag_ext: following an attached table");
    let mut chosen = None;
    let outcome = worker::transaction(|| attach::step(*last, &mut chosen));
    *last = chosen.unwrap_or(*last);
    match (outcome, chosen) {
        (Err(error), Some(failed)) => {
            worker::transaction(|| {
                let tries = attachment::tries(failed)?.unwrap_or(0);
                attach::fail(failed, tries, &sqlstate_text(error.code), &error)
            })?;
            Ok(true)
        }
        // It did not come to a table: the database's trouble, if any.
        (outcome, _) => outcome,
    }
}
