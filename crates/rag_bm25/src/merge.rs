//! Several segments to one, in the calling thread.

use std::collections::HashSet;

use tantivy::directory::{OwnedBytes, RamDirectory};
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::merge_filtered_segments;
use tantivy::{BitSet, IndexSettings};

use crate::bundle::{self, Contents};
use crate::{Error, Segment, index};

/// Makes one blob of the entries for which `alive` is true, in the order of the segments. It scores
/// bit-identically to a segment built from those entries. `None` when none is alive.
///
/// An id that several segments have is taken from the first of them, and `alive` is asked once: text that was
/// taken away and came back under its old id counts once.
///
/// # Errors
/// [`Error::LanguageMismatch`] and [`Error::AnalyserVersion`] when the segments differ in these.
pub fn merge(segments: &[Segment], alive: &dyn Fn(u128) -> bool) -> Result<Option<Vec<u8>>, Error> {
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
        for (entry, id) in (0..).zip(segment.ids()) {
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
    let directory = RamDirectory::create();
    let sources: Vec<_> = mounted.iter().map(|mounted| mounted.segment().clone()).collect();
    let index = merge_filtered_segments(&sources, IndexSettings::default(), filters, directory.clone())?;
    let files = index::files_of(&index, &directory)?;
    Ok(Some(bundle::write(&contents, &files)))
}
