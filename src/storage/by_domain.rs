//! Ids by domain, for statements that look up many of many domains.

use super::{Id, uuids};
use crate::pg::spi;
use std::collections::BTreeMap;

/// Ids by the domain that they belong to. Of a list of domains beside a list of ids, an index is searched for all pairs before
/// Postgres 17; here each domain's ids are a part of one array, and the index is searched for those.
#[derive(Debug, Default)]
pub(crate) struct ByDomain(BTreeMap<Id, Vec<Id>>);

impl ByDomain {
    /// What [`args`](Self::args) are to a statement: one row of each domain, `h`, whose column `domain_id` is what the table's is
    /// to be equal to.
    pub(super) const EACH: &str = "unnest($1::uuid[], $2::int[], $3::int[]) h (domain_id, first, last)";
    /// What an id of that domain has to be equal to.
    pub(super) const AMONG: &str = "ANY (($4::uuid[])[h.first:h.last])";

    /// Arguments 1 to 4 of a statement with [`EACH`](Self::EACH).
    pub(super) fn args(&self) -> Vec<spi::Arg> {
        let (mut firsts, mut lasts) = (Vec::with_capacity(self.0.len()), Vec::with_capacity(self.0.len()));
        let mut before = 0;
        for ids in self.0.values() {
            firsts.push(before + 1);
            before += ids.len() as i32;
            lasts.push(before);
        }
        let ids = self.0.values().flatten().copied();
        vec![uuids(self.0.keys().copied()).into(), firsts.into(), lasts.into(), uuids(ids).into()]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ids, whatever their domain.
    pub(crate) fn into_ids(self) -> Vec<Id> {
        self.0.into_values().flatten().collect()
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
