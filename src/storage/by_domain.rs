//! Ids by domain, for statements that look up many of many domains.

use super::{Id, id, uuids};
use crate::error::Result;
use crate::pg::spi;
use std::collections::BTreeMap;

/// Ids by the domain that they belong to. Of a list of domains beside a list of ids, an index is searched for all pairs before
/// Postgres 17; here each domain's ids are a part of one array, and the index is searched for those.
#[derive(Debug, Default)]
pub(crate) struct ByDomain(BTreeMap<Id, Vec<Id>>);

impl ByDomain {
    /// Domain and id of the rows of a table whose domain and column are these, as far as the caller sees them.
    pub(super) fn rows(&self, table: &str, column: &str) -> Result<Vec<(Id, Id)>> {
        self.read("t.domain_id, t.id", table, column, |row| Ok((id(row.require(1)?), id(row.require(2)?))))
    }

    /// What a statement selects of the rows `t` of a table whose domain and column are these.
    pub(super) fn read<R>(
        &self,
        selected: &str,
        table: &str,
        column: &str,
        each: impl FnMut(&spi::Row) -> Result<R>,
    ) -> Result<Vec<R>> {
        let (mut firsts, mut lasts) = (Vec::with_capacity(self.0.len()), Vec::with_capacity(self.0.len()));
        let mut before = 0;
        for ids in self.0.values() {
            firsts.push(before + 1);
            before += ids.len() as i32;
            lasts.push(before);
        }
        spi::look_up(
            &format!(
                "SELECT {selected}
                 FROM unnest($1::uuid[], $2::int[], $3::int[]) h (domain_id, first, last)
                 JOIN rag.{table} t ON t.domain_id = h.domain_id AND t.{column} = ANY (($4::uuid[])[h.first:h.last])"
            ),
            vec![uuids(self.0.keys().copied()).into(), firsts.into(), lasts.into(), uuids(self.ids()).into()],
            each,
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().all(Vec::is_empty)
    }

    /// The ids, whatever their domain.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.0.values().flatten().copied()
    }

    /// Leaves out the ids that are not to be kept.
    pub(super) fn retain(&mut self, is_kept: impl Fn(Id) -> bool) {
        self.0.values_mut().for_each(|ids| ids.retain(|id| is_kept(*id)));
    }
}

/// Of domains, each with an id.
impl FromIterator<(Id, Id)> for ByDomain {
    fn from_iter<I: IntoIterator<Item = (Id, Id)>>(ids: I) -> Self {
        let mut by_domain = Self::default();
        for (domain, id) in ids {
            by_domain.0.entry(domain).or_default().push(id);
        }
        by_domain
    }
}
