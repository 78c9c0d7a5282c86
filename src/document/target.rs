//! Where a document goes: from a collection's name and an owner to a domain, under the caller's rights.

use crate::collection::create::new_collection;
use crate::collection::name::{DEFAULT_COLLECTION, choose, missing, missing_among, split_name};
use crate::error::{Error, Result, excerpt};
use crate::pg::circumstances::Circumstances;
use crate::pg::{elevation, principal, server, transaction};
use crate::storage::collection::{self, Collection};
use crate::storage::{Id, is_attached};
use pgrx::PgSqlErrorCode;
use std::cell::RefCell;

/// Where a document goes, in the words of `rag.document`.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) domain: Id,
    /// Canonical name: `OWNER/NAME` where the collection is not the document owner's.
    pub(crate) collection: String,
    pub(crate) owner: String,
}

thread_local! {
    static LAST: RefCell<Option<Resolved>> = const { RefCell::new(None) };
}

/// Where the last row of a statement went.
struct Resolved {
    under: Circumstances,
    /// What stood after the row's own writes.
    command: u32,
    /// Collection and owner as they were given.
    given: (String, String),
    target: Target,
}

/// [`resolve`] for a row of a statement: by the row before it, if that went to the same collection. What others do meanwhile to
/// the collection counts from the next statement on; what this transaction does, from its next command on.
pub(crate) fn resolve_row(name: &str, owner: &str) -> Result<Target> {
    let under = Circumstances::now();
    let holds = |last: &&Resolved| {
        (last.given.0.as_str(), last.given.1.as_str()) == (name, owner)
            && last.command == transaction::command()
            && last.under == under
    };
    if let Some(target) = LAST.with_borrow(|last| last.as_ref().filter(holds).map(|last| last.target.clone()))
    {
        return Ok(target);
    }
    let target = resolve(name, owner)?;
    let given = (name.to_owned(), owner.to_owned());
    LAST.set(Some(Resolved { under, command: transaction::command(), given, target: target.clone() }));
    Ok(target)
}

/// What has been written since [`resolve_row`] belongs to the row: it changes nothing for the next one.
pub(crate) fn row_is_done() {
    LAST.with_borrow_mut(|last| {
        if let Some(last) = last {
            last.command = transaction::command();
        }
    });
}

/// Finds the domain for a document of `owner` in a collection, and makes it if it is the first document there.
///
/// 42704: no such collection, or none that the caller may see. 42501: not theirs to write, or not an owner they act
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
        // Everyone has a default of their own; that of a role they inherit is written OWNER/default.
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
