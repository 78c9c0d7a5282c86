//! Vector search over the codes of segments: an estimate for each entry, and the nearest ones compared exactly.
//!
//! Whatever domains, filter and hidden rows leave of the entries, the search is over these alone, so none of them costs
//! recall.

use super::allowed::{Allowed, Look};
use super::blob_cache;
use super::scope::Scope;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::{interrupts, shared};
use crate::storage::Id;
use crate::storage::embedding::{self, QueryVector, VectorHit, VectorSpace};
use crate::storage::segment::SegmentHeader;
use crate::storage::vector_codes::{self, FEWEST_ENTRIES};
use rag_bm25::Segment;
use rag_core::top_up;
use rag_vector::{Candidate, Codes};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Candidates that are compared exactly at first, beyond the hits that are wanted: a fourth of these, and some. What their
/// estimates were wrong by tells how many more are worth it.
const FEWEST_SPARE: usize = 16;

/// Between two times that a session asks for codes that are missing.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(10);

/// Most entries without codes that are compared exactly beside the candidates; beyond, all are.
const MOST_LOOSE: usize = 20_000;

thread_local! {
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Has a worker look which codes are missing.
fn ask_for_codes() {
    if ASKED.get().is_none_or(|asked: Instant| asked.elapsed() >= BETWEEN_REQUESTS) {
        ASKED.set(Some(Instant::now()));
        shared::request_index();
    }
}

/// The entries of some domains, as far as the call's snapshot shows them, with the codes of their vectors.
pub(super) struct CodedEntries {
    space: VectorSpace,
    codes: Vec<Codes>,
    /// Of each of the codes: the domain, and the segment that has its ids.
    segments: Vec<(Id, Segment)>,
    /// Those of segments that are too small for codes, each with its domain.
    loose: Vec<(Id, Id)>,
}

impl CodedEntries {
    /// Opens what there is in some domains of a scope; `None` where a segment that should have codes has none that can be used, or small ones are too
    /// many. Elevated.
    pub(super) fn open(scope: &Scope, space: VectorSpace, domains: &[Id]) -> Result<Option<Self>> {
        let headers = scope.segments_of(domains)?;
        let (large, small): (Vec<SegmentHeader>, Vec<SegmentHeader>) =
            headers.into_iter().partition(|header| header.entries >= FEWEST_ENTRIES);
        let loose: usize = small.iter().map(|header| header.entries as usize).sum();
        if loose > MOST_LOOSE {
            return Ok(None);
        }
        let mut known: HashMap<Id, _> =
            vector_codes::list(domains, space)?.into_iter().map(|header| (header.id, header)).collect();
        let Some(of_large) =
            large.iter().map(|header| known.remove(&header.id())).collect::<Option<Vec<_>>>()
        else {
            ask_for_codes();
            return Ok(None);
        };
        let codes = blob_cache::open_all::<Codes>(&of_large)?;
        let segments = blob_cache::open_all::<Segment>(&large)?;
        let is_sound = |(codes, segment): (&(usize, Codes), &(usize, Segment))| {
            codes.1.len() == segment.1.len() as usize && codes.1.dimension() == space.dimension as usize
        };
        if codes.blobs.len() < large.len()
            || segments.blobs.len() < large.len()
            || !codes.blobs.iter().zip(&segments.blobs).all(is_sound)
        {
            return Ok(None);
        }
        let small_segments = blob_cache::open_all::<Segment>(&small)?;
        if small_segments.damage.is_some() {
            return Ok(None);
        }
        let domain_of = |headers: &[SegmentHeader], index: usize| headers[index].blob.domain;
        let loose = small_segments.blobs.iter().flat_map(|(index, segment)| {
            let domain = domain_of(&small, *index);
            segment.ids().map(move |id| (domain, id))
        });
        Ok(Some(Self {
            space,
            loose: loose.collect(),
            codes: codes.blobs.into_iter().map(|(_, codes)| codes).collect(),
            segments: segments
                .blobs
                .into_iter()
                .map(|(i, segment)| (domain_of(&large, i), segment))
                .collect(),
        }))
    }

    /// At least the nearest `limit` chunks, in no order, as [`embedding::nearest_exact`] with what the codes cannot tell
    /// apart left out. `None` where all that a filter lets through has been listed meanwhile: these alone are to be ranked.
    ///
    /// A filter that is not listed is asked about those that seem nearest, until enough pass; of the others, about those that
    /// are nearer than these. To ask takes longer than to compare.
    pub(super) fn nearest(
        &self,
        (vector, query): (&[f32], &QueryVector),
        limit: usize,
        look: &Look<'_>,
    ) -> Result<Option<Vec<VectorHit>>> {
        let listed = look.allowed().and_then(Allowed::listed);
        let asked = look.allowed().filter(|_| listed.is_none());
        let is_allowed = |id: Id| listed.is_none_or(|listed| listed.chunks.contains_key(&id));
        let accept = |source: usize, entry: usize| is_allowed(self.segments[source].1.id(entry as u32));
        let accept: Option<&dyn Fn(usize, usize) -> bool> = listed.is_some().then_some(&accept);
        let mut wanted = asked.map_or(limit, |allowed| allowed.at_first(limit + FEWEST_SPARE));
        loop {
            let found = rag_vector::nearest(&self.codes, vector, wanted, accept, interrupts::goes_on)?;
            let chunks: Vec<(Id, Id)> = found.candidates.iter().map(|c| self.chunk(c)).collect();
            // Beyond those that were wanted there may be nearer ones than these.
            let within = if found.is_all { chunks.len() } else { chunks.len().min(wanted) };
            let first = match asked {
                None => chunks.len().min(wanted + wanted / 4 + FEWEST_SPARE),
                Some(_) => look_through(&ids(&chunks[..within]), limit + FEWEST_SPARE, wanted, look)?,
            };
            let (first, others) = chunks.split_at(first);
            // What was taken away and came back may be in two segments.
            let mut compared: HashSet<(Id, Id)> = first.iter().copied().collect();
            if let Some(allowed) = asked {
                let passing = look.at(&ids(first))?;
                if allowed.listed().is_some() {
                    return Ok(None);
                }
                if passing.len() < limit && !found.is_all {
                    wanted = top_up::more(wanted, limit, passing.len());
                    continue;
                }
                compared.retain(|(_, id)| passing.contains(id));
            }
            compared.extend(self.loose.iter().filter(|(_, id)| is_allowed(*id)));
            let mut hits = self.compare(compared.iter().copied(), query)?;
            let cosines: HashMap<Id, f32> = hits.iter().map(|hit| (hit.chunk, hit.score as f32)).collect();
            let cosines: Vec<Option<f32>> = first.iter().map(|(_, id)| cosines.get(id).copied()).collect();
            let reach = rag_vector::reach(&found.candidates, &cosines, limit);
            let more = others[..reach - first.len()].iter().copied();
            let more: HashSet<(Id, Id)> = more.filter(|chunk| !compared.contains(chunk)).collect();
            if !more.is_empty() {
                hits.extend(self.compare(more.into_iter(), query)?);
            }
            if asked.is_some() {
                hits = passing(hits, limit, look)?;
            }
            if hits.len() >= limit || found.is_all {
                return Ok(Some(hits));
            }
            wanted = top_up::more(wanted, limit, hits.len());
        }
    }

    /// Chunks with their cosines.
    fn compare(
        &self,
        chunks: impl ExactSizeIterator<Item = (Id, Id)>,
        query: &QueryVector,
    ) -> Result<Vec<VectorHit>> {
        let count = chunks.len();
        elevated(|| embedding::nearest_among(self.space, chunks, query, count))
    }

    /// Domain and id of a candidate's chunk.
    fn chunk(&self, candidate: &Candidate) -> (Id, Id) {
        let (domain, segment) = &self.segments[candidate.source];
        (*domain, segment.id(candidate.entry as u32))
    }
}

/// At least the nearest `limit` of the hits that pass, or all of these.
fn passing(mut hits: Vec<VectorHit>, limit: usize, look: &Look<'_>) -> Result<Vec<VectorHit>> {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    let ids: Vec<Id> = hits.iter().map(|hit| hit.chunk).collect();
    hits.truncate(look_through(&ids, limit, limit, look)?);
    let passing = look.at(&ids[..hits.len()])?;
    hits.retain(|hit| passing.contains(&hit.chunk));
    Ok(hits)
}

/// Looks at chunks, the nearest first, until so many pass: how many were looked at.
fn look_through(chunks: &[Id], limit: usize, expected: usize, look: &Look<'_>) -> Result<usize> {
    let looked_at =
        top_up::look_through(chunks, limit, expected, |ids| look.at(ids).map(|seen| Some(seen.len())))?;
    Ok(looked_at.unwrap_or_default())
}

fn ids(chunks: &[(Id, Id)]) -> Vec<Id> {
    chunks.iter().map(|(_, id)| *id).collect()
}
