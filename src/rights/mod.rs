//! L3: what the caller may see and change, as lists of ids. All policies ask here, and so does every search.
//!
//! The lists are read from `rag.domain`, `rag.collection` and `rag.collection_grant` by index, without SQL and without
//! policies, always in the same steps: neither locks nor counters nor plans tell what was found. They are made once
//! per statement, and cost with what the caller has; of attached tables that are no concern of theirs a fraction of a
//! microsecond each. Whoever has to do with no attached table has them made again only after a write that concerns them.

mod kept;
mod log_reader;
mod parts;
mod sight;

pub(crate) use log_reader::reads_all_answers;
pub(crate) use sight::Sight;

use crate::attach::{self, Visibility};
use crate::error::Result;
use crate::pg::table::{self, Condition, Row};
use crate::pg::write_log::Subject;
use crate::pg::{Oid, principal, server, writes};
use crate::storage::collection::{self, VisibleDomain};
use crate::storage::{Id, acronym, added_policy, id, is_attached};
use kept::Found;
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::CStr;
use std::rc::Rc;

/// Lists of ids, each sorted and without repetition.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    /// Domains whose rows the caller sees. Of attached tables: as far as the table's own policies say.
    pub(crate) readable: Vec<Id>,
    /// Domains whose documents they may change.
    pub(crate) writable: Vec<Id>,
    /// Collections that they can name, whether or not they may read anything in them.
    pub(crate) collections: Vec<Id>,
    /// Collections of which they are the owner.
    pub(crate) own_collections: Vec<Id>,
    /// Domains with a grant that they gave or got.
    pub(crate) granted: Vec<Id>,
}

/// Of the caller, in the words of the rights model; see `rag.principals()`.
///
/// 55000: see [`added_policy::require_recorded`].
pub(crate) fn current() -> Result<Rc<Rights>> {
    if !are_policies_added() {
        return Ok(Rc::clone(&found()?.rights));
    }
    added_policy::require_recorded()?;
    if let Some(found) = kept::of_statement() {
        return Ok(Rc::clone(&found.rights));
    }
    let principals = principal::current_principals()?;
    kept::keep_for_statement(find(&principals, None)?.0);
    // What an administrator's policies leave of the tables that rights are read from: asked by queries, whose own
    // policies are content with what was found above. It may depend on anything, and so is not kept.
    let _forgotten = Forgotten;
    let shown = Shown::read()?;
    find(&principals, Some(&shown)).map(|(rights, _)| Rc::new(rights))
}

/// What the caller has, where no policies are added.
fn found() -> Result<Rc<Found>> {
    added_policy::require_recorded()?;
    kept::get_or(|principals| find(principals, None))
}

/// Whether policies that an administrator has added hide something of the tables that rights are read from.
fn are_policies_added() -> bool {
    collection::has_added_policies_on_rights() && principal::is_held_to_policies()
}

/// Has the next call find the lists anew, also after an error.
struct Forgotten;

impl Drop for Forgotten {
    fn drop(&mut self) {
        kept::forget();
    }
}

/// What the caller sees of the tables that rights are made of.
struct Shown {
    domains: HashSet<Id>,
    collections: HashSet<Id>,
    grants: HashSet<(Id, String, String)>,
}

impl Shown {
    fn read() -> Result<Self> {
        Ok(Self {
            domains: collection::shown_domains()?.into_iter().collect(),
            collections: collection::shown_collections()?.into_iter().collect(),
            grants: collection::shown_grants()?.into_iter().collect(),
        })
    }
}

/// Domains that the caller sees by their principals, also where they are a superuser; all there are with `everything`, which
/// is for `rag_ext.all_domains`. With a name: those of collections so called.
pub(crate) fn visible_domains(everything: bool, name: Option<&str>) -> Result<Vec<Rc<VisibleDomain>>> {
    if everything || are_policies_added() {
        return Ok(shared(collection::visible_domains(None, name)?));
    }
    let found = found()?;
    let listed = (!principal::is_held_to_policies()).then_some(found.rights.readable.as_slice());
    if !found.lasts() {
        return Ok(shared(collection::visible_domains(listed, name)?));
    }
    let domains = match found.domains.get() {
        Some(domains) => Rc::clone(domains),
        None => {
            let read: Rc<[Rc<VisibleDomain>]> = shared(collection::visible_domains(listed, None)?).into();
            Rc::clone(found.domains.get_or_init(|| read))
        }
    };
    let named = domains.iter().filter(|domain| name.is_none_or(|name| *domain.collection == *name));
    Ok(named.map(Rc::clone).collect())
}

fn shared(domains: Vec<VisibleDomain>) -> Vec<Rc<VisibleDomain>> {
    domains.into_iter().map(Rc::new).collect()
}

/// So few collections are asked about each time; of more it is kept what was found.
const ASKED_ABOUT: usize = 16;

