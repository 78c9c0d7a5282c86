//! What a policy's function knows between the rows of one execution of a statement.

use super::Rights;
use super::parts::ShownDocuments;
use crate::attach::Visibility;
use crate::error::Result;
use crate::storage::{Id, collection, is_attached};
use std::rc::Rc;

/// The caller's lists, and what was found out about rows of attached tables.
#[derive(Default)]
pub(crate) struct Sight {
    rights: Option<Rc<Rights>>,
    visibility: Visibility,
    shown: ShownDocuments,
    may_hide_rows: Option<bool>,
}

impl Sight {
    /// Found out by the first row.
    pub(crate) fn rights(&mut self) -> Result<Rc<Rights>> {
        match &self.rights {
            Some(rights) => Ok(Rc::clone(rights)),
            None => Ok(Rc::clone(self.rights.insert(super::current()?))),
        }
    }

    /// Whether the caller sees this document. Of an attached table: whether they see its row now, unchanged.
    pub(crate) fn sees_document(&mut self, domain: Id, document: Id) -> Result<bool> {
        if self.rights()?.readable.binary_search(&domain).is_err() {
            return Ok(false);
        }
        if is_attached(domain) { self.visibility.sees_document(domain, document) } else { Ok(true) }
    }

    /// Whether the caller sees what was made of this document: they see the document, and no added policy hides it.
    pub(crate) fn sees_part(&mut self, domain: Id, document: Id) -> Result<bool> {
        Ok(self.sees_document(domain, document)? && self.shown.contains(domain, document)?)
    }

    /// Whether the caller sees all rows of this domain, so that what was made of all of them is theirs to see.
    pub(crate) fn sees_whole(&mut self, domain: Id) -> Result<bool> {
        let is_readable = self.rights()?.readable.binary_search(&domain).is_ok();
        Ok(is_readable && !*self.may_hide_rows.get_or_insert_with(collection::may_hide_rows))
    }
}
