//! Merging the keyword segments of a domain, in a transaction of its own.
//!
//! Tiered: segments of like size are merged once there are several, so each chunk is written about log n
//! times. Deleted chunks leave the index, and the statistics, with the merge that covers them.

use crate::config;
use crate::error::{Error, Result, sqlstate_text, unless_locked};
use crate::pg::{interrupts, worker};
use crate::storage::collection::{self, Collection};
use crate::storage::segment::{self, SegmentHeader};
use crate::storage::{Id, chunk};
use rag_bm25::{Entry, Language, Segment};
use std::collections::HashSet;

/// Segments of one tier that are merged into one of the next.
const FAN_IN: usize = 8;

/// Domains looked at in one go.
const CANDIDATES: i64 = 16;

/// Merges one domain that wants it; false if none does.
pub(super) fn merge_once() -> Result<bool> {
    if !config::merge_enabled() {
        return Ok(false);
    }
    let candidates = match worker::transaction(|| segment::merge_candidates(FAN_IN as i64, CANDIDATES)) {
        // A page of the table that cannot be read keeps nobody's documents from being processed.
        Err(error) if error.is_damage() => {
            log_failure(&error);
            return Ok(false);
        }
        candidates => unless_locked(candidates)?,
    };
    for candidate in candidates.unwrap_or_default() {
        if worker::should_stop() {
            return Ok(false);
        }
        if merge_domain(candidate.domain, candidate.deleted > 0)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges a domain after it was written to, if it has a tier that is full.
pub(crate) fn merge_domain_if_due(domain: Id) -> Result<()> {
    if config::merge_enabled() {
        while !worker::should_stop() && merge_domain(domain, false)? {}
    }
    Ok(())
}

/// Merges a domain; false also while somebody holds what is to be merged. What is wrong with one, such as damage, does
/// not keep others from being merged: it is noted, and the domain left alone for a while.
fn merge_domain(domain: Id, has_deleted: bool) -> Result<bool> {
    match unless_locked(try_merge(domain, has_deleted)).map(|merged| merged.unwrap_or(false)) {
        Err(error) if !worker::should_stop() => {
            log_failure(&error);
            let sqlstate = sqlstate_text(error.code);
            worker::transaction(|| segment::put_off_merge(domain, &sqlstate, &error.one_line()))?;
            Ok(false)
        }
        outcome => outcome,
    }
}

fn log_failure(error: &Error) {
    worker::log(
        pgrx::PgLogLevel::WARNING,
        error.code,
        format!("rag_ext: keyword segments cannot be merged: {}", error.one_line()),
        error.hint.as_deref(),
    );
}

fn try_merge(domain: Id, has_deleted: bool) -> Result<bool> {
    worker::transaction(|| {
        // Looked at before they are locked: most times there is nothing to do.
        let outdated = |h: &SegmentHeader| h.analyser_version < rag_bm25::ANALYSER_VERSION;
        let found = segment::latest(domain)?;
        if !has_deleted && !found.iter().any(outdated) && full_tiers(&found).is_empty() {
            return Ok(false);
        }
        if segment::is_merge_put_off(domain)? {
            return Ok(false);
        }
        // Before segments and the living are read: what is deleted from here on is counted for the next merge.
        if has_deleted {
            segment::delete_deletion_counts(domain)?;
        }
        let headers = segment::lock_for_merge(domain)?;
        // What is deleted of segments that somebody else holds stays counted.
        if has_deleted && found.iter().any(|f| headers.iter().all(|h| h.id() != f.id())) {
            let code = pgrx::PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE;
            return Err(Error::new(code, "keyword segments of the domain are locked"));
        }
        let outdated = headers.iter().any(outdated);
        let chosen = if outdated || has_deleted { headers.clone() } else { full_tiers(&headers) };
        if chosen.is_empty() {
            return Ok(false);
        }
        worker::set_activity("rag_ext: merging keyword segments");
        let collection =
            collection::of_domain(domain)?.ok_or_else(|| Error::internal("a domain has no collection"))?;
        if outdated {
            rebuild(domain, &collection, &chosen)?;
        } else {
            merge_segments(domain, &collection, &chosen)?;
        }
        segment::forget_merge_failure(domain)?;
        Ok(true)
    })
}

/// All segments up to the largest tier that has at least [`FAN_IN`] of them.
fn full_tiers(headers: &[SegmentHeader]) -> Vec<SegmentHeader> {
    let tier = |h: &SegmentHeader| h.entries.max(1).ilog(FAN_IN as u32);
    let largest =
        headers.iter().map(tier).filter(|t| headers.iter().filter(|h| tier(h) == *t).count() >= FAN_IN).max();
    match largest {
        Some(largest) => headers.iter().filter(|h| tier(h) <= largest).cloned().collect(),
        None => Vec::new(),
    }
}

fn merge_segments(domain: Id, collection: &Collection, chosen: &[SegmentHeader]) -> Result<()> {
    let Some(first) = chosen.first() else { return Ok(()) };
    let mut open: Vec<Segment> = Vec::with_capacity(chosen.len());
    let mut ids = Vec::new();
    for header in chosen {
        let segment = Segment::open(segment::load_latest(header)?)?;
        ids.extend(segment.ids());
        open.push(segment);
    }
    // Only what is merged is looked up: the cost of a small merge is not that of a large domain.
    let alive: HashSet<Id> = chunk::alive(domain, &ids)?.into_iter().collect();
    if let Some(bytes) = rag_bm25::merge_while(&open, &|id| alive.contains(&id), interrupts::goes_on)? {
        let merged = Segment::open(bytes.clone())?;
        let chunks: Vec<Id> = merged.ids().collect();
        segment::insert(domain, (&first.language, &collection.model), &chunks, &bytes)?;
    }
    let replaced: Vec<Id> = chosen.iter().map(SegmentHeader::id).collect();
    segment::delete(domain, &replaced)
}

/// Analyses all chunks of a domain anew.
fn rebuild(domain: Id, collection: &Collection, chosen: &[SegmentHeader]) -> Result<()> {
    let language = Language::from_name(&collection.language)
        .ok_or_else(|| Error::invalid(format!("unknown language \"{}\"", collection.language)))?;
    let replaced: Vec<Id> = chosen.iter().map(SegmentHeader::id).collect();
    let mut ids = HashSet::new();
    for header in chosen {
        ids.extend(Segment::open(segment::load_latest(header)?)?.ids());
    }
    let texts = chunk::indexed_texts(domain)?;
    let entries: Vec<_> = texts.iter().filter(|(id, _, _)| ids.contains(id)).collect();
    if !entries.is_empty() {
        let bytes = rag_bm25::build(
            language,
            entries.iter().map(|(id, title, body)| {
                interrupts::check();
                Entry { id: *id, title, body }
            }),
        )?;
        let chunks: Vec<Id> = entries.iter().map(|(id, _, _)| *id).collect();
        segment::insert(domain, (&collection.language, &collection.model), &chunks, &bytes)?;
    }
    segment::delete(domain, &replaced)
}
