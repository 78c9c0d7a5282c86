//! Rows of some domains, and how a statement says so.

use super::{Id, id, uuid, uuids};
use crate::error::Result;
use crate::pg::explain::may_read_all_statistics;
use crate::pg::{planner, principal, spi};
use pgrx::Uuid;
use std::borrow::Cow;

/// Longest statement, in bytes, whose plan is kept: applications have a few short filters, whatever their values are.
const KEPT_LENGTH: usize = 1500;

/// The domains.
pub(super) enum Among<'a> {
    /// Named to the statement: its rows are found where they lie together, in an index that begins with the domain, however many
    /// rows of others there are.
    One(Id),
    /// Listed for the statement, which goes through them for each id that is looked up.
    Listed(&'a [Id]),
    /// In order. The statement gives each row's domain, and whether it is one of them is told here: thousands take no longer
    /// than some.
    Told(Cow<'a, [Id]>),
}

impl<'a> Among<'a> {
    /// For a statement that lists rows by their domains.
    pub(super) fn named(domains: &'a [Id]) -> Self {
        match *domains {
            [domain] => Self::One(domain),
            _ => Self::Listed(domains),
        }
    }

    /// For [`Self::look_up`].
    pub(super) fn looked_up(domains: &'a [Id]) -> Self {
        // Whoever is told what an index is searched for is not to learn of rows by their ids, see src/pg/planner.rs; without the
        // list all rows that they see would be gone over.
        if domains.len() == 1 || principal::is_held_to_policies() && may_read_all_statistics() {
            return Self::named(domains);
        }
        let mut domains = Cow::Borrowed(domains);
        if !domains.is_sorted() {
            domains.to_mut().sort_unstable();
        }
        Self::Told(domains)
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

    /// Looks rows up by their ids: what `read` makes of those of the domains. The statement asks [`Self::condition`], and its
    /// first column is the row's domain; `args` are those from `$2` on.
    pub(super) fn look_up<R>(
        &self,
        sql: &str,
        args: impl IntoIterator<Item = spi::Arg>,
        mut read: impl FnMut(&spi::Row) -> Result<R>,
    ) -> Result<Vec<R>> {
        let args = std::iter::once(self.argument()).chain(args).collect();
        let read = |row: &spi::Row| match self.has(row.require(1)?) {
            true => read(row).map(Some),
            false => Ok(None),
        };
        Ok(look_up(sql, args, read)?.into_iter().flatten().collect())
    }

    fn has(&self, domain: Uuid) -> bool {
        match self {
            Self::One(one) => id(domain) == *one,
            Self::Listed(_) => true,
            Self::Told(domains) => domains.binary_search(&id(domain)).is_ok(),
        }
    }
}

/// Looks rows up, one after the other by index, by a statement that is put together by a caller's wishes.
pub(super) fn look_up<R>(
    sql: &str,
    args: Vec<spi::Arg>,
    read: impl FnMut(&spi::Row) -> Result<R>,
) -> Result<Vec<R>> {
    match sql.len() {
        ..=KEPT_LENGTH => spi::look_up(sql, args, read),
        _ => planner::by_index(|| spi::read_snapshot_once(sql, args, read)),
    }
}
