//! Making up for hits that are gone or hidden, so that they cost no result.

use crate::fuse::Ranked;
use std::collections::{HashMap, HashSet};

/// The best `limit` of the hits that are visible: as many as there are.
///
/// `rank` gives the best so many hits, best first, and fewer only where there are no more; it is asked for twice as many
/// until enough of them are visible. `visible` tells which of some are; it is asked once for each.
pub fn top_up<E>(
    limit: usize,
    mut rank: impl FnMut(usize) -> Result<Vec<Ranked>, E>,
    mut visible: impl FnMut(&[u128]) -> Result<HashSet<u128>, E>,
) -> Result<Vec<Ranked>, E> {
    let mut known: HashMap<u128, bool> = HashMap::new();
    let mut asked = limit;
    loop {
        let mut hits = rank(asked)?;
        let is_all = hits.len() < asked;
        let unknown: Vec<u128> = hits.iter().map(|hit| hit.id).filter(|id| !known.contains_key(id)).collect();
        if !unknown.is_empty() {
            let shown = visible(&unknown)?;
            known.extend(unknown.into_iter().map(|id| (id, shown.contains(&id))));
        }
        hits.retain(|hit| known.get(&hit.id) == Some(&true));
        if hits.len() >= limit || is_all {
            hits.truncate(limit);
            return Ok(hits);
        }
        asked = asked.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::convert::Infallible;

    /// Ten hits, the lower id the better, of which some are hidden: which are found, and for how many was asked.
    fn check(limit: usize, hidden: std::ops::Range<u128>, expected: &[u128], asked: &[usize]) {
        let (mut limits, mut looked_at) = (Vec::new(), Vec::new());
        let rank = |limit: usize| {
            limits.push(limit);
            Ok::<_, Infallible>(
                (0..10).take(limit).map(|id| Ranked { id, score: 1.0 / (id + 1) as f32 }).collect(),
            )
        };
        let hits = top_up(limit, rank, |ids| {
            looked_at.extend_from_slice(ids);
            Ok(ids.iter().copied().filter(|id| !hidden.contains(id)).collect())
        });
        let ids: Vec<u128> = hits.unwrap().iter().map(|hit| hit.id).collect();
        assert_eq!((ids.as_slice(), limits.as_slice()), (expected, asked));
        let distinct: HashSet<u128> = looked_at.iter().copied().collect();
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
