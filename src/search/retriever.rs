//! What all ways of finding chunks have in common, and the one loop that makes up for what is gone or hidden.

use crate::error::{Error, Result};
use crate::storage::Id;
use rag_core::fuse::Ranked;
use std::collections::{HashMap, HashSet};

/// Documents that a filter lets through, with their chunks. A retriever ranks these alone, so that a filter takes
/// nothing from the best hits.
pub(crate) struct Allowed {
    pub(crate) documents: Vec<Id>,
    pub(crate) chunks: HashSet<Id>,
}

/// Ranks the chunks of a scope for a query, by words or by meaning. Made for one call, under its snapshot; asks for
/// interrupts while it ranks.
pub(crate) trait Retriever {
    /// The stage of the diagnostics.
    const NAME: &'static str;

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
/// are; it is asked once for each.
pub(crate) fn retrieve(
    retriever: &mut impl Retriever,
    limit: usize,
    mut visible: impl FnMut(&[Id]) -> Result<HashSet<Id>>,
) -> Result<Vec<Ranked>> {
    let mut known: HashMap<Id, bool> = HashMap::new();
    let mut asked = limit;
    loop {
        let mut hits = retriever.rank(asked)?;
        let is_all = hits.len() < asked;
        let unknown: Vec<Id> = hits.iter().map(|hit| hit.id).filter(|id| !known.contains_key(id)).collect();
        if !unknown.is_empty() {
            let shown = visible(&unknown)?;
            known.extend(unknown.into_iter().map(|id| (id, shown.contains(&id))));
        }
        hits.retain(|hit| known[&hit.id]);
        if hits.len() >= limit || is_all {
            hits.truncate(limit);
            return Ok(hits);
        }
        asked = asked.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten chunks, the lower id the better.
    struct Ten {
        asked: Vec<usize>,
    }

    impl Retriever for Ten {
        const NAME: &'static str = "ten";

        fn rank(&mut self, limit: usize) -> Result<Vec<Ranked>> {
            self.asked.push(limit);
            Ok((0..10).take(limit).map(|id| Ranked { id, score: 1.0 / (id + 1) as f32 }).collect())
        }

        fn ranked(&self) -> usize {
            10
        }
    }

    fn check(limit: usize, hidden: std::ops::Range<Id>, expected: &[Id], asked: &[usize]) {
        let (mut ten, mut looked_at) = (Ten { asked: Vec::new() }, Vec::new());
        let hits = retrieve(&mut ten, limit, |ids| {
            looked_at.extend_from_slice(ids);
            Ok(ids.iter().copied().filter(|id| !hidden.contains(id)).collect())
        });
        let ids: Vec<Id> = hits.unwrap_or_default().iter().map(|hit| hit.id).collect();
        assert_eq!((ids.as_slice(), ten.asked.as_slice()), (expected, asked));
        let distinct: HashSet<Id> = looked_at.iter().copied().collect();
        assert_eq!(distinct.len(), looked_at.len(), "asked twice: {looked_at:?}");
    }

    #[test]
    fn what_is_hidden_is_made_up_for_as_far_as_there_is_more() {
        check(3, 0..0, &[0, 1, 2], &[3]);
        check(3, 0..2, &[2, 3, 4], &[3, 6]);
        check(3, 1..8, &[0, 8, 9], &[3, 6, 12]);
        check(3, 0..10, &[], &[3, 6, 12]);
        check(20, 4..6, &[0, 1, 2, 3, 6, 7, 8, 9], &[20]);
    }
}
