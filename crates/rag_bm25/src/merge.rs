//! Several segments to one, in the calling thread.

use std::collections::HashSet;

use tantivy::BitSet;
use tantivy::directory::OwnedBytes;
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::merge_filtered_segments;

use crate::bundle::{self, Contents};
use crate::directory::MemoryDirectory;
use crate::interrupt::{GoesOn, check};
use crate::{Error, Segment, index};

/// Entries between two questions whether to go on.
const ENTRIES_AT_ONCE: u32 = 4096;

/// Makes one blob of the entries for which `alive` is true, in the order of the segments. It scores
/// bit-identically to a segment built from those entries. `None` when none is alive.
///
/// An id that several segments have is taken from the first of them, and `alive` is asked once: text that was
/// taken away and came back under its old id counts once.
///
/// # Errors
/// [`Error::LanguageMismatch`] and [`Error::AnalyserVersion`] when the segments differ in these.
pub fn merge(segments: &[Segment], alive: &dyn Fn(u128) -> bool) -> Result<Option<Vec<u8>>, Error> {
    merge_while(segments, alive, || true)
}

/// [`merge`] that somebody may end.
///
/// # Errors
/// Those of [`merge`], and [`Error::Interrupted`] once `goes_on` says no.
pub fn merge_while(
    segments: &[Segment],
    alive: &dyn Fn(u128) -> bool,
    goes_on: GoesOn,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(first) = segments.first() else { return Ok(None) };
    let (language, analyser_version) = (first.language(), first.analyser_version());
    let mut contents = Contents { analyser_version, language, ids: Vec::new(), lengths: Vec::new() };
    let mut mounted = Vec::with_capacity(segments.len());
    let mut filters = Vec::with_capacity(segments.len());
    let mut seen = HashSet::new();
    for segment in segments {
        if segment.language() != language {
            return Err(Error::LanguageMismatch { found: segment.language(), expected: language });
        }
        if segment.analyser_version() != analyser_version {
            return Err(Error::AnalyserVersion {
                found: segment.analyser_version(),
                expected: analyser_version,
            });
        }
        let mut kept = BitSet::with_max_value(segment.len());
        for (entry, id) in (0_u32..).zip(segment.ids()) {
            if entry.is_multiple_of(ENTRIES_AT_ONCE) {
                check(goes_on)?;
            }
            if seen.insert(id) && alive(id) {
                kept.insert(entry);
                contents.ids.push(id);
                contents.lengths.push(segment.lengths(entry));
            }
        }
        if kept.len() > 0 {
            let mut bits = Vec::new();
            write_alive_bitset(&kept, &mut bits)?;
            let is_whole = kept.len() == segment.len() as usize;
            filters.push((!is_whole).then(|| AliveBitSet::open(OwnedBytes::new(bits))));
            mounted.push(segment.mount()?);
        }
    }
    if contents.ids.is_empty() {
        return Ok(None);
    }
    let directory = MemoryDirectory::interruptible(goes_on);
    let sources: Vec<_> = mounted.iter().map(|mounted| mounted.segment().clone()).collect();
    let merged = merge_filtered_segments(&sources, index::settings(), filters, directory.clone());
    if merged.is_err() {
        // What tantivy says of a file that it could not write is not why.
        check(goes_on)?;
    }
    let files = index::files_of(&merged?, directory.written())?;
    Ok(Some(bundle::write(&contents, &files)))
}
