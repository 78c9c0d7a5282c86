//! Merging the keyword segments of a domain, each merge in a transaction of its own: see `rag_core::merging` for which.
//!
//! Deleted chunks leave the index, and the statistics, with the merge that covers them, and are counted until then.

use crate::config;
use crate::error::{Error, Result, sqlstate_text, unless_locked};
use crate::pg::scratch_folder::ScratchFolder;
use crate::pg::{interrupts, memory, random, shared, worker};
use crate::search;
use crate::storage::collection::{self, Collection};
use crate::storage::segment::{self, SegmentHeader};
use crate::storage::{Id, chunk};
use rag_bm25::{Entry, Language, Segment};
use rag_core::merging::{self, FAN_IN, SegmentSize};
use std::collections::HashSet;

/// Up to so many bytes a merge is done in memory, and a domain is merged as a whole for its deleted chunks.
const SMALL_BYTES: u64 = 8 << 20;

/// Chunks that are looked up at a time, and that are analysed at a time.
const LOOKED_UP: usize = 10_000;
const BUILT: usize = 20_000;

/// How far the look at the segments of all domains has come. It is never over: it goes on where it was, around and around,
/// and begins anywhere, so that workers that live shortly look at all of them together.
pub(super) struct Round {
    place: Id,
}

impl Round {
    pub(super) fn new() -> Self {
        // The random half of it comes first.
        let place = random::new_id().map_or(0, |id| Id::from_be_bytes(id).rotate_left(64));
        Self { place }
    }

