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
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Up to so many bytes a merge is done in memory, and a domain is merged as a whole for its deleted chunks.
const SMALL_BYTES: u64 = 8 << 20;

/// Between two looks for deleted entries in a domain in which they cannot be helped.
const BETWEEN_LOOKS: Duration = Duration::from_secs(3600);

/// Chunks that are looked up at a time, and that are analysed at a time.
const LOOKED_UP: usize = 10_000;
const BUILT: usize = 20_000;

/// How far the look at the segments of all domains has come. It is never over: it goes on where it was, around and around,
/// and begins anywhere, so that workers that live shortly look at all of them together.
pub(super) struct Round {
    place: Id,
    /// Domains in which nothing could be done about deleted entries, though these are many, and when they were looked up.
    looked_up: HashMap<Id, Instant>,
}

impl Round {
    pub(super) fn new() -> Self {
        // Its last 62 bits are random, and come first.
        let place = random::new_id().map_or(0, |id| Id::from_be_bytes(id) << 66);
        Self { place, looked_up: HashMap::new() }
    }

    /// Looks at some thousands of domains, at all if there are no more. Merges one that wants it, and is true then; and has
    /// an index worker come if codes of vectors are to be made.
    pub(super) fn go_on(&mut self, looks: usize) -> Result<bool> {
        self.looked_up.retain(|_, since| since.elapsed() < BETWEEN_LOOKS);
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
            for wants in &looked {
                let is_worn = wants.is_worn && !self.looked_up.contains_key(&wants.domain);
                if !wants.merge && !is_worn {
                    continue;
                }
                if worker::should_stop() || !config::merge_enabled() {
                    return Ok(false);
                }
                match merge_domain(wants.domain, is_worn)? {
                    Outcome::Merged => return Ok(true),
                    Outcome::NothingWorn => drop(self.looked_up.insert(wants.domain, Instant::now())),
                    Outcome::Later => {}
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
        while !worker::should_stop() && matches!(merge_domain(domain, false)?, Outcome::Merged) {}
    }
    Ok(())
}

/// What became of a domain's merge.
enum Outcome {
    Merged,
    /// It has many deleted entries, but no segment does that would be rid of them: they are older copies of others.
    NothingWorn,
    /// Nothing is due, or somebody holds what is to be merged, or it is put off.
    Later,
}

/// Merges a domain. What is wrong with one, such as damage, does not keep others from being merged: it is noted, and the
/// domain left alone for a while.
fn merge_domain(domain: Id, is_worn: bool) -> Result<Outcome> {
    match unless_locked(try_merge(domain, is_worn)).map(|outcome| outcome.unwrap_or(Outcome::Later)) {
        Err(error) if !worker::should_stop() => {
            log_failure(&error);
            let sqlstate = sqlstate_text(error.code);
            worker::transaction(|| segment::put_off_merge(domain, &sqlstate, &error.one_line()))?;
            Ok(Outcome::Later)
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

fn try_merge(domain: Id, is_worn: bool) -> Result<Outcome> {
    let Some(groups) = due(domain, is_worn)? else { return Ok(Outcome::NothingWorn) };
    let mut was_merged = false;
    for group in groups {
        if worker::should_stop() {
            break;
        }
        was_merged |= worker::transaction(|| replace(domain, &group))?;
    }
    Ok(if was_merged { Outcome::Merged } else { Outcome::Later })
}

/// Segments that are to be replaced, by one or by new ones, in a transaction of their own.
struct Group {
    segments: Vec<Id>,
    /// These are all that the domain has, and are replaced for their deleted entries: none is left.
    is_whole: bool,
}

/// What is due; `None` where a look for segments with deleted entries found none.
fn due(domain: Id, is_worn: bool) -> Result<Option<Vec<Group>>> {
    let (counts, found) = worker::transaction(|| {
        // Before the segments: what is counted here are entries of these.
        let counts = if is_worn { segment::deletion_counts(domain)? } else { Vec::new() };
        Ok((counts, segment::latest(domain)?))
    })?;
    let max_bytes = config::max_segment_bytes();
    let outdated: Vec<_> = (0..found.len()).filter(|place| is_outdated(&found[*place])).collect();
    let full = merging::full_tier(&sizes(&found), max_bytes);
    // Most times there is nothing to do.
    if outdated.is_empty() && full.is_empty() && !is_worn
        || worker::transaction(|| segment::is_merge_put_off(domain))?
    {
        return Ok(Some(Vec::new()));
    }
    let bytes: u64 = found.iter().map(|header| header.blob.bytes).sum();
    let mut is_whole = false;
    let groups = if !outdated.is_empty() {
        outdated.into_iter().map(|place| vec![place]).collect()
    } else if !full.is_empty() {
        vec![full]
    } else if bytes <= SMALL_BYTES.min(max_bytes) {
        is_whole = true;
        vec![(0..found.len()).collect()]
    } else {
        let worn = worn(domain, &found, &counts)?;
        if worn.is_empty() {
            return Ok(None);
        }
        worn
    };
    let ids = |group: Vec<usize>| group.into_iter().map(|place| found[place].id()).collect();
    Ok(Some(groups.into_iter().map(|group| Group { segments: ids(group), is_whole }).collect()))
}

fn is_outdated(header: &SegmentHeader) -> bool {
    header.analyser_version < rag_bm25::ANALYSER_VERSION
}

fn sizes(headers: &[SegmentHeader]) -> Vec<SegmentSize> {
    headers.iter().map(SegmentHeader::size).collect()
}

/// Groups of places of segments that are written anew for their deleted entries: those that have many. All are looked up
/// for that, so they are counted anew, too: a count that is too high would have them looked up again and again.
fn worn(domain: Id, headers: &[SegmentHeader], counts: &[Id]) -> Result<Vec<Vec<usize>>> {
    worker::set_activity("rag_ext: looking for deleted entries of keyword segments");
    let mut sizes = sizes(headers);
    // Halves of their ids, which are random: enough to tell them apart.
    let mut living: Vec<u64> = Vec::new();
    let mut entries = 0;
    for (size, header) in sizes.iter_mut().zip(headers) {
        if worker::should_stop() {
            return Ok(Vec::new());
        }
        let alive = worker::transaction(|| alive_in(domain, &search::open_latest(&header.blob)?))?;
        size.deleted = header.entries.saturating_sub(u32::try_from(alive.len()).unwrap_or(u32::MAX));
        entries += i64::from(header.entries);
        living.extend(alive.iter().map(|id| *id as u64));
    }
    living.sort_unstable();
    living.dedup();
    worker::transaction(|| segment::recount_deleted(domain, counts, entries - living.len() as i64))?;
    Ok(merging::worn(&sizes, config::max_segment_bytes()))
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
fn replace(domain: Id, group: &Group) -> Result<bool> {
    if group.is_whole {
        // Before segments and the living are read: what is deleted from here on is counted for the next merge.
        segment::delete_deletion_counts(domain)?;
        if segment::latest(domain)?.iter().any(|header| !group.segments.contains(&header.id())) {
            return Err(Error::locked("a segment has come"));
        }
    }
    let headers = segment::lock_for_merge(domain, &group.segments)?;
    if headers.len() < group.segments.len() {
        return if group.is_whole { Err(Error::locked("a segment is held")) } else { Ok(false) };
    }
    worker::set_activity("rag_ext: merging keyword segments");
    let collection =
        collection::of_domain(domain)?.ok_or_else(|| Error::internal("a domain has no collection"))?;
    let left = match headers.iter().any(is_outdated) {
        true => rebuild(domain, &collection, &headers)?,
        false => merge_segments(domain, &collection, &headers)?,
    };
    segment::delete(domain, &group.segments)?;
    let entries: i64 = headers.iter().map(|header| i64::from(header.entries)).sum();
    if left < entries && !group.is_whole {
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
    let folder = ScratchFolder::new()?;
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
