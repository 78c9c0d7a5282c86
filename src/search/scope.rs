//! Where a search looks: the domains behind a collection's name, or all that are the caller's.

use crate::attach::{Named, SeenRows};
use crate::collection::name::{DEFAULT_COLLECTION, choose, missing_among, split_name};
use crate::config;
use crate::engine::LocalOnly;
use crate::error::Result;
use crate::pg::{principal, server, transaction};
use crate::rights;
use crate::storage::collection::{self, VisibleDomain};
use crate::storage::segment::{self, SegmentHeader};
use crate::storage::{Id, added_policy, chunk, is_attached};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Domains to search, all visible to the caller.
pub(crate) struct Scope {
    /// In the order of their ids.
    domains: Vec<Rc<VisibleDomain>>,
    may_hide_rows: bool,
    /// The caller has named the collection that they are in.
    is_named: bool,
    /// Once they were asked for.
    segments: OnceCell<Vec<SegmentHeader>>,
    in_force: InForce,
}

/// What a scope has hold while a call runs.
#[derive(Default)]
pub(crate) struct InForce {
    /// While this lives, the rows that the caller sees of attached tables are known.
    seen: Option<SeenRows>,
    /// While this lives, the caller has named the domains.
    _named: Option<Named>,
    /// While this lives, the documents' text stays on this machine: a collection of the scope wants it so.
    _local_only: Option<LocalOnly>,
}

impl Scope {
    /// Domains of the named collection (see [`choose`]), or of the caller's own and accepted ones.
    ///
    /// 42704: no such collection, or none that the caller may see. 55000: see [`added_policy::require_recorded`].
    pub(crate) fn resolve(name: Option<&str>) -> Result<Self> {
        added_policy::require_recorded()?;
        let everything = config::all_domains() && server::user_is_superuser();
        let Some(name) = name else {
            let mut domains = rights::visible_domains(everything, None)?;
            // That somebody says of their rows that they are the caller's is no reason to run their policies.
            let is_own = |d: &VisibleDomain| d.is_own || d.is_own_domain && !is_attached(d.id);
            domains.retain(|d| everything || is_own(d) || d.is_accepted);
            return Self::with(domains, false);
        };
        let (owner, bare) = split_name(name)?;
        let mut domains = rights::visible_domains(everything, Some(bare))?;
        domains.retain(|d| owner.is_none_or(|o| *d.collection_owner == *o));
        if everything && !domains.is_empty() {
            return Self::with(domains, true);
        }
        let candidates = collection::named(bare, owner)?;
        let Some(chosen) = choose(&candidates, owner, name)? else {
            let mine = principal::current_principals()?;
            let is_default = bare == DEFAULT_COLLECTION && owner.is_none_or(|o| mine.iter().any(|p| p == o));
            return if is_default {
                Self::with(Vec::new(), true)
            } else {
                Err(missing_among(&candidates, name))
            };
        };
        domains.retain(|d| d.collection_id == chosen.id);
        Self::with(domains, true)
    }

    /// As [`Self::resolve`], for whoever is about to look at what stands in the rows: those that the caller sees are found
    /// out first, whatever is looked for.
    pub(crate) fn to_read(name: Option<&str>) -> Result<Self> {
        let mut scope = Self::resolve(name)?;
        let mut attached = scope.ids();
        attached.retain(|id| is_attached(*id));
        if !attached.is_empty() {
            scope.in_force.seen = Some(SeenRows::enter(&attached)?);
        }
        Ok(scope)
    }

    fn with(mut domains: Vec<Rc<VisibleDomain>>, is_named: bool) -> Result<Self> {
        domains.sort_unstable_by_key(|d| d.id);
        let mut scope = Self {
            domains,
            may_hide_rows: rights::may_hide_rows(),
            is_named,
            segments: OnceCell::new(),
            in_force: InForce::default(),
        };
        scope.in_force = scope.in_force()?;
        Ok(scope)
    }

    /// Ends what holds while a call runs: for a scope that is kept until the next one of the same statement, between which
    /// others run.
    pub(crate) fn suspend(&mut self) {
        self.in_force = InForce::default();
    }

    /// For one more call with a scope that was kept: has the caller name the domains, and the text stay where it is to.
    pub(crate) fn in_force(&self) -> Result<InForce> {
        let mut named = if self.is_named { self.ids() } else { Vec::new() };
        named.retain(|id| is_attached(*id));
        Ok(InForce {
            seen: None,
            _named: (!named.is_empty()).then(|| Named::enter(named)).transpose()?,
            _local_only: self.is_local_only().then(LocalOnly::enter),
        })
    }

