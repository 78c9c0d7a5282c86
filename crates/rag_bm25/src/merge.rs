//! Several segments to one, in the calling thread.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use tantivy::directory::OwnedBytes;
use tantivy::directory::error::OpenWriteError;
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::merge_filtered_segments;
use tantivy::{BitSet, TantivyError};

use crate::bundle::{Contents, Pieces};
use crate::directory::WorkDirectory;
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
    merge_to(None, segments, alive, goes_on)?.map(|merged| merged.pieces.to_bytes()).transpose()
}

/// [`merge_while`] of segments that may be large, with tantivy's files in a folder: an empty one, which the caller makes
/// and takes away. In memory are, for each entry, its id and lengths, a few times, and the longest list of postings.
///
/// # Errors
/// Those of [`merge_while`], and [`Error::File`].
pub fn merge_in(
    folder: &Path,
    segments: &[Segment],
    alive: &dyn Fn(u128) -> bool,
    goes_on: GoesOn,
) -> Result<Option<Merged>, Error> {
    merge_to(Some(folder), segments, alive, goes_on)
}

/// A merged blob that is not in memory: see [`merge_in`]. Its files may be unlinked while it lives.
pub struct Merged {
    ids: Vec<u128>,
    pieces: Pieces,
}

impl Merged {
    /// The ids of its entries, in their order.
    pub fn ids(&self) -> &[u128] {
        &self.ids
    }

    /// Bytes of the blob.
    pub fn size(&self) -> usize {
        self.pieces.len()
    }

    /// Reads the blob from its beginning.
    pub fn reader(&self) -> impl Read + '_ {
        self.pieces.reader()
    }
}

fn merge_to(
    folder: Option<&Path>,
    segments: &[Segment],
    alive: &dyn Fn(u128) -> bool,
    goes_on: GoesOn,
) -> Result<Option<Merged>, Error> {
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
    let directory = WorkDirectory::interruptible(folder, goes_on);
    let sources: Vec<_> = mounted.iter().map(|mounted| mounted.segment().clone()).collect();
    let merged = merge_filtered_segments(&sources, index::settings(), filters, directory.clone());
    if merged.is_err() {
        // What tantivy says of a file that it could not write is not why.
        check(goes_on)?;
    }
    let merged = merged.map_err(|error| if folder.is_some() { of_a_folder(error) } else { error.into() })?;
    let files = index::files_of(&merged, &directory)?;
    let pieces = Pieces::new(&contents, &files, goes_on)?;
    Ok(Some(Merged { ids: contents.ids, pieces }))
}

/// What it says of files, told as such: inputs were checked, so there is no damage where a disk is full.
fn of_a_folder(error: TantivyError) -> Error {
    match error {
        TantivyError::IoError(cause)
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: cause, .. }) => {
            Error::File(std::io::Error::new(cause.kind(), cause.to_string()))
        }
        other => other.into(),
    }
}
