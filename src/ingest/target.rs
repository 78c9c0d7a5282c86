//! Where a document goes: from a collection's name and an owner to a domain, under the caller's rights.

use crate::config;
use crate::error::{Error, Result, excerpt};
use crate::pg::{elevation, principal, random, server};
use crate::storage::collection::{self, Collection};
use crate::storage::{Id, is_attached};
use pgrx::PgSqlErrorCode;

/// The one collection that is made by itself.
pub(crate) const DEFAULT_COLLECTION: &str = "default";

/// Where a document goes, in the words of `rag.document`.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) domain: Id,
    /// Canonical name: `OWNER/NAME` where the collection is not the document owner's.
    pub(crate) collection: String,
    pub(crate) owner: String,
}

/// Finds the domain for a document of `owner` in a collection, and makes it if it is the first document there.
///
/// 42704: no such collection, or none that the caller may see. 42501: not his to write, or not an owner he acts
/// as. A superuser may write for any principal.
pub(crate) fn resolve(name: &str, owner: &str) -> Result<Target> {
    let acts_as_owner = principal::current_principals()?.iter().any(|p| p == owner);
    let (qualifier, bare) = split_name(name)?;
    let candidates = collection::named_latest(bare, qualifier)?;

    if server::user_is_superuser() && !acts_as_owner {
        return resolve_for_other(bare, qualifier, owner);
    }
    let own = candidates.iter().find(|c| c.owner == owner && c.is_own);
    let chosen = match own {
        Some(collection) if acts_as_owner => Some(collection.clone()),
        // Everyone has a default of his own; that of a role he inherits is written OWNER/default.
        _ if bare == DEFAULT_COLLECTION && qualifier.is_none() && acts_as_owner => {
            return create_default(owner);
        }
        _ => {
            choose(candidates.into_iter().filter(|c| c.is_own || c.is_writable || qualifier.is_some()), name)?
        }
    };
    let Some(chosen) = chosen else {
        if bare == DEFAULT_COLLECTION && qualifier.is_none_or(|q| q == owner) && acts_as_owner {
            return create_default(owner);
        }
        return Err(missing(name));
    };
    if chosen.shared && (chosen.is_own || chosen.is_writable) {
        return domain_of(&chosen, &chosen.owner.clone());
    }
    if !acts_as_owner {
        return Err(Error::forbidden(format!(
            "permission denied to own documents as \"{}\"",
            excerpt(owner)
        ))
        .hint("Leave owner at its default, or SET ROLE first."));
    }
    if chosen.is_own || chosen.is_writable {
        return domain_of(&chosen, owner);
    }
    Err(Error::forbidden(format!("permission denied to write to collection \"{}\"", excerpt(name)))
        .hint("Its owner can grant it: SELECT rag_grant(collection, principal, 'write')."))
}

fn resolve_for_other(bare: &str, qualifier: Option<&str>, owner: &str) -> Result<Target> {
    principal::existing_role(owner)?;
    let collection_owner = qualifier.unwrap_or(owner);
    let found = elevation::elevated(|| collection::of_owner(bare, collection_owner))?;
    match found {
        Some(found) if found.shared => domain_of(&found, &found.owner.clone()),
        Some(found) => domain_of(&found, owner),
        None if bare == DEFAULT_COLLECTION && collection_owner == owner => create_default(owner),
        None => Err(missing(bare)),
    }
}

/// 42704, the same for what does not exist and for what the caller may not see.
pub(crate) fn missing(name: &str) -> Error {
    Error::missing(format!("collection \"{}\" does not exist", excerpt(name)))
        .hint("SELECT rag_create_collection(name) creates one; another owner's is written OWNER/NAME.")
}

/// `OWNER/NAME` or `NAME`.
pub(crate) fn split_name(name: &str) -> Result<(Option<&str>, &str)> {
    match name.rsplit_once('/') {
        Some((owner, bare)) if !owner.is_empty() && !bare.is_empty() => Ok((Some(owner), bare)),
        Some(_) => Err(Error::invalid(format!("invalid collection name \"{}\"", excerpt(name)))
            .hint("A collection is written NAME, or OWNER/NAME for another owner's.")),
        None if name.is_empty() => Err(Error::invalid("collection name must not be empty")),
        None => Ok((None, name)),
    }
}

/// The collection meant by a bare name: one's own, else an accepted one, else a granted one.
pub(crate) fn choose(
    candidates: impl IntoIterator<Item = Collection>,
    name: &str,
) -> Result<Option<Collection>> {
    let me = principal::current_owner().ok();
    let rank = |c: &Collection| match c {
        c if c.is_own && Some(&c.owner) == me.as_ref() => 0,
        c if c.is_own => 1,
        c if c.is_accepted => 2,
        _ => 3,
    };
    let mut candidates: Vec<Collection> = candidates.into_iter().collect();
    candidates.sort_by_key(|c| (rank(c), c.id));
    match &candidates[..] {
        [] => Ok(None),
        [first, second, ..] if rank(first) == rank(second) => Err(Error::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("collection \"{}\" is ambiguous", excerpt(name)),
        )
        .detail(format!("It may be {}/{} or {}/{}.", first.owner, first.name, second.owner, second.name))
        .hint("Write OWNER/NAME.")),
        [first, ..] => Ok(Some(first.clone())),
    }
}

fn domain_of(chosen: &Collection, owner: &str) -> Result<Target> {
    if is_attached(chosen.id) {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("collection \"{}\" is an attached table", excerpt(&chosen.name)),
        )
        .hint("Write to the table: its documents follow."));
    }
    let collection =
        if chosen.owner == owner { chosen.name.clone() } else { format!("{}/{}", chosen.owner, chosen.name) };
    let domain = match collection::find_domain(chosen.id, owner)? {
        Some(domain) => domain,
        None => {
            let derived = principal::derived_domain(Some(chosen.id.to_be_bytes()), owner);
            elevation::elevated(|| collection::ensure_domain(Id::from_be_bytes(derived), chosen.id, owner))?
        }
    };
    Ok(Target { domain, collection, owner: owner.to_owned() })
}

fn create_default(owner: &str) -> Result<Target> {
    let domain = Id::from_be_bytes(principal::derived_domain(None, owner));
    let new = new_collection(DEFAULT_COLLECTION, owner, None, "english", false, serde_json::json!({}))?;
    let domain = elevation::elevated(|| {
        collection::create(&new)?;
        match collection::of_owner(DEFAULT_COLLECTION, owner)? {
            Some(found) => collection::ensure_domain(domain, found.id, owner),
            None => {
                Err(Error::forbidden(format!("the name of \"{}\" belonged to another role", excerpt(owner)))
                    .hint("A superuser sets its former documents apart by rag_enable('role')."))
            }
        }
    })?;
    Ok(Target { domain, collection: DEFAULT_COLLECTION.to_owned(), owner: owner.to_owned() })
}

/// A collection that is not stored yet.
pub(crate) fn new_collection(
    name: &str,
    owner: &str,
    model: Option<&str>,
    language: &str,
    shared: bool,
    options: serde_json::Value,
) -> Result<Collection> {
    Ok(Collection {
        id: Id::from_be_bytes(random::new_id()?),
        name: name.to_owned(),
        owner: owner.to_owned(),
        model: model.map_or_else(config::embedding_model, str::to_owned),
        language: language.to_owned(),
        shared,
        options,
        is_own: true,
        is_accepted: false,
        is_writable: true,
        next_model: None,
    })
}
