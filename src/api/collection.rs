//! Collections and grants.

use super::{call, options_of, required};
use crate::collection::create::create;
use crate::collection::name::missing;
use crate::collection::rights::set_grant;
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{elevation, principal};
use crate::rights;
use crate::storage::{collection, is_attached, uuid};
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn rag_create_collection(
    name: Option<&str>,
    model: Option<&str>,
    language: Option<&str>,
    shared: Option<bool>,
    options: Option<GivenJsonb>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let name = required(name, "name")?;
        let language = required(language, "language")?;
        let shared = required(shared, "shared")?;
        create(name, model, language, shared, options_of(options)?).map(uuid)
    })
}

#[pg_extern(sql = false)]
fn rag_grant(
    collection: Option<&str>,
    principal_name: Option<&str>,
    privilege: Option<&str>,
) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let name = required(collection, "collection")?;
        let principal_name = required(principal_name, "principal")?;
        set_grant(name, principal_name, required(privilege, "privilege")?, true)
    })
}

#[pg_extern(sql = false)]
fn rag_revoke(
    collection: Option<&str>,
    principal_name: Option<&str>,
    privilege: Option<&str>,
) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let name = required(collection, "collection")?;
        let principal_name = required(principal_name, "principal")?;
        set_grant(name, principal_name, required(privilege, "privilege")?, false)
    })
}

#[pg_extern(sql = false)]
fn rag_accept(owner: Option<&str>, collection: Option<&str>) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let owner = required(owner, "owner")?;
        let name = required(collection, "collection")?;
        let me = principal::current_owner()?;
        let found = rights::visible_domains(false, Some(name))?
            .into_iter()
            .find(|d| *d.collection_owner == *owner && (!d.is_own_domain || is_attached(d.id) && !d.is_own));
        match found {
            Some(domain) => elevation::elevated(|| collection::accept(domain.id, &me)),
            None => Err(missing(name)),
        }
    })
}
