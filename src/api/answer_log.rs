//! What the log of answers asks: who sees which rows, and whether a citation is still true.

use super::call_even_unloaded;
use super::policy::acts_as;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::{ErrorReport, FunctionCallInfo, Oid, call_state, principal};
use crate::rights::reads_all_answers;
use crate::storage::answer_log::{self, CitationKey};
use pgrx::prelude::*;

/// Whether the caller sees rows of this owner: their own, and everybody's where `rag_log_reader` says so.
#[pg_extern(sql = false)]
fn sees_log(owner: &str, role: Oid, call: FunctionCallInfo) -> std::result::Result<bool, ErrorReport> {
    let reads_all = call_state::with_state(call, |known: &mut Option<bool>| match *known {
        Some(reads_all) => Ok(reads_all),
        None => reads_all_answers().inspect(|reads_all| *known = Some(*reads_all)),
    })?;
    Ok(reads_all || acts_as(owner, role)?)
}

/// The list behind it, by which an index is searched.
#[pg_extern(sql = false)]
fn log_owners() -> std::result::Result<Vec<String>, ErrorReport> {
    let owners: Result<_> = match reads_all_answers()? {
        true => elevated(answer_log::owners),
        false => principal::current_principals(),
    };
    Ok(owners?)
}

#[pg_extern(sql = false)]
fn citation_is_stale(
    owner: &str,
    owner_role: Oid,
    answer: pgrx::Uuid,
    n: i32,
) -> std::result::Result<Option<bool>, ErrorReport> {
    call_even_unloaded(|| {
        let key = CitationKey { owner, owner_role, answer, n };
        match reads_all_answers()? {
            true => elevated(|| answer_log::is_stale(&key, true)),
            false => answer_log::is_stale(&key, !principal::is_held_to_policies()),
        }
    })
}
