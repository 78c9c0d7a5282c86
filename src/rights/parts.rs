//! What was made of a document is seen with it, also where policies that an administrator has added hide the document
//! alone.

use crate::error::Result;
use crate::pg::elevation;
use crate::storage::{Id, collection, document};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// Documents of a domain that are asked about one by one; then all of the domain's are.
const ONE_BY_ONE: usize = 32;

thread_local! {
    /// While documents are asked about: how deep in code of others that was begun.
    static ASKED_AT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Which documents the caller is shown, as far as was asked in one execution of a statement.
#[derive(Default)]
pub(super) struct ShownDocuments {
    may_be_hidden: Option<bool>,
    domains: HashMap<Id, Known>,
}

#[derive(Default)]
struct Known {
    asked: HashMap<Id, bool>,
    all: Option<HashSet<Id>>,
}

impl ShownDocuments {
    /// Whether added policies show a document of a domain that the caller sees.
    pub(super) fn contains(&mut self, domain: Id, document: Id) -> Result<bool> {
        let may_be_hidden = *self.may_be_hidden.get_or_insert_with(collection::may_hide_documents);
        // An added policy that reads what was made of documents must not depend on itself. What policies of attached
        // tables read meanwhile is their owners' doing.
        if !may_be_hidden || ASKED_AT.get() == Some(elevation::restrictions()) {
            return Ok(true);
        }
        let known = self.domains.entry(domain).or_default();
        if let Some(all) = &known.all {
            return Ok(all.contains(&document));
        }
        if let Some(is_shown) = known.asked.get(&document) {
            return Ok(*is_shown);
        }
        let _asking = Asking::begin();
        if known.asked.len() == ONE_BY_ONE {
            let all = document::visible_of_domain(domain)?.into_iter().collect::<HashSet<Id>>();
            return Ok(known.all.insert(all).contains(&document));
        }
        let is_shown = document::is_visible(domain, document)?;
        known.asked.insert(document, is_shown);
        Ok(is_shown)
    }
}

/// While documents are asked about, also if that fails; then it is as it was before.
struct Asking {
    before: Option<usize>,
}

impl Asking {
    fn begin() -> Self {
        Self { before: ASKED_AT.replace(Some(elevation::restrictions())) }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKED_AT.set(self.before);
    }
}
