//! What row-level-security policies ask, row by row, and the lists behind the answers, by which indexes are searched.
//!
//! Declared leakproof and nearly free, so that a policy comes before any condition of the caller's; see sql/50_policy.sql.

use crate::pg::{ErrorReport, FunctionCallInfo, Oid, UuidArray, call_state, index_condition, principal};
use crate::rights::{self, Rights, Sight};
use crate::storage::{Id, id, uuids};
use pgrx::prelude::*;
use pgrx::{Internal, Uuid};

/// Whether an id is in one of the caller's lists.
fn is_listed(
    call: FunctionCallInfo,
    wanted: Uuid,
    list: fn(&Rights) -> &Vec<Id>,
) -> Result<bool, ErrorReport> {
    let found = call_state::with_state(call, |sight: &mut Sight| {
        Ok(list(&*sight.rights()?).binary_search(&id(wanted)).is_ok())
    });
    found.map_err(|error: crate::error::Error| error.into())
}

fn list(list: fn(&Rights) -> &Vec<Id>) -> Result<UuidArray, ErrorReport> {
    Ok(uuids(list(&*rights::current()?).iter().copied()))
}

#[pg_extern(sql = false)]
fn sees(domain: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    is_listed(call, domain, |rights| &rights.readable)
}

#[pg_extern(sql = false)]
fn sees_document(domain: Uuid, document: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    let seen = |sight: &mut Sight| sight.sees_document(id(domain), id(document));
    Ok(call_state::with_state(call, seen)?)
}

#[pg_extern(sql = false)]
fn sees_part(domain: Uuid, document: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    let seen = |sight: &mut Sight| sight.sees_part(id(domain), id(document));
    Ok(call_state::with_state(call, seen)?)
}

#[pg_extern(sql = false)]
fn sees_whole(domain: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    Ok(call_state::with_state(call, |sight: &mut Sight| sight.sees_whole(id(domain)))?)
}

#[pg_extern(sql = false)]
fn may_write(domain: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    is_listed(call, domain, |rights| &rights.writable)
}

#[pg_extern(sql = false)]
fn sees_collection(collection: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    is_listed(call, collection, |rights| &rights.collections)
}

#[pg_extern(sql = false)]
fn owns_collection(collection: Uuid, call: FunctionCallInfo) -> Result<bool, ErrorReport> {
    is_listed(call, collection, |rights| &rights.own_collections)
}

/// A grant is seen by who gave it and by who got it: others' in the same domain are not.
#[pg_extern(sql = false)]
fn sees_grant(
    domain: Uuid,
    owner: &str,
    owner_role: Oid,
    grantee: &str,
    grantee_role: Oid,
    call: FunctionCallInfo,
) -> Result<bool, ErrorReport> {
    if !is_listed(call, domain, |rights| &rights.granted)? {
        return Ok(false);
    }
    Ok(grantee == "public" || acts_as(grantee, grantee_role)? || acts_as(owner, owner_role)?)
}

#[pg_extern(sql = false)]
fn is_mine(name: &str, role: Oid) -> Result<bool, ErrorReport> {
    acts_as(name, role)
}

#[pg_extern(sql = false)]
fn is_mine_or_public(name: &str, role: Oid) -> Result<bool, ErrorReport> {
    Ok(name == "public" || acts_as(name, role)?)
}

pub(super) fn acts_as(name: &str, role: Oid) -> Result<bool, ErrorReport> {
    Ok(principal::is_current(name, role) && principal::current_principals()?.iter().any(|p| p == name))
}

#[pg_extern(sql = false)]
fn readable_domain_ids() -> Result<UuidArray, ErrorReport> {
    list(|rights| &rights.readable)
}

#[pg_extern(sql = false)]
fn writable_domain_ids() -> Result<UuidArray, ErrorReport> {
    list(|rights| &rights.writable)
}

#[pg_extern(sql = false)]
fn visible_collection_ids() -> Result<UuidArray, ErrorReport> {
    list(|rights| &rights.collections)
}

#[pg_extern(sql = false)]
fn own_collection_ids() -> Result<UuidArray, ErrorReport> {
    list(|rights| &rights.own_collections)
}

#[pg_extern(sql = false)]
fn granted_domain_ids() -> Result<UuidArray, ErrorReport> {
    list(|rights| &rights.granted)
}

#[pg_extern(sql = false)]
fn principals_and_public() -> Result<Vec<String>, ErrorReport> {
    let mut names = principal::current_principals()?;
    names.push("public".to_owned());
    Ok(names)
}

/// The planner's questions about the functions above.
#[pg_extern(sql = false)]
fn policy_support(request: Internal) -> Internal {
    index_condition::answer(request)
}
