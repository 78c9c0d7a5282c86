//! Who manages a collection, and what its owner lets others do.

use super::name::{candidates, choose, missing_among, split_name};
use crate::error::{Error, Result, excerpt};
use crate::pg::{elevation, principal, server};
use crate::storage::collection::{self, Collection};
use crate::storage::is_attached;
use pgrx::PgSqlErrorCode;
use rag_core::choices;
use rag_core::option::Choice;

choices! {
    /// What others may do with a collection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Privilege {
        Read = "read",
        Write = "write",
    }
}

/// Gives, or takes back, a privilege on a collection of the caller's.
///
/// 42704: no such collection or role. 42501: not theirs, or public and they are no superuser. 22023: bad principal or privilege.
pub(crate) fn set_grant(name: &str, principal_name: &str, privilege: &str, granted: bool) -> Result<()> {
    let privilege = Privilege::parse(privilege, "privilege")?.name();
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

/// The collection of this name that is the caller's to manage, or a superuser's who names its owner. 42704: the name
/// means none. 42501: it is not theirs.
pub(crate) fn own_collection<'a>(visible: &'a [Collection], name: &str) -> Result<&'a Collection> {
    let me = principal::current_owner()?;
    let (owner, _) = split_name(name)?;
    let is_any_his = owner.is_some() && server::user_is_superuser();
    match visible.iter().filter(|c| c.is_own || is_any_his).max_by_key(|c| c.owner == me) {
        Some(own) => Ok(own),
        None if choose(visible, owner, name)?.is_none() => Err(missing_among(visible, name)),
        None => Err(Error::forbidden(format!("must be owner of collection \"{}\"", excerpt(name)))),
    }
}
