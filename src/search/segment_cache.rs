//! Open segments of this backend: large ones mapped from files that all backends share, small ones on the heap.
//!
//! A segment never changes, so what is cached is never wrong; what may be seen is decided anew by each call,
//! which lists the segments in its snapshot. A segment of the caller's own open transaction is not cached.

use crate::error::{Error, Result};
use crate::pg::cache_file::{self, Identity};
use crate::pg::elevation::elevated;
use crate::pg::{database, interrupts, transaction};
use crate::storage::Id;
use crate::storage::segment::{self, SegmentHeader};
use rag_bm25::Segment;
use rag_core::hash::sha256;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Segments up to this size are kept on the heap: a file and a map would cost more.
const HEAP_SEGMENT_BYTES: u64 = 64 * 1024;

/// Most bytes of segments on this backend's heap.
const HEAP_BYTES: u64 = 12 * 1024 * 1024;

/// Most mapped segments of this backend.
const MAPPED_SEGMENTS: usize = 1024;

struct Cached {
    segment: Segment,
    /// The file that it is mapped from; without one it is on the heap.
    file: Option<Identity>,
    heap_bytes: u64,
    used: u64,
}

#[derive(Default)]
struct Cache {
    segments: HashMap<Id, Cached>,
    heap_bytes: u64,
    mapped: usize,
    clock: u64,
}

/// Between two looks of a standby's session for files that nobody needs.
const BETWEEN_STANDBY_LOOKS: Duration = Duration::from_secs(600);

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
    static STANDBY_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Most bytes of small segments loaded by one statement.
const LOADED_AT_ONCE: u64 = 16 * 1024 * 1024;

/// Segments that were opened.
#[derive(Default)]
pub(crate) struct Opened {
    /// Each with its place among those that were asked for, in their order.
    pub(crate) segments: Vec<(usize, Segment)>,
    /// What is wrong with one that is left out.
    pub(crate) damage: Option<Error>,
}

