//! Rows that are looked up by their ids, and are to be of some domains.

use super::{Id, uuid};
use crate::pg::spi;
use pgrx::Uuid;
use std::borrow::Cow;

/// The domains.
///
/// One is named to the statement: then its rows are found where they lie together, in an index that begins with the domain,
/// however many rows of others there are. Several are not, for the statement would go through a list of thousands for each row:
/// it gives each row's domain, and whether it is one of them is told here.
pub(super) struct Among<'a>(Cow<'a, [Id]>);

impl<'a> Among<'a> {
    pub(super) fn new(domains: &'a [Id]) -> Self {
        let mut domains = Cow::Borrowed(domains);
        if !domains.is_sorted() {
            domains.to_mut().sort_unstable();
        }
        Self(domains)
    }

    /// What the statement asks of a row, whose domain is this column.
    pub(super) fn condition(&self, column: &str) -> String {
        match self.sole() {
            Some(_) => format!("{column} = $1"),
            None => "$1 IS NULL".to_owned(),
        }
    }

    /// The argument `$1` of [`Self::condition`].
    pub(super) fn argument(&self) -> spi::Arg {
        self.sole().map(uuid).into()
    }

    /// Whether a row's domain is one of them.
    pub(super) fn has(&self, domain: Uuid) -> bool {
        self.sole().is_some() || self.0.binary_search(&super::id(domain)).is_ok()
    }

    fn sole(&self) -> Option<Id> {
        match *self.0 {
            [domain] => Some(domain),
            _ => None,
        }
    }
}
