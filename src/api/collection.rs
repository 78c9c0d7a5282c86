//! Collections and grants.

use super::{call, options_of, required};
use crate::config;
use crate::engine;
use crate::error::{Error, Result, excerpt};
use crate::ingest::process::collection_chunking;
use crate::ingest::target::{self, new_collection};
use crate::pg::ErrorReport;
use crate::pg::{elevation, principal, server};
use crate::rights;
use crate::storage::collection::{self, Collection};
use crate::storage::{Id, is_attached, uuid};
use pgrx::prelude::*;
use pgrx::{JsonB, PgSqlErrorCode};
use rag_wire::ModelKind;

/// Most characters of a collection's name.
const MAX_NAME_CHARS: usize = 128;

#[pg_extern(sql = false)]
fn rag_create_collection(
    name: Option<&str>,
    model: Option<&str>,
    language: Option<&str>,
    shared: Option<bool>,
    options: Option<JsonB>,
) -> std::result::Result<pgrx::Uuid, ErrorReport> {
    call(|| {
        let name = checked_name(required(name, "name")?)?;
        let language = required(language, "language")?;
        let shared = required(shared, "shared")?;
        let options = options_of(options)?;
        check_language(language)?;
        collection_chunking(&options)?;
        check_model(model)?;
        let owner = principal::current_owner()?;
        let new = new_collection(name, &owner, model, language, shared, options)?;
        let derived = if name == target::DEFAULT_COLLECTION {
            principal::derived_domain(None, &owner)
        } else {
            principal::derived_domain(Some(new.id.to_be_bytes()), &owner)
        };
        elevation::elevated(|| match collection::create(&new)? {
            Some(created) => {
                collection::ensure_domain(Id::from_be_bytes(derived), created, &owner)?;
                Ok(uuid(created))
            }
            None => Err(Error::new(
                PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
                format!("collection \"{}\" already exists", excerpt(name)),
            )),
        })
    })
}

/// 22023 for a language that the keyword analyser does not have.
pub(super) fn check_language(language: &str) -> Result<()> {
    if rag_bm25::Language::from_name(language).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = rag_bm25::Language::all().iter().map(|l| l.name()).collect();
    Err(Error::invalid(format!("unknown language \"{}\"", excerpt(language)))
        .hint(format!("Known languages: {}.", known.join(", "))))
}

/// 42704 for a model that the engine does not have. While the engine is down any name is taken: documents then
/// wait for it.
pub(super) fn check_model(model: Option<&str>) -> Result<()> {
    let wanted = model.map_or_else(config::embedding_model, str::to_owned);
    let Ok(models) = engine::models() else { return Ok(()) };
    let hint = "SELECT name FROM rag.model WHERE kind = 'embedding' lists the models.";
    match models.iter().find(|m| m.name == wanted) {
        Some(found) if found.kind == ModelKind::Embedding => Ok(()),
        Some(_) => {
            Err(Error::invalid(format!("model \"{}\" is not an embedding model", excerpt(&wanted)))
                .hint(hint))
        }
        None => Err(Error::missing(format!("model \"{}\" does not exist", excerpt(&wanted))).hint(hint)),
    }
}

pub(super) fn checked_name(name: &str) -> Result<&str> {
    let fault = if name.is_empty() {
        "must not be empty".to_owned()
    } else if name.chars().count() > MAX_NAME_CHARS {
        format!("has {} characters, but the limit is {MAX_NAME_CHARS}", name.chars().count())
    } else if name.contains('/') || name.contains(char::is_control) {
        "must not contain a slash or control characters".to_owned()
    } else {
        return Ok(name);
    };
    Err(Error::invalid(format!("collection name \"{}\" {fault}", excerpt(name))))
}

#[pg_extern(sql = false)]
fn rag_grant(
    collection: Option<&str>,
    principal_name: Option<&str>,
    privilege: Option<&str>,
) -> std::result::Result<(), ErrorReport> {
    call(|| set_grant(collection, principal_name, privilege, true))
}

#[pg_extern(sql = false)]
fn rag_revoke(
    collection: Option<&str>,
    principal_name: Option<&str>,
    privilege: Option<&str>,
) -> std::result::Result<(), ErrorReport> {
    call(|| set_grant(collection, principal_name, privilege, false))
}

fn set_grant(
    collection: Option<&str>,
    principal_name: Option<&str>,
    privilege: Option<&str>,
    granted: bool,
) -> Result<()> {
    let name = required(collection, "collection")?;
    let principal_name = required(principal_name, "principal")?;
    let privilege = required(privilege, "privilege")?;
    if !matches!(privilege, "read" | "write") {
        return Err(Error::invalid(format!("invalid privilege \"{}\"", excerpt(privilege)))
            .hint("A privilege is read or write."));
    }
    if principal::Principal::parse(principal_name).is_none() {
        principal::existing_role(principal_name)?;
    }
    let visible = candidates(name)?;
    let chosen = own_collection(&visible, name)?;
    if is_attached(chosen.id) {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("collection \"{}\" is an attached table, which is granted as such", excerpt(name)),
        )
        .hint("GRANT SELECT ON the table."));
    }
    if granted && principal_name == "public" && !server::user_is_superuser() {
        return Err(Error::forbidden("permission denied to grant to public").hint("Must be superuser."));
    }
    let domain = elevation::elevated(|| collection::find_domain(chosen.id, &chosen.owner))?
        .ok_or_else(|| Error::internal("a collection has no domain of its owner"))?;
    elevation::elevated(|| collection::set_grant(chosen, domain, principal_name, privilege, granted))
}

/// What may be meant by a name: collections that the caller owns or was granted; for a superuser, also the one
/// written `OWNER/NAME`.
pub(super) fn candidates(name: &str) -> Result<Vec<Collection>> {
    let (owner, bare) = target::split_name(name)?;
    match owner {
        Some(owner) if server::user_is_superuser() => {
            Ok(elevation::elevated(|| collection::of_owner(bare, owner))?.into_iter().collect())
        }
        _ => collection::named_latest(bare, owner),
    }
}

/// The collection of this name that is the caller's to manage, or a superuser's who names its owner. 42704: the name
/// means none. 42501: it is not his.
pub(super) fn own_collection<'a>(visible: &'a [Collection], name: &str) -> Result<&'a Collection> {
    let me = principal::current_owner()?;
    let (owner, _) = target::split_name(name)?;
    let is_any_his = owner.is_some() && server::user_is_superuser();
    match visible.iter().filter(|c| c.is_own || is_any_his).max_by_key(|c| c.owner == me) {
        Some(own) => Ok(own),
        None if target::choose(visible, owner, name)?.is_none() => Err(target::missing_among(visible, name)),
        None => Err(Error::forbidden(format!("must be owner of collection \"{}\"", excerpt(name)))),
    }
}

#[pg_extern(sql = false)]
fn rag_accept(owner: Option<&str>, collection: Option<&str>) -> std::result::Result<(), ErrorReport> {
    call(|| {
        let owner = required(owner, "owner")?;
        let name = required(collection, "collection")?;
        let me = principal::current_owner()?;
        let found = rights::visible_domains(false, Some(name))?
            .into_iter()
            .find(|d| d.collection_owner == owner && (!d.is_own_domain || is_attached(d.id) && !d.is_own));
        match found {
            Some(domain) => elevation::elevated(|| collection::accept(domain.id, &me)),
            None => Err(target::missing(name)),
        }
    })
}
