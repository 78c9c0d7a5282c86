//! Making up for hits that are gone or hidden, so that they cost no result.

use crate::fuse::Ranked;
use std::collections::{HashMap, HashSet};

/// The best `limit` of the hits that are visible: as many as there are.
///
/// `rank` gives the best so many hits, best first, and fewer only where there are no more; at `first` it is asked for so
/// many, or `limit` if that is more. Where too few of them are visible, it is asked for as many as it takes if as large a
/// part of the others is. `visible` tells which of some are; it is asked once for each, the best first, and not for those
/// that are behind enough visible ones. It says nothing where `rank` has come to leave out what is hidden: then as many
/// are asked for again as are wanted.
pub fn top_up<E>(
    limit: usize,
    first: usize,
    mut rank: impl FnMut(usize) -> Result<Vec<Ranked>, E>,
    mut visible: impl FnMut(&[u128]) -> Result<Option<HashSet<u128>>, E>,
) -> Result<Vec<Ranked>, E> {
    let mut known: HashMap<u128, bool> = HashMap::new();
    let mut asked = first.max(limit);
    loop {
        let mut hits = rank(asked)?;
        let is_all = hits.len() < asked;
        let ids: Vec<u128> = hits.iter().map(|hit| hit.id).collect();
        let looked_at = look_through(&ids, limit, asked, |ids| {
            let unknown: Vec<u128> = ids.iter().copied().filter(|id| !known.contains_key(id)).collect();
            if !unknown.is_empty() {
                let Some(shown) = visible(&unknown)? else { return Ok(None) };
                known.extend(unknown.into_iter().map(|id| (id, shown.contains(&id))));
            }
            Ok(Some(ids.iter().filter(|id| known.get(id) == Some(&true)).count()))
        })?;
        let Some(looked_at) = looked_at else {
            asked = limit;
            continue;
        };
        hits.truncate(looked_at);
        hits.retain(|hit| known.get(&hit.id) == Some(&true));
        if hits.len() >= limit || is_all {
            hits.truncate(limit);
            return Ok(hits);
        }
        asked = more(asked, limit, hits.len());
    }
}

/// Looks at ids in their order, some at a time, until `limit` of them are visible, of which that many, or all, are expected
/// among the first `expected`; how many were looked at. `look` tells how many of some are visible; where it says nothing,
/// that is the answer.
pub fn look_through<E>(
    ids: &[u128],
    limit: usize,
    expected: usize,
    mut look: impl FnMut(&[u128]) -> Result<Option<usize>, E>,
) -> Result<Option<usize>, E> {
    let (mut looked_at, mut visible) = (0_usize, 0_usize);
    // What is expected is so with some caution.
    let mut next = limit.max(expected / 2);
    while visible < limit && looked_at < ids.len() {
        let end = looked_at.saturating_add(next).min(ids.len());
        let Some(seen) = look(&ids[looked_at..end])? else { return Ok(None) };
        (looked_at, visible) = (end, visible + seen);
        // By the part that is visible, and some more. Not a few each time where it becomes less.
        let needed = looked_at.saturating_mul(limit.saturating_sub(visible)) / visible.max(1);
        next = (needed + needed / 8 + 1).clamp(looked_at.div_ceil(8), looked_at.saturating_mul(4));
    }
    Ok(Some(looked_at))
}