impl Opened {
    /// Takes a segment in, or leaves it out where it is damaged.
    fn add(&mut self, index: usize, outcome: Result<Segment>) -> Result<()> {
        match outcome {
            Ok(segment) => self.segments.push((index, segment)),
            Err(error) if error.is_damage() => {
                self.damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Opens the segments that the caller's snapshot shows. Damaged ones are left out.
pub(crate) fn open_all(headers: &[SegmentHeader]) -> Result<Opened> {
    let mut open = Opened::default();
    let mut small: Vec<usize> = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        interrupts::check();
        if header.is_uncommitted {
            open.add(index, transaction::attempt(|| read(header)))?;
        } else if let Some(cached) = CACHE.with_borrow_mut(|cache| cache.get(header)) {
            open.segments.push((index, cached));
        } else if header.bytes > HEAP_SEGMENT_BYTES {
            open.add(index, transaction::attempt(|| open_mapped(header)))?;
        } else {
            small.push(index);
        }
    }
    let mut rest = small.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|index| {
            bytes += headers[**index].bytes;
            bytes <= LOADED_AT_ONCE
        });
        let (group, others) = rest.split_at(fits.count().max(1));
        rest = others;
        let wanted: Vec<&SegmentHeader> = group.iter().map(|index| &headers[*index]).collect();
        // The caller's own policies have listed them; asked row by row of thousands, they would cost more than the rest.
        let loaded = match transaction::attempt(|| elevated(|| segment::load_many(&wanted))) {
            // A page that cannot be read: one by one, to leave out no more than lies on it.
            Err(error) if error.is_damage() => {
                wanted.iter().map(|header| transaction::attempt(|| segment::load(header))).collect()
            }
            loaded => loaded?,
        };
        for (index, bytes) in group.iter().zip(loaded) {
            let opened = bytes.and_then(|bytes| Ok(Segment::open(bytes)?));
            if let Ok(segment) = &opened {
                CACHE.with_borrow_mut(|cache| cache.insert(&headers[*index], segment.clone(), None));
            }
            open.add(*index, opened)?;
        }
    }
    open.segments.sort_unstable_by_key(|(index, _)| *index);
    Ok(open)
}

/// A segment as its rows have it, whatever is cached.
pub(crate) fn read(header: &SegmentHeader) -> Result<Segment> {
    Ok(Segment::open(segment::load(header)?)?)
}

/// A large segment, mapped from a file. Where none can be written it is on the heap.
fn open_mapped(header: &SegmentHeader) -> Result<Segment> {
    let name = file_name(&header.sha256);
    let keep = |segment: Segment, file: Option<Identity>| {
        CACHE.with_borrow_mut(|cache| cache.insert(header, segment.clone(), file));
        segment
    };
    if let Some((map, file)) = cache_file::map(&name, header.bytes) {
        match Segment::open(map) {
            Ok(segment) => return Ok(keep(segment, Some(file))),
            // The rows are the truth; the file is written anew below.
            Err(_) => pgrx::warning!("rag_ext: a cached keyword segment is damaged and will be replaced"),
        }
    }
    let bytes = segment::load(header)?;
    // A full disk must not stop a search.
    if cache_file::store(&name, &bytes).is_ok() {
        remove_stale_files_of_standby()?;
        if let Some((map, file)) = cache_file::map(&name, header.bytes) {
            return Ok(keep(Segment::open(map)?, Some(file)));
        }
    }
    let segment = Segment::open(bytes)?;
    // On the heap it counts as such; one beyond all bounds is not kept at all.
    Ok(if header.bytes > HEAP_BYTES { segment } else { keep(segment, None) })
}

/// Named by database and content: ids repeat after PITR, promotion and CREATE DATABASE … TEMPLATE.
fn file_name(sha256: &[u8]) -> String {
    let mut name = file_prefix();
    for byte in sha256 {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn file_prefix() -> String {
    format!("{}_", transaction::database())
}

/// Unlinks files of this database's segments that no longer exist. For workers, in a transaction.
pub(crate) fn remove_stale_files() -> Result<()> {
    // Before the segments are listed: one that is committed meanwhile may be in use already, with a file.
    let files = cache_file::names(&file_prefix()).unwrap_or_default();
    if files.is_empty() {
        return Ok(());
    }
    let wanted: HashSet<String> = segment::all_digests()?.iter().map(|digest| file_name(digest)).collect();
    // One that is being written has its writer's number behind a dot.
    let segment_of = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    remove(files.iter().filter(|name| !wanted.contains(&segment_of(name))));
    Ok(())
}

/// Unlinks files of databases that were dropped. In a transaction.
pub(crate) fn remove_files_of_dropped_databases() {
    let files = cache_file::names("").unwrap_or_default();
    let databases = database::all();
    remove(files.iter().filter(|name| {
        let database = name.split_once('_').and_then(|(database, _)| database.parse().ok());
        database.is_some_and(|database| !databases.contains(&database))
    }));
}

/// A file that goes missing is written anew by whoever wants it, one that cannot be removed is looked at again.
fn remove<'a>(files: impl Iterator<Item = &'a String>) {
    for file in files {
        let _ = cache_file::remove(file);
    }
}

/// A standby has no workers, so its sessions clear up: one that has written a file, and has not looked for a while.
fn remove_stale_files_of_standby() -> Result<()> {
    let is_due = || STANDBY_LOOK.get().is_none_or(|looked: Instant| looked.elapsed() > BETWEEN_STANDBY_LOOKS);
    if !transaction::in_recovery() || !is_due() {
        return Ok(());
    }
    STANDBY_LOOK.set(Some(Instant::now()));
    remove_files_of_dropped_databases();
    elevated(remove_stale_files)
}

/// Whether the cached file of a segment is what its rows say; `None` if there is none.
pub(crate) fn is_file_sound(header: &SegmentHeader) -> Option<bool> {
    let bytes = cache_file::read(&file_name(&header.sha256))?;
    Some(sha256(&bytes) == header.sha256)
}

/// Has the cached file of a segment written anew when it is wanted next.
pub(crate) fn remove_file(header: &SegmentHeader) {
    let _ = cache_file::remove(&file_name(&header.sha256));
}

impl Cache {
    fn get(&mut self, header: &SegmentHeader) -> Option<Segment> {
        self.clock += 1;
        let cached = self.segments.get_mut(&header.id)?;
        if cached.file.is_some_and(|file| !cache_file::is_intact(&file_name(&header.sha256), &file)) {
            self.segments.remove(&header.id);
            self.mapped -= 1;
            pgrx::warning!(
                "rag_ext: a cached keyword segment was cut short from outside and will be replaced"
            );
            return None;
        }
        cached.used = self.clock;
        Some(cached.segment.clone())
    }

    fn insert(&mut self, header: &SegmentHeader, segment: Segment, file: Option<Identity>) {
        let heap_bytes = if file.is_some() { 0 } else { header.bytes };
        self.heap_bytes += heap_bytes;
        self.mapped += usize::from(file.is_some());
        self.segments.insert(header.id, Cached { segment, file, heap_bytes, used: self.clock });
        if self.heap_bytes > HEAP_BYTES || self.mapped > MAPPED_SEGMENTS {
            self.evict();
        }
    }

    /// Drops the older half, so that a scan over many segments does not evict once per segment.
    fn evict(&mut self) {
        let mut ages: Vec<u64> = self.segments.values().map(|c| c.used).collect();
        let middle = ages.len() / 2;
        let (_, median, _) = ages.select_nth_unstable(middle);
        let median = *median;
        self.segments.retain(|_, cached| cached.used > median);
        self.heap_bytes = self.segments.values().map(|c| c.heap_bytes).sum();
        self.mapped = self.segments.values().filter(|c| c.file.is_some()).count();
    }
}
