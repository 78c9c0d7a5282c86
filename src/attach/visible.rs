//! Who sees a document of an attached table: whoever sees its row now, by the table's own policies and column
//! privileges, asked as themselves.
//!
//! A row that was changed since it was indexed is not that row any more: what was indexed is hidden until a worker
//! has caught up, so that a text never outlives the rights that came with it.

use super::candidates::{self, Candidate};
use super::origin;
use crate::config;
use crate::error::Result;
use crate::pg::{Oid, elevation, principal, server};
use crate::storage::Id;
use crate::storage::attached_row::{self, KnownRow};
use crate::storage::attachment;
use crate::storage::relation::{self, Rights};
use crate::storage::source::{SourceTable, Wanted, key_of_text};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What the caller may read of an attached domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing.
    Closed,
    /// All rows of the table.
    Open,
    /// Rows that policies of the table let through.
    ByRow,
}

thread_local! {
    /// What calls in progress name.
    static NAMED: RefCell<Vec<Rc<NamedBy>>> = const { RefCell::new(Vec::new()) };
    /// What calls in progress have asked for, the innermost last.
    static SEEN: RefCell<Vec<Rc<SeenBy>>> = const { RefCell::new(Vec::new()) };
}

/// Whose rights are asked for.
#[derive(PartialEq, Eq)]
struct Caller {
    role: Oid,
    principals: Vec<String>,
}

impl Caller {
    fn current() -> Result<Self> {
        Ok(Self { role: principal::current_user(), principals: principal::current_principals()? })
    }
}

/// Domains that somebody names.
struct NamedBy {
    caller: Caller,
    domains: Vec<Id>,
}

/// Domains that the caller names: while this lives, policies of their tables run for them, and for nobody else. A function
/// that runs with its definer's rights meanwhile has named nothing.
pub(crate) struct Named(Rc<NamedBy>);

impl Named {
    pub(crate) fn enter(domains: Vec<Id>) -> Result<Self> {
        let named = Rc::new(NamedBy { caller: Caller::current()?, domains });
        NAMED.with_borrow_mut(|all| all.push(Rc::clone(&named)));
        Ok(Self(named))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        NAMED.with_borrow_mut(|all| all.retain(|named| !Rc::ptr_eq(named, &self.0)));
    }
}

/// Whether the caller is one who names a domain.
fn is_named(domain: Id) -> Result<bool> {
    if NAMED.with_borrow(|all| all.iter().all(|named| !named.domains.contains(&domain))) {
        return Ok(false);
    }
    let caller = Caller::current()?;
    let is_meant = |named: &Rc<NamedBy>| named.caller == caller && named.domains.contains(&domain);
    Ok(NAMED.with_borrow(|all| all.iter().any(is_meant)))
}

/// Documents that a caller sees of tables with policies, by domain.
struct SeenBy {
    caller: Caller,
    documents: HashMap<Id, Rc<HashSet<Id>>>,
}

/// The rows that the caller sees, asked of the tables all at once: while this lives, policies ask none of them again.
/// So neither the tables' counters nor time tell which rows were tried, of which a hidden one may be the only one that
/// has what was looked for. It must not outlive its call: the next one may be told otherwise.
pub(crate) struct SeenRows(Rc<SeenBy>);

impl SeenRows {
    /// Domains must be named first, see [`Named`].
    pub(crate) fn enter(domains: &[Id]) -> Result<Self> {
        let mut documents = HashMap::new();
        for domain in domains {
            let mut guard = Guard::of(*domain)?;
            if guard.access == Access::ByRow {
                documents.insert(*domain, guard.all()?);
            }
        }
        let seen = Rc::new(SeenBy { caller: Caller::current()?, documents });
        SEEN.with_borrow_mut(|stack| stack.push(Rc::clone(&seen)));
        Ok(Self(seen))
    }
}

impl Drop for SeenRows {
    fn drop(&mut self) {
        SEEN.with_borrow_mut(|stack| stack.retain(|seen| !Rc::ptr_eq(seen, &self.0)));
    }
}

/// What a call in progress has found out for the same caller.
fn seen_rows(domain: Id) -> Result<Option<Rc<HashSet<Id>>>> {
    if SEEN.with_borrow(|stack| stack.iter().all(|seen| !seen.documents.contains_key(&domain))) {
        return Ok(None);
    }
    let caller = Caller::current()?;
    Ok(SEEN.with_borrow(|stack| {
        let mut of_caller = stack.iter().rev().filter(|seen| seen.caller == caller);
        of_caller.find_map(|seen| seen.documents.get(&domain).map(Rc::clone))
    }))
}

/// What the caller may read of each of these domains.
pub(crate) fn access(domains: &[Id]) -> Result<Vec<(Id, Access)>> {
    domains.iter().map(|domain| Ok((*domain, Guard::of(*domain)?.access))).collect()
}

