//! What a filter lets through: listed where that is little, and looked up for what is found where it is much.

use super::scope::Scope;
use crate::config;
use crate::error::Result;
use crate::storage::{Id, chunk, document, metadata};
use rag_core::filter::Filter;
use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

/// Documents that a filter lets through, with their chunks, so that it takes nothing from the best hits.
pub(crate) struct Allowed<'a> {
    /// Without one there is a list.
    filter: Option<&'a Filter>,
    domains: Vec<Id>,
    may_hide_rows: bool,
    listed: OnceCell<Listed>,
    /// How many more chunks and documents may be looked up one by one. Where they are still not enough, the filter lets
    /// little through of what is like the query, and all that it lets through is listed.
    to_test: Cell<usize>,
}

/// All of them.
pub(crate) struct Listed {
    pub(crate) documents: Vec<Id>,
    /// Each with its domain.
    pub(crate) chunks: HashMap<Id, Id>,
}

impl<'a> Allowed<'a> {
    /// Lists what the filter lets through, if it is not too much.
    pub(super) fn open(scope: &Scope, filter: &'a Filter) -> Result<Self> {
        let limit = config::filter_list_limit();
        let allowed = Self {
            filter: Some(filter),
            domains: scope.ids(),
            may_hide_rows: scope.may_hide_rows(),
            listed: OnceCell::new(),
            to_test: Cell::new(limit),
        };
        let beyond = limit.saturating_add(1);
        let documents = metadata::matching_documents(&allowed.domains, filter, Some(beyond))?;
        if documents.len() <= limit {
            let listed = allowed.with_chunks(documents, Some(beyond))?;
            if listed.chunks.len() <= limit {
                let _ = allowed.listed.set(listed);
            }
        }
        Ok(allowed)
    }

    /// Just these.
    pub(super) fn of(documents: Vec<Id>, chunks: HashMap<Id, Id>) -> Self {
        Self {
            filter: None,
            domains: Vec::new(),
            may_hide_rows: false,
            listed: OnceCell::from(Listed { documents, chunks }),
            to_test: Cell::new(0),
        }
    }

    /// All of them, where they have been listed. A retriever ranks these alone.
    pub(super) fn listed(&self) -> Option<&Listed> {
        self.listed.get()
    }

    /// All of them.
    pub(super) fn list(&self) -> Result<&Listed> {
        if let (None, Some(filter)) = (self.listed.get(), self.filter) {
            let documents = metadata::matching_documents(&self.domains, filter, None)?;
            let listed = self.with_chunks(documents, None)?;
            return Ok(self.listed.get_or_init(|| listed));
        }
        Ok(self.listed.get_or_init(|| Listed { documents: Vec::new(), chunks: HashMap::new() }))
    }

    /// Those of the chunks that it lets through.
    pub(super) fn chunks(&self, chunks: &[Id]) -> Result<HashSet<Id>> {
        match self.filter_to_test(chunks.len()) {
            Some(filter) => {
                let found = metadata::matching_of_chunks(&self.domains, filter, chunks)?;
                Ok(found.into_iter().collect())
            }
            None => {
                let listed = self.list()?;
                Ok(chunks.iter().copied().filter(|id| listed.chunks.contains_key(id)).collect())
            }
        }
    }

    /// Those of the documents that it lets through.
    pub(super) fn documents(&self, documents: &[Id]) -> Result<HashSet<Id>> {
        match self.filter_to_test(documents.len()) {
            Some(filter) => {
                let found = metadata::matching_of_documents(&self.domains, filter, documents)?;
                Ok(found.into_iter().collect())
            }
            None => {
                let listed: HashSet<Id> = self.list()?.documents.iter().copied().collect();
                Ok(documents.iter().copied().filter(|id| listed.contains(id)).collect())
            }
        }
    }

    /// The filter, where nothing is listed and so many more may be looked up.
    fn filter_to_test(&self, count: usize) -> Option<&'a Filter> {
        let left = self.to_test.get().checked_sub(count);
        self.to_test.set(left.unwrap_or(0));
        self.filter.filter(|_| self.listed.get().is_none() && left.is_some())
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