    /// Attached collections among those of the domains: the caller's own, or those of others.
    pub(crate) fn attached_collections(&self, own: bool) -> Vec<Id> {
        let attached = self.domains.iter().filter(|d| is_attached(d.id) && d.is_own == own);
        let mut ids: Vec<Id> = attached.map(|d| d.collection_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Ids of the domains that are in none of these collections.
    pub(crate) fn ids_outside(&self, collections: &[Id]) -> Vec<Id> {
        let others = self.domains.iter().filter(|d| !collections.contains(&d.collection_id));
        others.map(|d| d.id).collect()
    }

    /// Domains all of whose rows are the caller's to see: their own, and those of tables that they attached. All of them
    /// for a superuser with `rag_ext.all_domains`.
    pub(crate) fn own_domains(&self) -> Vec<&VisibleDomain> {
        let everything = config::all_domains() && server::user_is_superuser();
        let is_own = |d: &&VisibleDomain| if is_attached(d.id) { d.is_own } else { d.is_own_domain };
        self.domains.iter().map(Rc::as_ref).filter(|d| everything || is_own(d)).collect()
    }

    /// Whether somebody who sees a domain may not see all of its rows: policies that an administrator has added.
    pub(crate) fn may_hide_rows(&self) -> bool {
        self.may_hide_rows
    }

    /// Whether all rows of the domains are the caller's to see, with nothing to be asked of each.
    pub(crate) fn is_whole(&self) -> bool {
        !self.may_hide_rows && !self.domains.iter().any(|d| is_attached(d.id))
    }

    /// Segments of the domains that are read as they are: none of attached tables, and none at all where rows may be hidden.
    /// Listed once, for a call has one snapshot. A page that cannot be read is damage.
    pub(crate) fn segments(&self) -> Result<&[SegmentHeader]> {
        if let Some(segments) = self.segments.get() {
            return Ok(segments);
        }
        let mut whole = if self.may_hide_rows { Vec::new() } else { self.ids() };
        whole.retain(|id| !is_attached(*id));
        let listed = transaction::attempt(|| segment::list(&whole))?;
        Ok(self.segments.get_or_init(|| listed))
    }

    /// Segments of some of the domains, whatever the caller sees of their rows. Elevated.
    pub(crate) fn segments_of(&self, domains: &[Id]) -> Result<Vec<SegmentHeader>> {
        if self.may_hide_rows || domains.iter().any(|id| is_attached(*id)) {
            return segment::list(domains);
        }
        let domains: HashSet<&Id> = domains.iter().collect();
        let of_them = self.segments()?.iter().filter(|header| domains.contains(&header.blob.domain));
        Ok(of_them.cloned().collect())
    }

    /// Those of the chunks that the caller sees.
    pub(crate) fn visible(&self, chunks: &[Id]) -> Result<HashSet<Id>> {
        let domains = self.ids();
        let visible = match self.may_hide_rows {
            true => chunk::showable(&domains, chunks)?,
            false => chunk::existing(&domains, chunks)?,
        };
        Ok(visible.into_iter().collect())
    }

    /// Whether a collection among them keeps its text on this machine.
    pub(crate) fn is_local_only(&self) -> bool {
        self.domains.iter().any(|d| !d.allows_remote)
    }

    /// Ids of the domains.
    pub(crate) fn ids(&self) -> Vec<Id> {
        self.domains.iter().map(|d| d.id).collect()
    }

    /// Ids of the collections that they are in.
    pub(crate) fn collections(&self) -> Vec<Id> {
        let mut ids: Vec<Id> = self.domains.iter().map(|d| d.collection_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The collection that all the domains are in, if it is one.
    pub(crate) fn sole_collection(&self) -> Option<Id> {
        match self.collections()[..] {
            [sole] => Some(sole),
            _ => None,
        }
    }

    /// Ids of the domains by embedding model.
    pub(crate) fn by_model(&self) -> Vec<(&str, Vec<Id>)> {
        let mut groups: Vec<(&str, Vec<Id>)> = Vec::new();
        for domain in &self.domains {
            match groups.iter_mut().find(|(model, _)| *model == &*domain.model) {
                Some((_, ids)) => ids.push(domain.id),
                None => groups.push((&domain.model, vec![domain.id])),
            }
        }
        groups
    }

    /// Embedding model and language of each domain.
    pub(crate) fn languages_by_model(&self) -> impl Iterator<Item = (&str, &str)> {
        self.domains.iter().map(|d| (&*d.model, &*d.language))
    }

    /// The name of a domain's collection, as the caller would write it.
    pub(crate) fn name(&self, domain: Id) -> Option<String> {
        let domain = self.domain(domain)?;
        Some(match domain.is_own {
            true => domain.collection.to_string(),
            false => format!("{}/{}", domain.collection_owner, domain.collection),
        })
    }

    fn domain(&self, id: Id) -> Option<&VisibleDomain> {
        let place = self.domains.binary_search_by_key(&id, |d| d.id).ok()?;
        self.domains.get(place).map(Rc::as_ref)
    }

    /// What feedback counts for by domain, where it counts: as a call says, or else the collections.
    pub(crate) fn feedback_boosts(&self, of_call: Option<f64>) -> HashMap<Id, f64> {
        let boosts = self.domains.iter().map(|d| (d.id, of_call.unwrap_or(d.feedback_boost)));
        boosts.filter(|(_, boost)| *boost > 0.0).collect()
    }

    /// Languages of the keyword analyser, each once.
    pub(crate) fn languages(&self) -> BTreeSet<&str> {
        self.domains.iter().map(|d| &*d.language).collect()
    }

    /// The language of a domain's keyword analyser.
    pub(crate) fn language(&self, domain: Id) -> &str {
        self.domain(domain).map_or("simple", |d| &d.language)
    }
}