/// The attached collections that the caller may know of, and others of tables of which they may read some columns; `own`
/// are those that they own.
pub(crate) fn candidates(visibility: &mut Visibility, own: &[Id]) -> Vec<Id> {
    let found = candidates::candidates(own);
    for Candidate { collection, source, is_own } in &found {
        if *is_own {
            let known =
                KnownCollection { source: *source, is_own: true, is_readable: false, has_owners: false };
            visibility.collections.insert(*collection, known);
        }
    }
    found.into_iter().map(|candidate| candidate.collection).collect()
}

/// Whether the caller may know of an attached collection.
pub(crate) fn is_source_readable(visibility: &mut Visibility, collection: Id) -> Result<bool> {
    let known = visibility.collection(collection)?;
    Ok(known.is_own || known.is_readable)
}

/// The table behind an attached collection that the caller may know of.
pub(crate) fn readable_source(visibility: &mut Visibility, collection: Id) -> Result<Option<Oid>> {
    let known = visibility.collection(collection)?;
    Ok(known.source.filter(|_| known.is_own || known.is_readable))
}

/// Whether the caller may know of a domain of an attached collection.
pub(crate) fn is_domain_readable(
    visibility: &mut Visibility,
    collection: Id,
    owner: &str,
    role: Oid,
) -> Result<bool> {
    let known = visibility.collection(collection)?;
    if known.is_own {
        return Ok(true);
    }
    if !known.is_readable {
        return Ok(false);
    }
    let is_his = || -> Result<bool> {
        Ok(principal::is_current(owner, role) && principal::current_principals()?.iter().any(|p| p == owner))
    };
    Ok(!known.has_owners || is_his()?)
}

/// What one execution of a statement has found out.
#[derive(Default)]
pub(crate) struct Visibility {
    collections: HashMap<Id, KnownCollection>,
    guards: HashMap<Id, Guard>,
}

#[derive(Clone, Copy)]
struct KnownCollection {
    source: Option<Oid>,
    is_own: bool,
    is_readable: bool,
    has_owners: bool,
}

impl Visibility {
    /// Whether the caller sees the row of a document.
    pub(crate) fn sees_document(&mut self, domain: Id, document: Id) -> Result<bool> {
        self.guard(domain)?.sees_document(document)
    }

    fn guard(&mut self, domain: Id) -> Result<&mut Guard> {
        use std::collections::hash_map::Entry;
        match self.guards.entry(domain) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(Guard::of(domain)?)),
        }
    }

    fn collection(&mut self, collection: Id) -> Result<KnownCollection> {
        if let Some(known) = self.collections.get(&collection) {
            return Ok(*known);
        }
        let known = elevation::with_safe_search_path(|| known_collection(collection))?;
        self.collections.insert(collection, known);
        Ok(known)
    }
}

fn known_collection(collection: Id) -> Result<KnownCollection> {
    let principals = principal::current_principals()?;
    let (attachment, is_own) = elevation::elevated(|| {
        Ok::<_, crate::error::Error>((
            attachment::of_collection(collection)?,
            attachment::owns(collection, &principals)?,
        ))
    })?;
    let has_owners = attachment.as_ref().is_some_and(|a| a.definition.has_owners());
    let source = attachment.as_ref().and_then(|a| a.source);
    let mut is_readable = false;
    if let Some(attachment) = attachment.filter(|_| !is_own)
        && let Some(found) = found(attachment.source, &attachment.origin, &attachment.definition)?
    {
        is_readable = relation::rights(found.relation.oid, &found.definition.read_columns())?.can_read;
    }
    Ok(KnownCollection { source, is_own, is_readable, has_owners })
}

/// The table with its columns, if it can still be read as it was attached.
fn found(
    table: Option<Oid>,
    known_origin: &str,
    definition: &attachment::Definition,
) -> Result<Option<SourceTable>> {
    let Some(table) = table else { return Ok(None) };
    let Some(relation) = relation::relation(table)? else { return Ok(None) };
    Ok(crate::storage::source::resolve(relation, definition, known_origin == origin(table))?.ok())
}

/// Probes of single rows after which it may be time for all of them.
const SINGLE_PROBES: usize = 32;

/// Rows that one probe of all costs as much as a probe of one.
const ROWS_PER_PROBE: usize = 16;

/// Rows asked for by one statement.
const PROBED_AT_ONCE: usize = 10_000;

/// A domain, for one caller.
struct Guard {
    domain: Id,
    access: Access,
    by_version: bool,
    source: Option<SourceTable>,
    probes: usize,
    documents: HashMap<Id, bool>,
    /// All documents that they see, once somebody has asked for all.
    all: Option<Rc<HashSet<Id>>>,
}

