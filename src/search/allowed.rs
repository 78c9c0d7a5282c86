//! What a filter lets through: listed where that is little, and looked up for what is found where it is much.

use super::scope::Scope;
use crate::config;
use crate::error::Result;
use crate::storage::{ByDomain, Id, IdMap, chunk, document, metadata};
use rag_core::filter::Filter;
use rag_core::selectivity::{self, Asked};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;

/// Places among the chunks of a scope where samples are taken.
const SAMPLED_PLACES: usize = 8;

/// Samples that are taken: how many chunks of each place. The second one where fewer than one of [`SELDOM`] of the first are let
/// through, the third where these leave open what is quicker.
const SAMPLES: [usize; 3] = [8, 24, 32];
const SELDOM: usize = 10;

/// Documents are taken to have so many chunks each when it is about how many of them an index is to count.
const CHUNKS_OF_COUNTED: usize = 4;

/// Most documents that an index is to count.
const MOST_COUNTED: usize = 1_000;

/// Documents that a filter lets through, with their chunks, so that it takes nothing from the best hits.
#[derive(Default)]
pub(crate) struct Allowed<'a> {
    /// Without one there is a list.
    filter: Option<&'a Filter>,
    domains: Vec<Id>,
    may_hide_rows: bool,
    /// Chunks of the domains, about.
    size: usize,
    /// Hits that each retriever is to find, about.
    wanted: usize,
    /// How many retrievers there are.
    retrievers: usize,
    listed: OnceCell<Listed>,
    /// Chunks of the domains that were asked about to know how many are let through.
    sample: Asked,
    /// Chunks and documents that a retriever has found and that were asked about.
    hits: Cell<Asked>,
}

/// All of them.
pub(crate) struct Listed {
    pub(crate) documents: Vec<Id>,
    /// Each with its domain.
    pub(crate) chunks: IdMap<Id>,
}

impl<'a> Allowed<'a> {
    /// Lists what the filter lets through of domains with so many chunks, if these are few, or if it is likely to be quicker
    /// than asking about what is found until so many hits of so many retrievers have been let through.
    pub(super) fn open(
        scope: &Scope,
        filter: &'a Filter,
        sizes: &[(Id, usize)],
        (wanted, retrievers): (usize, usize),
    ) -> Result<Self> {
        let mut allowed = Self {
            filter: Some(filter),
            domains: scope.ids(),
            may_hide_rows: scope.may_hide_rows(),
            size: sizes.iter().map(|(_, size)| size).sum(),
            wanted,
            retrievers,
            ..Self::default()
        };
        if allowed.size <= config::filter_list_limit() {
            allowed.list()?;
        // Where each row is asked about, those that are hidden would be gone over and not counted.
        } else if may_list() && !(scope.is_whole() && allowed.estimate_few(filter)?) {
            allowed.sample = allowed.ask_some(filter, sizes, 0)?;
            if allowed.sample.passed * SELDOM < allowed.sample.of {
                allowed.sample = allowed.sample.and(allowed.ask_some(filter, sizes, 1)?);
            }
            if selectivity::is_undecided(allowed.size, allowed.wanted_of_all(), allowed.sample) {
                allowed.sample = allowed.sample.and(allowed.ask_some(filter, sizes, 2)?);
            }
            allowed.list_if_quicker(allowed.wanted_of_all())?;
        }
        Ok(allowed)
    }

    /// Where indexes tell that only a few documents are let through: lists their chunks if that is quicker than asking; if not,
    /// how many these are stands for a sample. Says whether indexes told it.
    fn estimate_few(&mut self, filter: &Filter) -> Result<bool> {
        let most = selectivity::most_listed(self.size, self.wanted_of_all());
        let counted = (most / CHUNKS_OF_COUNTED).min(MOST_COUNTED);
        let Some(documents) = metadata::few_matching_documents(&self.domains, filter, counted)? else {
            return Ok(false);
        };
        let chunks = document::count_chunks(&documents)?;
        if chunks <= most {
            self.list_chunks_of(&documents)?;
        } else {
            self.sample = Asked::estimated(chunks, self.size);
        }
        Ok(true)
    }

    /// Asks about some chunks, whatever is looked for: see [`sample`].
    fn ask_some(&self, filter: &Filter, sizes: &[(Id, usize)], number: usize) -> Result<Asked> {
        let chunks = sample(sizes, number)?;
        let passed = metadata::matching_of_chunks(&self.domains, filter, &chunks)?.len();
        Ok(Asked { of: chunks.len(), passed })
    }

    /// Just these.
    pub(super) fn of(documents: Vec<Id>, chunks: IdMap<Id>) -> Self {
        Self { listed: OnceCell::from(Listed { documents, chunks }), ..Self::default() }
    }

    /// Chunks of the scope, about.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether it lets nothing through at all.
    pub(super) fn is_nothing(&self) -> Result<bool> {
        match self.listed.get() {
            Some(listed) => Ok(listed.documents.is_empty()),
            None => Ok(self.matching(Some(1))?.is_empty()),
        }
    }

    /// All of them, where they have been listed. A retriever ranks these alone.
    pub(super) fn listed(&self) -> Option<&Listed> {
        self.listed.get()
    }

    /// All of them.
    pub(super) fn list(&self) -> Result<&Listed> {
        if let Some(listed) = self.listed.get() {
            return Ok(listed);
        }
        let mut documents = self.matching(None)?;
        if self.may_hide_rows {
            documents = document::visible(&documents)?;
        }
        self.list_chunks_of(&documents)
    }

