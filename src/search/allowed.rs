//! What a filter lets through: listed where that is little, and looked up for what is found where it is much.

use super::scope::Scope;
use crate::config;
use crate::error::Result;
use crate::storage::{Id, chunk, document, metadata};
use rag_core::filter::Filter;
use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

/// Of so many candidates that were looked up one must have been let through, or all that is let through is listed.
const ONE_OF: usize = 10;

/// Documents that a filter lets through, with their chunks, so that it takes nothing from the best hits.
#[derive(Default)]
pub(crate) struct Allowed<'a> {
    /// Without one there is a list.
    filter: Option<&'a Filter>,
    domains: Vec<Id>,
    may_hide_rows: bool,
    /// Chunks of the domains, about.
    size: usize,
    listed: OnceCell<Listed>,
    /// Whether the list is known to be longer than `rag_ext.filter_list_limit`.
    is_long: Cell<bool>,
    /// Chunks and documents that were looked up, and those of them that were let through.
    tested: Cell<usize>,
    passed: Cell<usize>,
}

/// All of them.
pub(crate) struct Listed {
    pub(crate) documents: Vec<Id>,
    /// Each with its domain.
    pub(crate) chunks: HashMap<Id, Id>,
}

impl<'a> Allowed<'a> {
    /// Lists what the filter lets through of a scope of so many chunks, if these are few.
    pub(super) fn open(scope: &Scope, filter: &'a Filter, size: usize) -> Result<Self> {
        let allowed = Self {
            filter: Some(filter),
            domains: scope.ids(),
            may_hide_rows: scope.may_hide_rows(),
            size,
            ..Self::default()
        };
        if size <= config::filter_list_limit() {
            allowed.list()?;
        }
        Ok(allowed)
    }

    /// Just these.
    pub(super) fn of(documents: Vec<Id>, chunks: HashMap<Id, Id>) -> Self {
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
        let listed = self.with_chunks(self.matching(None)?, None)?;
        Ok(self.listed.get_or_init(|| listed))
    }

    /// Those of the chunks that it lets through.
    pub(super) fn chunks(&self, chunks: &[Id]) -> Result<HashSet<Id>> {
        if let Some(filter) = self.filter_to_test() {
            let found = metadata::matching_of_chunks(&self.domains, filter, chunks)?;
            self.note(chunks.len(), found.len())?;
            return Ok(found.into_iter().collect());
        }
        let listed = self.list()?;
        Ok(chunks.iter().copied().filter(|id| listed.chunks.contains_key(id)).collect())
    }

    /// Those of the documents that it lets through.
    pub(super) fn documents(&self, documents: &[Id]) -> Result<HashSet<Id>> {
        if let Some(filter) = self.filter_to_test() {
            let found = metadata::matching_of_documents(&self.domains, filter, documents)?;
            self.note(documents.len(), found.len())?;
            return Ok(found.into_iter().collect());
        }
        let listed: HashSet<Id> = self.list()?.documents.iter().copied().collect();
        Ok(documents.iter().copied().filter(|id| listed.contains(id)).collect())
    }

    /// The filter, where nothing is listed and more may be looked up.
    fn filter_to_test(&self) -> Option<&'a Filter> {
        let may_test = self.tested.get() < config::filter_list_limit();
        self.filter.filter(|_| self.listed.get().is_none() && may_test)
    }

    /// Notes how many were looked up and let through; where those are few, lists all, as far as that is not much.
    fn note(&self, tested: usize, passed: usize) -> Result<()> {
        let (tested, passed) = (self.tested.get() + tested, self.passed.get() + passed);
        self.tested.set(tested);
        self.passed.set(passed);
        let limit = config::filter_list_limit();
        // As large a part of all as of these; one more, for none of some is not none of all.
        let about = self.size.saturating_mul(passed + 1) / (tested + 1);
        if self.is_long.get() || passed * ONE_OF >= tested || about > 2 * limit {
            return Ok(());
        }
        let beyond = limit.saturating_add(1);
        let documents = self.matching(Some(beyond))?;
        let listed = self.with_chunks(documents, Some(beyond))?;
        if listed.documents.len() <= limit && listed.chunks.len() <= limit {
            let _ = self.listed.set(listed);
        } else {
            self.is_long.set(true);
        }
        Ok(())
    }

    fn matching(&self, at_most: Option<usize>) -> Result<Vec<Id>> {
        self.filter
            .map_or(Ok(Vec::new()), |filter| metadata::matching_documents(&self.domains, filter, at_most))
    }

    fn with_chunks(&self, mut documents: Vec<Id>, at_most: Option<usize>) -> Result<Listed> {
        if self.may_hide_rows {
            documents = document::visible(&self.domains, &documents)?;
        }
        let chunks = chunk::ids_of_documents(&self.domains, &documents, at_most)?.into_iter().collect();
        Ok(Listed { documents, chunks })
    }
}

/// Those of the chunks that the caller sees, and a filter lets through.
pub(super) fn visible(scope: &Scope, allowed: Option<&Allowed<'_>>, chunks: &[Id]) -> Result<HashSet<Id>> {
    match allowed {
        None => scope.visible(chunks),
        Some(allowed) => {
            let visible: Vec<Id> = scope.visible(chunks)?.into_iter().collect();
            allowed.chunks(&visible)
        }
    }
}
