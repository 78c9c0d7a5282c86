//! Small keyword segments by the thousand, as a caller has who sees thousands of domains: opened and searched one by one
//! they would take most of a search, and keeping them open more memory than a session should.
//!
//! They are merged into bundles: files that all backends share which see the same segments. A bundle is of exactly the
//! segments that the caller's snapshot shows in a part of the domains, and named by their digests, so it is never out of
//! date, and a change in one domain makes one bundle anew. Scores are the same to the last bit, see `rag_bm25`; but text that
//! was taken away and came back under its old id, which is in two segments until these are merged, counts once.

use super::blob_cache::{self, HEAP_BLOB_BYTES};
use super::shared_file;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::{interrupts, memory, transaction};
use crate::storage::blob::{self, BlobHeader, BlobKind};
use crate::storage::segment::SegmentHeader;
use rag_bm25::{FORMAT_VERSION, Segment};
use rag_core::hash::Hasher;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Fewest small segments that are bundled.
const FEWEST: usize = 256;

/// About how many segments are in a bundle.
const BUNDLED: usize = 128;

/// Most bundles that one search makes; what is in the others it opens one by one.
const MADE_AT_ONCE: usize = 4;

/// Segments are bundled once they are older than this, and all at once: while documents keep coming, the bundles do not
/// change with each of them.
const SLOT: Duration = Duration::from_secs(300);

/// Bundles, and the segments that are in none.
pub(super) struct Bundled<'a> {
    pub(super) bundles: Vec<Segment>,
    pub(super) others: Vec<&'a SegmentHeader>,
}

/// Opens bundles, where there are many small segments.
pub(super) fn open(headers: &[SegmentHeader]) -> Result<Bundled<'_>> {
    let mut bundles = Vec::new();
    let (small, mut others): (Vec<_>, Vec<_>) = headers
        .iter()
        .partition(|header| !header.blob.is_uncommitted && header.blob.bytes <= HEAP_BLOB_BYTES);
    if small.len() < FEWEST {
        return Ok(Bundled { bundles, others: headers.iter().collect() });
    }
    let settled = settled();
    let parts = (small.len() / BUNDLED).next_power_of_two() as u64;
    let mut groups: BTreeMap<(&str, u32, u64), Vec<&SegmentHeader>> = BTreeMap::new();
    for header in small {
        if created(header) < settled {
            let part = spread(header.blob.domain) % parts;
            groups.entry((&header.language, header.analyser_version, part)).or_default().push(header);
        } else {
            others.push(header);
        }
    }
    let mut may_make = MADE_AT_ONCE;
    for group in groups.into_values() {
        match bundle(&group, &mut may_make)? {
            Some(segment) => bundles.push(segment),
            None => others.extend(group),
        }
    }
    Ok(Bundled { bundles, others })
}

/// When a segment must have been made to be bundled, in milliseconds.
fn settled() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let slot = SLOT.as_millis() as u64;
    (now / slot).saturating_sub(1) * slot
}

/// When a segment was made, in milliseconds: its id is a UUID of version 7.
fn created(header: &SegmentHeader) -> u64 {
    (header.id() >> 80) as u64
}

/// A number that tells domains apart, whatever their ids are like.
fn spread(domain: u128) -> u64 {
    let folded = (domain >> 64) as u64 ^ domain as u64;
    folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// The bundle of these segments; `None` where there is none and it may not be made, or one of them is damaged.
fn bundle(group: &[&SegmentHeader], may_make: &mut usize) -> Result<Option<Segment>> {
    interrupts::check();
    let digest = digest(group);
    if let Some(kept) = blob_cache::kept(&digest) {
        return Ok(Some(kept));
    }
    let mapped: Option<(Segment, _)> = shared_file::map_bundle(&digest);
    let (segment, file) = match mapped {
        Some((segment, file)) => (segment, Some(file)),
        None if *may_make == 0 => return Ok(None),
        None => {
            *may_make -= 1;
            let Some(bytes) = merge(group)? else { return Ok(None) };
            match shared_file::write_bundle(&digest, &bytes)? {
                Some((segment, file)) => (segment, Some(file)),
                None => (Segment::open(bytes)?, None),
            }
        }
    };
    if file.is_some() {
        // What searches before this one have opened one by one.
        memory::note_freed(blob_cache::let_go::<Segment>(group.iter().map(|header| &header.blob.sha256)));
    }
    blob_cache::keep(digest, segment.size() as u64, &segment, file);
    Ok(Some(segment))
}

fn digest(group: &[&SegmentHeader]) -> [u8; 32] {
    let mut hasher = Hasher::default();
    hasher.update(b"bundle");
    hasher.update(&FORMAT_VERSION.to_le_bytes());
    group.iter().for_each(|header| hasher.update(&header.blob.sha256));
    hasher.finish()
}

fn merge(group: &[&SegmentHeader]) -> Result<Option<Vec<u8>>> {
    let wanted: Vec<&BlobHeader> = group.iter().map(|header| &header.blob).collect();
    let merged = || {
        // The caller's own policies have listed them.
        let loaded = elevated(|| blob::load_many(BlobKind::Segment, &wanted))?;
        let segments: Vec<Segment> =
            loaded.into_iter().map(|bytes| Ok(Segment::open(bytes?)?)).collect::<Result<_>>()?;
        Ok(rag_bm25::merge_while(&segments, &|_| true, interrupts::goes_on)?)
    };
    match transaction::attempt(merged) {
        Err(error) if error.is_damage() => Ok(None),
        merged => merged,
    }
}
