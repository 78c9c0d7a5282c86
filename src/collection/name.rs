//! What a collection's name means: to whom, and which of those that have it.

use crate::error::{Error, Result, excerpt};
use crate::pg::{elevation, principal, server};
use crate::storage::collection::{self, Collection};
use pgrx::PgSqlErrorCode;

/// The one collection that is made by itself.
pub(crate) const DEFAULT_COLLECTION: &str = "default";

/// Most characters of a collection's name.
const MAX_NAME_CHARS: usize = 128;

/// 22023 for what cannot be the name of a new collection.
pub(crate) fn checked_name(name: &str) -> Result<&str> {
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

/// 42704, the same for what does not exist and for what the caller may not see.
pub(crate) fn missing(name: &str) -> Error {
    Error::missing(format!("collection \"{}\" does not exist", excerpt(name)))
        .hint("SELECT rag_create_collection(name) creates one; another owner's is written OWNER/NAME.")
}

/// [`missing`], for a bare name that means none of the candidates: they are what others have granted, which the
/// caller may see, and how they write them.
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
/// name their own, else one that they have accepted. What others only grant never has a bare name: it would change what the
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
        // Everyone has a default of their own.
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

/// What may be meant by a name: collections that the caller owns or was granted; for a superuser, also the one
/// written `OWNER/NAME`.
pub(crate) fn candidates(name: &str) -> Result<Vec<Collection>> {
    let (owner, bare) = split_name(name)?;
    match owner {
        Some(owner) if server::user_is_superuser() => {
            Ok(elevation::elevated(|| collection::of_owner(bare, owner))?.into_iter().collect())
        }
        _ => collection::named_latest(bare, owner),
    }
}
