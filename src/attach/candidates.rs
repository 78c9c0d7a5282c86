//! Which attached collections are worth a look: of all that there are, those that the caller owns, and those of tables of
//! which they may read something.
//!
//! A database may have thousands of them, and every statement asks. So privileges are kept until the catalogs tell of a
//! change, and the others cost a row of an index scan each.

use crate::pg::circumstances::catalog_changes;
use crate::pg::table::{self, Condition};
use crate::pg::{Oid, principal, relation};
use crate::storage::{FIRST_ATTACHED, Id, id};
use std::cell::RefCell;
use std::collections::HashMap;

/// An attached collection with its table, which may be gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) collection: Id,
    pub(super) source: Option<Oid>,
    pub(super) is_own: bool,
}

/// The candidates; `own` are the attached collections that the caller owns.
pub(super) fn candidates(own: &[Id]) -> Vec<Candidate> {
    let mut sources: HashMap<Id, Option<Oid>> = own.iter().map(|collection| (*collection, None)).collect();
    let condition = Condition::UuidFrom(c"collection_id", FIRST_ATTACHED.to_be_bytes());
    let mut privileges = Privileges::current();
    let mut found = table::rows(c"attachment", c"attachment_pkey", &condition, |row| {
        let collection = id(row.get::<pgrx::Uuid>(c"collection_id")?);
        let source = row.get::<Oid>(c"source");
        if let Some(of_own) = sources.get_mut(&collection) {
            *of_own = source;
            return None;
        }
        let is_worth_it = source.is_some_and(|table| privileges.may_select_something(table));
        is_worth_it.then_some(Candidate { collection, source, is_own: false })
    });
    privileges.keep();
    found.extend(sources.into_iter().map(|(collection, source)| Candidate {
        collection,
        source,
        is_own: true,
    }));
    found
}

thread_local! {
    static KEPT: RefCell<Option<Privileges>> = const { RefCell::new(None) };
}

/// Of which tables a user may read something, as the catalogs were.
struct Privileges {
    user: Oid,
    catalog_changes: u64,
    tables: HashMap<Oid, bool>,
}

impl Privileges {
    fn current() -> Self {
        let (user, catalog_changes) = (principal::current_user(), catalog_changes());
        let kept = KEPT.take().filter(|kept| (kept.user, kept.catalog_changes) == (user, catalog_changes));
        kept.unwrap_or_else(|| Self { user, catalog_changes, tables: HashMap::new() })
    }

    fn may_select_something(&mut self, table: Oid) -> bool {
        *self.tables.entry(table).or_insert_with(|| relation::may_select_something(table))
    }

    fn keep(self) {
        KEPT.set(Some(self));
    }
}
