//! Ranking the entries of several segments as if they were one.

use std::collections::HashSet;

use crate::conditions;
use crate::disjunction::{self, Scratch};
use crate::interrupt::GoesOn;
use crate::plan::Plan;
use crate::proximity::{self, HEAD};
use crate::top::{Ranked, Top};
use crate::{Error, Query, Segment};

/// An entry that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The entry's id.
    pub id: u128,
    /// BM25 of title and body as one text, and of the best entries what words add that stand together; above 0, without an
    /// upper limit.
    pub score: f32,
}

/// Finds the best `limit` entries, best first; equal scores keep the smaller id first.
///
/// N, average lengths and frequencies are summed over exactly `segments`, and scores are bit-identical
/// however the entries are spread over them. `accept` is asked only about entries good enough to get in, and
/// the hits it refuses take no place. An id that is in several segments is answered once, with its better
/// score. An empty query matches nothing.
///
/// # Errors
/// [`Error::LanguageMismatch`] when a segment's language is not the query's. A segment of another analyser
/// version is searched; terms that are analysed differently now are not found in it.
pub fn search(
    segments: &[Segment],
    query: &Query,
    limit: usize,
    accept: Option<&dyn Fn(u128) -> bool>,
) -> Result<Vec<Hit>, Error> {
    search_while(segments, query, limit, accept, || true)
}

/// [`search`] that somebody may end.
///
/// # Errors
/// Those of [`search`], and [`Error::Interrupted`] once `goes_on` says no.
pub fn search_while(
    segments: &[Segment],
    query: &Query,
    limit: usize,
    accept: Option<&dyn Fn(u128) -> bool>,
    goes_on: GoesOn,
) -> Result<Vec<Hit>, Error> {
    if query.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let plan = Plan::new(segments, query, goes_on)?;
    // Whatever the limit, the same entries are looked at more closely, so that a longer list begins like a shorter one.
    let wanted = if query.pairs.is_empty() { limit } else { limit.max(HEAD) };
    let mut places = wanted;
    loop {
        let (mut hits, is_full) = best(&plan, places, accept)?;
        let before = hits.len();
        drop_repeated(&mut hits);
        let is_short = is_full && hits.len() < wanted;
        if !is_short {
            proximity::reward(&plan, &mut hits)?;
            hits.truncate(limit);
            return Ok(hits.iter().map(|hit| Hit { id: hit.id, score: hit.score() }).collect());
        }
        // Repeated ids took places that other entries are due: again, with more.
        places = places.saturating_mul(2).saturating_add(before - hits.len());
    }
}

/// The best entries, and whether there may be more.
fn best(
    plan: &Plan<'_>,
    places: usize,
    accept: Option<&dyn Fn(u128) -> bool>,
) -> Result<(Vec<Ranked>, bool), Error> {
    let mut top = Top::new(places, accept);
    let mut scratch = Scratch::default();
    let is_plain =
        plan.query.phrases.is_empty() && plan.query.required.is_empty() && plan.query.excluded.is_empty();
    for segment in 0..plan.segments.len() {
        if plan.found_in(segment).is_empty() {
            continue;
        }
        if is_plain {
            disjunction::collect(plan, segment, &mut scratch, &mut top)?;
        } else {
            conditions::collect(plan, segment, &mut scratch, &mut top)?;
        }
    }
    let is_full = top.is_full();
    Ok((top.into_hits(), is_full))
}

/// Keeps the first, which is the best, of hits with one id.
fn drop_repeated(hits: &mut Vec<Ranked>) {
    let mut seen = HashSet::with_capacity(hits.len());
    hits.retain(|hit| seen.insert(hit.id));
}