    fn list_chunks_of(&self, documents: &ByDomain) -> Result<&Listed> {
        let chunks = chunk::of_documents(documents)?;
        Ok(self.listed.get_or_init(|| Listed { documents: documents.ids().collect(), chunks }))
    }

    /// A retriever begins: what others have found says nothing of how many of its hits are let through.
    pub(super) fn begin(&self) {
        self.hits.set(Asked::default());
    }

    /// About how many hits must be ranked for so many of them to be let through.
    pub(super) fn at_first(&self, wanted: usize) -> usize {
        match self.filter_to_ask() {
            Some(_) => selectivity::at_first(wanted, self.sample.and(self.hits.get())),
            None => wanted,
        }
    }

    /// Those of the chunks that are there and that it lets through.
    pub(super) fn chunks(&self, chunks: &[Id]) -> Result<HashSet<Id>> {
        if let Some(filter) = self.filter_to_ask() {
            let found = metadata::matching_of_chunks(&self.domains, filter, chunks)?;
            self.note(chunks.len(), found.len())?;
            return Ok(found.into_iter().collect());
        }
        let listed = self.list()?;
        Ok(chunks.iter().copied().filter(|id| listed.chunks.contains_key(id)).collect())
    }

    /// Those of the documents that it lets through.
    pub(super) fn documents(&self, documents: &[Id]) -> Result<HashSet<Id>> {
        if let Some(filter) = self.filter_to_ask() {
            let found = metadata::matching_of_documents(&self.domains, filter, documents)?;
            self.note(documents.len(), found.len())?;
            return Ok(found.into_iter().collect());
        }
        let listed: HashSet<Id> = self.list()?.documents.iter().copied().collect();
        Ok(documents.iter().copied().filter(|id| listed.contains(id)).collect())
    }

    /// The filter, where nothing is listed.
    fn filter_to_ask(&self) -> Option<&'a Filter> {
        self.filter.filter(|_| self.listed.get().is_none())
    }

    /// Notes how many were asked about and let through.
    fn note(&self, of: usize, passed: usize) -> Result<()> {
        self.hits.set(self.hits.get().and(Asked { of, passed }));
        self.list_if_quicker(self.wanted)
    }

    /// Lists all if that is quicker than asking until so many hits have been let through.
    fn list_if_quicker(&self, wanted: usize) -> Result<()> {
        if may_list() && selectivity::is_listing_quicker(self.size, wanted, self.sample, self.hits.get()) {
            self.list()?;
        }
        Ok(())
    }

    /// Hits that all retrievers are to find.
    fn wanted_of_all(&self) -> usize {
        self.wanted * self.retrievers
    }

    fn matching(&self, at_most: Option<usize>) -> Result<ByDomain> {
        self.filter.map_or(Ok(ByDomain::default()), |filter| {
            metadata::matching_documents(&self.domains, filter, at_most)
        })
    }
}

/// Whether more than the smallest scopes may be listed.
fn may_list() -> bool {
    config::filter_list_limit() > 0
}

/// Some chunks of domains with so many each: those of one of [`SAMPLES`]. Ids are digests, so chunks next to each other have
/// nothing in common.
fn sample(sizes: &[(Id, usize)], number: usize) -> Result<Vec<Id>> {
    let total: usize = sizes.iter().map(|(_, size)| size).sum();
    let mut places = Vec::with_capacity(SAMPLED_PLACES);
    let (mut domains, mut end) = (sizes.iter(), 0);
    let mut domain = None;
    for place in 0..SAMPLED_PLACES {
        while end <= total / SAMPLED_PLACES * place {
            let Some((id, size)) = domains.next() else { break };
            (domain, end) = (Some(*id), end + size);
        }
        let parts = SAMPLES.len() * SAMPLED_PLACES;
        let first = Id::MAX / parts as Id * (SAMPLES.len() * place + number) as Id;
        places.extend(domain.map(|domain| (domain, first)));
    }
    chunk::some_of_domains(&places, SAMPLES[number])
}

/// Which chunks are there, the caller's to see, and let through by a filter: asked once about each.
pub(super) struct Look<'a> {
    scope: &'a Scope,
    allowed: Option<&'a Allowed<'a>>,
    known: RefCell<IdMap<bool>>,
}

impl<'a> Look<'a> {
    pub(super) fn new(scope: &'a Scope, allowed: Option<&'a Allowed<'a>>) -> Self {
        Self { scope, allowed, known: RefCell::default() }
    }

    /// The filter.
    pub(super) fn allowed(&self) -> Option<&'a Allowed<'a>> {
        self.allowed
    }

    /// Where they are looked for.
    pub(super) fn scope(&self) -> &'a Scope {
        self.scope
    }

    /// Those of the chunks.
    pub(super) fn at(&self, chunks: &[Id]) -> Result<HashSet<Id>> {
        let is_unknown = |id: &Id| !self.known.borrow().contains_key(id);
        let unknown: Vec<Id> = chunks.iter().copied().filter(is_unknown).collect();
        if !unknown.is_empty() {
            let found = self.look(&unknown)?;
            self.known.borrow_mut().extend(unknown.into_iter().map(|id| (id, found.contains(&id))));
        }
        let known = self.known.borrow();
        Ok(chunks.iter().copied().filter(|id| known.get(id) == Some(&true)).collect())
    }

    fn look(&self, chunks: &[Id]) -> Result<HashSet<Id>> {
        match self.allowed {
            None => self.scope.visible(chunks),
            Some(allowed) if !self.scope.may_hide_rows() => allowed.chunks(chunks),
            Some(allowed) => {
                let visible: Vec<Id> = self.scope.visible(chunks)?.into_iter().collect();
                allowed.chunks(&visible)
            }
        }
    }
}