/// Those of the collections for which acronyms were given.
pub(crate) fn with_acronyms(collections: &[Id]) -> Result<Vec<Id>> {
    let asked = || Ok(acronym::with_set(collections));
    if collections.len() <= ASKED_ABOUT || are_policies_added() {
        return asked();
    }
    let found = found()?;
    let Some(domains) = found.domains.get() else { return asked() };
    let known = found
        .with_acronyms
        .get_or_init(|| RefCell::new(domains.iter().map(|domain| (domain.collection_id, None)).collect()));
    let mut known = known.borrow_mut();
    // A superuser may ask about collections of others, whose writers nobody listens to.
    if !collections.iter().all(|id| known.contains_key(id)) {
        return asked();
    }
    let is_new = |id: &Id| known.get(id) == Some(&None);
    let new: Vec<Id> = collections.iter().copied().filter(is_new).collect();
    let having: HashSet<Id> = acronym::with_set(&new).into_iter().collect();
    known.extend(new.into_iter().map(|id| (id, Some(having.contains(&id)))));
    Ok(collections.iter().copied().filter(|id| known.get(id) == Some(&Some(true))).collect())
}

/// Those of the domains whose documents the caller may change.
pub(crate) fn writable(domains: &[Id]) -> Result<Vec<Id>> {
    let rights = current()?;
    Ok(domains.iter().copied().filter(|domain| rights.writable.binary_search(domain).is_ok()).collect())
}

/// Whether policies that an administrator has added may hide some rows of a domain from the caller, who sees it.
pub(crate) fn may_hide_rows() -> bool {
    collection::may_hide_rows() && !server::user_is_superuser()
}

/// What lists were made of.
#[derive(Default)]
struct Sources {
    /// Collections of domains, of which some columns count.
    collections: Vec<Id>,
    /// Policies and privileges of others' tables count, which nobody tells of.
    has_attached: bool,
}

impl Sources {
    /// What their rows are about, for the caller's principals, in order; `None` where that is not all.
    fn subjects(&self, principals: &[String]) -> Option<Vec<Subject>> {
        if self.has_attached {
            return None;
        }
        let principals = principals.iter().map(String::as_str).chain([PUBLIC]).map(writes::text);
        let collections = self.collections.iter().copied().map(writes::id);
        let mut subjects: Vec<Subject> = principals.chain(collections).collect();
        subjects.sort_unstable();
        subjects.dedup();
        Some(subjects)
    }
}

struct Domain {
    id: Id,
    collection: Id,
    owner: String,
    role: Oid,
}

struct Collection {
    id: Id,
    owner: String,
    role: Oid,
    is_shared: bool,
}

struct Grant {
    domain: Id,
    collection: Id,
    principal: String,
    role: Oid,
    privilege: String,
    is_for_writing: bool,
    is_shared: bool,
}

impl Grant {
    /// Whether it lets the caller read the domain: whoever may write into a shared one sees it.
    fn shows_domain(&self) -> bool {
        !self.is_for_writing || self.is_shared
    }

    fn key(&self) -> (Id, String, String) {
        (self.domain, self.principal.clone(), self.privilege.clone())
    }
}

/// The lists of the caller, who acts as these; where only a part of the tables is `shown`, those of that part.
fn find(principals: &[String], shown: Option<&Shown>) -> Result<(Rights, Sources)> {
    let mut visibility = Visibility::default();
    let (mut rights, mut sources) = (Rights::default(), Sources::default());
    // A gateway that speaks for nobody is not everybody either.
    if principals.is_empty() {
        return Ok((rights, sources));
    }
    let is_shown = |domain: &Domain| shown.is_none_or(|s| s.domains.contains(&domain.id));
    let mut grants = grants_to(principals);
    grants.retain(|g| shown.is_none_or(|s| s.grants.contains(&g.key())));
    let mut own_collections = Vec::new();
    for principal in principals {
        own_collections.extend(collections_of(principal));
        for domain in domains_of(principal).into_iter().filter(is_shown) {
            if is_attached(domain.id) {
                sources.has_attached = true;
                continue;
            }
            sources.collections.push(domain.collection);
            rights.readable.push(domain.id);
            rights.writable.push(domain.id);
            rights.granted.push(domain.id);
        }
    }
    let own_attached: Vec<Id> = own_collections.iter().map(|c| c.id).filter(|id| is_attached(*id)).collect();
    for collection in attach::candidates(&mut visibility, &own_attached) {
        sources.has_attached = true;
        rights.collections.push(collection);
        for domain in domains_in(collection).into_iter().filter(is_shown) {
            if attach::is_domain_readable(&mut visibility, collection, &domain.owner, domain.role)? {
                rights.readable.push(domain.id);
                rights.granted.push(domain.id);
            }
        }
    }
    for grant in &grants {
        rights.granted.push(grant.domain);
        rights.collections.push(grant.collection);
        sources.collections.push(grant.collection);
        if is_attached(grant.domain) {
            sources.has_attached = true;
            continue;
        }
        if grant.shows_domain() {
            rights.readable.push(grant.domain);
        }
        if grant.is_for_writing && grant.is_shared {
            rights.writable.push(grant.domain);
        }
    }
    own_collections.retain(|c: &Collection| shown.is_none_or(|s| s.collections.contains(&c.id)));
    rights.own_collections.extend(own_collections.iter().map(|c| c.id));
    rights.collections.extend(own_collections.iter().map(|c| c.id));
    let mut named = std::mem::take(&mut rights.collections);
    tidy(&mut named);
    for collection in named {
        sources.has_attached |= is_attached(collection);
        if !is_attached(collection) || attach::is_source_readable(&mut visibility, collection)? {
            rights.collections.push(collection);
        }
    }
    let future = future_domains(principals, &own_collections, &grants);
    rights.readable.extend(&future);
    rights.writable.extend(&future);
    for list in [
        &mut rights.readable,
        &mut rights.writable,
        &mut rights.collections,
        &mut rights.own_collections,
        &mut rights.granted,
    ] {
        tidy(list);
    }
    Ok((rights, sources))
}

