//! What a policy's function knows between the rows of one execution of a statement.

use super::Rights;
use crate::attach::Visibility;
use crate::error::Result;
use crate::storage::{Id, is_attached};
use std::rc::Rc;

/// The caller's lists, and what was found out about rows of attached tables.
#[derive(Default)]
pub(crate) struct Sight {
    rights: Option<Rc<Rights>>,
    visibility: Visibility,
}

impl Sight {
    /// Found out by the first row.
    pub(crate) fn rights(&mut self) -> Result<Rc<Rights>> {
        match &self.rights {
            Some(rights) => Ok(Rc::clone(rights)),
            None => Ok(Rc::clone(self.rights.insert(super::current()?))),
        }
    }

    /// Whether the caller sees this document. Of an attached table: whether he sees its row now, unchanged.
    pub(crate) fn sees_document(&mut self, domain: Id, document: Id) -> Result<bool> {
        if self.rights()?.readable.binary_search(&domain).is_err() {
            return Ok(false);
        }
        if is_attached(domain) { self.visibility.sees_document(domain, document) } else { Ok(true) }
    }
}
