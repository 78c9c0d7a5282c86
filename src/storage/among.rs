//! Rows that are looked up by their ids, and are to be of some domains.

use super::{Id, id, uuid, uuids};
use crate::pg::explain::may_read_all_statistics;
use crate::pg::{principal, spi};
use pgrx::Uuid;
use std::borrow::Cow;

/// The domains.
pub(super) enum Among<'a> {
    /// Named to the statement: its rows are found where they lie together, in an index that begins with the domain, however many
    /// rows of others there are.
    One(Id),
    /// Listed for the statement, which goes through them for each id.
    Listed(&'a [Id]),
    /// In order. The statement gives each row's domain, and whether it is one of them is told here: thousands take no longer
    /// than some.
    Told(Cow<'a, [Id]>),
}

impl<'a> Among<'a> {
    pub(super) fn new(domains: &'a [Id]) -> Self {
        match *domains {
            [domain] => Self::One(domain),
            // Whoever is told what an index is searched for is not to learn of rows by their ids, see src/pg/planner.rs; without
            // the list all rows that they see would be gone over.
            _ if principal::is_held_to_policies() && may_read_all_statistics() => Self::Listed(domains),
            _ if domains.is_sorted() => Self::Told(Cow::Borrowed(domains)),
            _ => {
                let mut domains = domains.to_vec();
                domains.sort_unstable();
                Self::Told(Cow::Owned(domains))
            }
        }
    }

    /// What the statement asks of a row, whose domain is this column.
    pub(super) fn condition(&self, column: &str) -> String {
        match self {
            Self::One(_) => format!("{column} = $1"),
            Self::Listed(_) => format!("{column} = ANY ($1)"),
            Self::Told(_) => "$1 IS NULL".to_owned(),
        }
    }

    /// The argument `$1` of [`Self::condition`].
    pub(super) fn argument(&self) -> spi::Arg {
        match self {
            Self::One(domain) => uuid(*domain).into(),
            Self::Listed(domains) => uuids(domains.iter().copied()).into(),
            Self::Told(_) => None::<Uuid>.into(),
        }
    }

    /// Whether the domain of a row that the statement gives is one of them.
    pub(super) fn has(&self, domain: Uuid) -> bool {
        match self {
            Self::One(one) => id(domain) == *one,
            Self::Listed(_) => true,
            Self::Told(domains) => domains.binary_search(&id(domain)).is_ok(),
        }
    }
}