    /// Looks at some thousands of domains, at all if there are no more. Merges one that wants it, and is true then; and has
    /// an index worker come if codes of vectors are to be made.
    pub(super) fn go_on(&mut self, looks: usize) -> Result<bool> {
        let start = self.place;
        let mut is_around = false;
        for _ in 0..looks {
            let looked = match worker::transaction(|| segment::look_at(self.place, FAN_IN)) {
                // A page of the table that cannot be read keeps nobody's documents from being processed.
                Err(error) if error.is_damage() => {
                    log_failure(&error);
                    return Ok(false);
                }
                looked => unless_locked(looked)?.unwrap_or_default(),
            };
            if looked.iter().any(|wants| wants.codes) {
                shared::request_index();
            }
            for wants in looked.iter().filter(|wants| wants.merge || wants.is_worn) {
                if worker::should_stop() || !config::merge_enabled() {
                    return Ok(false);
                }
                if merge_domain(wants.domain, wants.is_worn)? {
                    return Ok(true);
                }
            }
            match looked.last() {
                Some(last) if looked.len() == segment::LOOKED_AT => self.place = last.domain,
                _ if is_around => break,
                _ => (self.place, is_around) = (0, true),
            }
            if is_around && self.place >= start {
                break;
            }
        }
        Ok(false)
    }
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
fn merge_domain(domain: Id, is_worn: bool) -> Result<bool> {
    match unless_locked(try_merge(domain, is_worn)).map(|merged| merged.unwrap_or(false)) {
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

fn try_merge(domain: Id, is_worn: bool) -> Result<bool> {
    let mut was_merged = false;
    for group in due(domain, is_worn)? {
        if worker::should_stop() {
            break;
        }
        was_merged |= worker::transaction(|| replace(domain, &group))?;
    }
    Ok(was_merged)
}

/// Groups of segments that are to be replaced, each by one or by new ones, in a transaction of its own.
fn due(domain: Id, is_worn: bool) -> Result<Vec<Vec<Id>>> {
    let found = worker::transaction(|| segment::latest(domain))?;
    let max_bytes = config::max_segment_bytes();
    let groups = if found.iter().any(is_outdated) {
        (0..found.len()).filter(|place| is_outdated(&found[*place])).map(|place| vec![place]).collect()
    } else {
        let full = merging::full_tier(&sizes(&found), max_bytes);
        let has_full = !full.is_empty();
        if has_full || !is_worn { vec![full] } else { worn(domain, &found, max_bytes)? }
    };
    let groups: Vec<Vec<Id>> = groups
        .into_iter()
        .filter(|group| !group.is_empty())
        .map(|group| group.into_iter().map(|place| found[place].id()).collect())
        .collect();
    if groups.is_empty() || worker::transaction(|| segment::is_merge_put_off(domain))? {
        return Ok(Vec::new());
    }
    Ok(groups)
}

fn is_outdated(header: &SegmentHeader) -> bool {
    header.analyser_version < rag_bm25::ANALYSER_VERSION
}

fn sizes(headers: &[SegmentHeader]) -> Vec<SegmentSize> {
    headers.iter().map(SegmentHeader::size).collect()
}

/// Groups of places of segments that are written anew for their deleted entries: all of a small domain, otherwise those
/// that have many, for which all are looked up.
fn worn(domain: Id, headers: &[SegmentHeader], max_bytes: u64) -> Result<Vec<Vec<usize>>> {
    let bytes: u64 = headers.iter().map(|header| header.blob.bytes).sum();
    if bytes <= SMALL_BYTES.min(max_bytes) {
        return Ok(vec![(0..headers.len()).collect()]);
    }
    worker::set_activity("rag_ext: looking for deleted entries of keyword segments");
    let mut sizes = sizes(headers);
    for (size, header) in sizes.iter_mut().zip(headers) {
        if worker::should_stop() {
            return Ok(Vec::new());
        }
        size.deleted = worker::transaction(|| deleted_entries(domain, header))?;
    }
    Ok(merging::worn(&sizes, max_bytes))
}

fn deleted_entries(domain: Id, header: &SegmentHeader) -> Result<u32> {
    let segment: Segment = search::open_latest(&header.blob)?;
    let alive = alive_in(domain, &segment)?;
    Ok(segment.len().saturating_sub(u32::try_from(alive.len()).unwrap_or(u32::MAX)))
}

/// Entries of a segment that are not deleted.
fn alive_in(domain: Id, segment: &Segment) -> Result<HashSet<Id>> {
    let ids: Vec<Id> = segment.ids().collect();
    let mut alive = HashSet::with_capacity(ids.len());
    for some in ids.chunks(LOOKED_UP) {
        interrupts::check();
        alive.extend(memory::scoped(|| chunk::alive(domain, some))?);
    }
    Ok(alive)
}

/// Replaces segments of a domain; false while somebody holds one of them, or where one is gone.
fn replace(domain: Id, group: &[Id]) -> Result<bool> {
    let headers = segment::lock_for_merge(domain, group)?;
    if headers.len() < group.len() {
        return Ok(false);
    }
    worker::set_activity("rag_ext: merging keyword segments");
    let collection =
        collection::of_domain(domain)?.ok_or_else(|| Error::internal("a domain has no collection"))?;
    let left = match headers.iter().any(is_outdated) {
        true => rebuild(domain, &collection, &headers)?,
        false => merge_segments(domain, &collection, &headers)?,
    };
    segment::delete(domain, group)?;
    let entries: i64 = headers.iter().map(|header| i64::from(header.entries)).sum();
    if left < entries {
        segment::uncount_deleted(domain, entries - left)?;
    }
    segment::forget_merge_failure(domain)?;
    Ok(true)
}

/// Makes one segment of several, and returns how many entries it has.
fn merge_segments(domain: Id, collection: &Collection, headers: &[SegmentHeader]) -> Result<i64> {
    let Some(first) = headers.first() else { return Ok(0) };
    let mut open: Vec<Segment> = Vec::with_capacity(headers.len());
    let mut alive: HashSet<Id> = HashSet::new();
    for header in headers {
        let segment: Segment = search::open_latest(&header.blob)?;
        // Only what is merged is looked up: the cost of a small merge is not that of a large domain.
        alive.extend(alive_in(domain, &segment)?);
        open.push(segment);
    }
    let is_alive = |id| alive.contains(&id);
    let names = (first.language.as_str(), collection.model.as_str());
    let bytes: u64 = headers.iter().map(|header| header.blob.bytes).sum();
    if bytes <= SMALL_BYTES {
        let Some(bytes) = rag_bm25::merge_while(&open, &is_alive, interrupts::goes_on)? else { return Ok(0) };
        let chunks: Vec<Id> = Segment::open(bytes.clone())?.ids().collect();
        segment::insert(domain, names, &chunks, || bytes.as_slice())?;
        return Ok(chunks.len() as i64);
    }
    let folder = ScratchFolder::new().map_err(|error| {
        let code = pgrx::PgSqlErrorCode::ERRCODE_IO_ERROR;
        Error::new(code, format!("a folder for merging cannot be made: {error}"))
    })?;
    let merged = rag_bm25::merge_in(folder.path(), &open, &is_alive, interrupts::goes_on)?;
    let Some(merged) = merged else { return Ok(0) };
    segment::insert(domain, names, merged.ids(), || merged.reader())?;
    Ok(merged.ids().len() as i64)
}

/// Analyses the chunks of segments anew, and returns how many entries the new segments have.
fn rebuild(domain: Id, collection: &Collection, headers: &[SegmentHeader]) -> Result<i64> {
    let language = Language::from_name(&collection.language)
        .ok_or_else(|| Error::invalid(format!("unknown language \"{}\"", collection.language)))?;
    let mut left = 0;
    for header in headers {
        let ids: Vec<Id> = search::open_latest::<Segment>(&header.blob)?.ids().collect();
        for some in ids.chunks(BUILT) {
            let entries = chunk::indexed_texts(domain, some)?;
            if entries.is_empty() {
                continue;
            }
            let bytes = rag_bm25::build(
                language,
                entries.iter().map(|(id, title, body)| {
                    interrupts::check();
                    Entry { id: *id, title, body }
                }),
            )?;
            let chunks: Vec<Id> = entries.iter().map(|(id, _, _)| *id).collect();
            segment::insert(domain, (&collection.language, &collection.model), &chunks, || bytes.as_slice())?;
            left += chunks.len() as i64;
        }
    }
    Ok(left)
}
