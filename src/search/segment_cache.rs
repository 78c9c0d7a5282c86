//! Open segments of this backend: large ones mapped from files that all backends share, small ones on the heap.
//!
//! A segment never changes, so what is cached is never wrong; what may be seen is decided anew by each call,
//! which lists the segments in its snapshot. A segment of the caller's own open transaction is not cached.

use crate::error::Result;
use crate::pg::cache_file::{self, Identity};
use crate::pg::transaction;
use crate::storage::Id;
use crate::storage::segment::{self, SegmentHeader};
use rag_bm25::Segment;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;

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

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// Most bytes of small segments loaded by one statement.
const LOADED_AT_ONCE: u64 = 16 * 1024 * 1024;

/// Opens the segments that the caller's snapshot shows, in their order.
pub(crate) fn open_all(headers: &[SegmentHeader]) -> Result<Vec<Segment>> {
    let mut open: Vec<Option<Segment>> = Vec::with_capacity(headers.len());
    let mut small: Vec<usize> = Vec::new();
    for (index, header) in headers.iter().enumerate() {
        let mut found = None;
        if header.is_uncommitted {
            found = Some(Segment::open(segment::load(header)?)?);
        } else if let Some(cached) = CACHE.with_borrow_mut(|cache| cache.get(header)) {
            found = Some(cached);
        } else if header.bytes > HEAP_SEGMENT_BYTES {
            let (segment, file) = open_mapped(header)?;
            if file.is_some() {
                CACHE.with_borrow_mut(|cache| cache.insert(header, segment.clone(), file));
            }
            found = Some(segment);
        } else {
            small.push(index);
        }
        open.push(found);
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
        for (index, bytes) in group.iter().zip(segment::load_many(&wanted)?) {
            let loaded = Segment::open(bytes)?;
            CACHE.with_borrow_mut(|cache| cache.insert(&headers[*index], loaded.clone(), None));
            open[*index] = Some(loaded);
        }
    }
    Ok(open.into_iter().flatten().collect())
}

/// A large segment, with the file that it is mapped from. Where no file can be written it is on the heap, and not to be
/// kept there.
fn open_mapped(header: &SegmentHeader) -> Result<(Segment, Option<Identity>)> {
    let name = file_name(&header.sha256);
    if let Some((map, file)) = cache_file::map(&name, header.bytes) {
        match Segment::open(map) {
            Ok(segment) => return Ok((segment, Some(file))),
            // The rows are the truth; the file is written anew below.
            Err(_) => pgrx::warning!("rag_ext: a cached keyword segment is damaged and will be replaced"),
        }
    }
    let bytes = segment::load(header)?;
    // A full disk must not stop a search.
    if cache_file::store(&name, &bytes).is_ok()
        && let Some((map, file)) = cache_file::map(&name, header.bytes)
    {
        return Ok((Segment::open(map)?, Some(file)));
    }
    Ok((Segment::open(bytes)?, None))
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
    let keep: std::collections::HashSet<String> =
        segment::all_digests()?.iter().map(|digest| file_name(digest)).collect();
    // A file that goes missing is written anew by whoever wants it.
    let _ = cache_file::remove_others(&file_prefix(), |name| keep.contains(name));
    Ok(())
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