impl Guard {
    fn of(domain: Id) -> Result<Self> {
        let (access, by_version, source, all) = match seen_rows(domain)? {
            Some(seen) => (Access::ByRow, false, None, Some(seen)),
            None => {
                let (access, rights, source) = elevation::with_safe_search_path(|| Self::decide(domain))?;
                // The version says nothing where columns are as they were elsewhere.
                (access, rights.on_whole_table && source.is_some(), source, None)
            }
        };
        Ok(Self { domain, access, by_version, source, probes: 0, documents: HashMap::new(), all })
    }

    fn decide(domain: Id) -> Result<(Access, Rights, Option<SourceTable>)> {
        const NONE: Rights = Rights { can_read: false, on_whole_table: false, has_policies: true };
        let principals = principal::current_principals()?;
        let guarded = elevation::elevated(|| attachment::of_domain(domain, &principals))?;
        let Some(guarded) = guarded else { return Ok((Access::Closed, NONE, None)) };
        let everything = config::all_domains() && server::user_is_superuser();
        let is_named = is_named(domain)?;
        let is_trusted = everything || guarded.is_own || guarded.is_accepted || is_named;
        let must_own_table = guarded.is_own && !(everything || guarded.is_accepted || is_named);
        let is_his = everything
            || guarded.is_own
            || guarded.is_own_domain
            || !guarded.attachment.definition.has_owners();
        if !is_trusted || !is_his {
            return Ok((Access::Closed, NONE, None));
        }
        let attachment = &guarded.attachment;
        // Held until the transaction ends, as a query of the table would.
        let table = attachment.source.filter(|table| relation::lock(*table));
        let Some(source) = found(table, &attachment.origin, &attachment.definition)? else {
            return Ok((Access::Closed, NONE, None));
        };
        // A key of a hidden row that does not read as its column's new type would be shown by the error.
        if source.definition.key_types != attachment.definition.key_types {
            return Ok((Access::Closed, NONE, None));
        }
        // Who has passed a table on does not trust its new owner by that.
        if must_own_table && !relation::acts_as(source.relation.owner)? {
            return Ok((Access::Closed, NONE, None));
        }
        let mut rights = relation::rights(source.relation.oid, &source.definition.read_columns())?;
        rights.on_whole_table &= attachment.origin == origin(source.relation.oid);
        let access = match rights {
            Rights { can_read: false, .. } => Access::Closed,
            Rights { has_policies: true, .. } => Access::ByRow,
            _ => Access::Open,
        };
        Ok((access, rights, Some(source)))
    }

    fn sees_document(&mut self, document: Id) -> Result<bool> {
        if self.access == Access::Closed {
            return Ok(false);
        }
        if let Some(all) = &self.all {
            return Ok(all.contains(&document));
        }
        if let Some(known) = self.documents.get(&document) {
            return Ok(*known);
        }
        if self.is_worth_asking_for_all()? {
            return Ok(self.all()?.contains(&document));
        }
        let row = elevation::elevated(|| attached_row::of_document(self.domain, document))?;
        let sees = match row {
            Some(row) => !self.probe(&[row])?.is_empty(),
            None => false,
        };
        self.documents.insert(document, sees);
        Ok(sees)
    }

    fn is_worth_asking_for_all(&mut self) -> Result<bool> {
        self.probes += 1;
        if self.probes < SINGLE_PROBES || !self.probes.is_power_of_two() {
            return Ok(false);
        }
        let rows = (self.probes * ROWS_PER_PROBE) as i64;
        elevation::elevated(|| attached_row::at_most(self.domain, rows))
    }

    fn all(&mut self) -> Result<Rc<HashSet<Id>>> {
        if let Some(all) = &self.all {
            return Ok(Rc::clone(all));
        }
        let rows = elevation::elevated(|| attached_row::of_domain(self.domain))?;
        let mut seen = HashSet::new();
        for part in rows.chunks(PROBED_AT_ONCE) {
            seen.extend(self.probe(part)?);
        }
        Ok(Rc::clone(self.all.insert(Rc::new(seen))))
    }

    /// Those of the documents whose row the caller sees: a query of the table, as themselves.
    fn probe(&self, rows: &[KnownRow]) -> Result<Vec<Id>> {
        let Some(source) = &self.source else { return Ok(Vec::new()) };
        let width = source.definition.key.len();
        let wanted = rows
            .iter()
            .map(|row| {
                Ok(Wanted {
                    key: key_of_text(&row.key, width)?,
                    version: row.version.clone(),
                    sha256: row.sha256.clone(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let found = elevation::with_callers_search_path(|| {
            elevation::restricted(|| source.visible(&wanted, self.by_version))
        })?;
        Ok(found.into_iter().map(|index| rows[index].document).collect())
    }
}