/// How many to ask for, for `limit` visible ones, where of those asked for so many were: more, and at most eight times as
/// many. A quarter more than by that part, which is never the same.
pub fn more(asked: usize, limit: usize, visible: usize) -> usize {
    let needed = asked.saturating_mul(limit) / visible.max(1);
    let (least, most) = (asked.saturating_add(asked.div_ceil(2)), asked.saturating_mul(8));
    needed.saturating_add(needed / 4).clamp(least, most)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    /// Hits, the lower id the better, of which some are hidden: which are found, and for how many was asked.
    fn check(all: u128, limit: usize, is_hidden: impl Fn(u128) -> bool, expected: &[u128], asked: &[usize]) {
        let (mut limits, mut looked_at) = (Vec::new(), Vec::new());
        let rank = |limit: usize| {
            limits.push(limit);
            Ok::<_, Infallible>(
                (0..all).take(limit).map(|id| Ranked { id, score: 1.0 / (id + 1) as f32 }).collect(),
            )
        };
        let hits = top_up(limit, asked[0], rank, |ids| {
            looked_at.extend_from_slice(ids);
            Ok(Some(ids.iter().copied().filter(|id| !is_hidden(*id)).collect()))
        });
        let ids: Vec<u128> = hits.unwrap().iter().map(|hit| hit.id).collect();
        assert_eq!((ids.as_slice(), limits.as_slice()), (expected, asked));
        let distinct: HashSet<u128> = looked_at.iter().copied().collect();
        assert_eq!(distinct.len(), looked_at.len(), "asked twice: {looked_at:?}");
    }

    #[test]
    fn once_what_is_hidden_is_left_out_no_more_are_ranked_than_are_wanted() {
        let is_hidden = |id: u128| id < 900;
        let (is_left_out, mut limits) = (Cell::new(false), Vec::new());
        let rank = |limit: usize| {
            limits.push(limit);
            let ranked = (0..1000).filter(|id| !is_left_out.get() || !is_hidden(*id)).take(limit);
            Ok::<_, Infallible>(ranked.map(|id| Ranked { id, score: 1.0 / (id + 1) as f32 }).collect())
        };
        let hits = top_up(10, 10, rank, |ids| {
            let was_left_out = is_left_out.replace(ids.iter().any(|id| *id > 50) || is_left_out.get());
            let seen = ids.iter().copied().filter(|id| !is_hidden(*id)).collect();
            Ok((is_left_out.get() == was_left_out).then_some(seen))
        });
        let ids: Vec<u128> = hits.unwrap().iter().map(|hit| hit.id).collect();
        assert_eq!((ids, limits), ((900..910).collect(), vec![10, 80, 10]));
    }

    #[test]
    fn what_is_hidden_is_made_up_for_as_far_as_there_is_more() {
        check(10, 3, |_| false, &[0, 1, 2], &[3]);
        check(10, 3, |id| id < 1, &[1, 2, 3], &[3, 5]);
        check(10, 3, |id| (1..8).contains(&id), &[0, 8, 9], &[3, 11]);
        check(10, 3, |_| true, &[], &[3, 11]);
        check(10, 20, |id| (4..6).contains(&id), &[0, 1, 2, 3, 6, 7, 8, 9], &[20]);
        // One of ten; of the next ones fewer.
        check(1000, 10, |id| id % 10 != 0, &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90], &[10, 80, 125]);
        check(1000, 4, |id| id < 200 || id % 2 == 1, &[200, 202, 204, 206], &[4, 20, 100, 500]);
        // As many at first as it is known to take.
        check(1000, 3, |id| id % 10 != 0, &[0, 10, 20], &[40]);
    }

    #[test]
    fn what_is_behind_enough_visible_ones_is_not_looked_at() {
        let looks = |expected: usize, is_visible: fn(&u128) -> bool| {
            let ids: Vec<u128> = (0..1000).collect();
            let mut looks = Vec::new();
            let looked_at = look_through(&ids, 10, expected, |some| {
                looks.push(some.len());
                Ok::<_, Infallible>(Some(some.iter().filter(|id| is_visible(id)).count()))
            });
            assert_eq!(looked_at.unwrap(), Some(looks.iter().sum()));
            looks
        };
        assert_eq!(looks(10, |_| true), [10]);
        assert_eq!(looks(60, |_| true), [30]);
        assert_eq!(looks(60, |id| id % 4 == 0), [30, 8]);
        // One of the first ten, so ninety more are wanted, but not at once.
        assert_eq!(looks(10, |id| id % 100 == 0), [10, 40, 200, 656]);
        assert_eq!(looks(10, |_| false), [10, 40, 200, 750]);
        // All but one, and then none for long.
        assert_eq!(looks(10, |id| *id < 9 || *id > 30), [10, 2, 2, 2, 2, 3, 3, 3, 4, 4]);
    }
}
