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
    if server::user_is_superuser() && !acts_as_owner {
        return resolve_for_other(bare, qualifier, owner);
    }
    let not_as_owner = || {
        Error::forbidden(format!("permission denied to own documents as \"{}\"", excerpt(owner)))
            .hint("Leave owner at its default, or SET ROLE first.")
    };
    // A document of a shared collection is owned by its owner, and so read back and written again.
    let meant_owner = qualifier.or((!acts_as_owner).then_some(owner));
    let candidates = collection::named_latest(bare, meant_owner)?;
    let own = candidates.iter().find(|c| c.owner == owner && c.is_own);
    let chosen = match own {
        Some(collection) if acts_as_owner => Some(collection),
        // Everyone has a default of his own; that of a role he inherits is written OWNER/default.
        _ if bare == DEFAULT_COLLECTION && meant_owner.is_none() => return create_default(owner),
        _ => choose(&candidates, meant_owner, name)?,
    };
    let Some(chosen) = chosen else {
        if bare == DEFAULT_COLLECTION && qualifier == Some(owner) && acts_as_owner {
            return create_default(owner);
        }
        return Err(if meant_owner == qualifier { missing_among(&candidates, name) } else { not_as_owner() });
    };
    if chosen.shared && (chosen.is_own || chosen.is_writable) {
        return domain_of(chosen, &chosen.owner);
    }
    if !acts_as_owner {
        return Err(not_as_owner());
    }
    if chosen.is_own || chosen.is_writable {
        return domain_of(chosen, owner);
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

/// [`missing`], for a bare name that means none of the candidates: they are what others have granted, which the
/// caller may see, and how he writes them.
pub(crate) fn missing_among(candidates: &[Collection], name: &str) -> Error {
    let mut granted: Vec<&Collection> = candidates.iter().collect();
    granted.sort_by(|a, b| a.owner.cmp(&b.owner));
    let Some(first) = granted.first() else { return missing(name) };
    let ways: Vec<String> =
        granted.iter().take(NAMED_IN_HINT).map(|c| format!("\"{}/{}\"", c.owner, c.name)).collect();
    let quoted = |text: &str| text.replace('\'', "''");
    missing(name).hint(format!(
        "Another owner's collection is written {}; SELECT rag_accept('{}', '{}') lets its bare name mean it.",
        ways.join(" or "),
        quoted(&first.owner),
        quoted(&first.name)
    ))
}

/// Most collections that a hint names.
const NAMED_IN_HINT: usize = 3;

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

/// The collection among those of one name that is meant by it: with an owner, any that the caller may see; by the bare
/// name his own, else one that he has accepted. What others only grant never has a bare name: it would change what the
/// name means, or make it ambiguous.
pub(crate) fn choose<'a>(
    candidates: &'a [Collection],
    owner: Option<&str>,
    name: &str,
) -> Result<Option<&'a Collection>> {
    let me = principal::current_owner().ok();
    let rank = |c: &Collection| match c {
        c if c.is_own && Some(&c.owner) == me.as_ref() => Some(0),
        c if c.is_own => Some(1),
        // Everyone has a default of his own.
        c if c.is_accepted && c.name != DEFAULT_COLLECTION => Some(2),
        _ => owner.map(|_| 3),
    };
    let mut ranked: Vec<_> = candidates.iter().filter_map(|c| Some((rank(c)?, c))).collect();
    ranked.sort_by_key(|(rank, c)| (*rank, c.id));
    match &ranked[..] {
        [] => Ok(None),
        [(one, first), (other, second), ..] if one == other => Err(Error::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("collection \"{}\" is ambiguous", excerpt(name)),
        )
        .detail(format!("It may be {}/{} or {}/{}.", first.owner, first.name, second.owner, second.name))
        .hint("Write OWNER/NAME.")),
        [(_, first), ..] => Ok(Some(first)),
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

/// Most bytes of collection, owner and uri together: they are one index row, of at most 2,704 bytes with all headers.
const MOST_KEY_BYTES: usize = 2600;

/// Checks that a document can be found by its uri: 54000.
pub(crate) fn check_uri(collection: &str, owner: &str, uri: &str) -> Result<()> {
    let limit = MOST_KEY_BYTES.saturating_sub(collection.len() + owner.len());
    if uri.len() <= limit {
        return Ok(());
    }
    Err(Error::limit(format!("uri has {} bytes, but the limit is {limit}", uri.len()))
        .detail(format!("Collection, owner and uri have at most {MOST_KEY_BYTES} bytes together."))
        .hint("Shorten it, for example to a hash, and keep the whole in metadata."))
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
