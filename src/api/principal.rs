//! Who the caller is, for policies and defaults.

use super::call_even_unloaded;
use crate::error::Error;
use crate::pg::{ErrorReport, Oid};
use crate::pg::{principal, random};
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
fn derived_domain(collection: Option<pgrx::Uuid>, owner: Option<&str>) -> Result<pgrx::Uuid, ErrorReport> {
    let owner = owner.ok_or_else(|| Error::null("owner"))?;
    // Whose default it is knows whether a former one is being cleared away.
    if collection.is_none() && !principal::current_principals()?.iter().any(|p| p == owner) {
        return Err(Error::forbidden("permission denied for another owner's default collection").into());
    }
    Ok(pgrx::Uuid::from_bytes(principal::derived_domain(collection.map(|c| *c.as_bytes()), owner)))
}

#[pg_extern(sql = false)]
fn wake_workers() -> Result<(), ErrorReport> {
    call_even_unloaded(|| {
        workers::wake_at_commit();
        Ok(())
    })
}
