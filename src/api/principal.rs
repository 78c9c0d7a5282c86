//! Who the caller is, for policies and defaults.

use super::call_even_unloaded;
use crate::error::Error;
use crate::pg::{ErrorReport, Oid};
use crate::pg::{principal, random};
use crate::storage::collection;
use crate::workers;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn new_id() -> Result<pgrx::Uuid, ErrorReport> {
    Ok(random::new_id().map(pgrx::Uuid::from_bytes)?)
}

#[pg_extern(sql = false)]
fn principals() -> Result<Vec<String>, ErrorReport> {
    Ok(principal::current_principals()?)
}

#[pg_extern(sql = false)]
fn readable_domain_ids() -> Result<Vec<pgrx::Uuid>, ErrorReport> {
    Ok(collection::readable_domains()?.to_vec())
}

#[pg_extern(sql = false)]
fn current_owner() -> Result<String, ErrorReport> {
    Ok(principal::current_owner()?)
}

#[pg_extern(sql = false)]
fn principal_role(name: &str) -> Option<Oid> {
    principal::role_of(name)
}

#[pg_extern(sql = false)]
fn is_current(name: &str, role: Oid) -> bool {
    principal::role_of(name) == Some(role)
}

#[pg_extern(sql = false)]
fn is_mine(name: &str, role: Oid) -> Result<bool, ErrorReport> {
    Ok(principal::role_of(name) == Some(role) && principal::current_principals()?.iter().any(|p| p == name))
}

#[pg_extern(sql = false)]
fn derived_domain(collection: Option<pgrx::Uuid>, owner: Option<&str>) -> Result<pgrx::Uuid, ErrorReport> {
    let owner = owner.ok_or_else(|| Error::null("owner"))?;
    Ok(pgrx::Uuid::from_bytes(principal::derived_domain(collection.map(|c| *c.as_bytes()), owner)))
}

#[pg_extern(sql = false)]
fn wake_workers() -> Result<(), ErrorReport> {
    call_even_unloaded(|| {
        workers::wake_at_commit();
        Ok(())
    })
}
