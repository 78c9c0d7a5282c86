//! What all ways of finding chunks have in common, and the one loop that makes up for what is gone or hidden.

use super::allowed::Allowed;
use crate::error::{Error, Result};
use crate::storage::Id;
use rag_core::fuse::Ranked;
use rag_core::top_up::top_up;
use std::collections::HashSet;

/// Ranks the chunks of a scope for a query, by words or by meaning. Made for one call, under its snapshot; asks for
/// interrupts while it ranks.
pub(crate) trait Retriever {
    /// The stage of the diagnostics.
    const NAME: &'static str;

    /// Whether a filter that is asked about hits has been asked about those that it ranks.
    const FILTERS: bool;

    /// The best `limit` chunks, best first, ties by id; fewer where there are no more. Some may have been deleted, or be
    /// hidden from the caller row by row: see [`retrieve`].
    fn rank(&mut self, limit: usize) -> Result<Vec<Ranked>>;

    /// Chunks that were ranked, for the diagnostics.
    fn ranked(&self) -> usize;

    /// In which of its ways it ranked them, if there are several.
    fn method(&self) -> Option<&'static str> {
        None
    }

    /// What it had to leave out.
    fn damage(&self) -> Option<&Error> {
        None
    }
}

/// The best `limit` chunks that are there and the caller's to see: as many as there are. `visible` tells which of some
/// are. `allowed` knows about how many must be ranked for that; it may list what it lets through once so few of what was
/// ranked are that this is quicker, and then these alone are ranked, from the beginning.
pub(crate) fn retrieve<R: Retriever>(
    retriever: &mut R,
    limit: usize,
    allowed: Option<&Allowed<'_>>,
    mut visible: impl FnMut(&[Id]) -> Result<HashSet<Id>>,
) -> Result<Vec<Ranked>> {
    if let Some(allowed) = allowed {
        allowed.begin();
    }
    let is_listed = || allowed.and_then(Allowed::listed).is_some();
    let first = allowed.filter(|_| !R::FILTERS).map_or(limit, |allowed| allowed.at_first(limit));
    let seen = |ids: &[Id]| {
        let was_listed = is_listed();
        let seen = visible(ids)?;
        Ok((is_listed() == was_listed).then_some(seen))
    };
    top_up(limit, first, |limit| retriever.rank(limit), seen)
}
