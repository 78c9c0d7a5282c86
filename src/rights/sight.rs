//! What a policy's function knows between the rows of one execution of a statement.

use super::Rights;
use crate::attach::Visibility;
use crate::error::Result;
use crate::pg::circumstances::Circumstances;
use crate::storage::{Id, is_attached};
use std::rc::Rc;

/// The caller's lists, and what was found out about rows of attached tables.
#[derive(Default)]
pub(crate) struct Sight {
    found: Option<(Circumstances, Rc<Rights>)>,
    visibility: Visibility,
}

impl Sight {
    /// Of whoever asks now: a cursor may be read on after SET ROLE.
    pub(crate) fn rights(&mut self) -> Result<&Rights> {
        let is_other = self.found.as_ref().is_some_and(|(found_under, _)| !found_under.is_same_role());
        if is_other {
            *self = Self::default();
        }
        if self.found.is_none() {
            self.found = Some((Circumstances::now(), super::current()?));
        }
        match &self.found {
            Some((_, rights)) => Ok(rights),
            None => Err(crate::error::Error::internal("the caller's rights are unknown")),
        }
    }

    /// Whether the caller sees rows of this domain, the same for all of them.
    pub(crate) fn sees_domain(&mut self, domain: Id) -> Result<bool> {
        Ok(self.rights()?.readable.binary_search(&domain).is_ok())
    }

    /// Whether he sees this document. Of an attached table: whether he sees its row now, unchanged.
    pub(crate) fn sees_document(&mut self, domain: Id, document: Id) -> Result<bool> {
        if !self.sees_domain(domain)? {
            return Ok(false);
        }
        if is_attached(domain) { self.visibility.sees_document(domain, document) } else { Ok(true) }
    }
}