fn tidy(ids: &mut Vec<Id>) {
    ids.sort_unstable();
    ids.dedup();
}

/// Domains that the caller's next insert would create. A row whose domain is made by the same statement must already
/// pass WITH CHECK and RETURNING, though the statement's snapshot is older than the domain.
fn future_domains(principals: &[String], own: &[Collection], grants: &[Grant]) -> Vec<Id> {
    let derived = |collection: Option<Id>, owner: &str| {
        Id::from_be_bytes(principal::derived_domain(collection.map(Id::to_be_bytes), owner))
    };
    let mut domains = Vec::new();
    for principal in principals {
        domains.push(derived(None, principal));
        // A collection of a role that the caller inherits: their documents there are their own.
        let inherited = own.iter().filter(|c| c.owner != *principal && !c.is_shared && !is_attached(c.id));
        domains.extend(inherited.map(|c| derived(Some(c.id), principal)));
        let open = grants.iter().filter(|g| g.is_for_writing && !g.is_shared && !is_attached(g.collection));
        domains.extend(open.map(|g| derived(Some(g.collection), principal)));
    }
    domains
}

fn id_of(row: &Row<'_>, column: &CStr) -> Option<Id> {
    row.get::<pgrx::Uuid>(column).map(id)
}

fn domain_of_row(row: &Row<'_>) -> Option<Domain> {
    // None: the collection was deleted, and nobody sees the domain any more.
    let collection = id_of(row, c"collection_id")?;
    Some(Domain {
        id: id_of(row, c"id")?,
        collection,
        owner: row.get(c"owner")?,
        role: row.get(c"owner_role")?,
    })
}

fn collection_of_row(row: &Row<'_>) -> Option<Collection> {
    Some(Collection {
        id: id_of(row, c"id")?,
        owner: row.get(c"owner")?,
        role: row.get(c"owner_role")?,
        is_shared: row.get(c"shared")?,
    })
}

fn domains_of(owner: &str) -> Vec<Domain> {
    let mut found = table::rows(c"domain", c"domain_owner", &Condition::Text(c"owner", owner), domain_of_row);
    found.retain(|d| principal::is_current(&d.owner, d.role));
    found
}

fn collections_of(owner: &str) -> Vec<Collection> {
    let condition = Condition::Text(c"owner", owner);
    let mut found =
        table::rows(c"collection", c"collection_owner_owner_role_name_key", &condition, collection_of_row);
    found.retain(|c| principal::is_current(&c.owner, c.role));
    found
}

fn domains_in(collection: Id) -> Vec<Domain> {
    let condition = Condition::Uuid(c"collection_id", collection.to_be_bytes());
    table::rows(c"domain", c"domain_collection_id_owner_owner_role_key", &condition, domain_of_row)
}

/// Grants to one of the principals, or to everybody.
fn grants_to(principals: &[String]) -> Vec<Grant> {
    let grant = |row: &Row<'_>| {
        let privilege: String = row.get(c"privilege")?;
        Some(Grant {
            domain: id_of(row, c"domain_id")?,
            collection: id_of(row, c"collection_id")?,
            principal: row.get(c"principal")?,
            role: row.get(c"principal_role").unwrap_or(Oid::INVALID),
            is_for_writing: privilege == "write",
            privilege,
            is_shared: row.get(c"shared")?,
        })
    };
    let mut found = Vec::new();
    for name in principals.iter().map(String::as_str).chain([PUBLIC]) {
        let condition = Condition::Text(c"principal", name);
        found.extend(table::rows(c"collection_grant", c"collection_grant_principal", &condition, grant));
    }
    found.retain(|g| g.principal == PUBLIC || principal::is_current(&g.principal, g.role));
    found
}

/// The principal that stands for everybody.
const PUBLIC: &str = "public";
