//! The caller's lists from one question to the next: for one statement under all circumstances, and beyond it for as long as
//! nobody has written what they were made of.

use super::{Rights, Sources};
use crate::error::Result;
use crate::pg::circumstances::{Circumstances, Session};
use crate::pg::principal;
use crate::pg::write_log::{Subject, View};
use crate::pg::writes;
use crate::storage::collection::VisibleDomain;
use crate::storage::{IdMap, installed};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// What was found.
pub(super) struct Found {
    pub(super) rights: Rc<Rights>,
    /// What makes it last beyond the statement.
    basis: Option<Basis>,
    /// The domains behind the list, once somebody has asked for them; only where it lasts.
    pub(super) domains: OnceCell<Rc<[Rc<VisibleDomain>]>>,
    /// Of each collection of these domains whether acronyms were given for it, as far as somebody has asked.
    pub(super) with_acronyms: OnceCell<RefCell<IdMap<Option<bool>>>>,
}

impl Found {
    /// Whether it may outlive the statement.
    pub(super) fn lasts(&self) -> bool {
        self.basis.is_some()
    }
}

/// Whose lists they are, and what they were made of.
struct Basis {
    session: Session,
    principals: Vec<String>,
    subjects: Vec<Subject>,
}

struct Kept {
    found_under: Circumstances,
    /// The last snapshot under which they were found to be right.
    view: Option<View>,
    found: Rc<Found>,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// What is known of the caller in this statement.
pub(super) fn of_statement() -> Option<Rc<Found>> {
    of(&Circumstances::now())
}

/// What is known of the caller, or else what `find` finds for their principals.
pub(super) fn get_or(find: impl FnOnce(&[String]) -> Result<(Rights, Sources)>) -> Result<Rc<Found>> {
    let now = Circumstances::now();
    if let Some(found) = of(&now) {
        return Ok(found);
    }
    let principals = principal::current_principals()?;
    // Of the snapshot under which everything is read.
    let view = installed::writes_are_noted().then(writes::view).flatten();
    let Some(view) = view else { return Ok(keep(now, None, find(&principals)?.0, None)) };
    let session = now.session();
    if let Some(kept) = KEPT.take().filter(|kept| kept.holds_for(&session, &principals, &view)) {
        let found = Rc::clone(&kept.found);
        KEPT.set(Some(Kept { found_under: now, view: Some(view), ..kept }));
        return Ok(found);
    }
    let (rights, sources) = find(&principals)?;
    let basis = sources.subjects(&principals).map(|subjects| Basis { session, principals, subjects });
    Ok(keep(now, Some(view), rights, basis))
}

/// Keeps what was found for this statement alone.
pub(super) fn keep_for_statement(rights: Rights) {
    keep(Circumstances::now(), None, rights, None);
}

/// Has the next call find everything anew.
pub(super) fn forget() {
    KEPT.set(None);
}

fn of(now: &Circumstances) -> Option<Rc<Found>> {
    KEPT.with_borrow(|kept| {
        kept.as_ref().filter(|kept| kept.found_under == *now).map(|kept| Rc::clone(&kept.found))
    })
}

fn keep(found_under: Circumstances, view: Option<View>, rights: Rights, basis: Option<Basis>) -> Rc<Found> {
    let found = Rc::new(Found {
        rights: Rc::new(rights),
        basis,
        domains: OnceCell::new(),
        with_acronyms: OnceCell::new(),
    });
    KEPT.set(Some(Kept { found_under, view, found: Rc::clone(&found) }));
    found
}

impl Kept {
    /// Whether the caller is the same, and nobody has written what was read, between that snapshot and this one.
    fn holds_for(&self, session: &Session, principals: &[String], now: &View) -> bool {
        let (Some(then), Some(basis)) = (&self.view, &self.found.basis) else { return false };
        basis.session == *session
            && basis.principals == principals
            && writes::is_same(&basis.subjects, then, now)
    }
}
