//! Keyword segments where a caller may see some rows and not others: of attached tables, and of all domains where an
//! administrator has added policies of their own.
//!
//! A segment's dictionary and counts are about all rows. It is opened as it is for those who see all rows. For others it
//! is made anew of the chunks that they see, whose statistics are then theirs alone; that takes time with the number of
//! rows, not of hits.

use super::blob_cache;
use super::scope::Scope;
use crate::attach::{self, Access};
use crate::error::{Error, Result};
use crate::pg::elevation::elevated;
use crate::pg::{interrupts, transaction};
use crate::storage::segment::SegmentHeader;
use crate::storage::{Id, chunk, is_attached, segment};
use rag_bm25::Segment;
use std::collections::HashSet;

/// Chunks of a scope that the caller sees, as [`count_by_domain`].
pub(super) fn count_chunks(scope: &Scope) -> Result<usize> {
    Ok(count_by_domain(scope)?.into_iter().map(|(_, count)| count).sum())
}

/// How many chunks the caller sees of domains of a scope, with those deleted since the last merges where they see all of a
/// domain; a domain may come several times. None where damage keeps them from being counted. Opens no segment.
pub(super) fn count_by_domain(scope: &Scope) -> Result<Vec<(Id, usize)>> {
    match counted_by_domain(scope) {
        Err(error) if error.is_damage() => Ok(Vec::new()),
        counted => counted,
    }
}

fn counted_by_domain(scope: &Scope) -> Result<Vec<(Id, usize)>> {
    let (attached, ordinary): (Vec<Id>, Vec<Id>) = scope.ids().into_iter().partition(|id| is_attached(*id));
    let mut counts = match scope.may_hide_rows() {
        true => chunk::count_showable(&ordinary)?,
        false => entries(scope.segments()?),
    };
    for (domain, access) in attach::access(&attached)? {
        counts.extend(match access {
            Access::Closed => Vec::new(),
            Access::Open | Access::ByRow if scope.may_hide_rows() => chunk::count_showable(&[domain])?,
            Access::Open => entries(&elevated(|| transaction::attempt(|| segment::list(&[domain])))?),
            Access::ByRow => vec![(domain, chunk::ids_of_domains(&[domain])?.len())],
        });
    }
    Ok(counts)
}

fn entries(headers: &[SegmentHeader]) -> Vec<(Id, usize)> {
    headers.iter().map(|header| (header.blob.domain, header.entries as usize)).collect()
}

/// Segments of attached domains, as far as the caller sees them. They must have been found to see the domains.
/// What is damaged is left out, and noted.
pub(super) fn of_attached(
    domains: &[Id],
    may_hide_rows: bool,
    damage: &mut Option<Error>,
) -> Result<Vec<Segment>> {
    let mut open = Vec::new();
    for (domain, access) in attach::access(domains)? {
        match access {
            Access::Closed => {}
            Access::Open | Access::ByRow if may_hide_rows => open.extend(of_domains(&[domain], damage)?),
            Access::Open => open.extend(all(&[domain], damage)?),
            Access::ByRow => {
                let seen: HashSet<Id> = chunk::ids_of_domains(&[domain])?.into_iter().collect();
                open.extend(restricted(&all(&[domain], damage)?, &seen)?);
            }
        }
    }
    Ok(open)
}

/// Segments of the chunks that the caller sees, of any domains. They must have been found to see the domains.
/// What is damaged is left out, and noted.
pub(super) fn of_domains(domains: &[Id], damage: &mut Option<Error>) -> Result<Vec<Segment>> {
    if domains.is_empty() {
        return Ok(Vec::new());
    }
    let seen: HashSet<Id> = chunk::showable_of_domains(domains)?.into_iter().collect();
    restricted(&all(domains, damage)?, &seen)
}

fn all(domains: &[Id], damage: &mut Option<Error>) -> Result<Vec<Segment>> {
    let opened = elevated(|| blob_cache::open_all(&segment::list(domains)?))?;
    if damage.is_none() {
        *damage = opened.damage;
    }
    Ok(opened.blobs.into_iter().map(|(_, segment)| segment).collect())
}

/// One segment per language and version of the analyser, of the entries that the caller sees.
fn restricted(segments: &[Segment], seen: &HashSet<Id>) -> Result<Vec<Segment>> {
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let kind = |segment: &Segment| (segment.language(), segment.analyser_version());
    let mut groups: Vec<Vec<Segment>> = Vec::new();
    for segment in segments {
        match groups.iter_mut().find(|group| kind(&group[0]) == kind(segment)) {
            Some(group) => group.push(segment.clone()),
            None => groups.push(vec![segment.clone()]),
        }
    }
    let mut made = Vec::new();
    for group in groups {
        if let Some(bytes) = rag_bm25::merge_while(&group, &|id| seen.contains(&id), interrupts::goes_on)? {
            made.push(Segment::open(bytes)?);
        }
    }
    Ok(made)
}
