//! Open keyword segments and vector codes of this backend: large ones mapped from files that all backends share, small
//! ones on the heap.
//!
//! What is kept under a digest never changes, so what is cached is never wrong; what may be seen is decided anew by each
//! call, which lists the segments in its snapshot. What the caller's own open transaction has written is not cached.

use super::shared_file::{self, SharedFile};
use crate::error::{Error, Result};
use crate::pg::cache_file::Writing;
use crate::pg::elevation::elevated;
use crate::pg::{interrupts, memory, transaction};
use crate::storage::blob::{self, BlobHeader, BlobKind, View};
use rag_bm25::Segment;
use rag_vector::Codes;
use stable_deref_trait::StableDeref;
use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::LocalKey;

/// What is up to this size is kept on the heap: a file and a map would cost more.
pub(super) const HEAP_BLOB_BYTES: u64 = 64 * 1024;

/// Most bytes of one kind on this backend's heap.
const HEAP_BYTES: u64 = 12 * 1024 * 1024;

/// What is up to this size is on the heap of a worker that reads it once.
const WORKER_HEAP_BYTES: u64 = 4 * 1024 * 1024;

/// Most mapped files of one kind of this backend.
const MAPPED_BLOBS: usize = 1024;

/// What is made of bytes that are kept as rows.
pub(crate) trait Blob: Clone + 'static {
    const KIND: BlobKind;

    /// Opens the bytes and checks all of them.
    fn open(bytes: impl StableDeref<Target = [u8]> + Send + Sync + 'static) -> Result<Self>;

    /// Those of this backend.
    fn cache() -> &'static LocalKey<RefCell<Cache<Self>>>;
}

impl Blob for Segment {
    const KIND: BlobKind = BlobKind::Segment;

    fn open(bytes: impl StableDeref<Target = [u8]> + Send + Sync + 'static) -> Result<Self> {
        Ok(Segment::open(bytes)?)
    }

    fn cache() -> &'static LocalKey<RefCell<Cache<Self>>> {
        &SEGMENTS
    }
}

impl Blob for Codes {
    const KIND: BlobKind = BlobKind::Codes;

    fn open(bytes: impl StableDeref<Target = [u8]> + Send + Sync + 'static) -> Result<Self> {
        Ok(Codes::open(bytes)?)
    }

    fn cache() -> &'static LocalKey<RefCell<Cache<Self>>> {
        &CODES
    }
}

struct Cached<B> {
    blob: B,
    /// The file that it is mapped from; without one it is on the heap.
    file: Option<SharedFile>,
    heap_bytes: u64,
    used: u64,
}

/// Open blobs of one kind, by their digest.
pub(crate) struct Cache<B> {
    blobs: HashMap<[u8; 32], Cached<B>>,
    heap_bytes: u64,
    mapped: usize,
    clock: u64,
}

impl<B> Default for Cache<B> {
    fn default() -> Self {
        Self { blobs: HashMap::new(), heap_bytes: 0, mapped: 0, clock: 0 }
    }
}

thread_local! {
    static SEGMENTS: RefCell<Cache<Segment>> = RefCell::default();
    static CODES: RefCell<Cache<Codes>> = RefCell::default();
}

/// Most bytes of small blobs loaded by one statement.
const LOADED_AT_ONCE: u64 = 16 * 1024 * 1024;

/// What was opened.
pub(crate) struct Opened<B> {
    /// Each with its place among those that were asked for, in their order.
    pub(crate) blobs: Vec<(usize, B)>,
    /// What is wrong with one that is left out.
    pub(crate) damage: Option<Error>,
}

impl<B> Opened<B> {
    /// Takes one in, or leaves it out where it is damaged.
    fn add(&mut self, index: usize, outcome: Result<B>) -> Result<()> {
        match outcome {
            Ok(blob) => self.blobs.push((index, blob)),
            Err(error) if error.is_damage() => {
                self.damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Opens what the caller's snapshot shows. What is damaged is left out.
pub(crate) fn open_all<B: Blob>(headers: &[impl AsRef<BlobHeader>]) -> Result<Opened<B>> {
    let mut open = Opened { blobs: Vec::new(), damage: None };
    let mut small: Vec<usize> = Vec::new();
    for (index, header) in headers.iter().map(AsRef::as_ref).enumerate() {
        interrupts::check();
        if header.is_uncommitted {
            open.add(index, transaction::attempt(|| read(header)))?;
        } else if let Some(cached) = kept(&header.sha256) {
            open.blobs.push((index, cached));
        } else if header.bytes > HEAP_BLOB_BYTES {
            open.add(index, transaction::attempt(|| open_mapped(header)))?;
        } else {
            small.push(index);
        }
    }
    let mut rest = small.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|index| {
            bytes += headers[**index].as_ref().bytes;
            bytes <= LOADED_AT_ONCE
        });
        let (group, others) = rest.split_at(fits.count().max(1));
        rest = others;
        let wanted: Vec<&BlobHeader> = group.iter().map(|index| headers[*index].as_ref()).collect();
        memory::note_freed(wanted.iter().map(|header| header.bytes).sum());
        // The caller's own policies have listed them; asked row by row of thousands, they would cost more than the rest.
        let loaded = match transaction::attempt(|| elevated(|| blob::load_many(B::KIND, &wanted))) {
            // A page that cannot be read: one by one, to leave out no more than lies on it.
            Err(error) if error.is_damage() => {
                let load = |header| transaction::attempt(|| blob::load(B::KIND, header, View::Snapshot));
                wanted.iter().map(|header| load(header)).collect()
            }
            loaded => loaded?,
        };
        for (index, bytes) in group.iter().zip(loaded) {
            let opened = bytes.and_then(B::open);
            if let Ok(blob) = &opened {
                let header = headers[*index].as_ref();
                keep(header.sha256, header.bytes, blob, None);
            }
            open.add(*index, opened)?;
        }
    }
    open.blobs.sort_unstable_by_key(|(index, _)| *index);
    Ok(open)
}

/// What the rows have, whatever is cached.
pub(crate) fn read<B: Blob>(header: &BlobHeader) -> Result<B> {
    B::open(blob::load(B::KIND, header, View::Snapshot)?)
}

/// What was committed last, kept by nobody. For workers.
pub(crate) fn open_latest<B: Blob>(header: &BlobHeader) -> Result<B> {
    if header.bytes <= WORKER_HEAP_BYTES {
        return B::open(blob::load(B::KIND, header, View::Latest)?);
    }
    Ok(map_or_load(header, View::Latest)?.0)
}

/// A large one, mapped from a file. Where none can be written it is on the heap.
fn open_mapped<B: Blob>(header: &BlobHeader) -> Result<B> {
    let (blob, file): (B, _) = map_or_load(header, View::Snapshot)?;
    // On the heap it counts as such; one beyond all bounds is not kept at all.
    if file.is_some() || header.bytes <= HEAP_BYTES {
        keep(header.sha256, header.bytes, &blob, file);
    }
    Ok(blob)
}

fn map_or_load<B: Blob>(header: &BlobHeader, view: View) -> Result<(B, Option<SharedFile>)> {
    let write = |file: &mut Writing| {
        let mut is_written = true;
        blob::read(B::KIND, header, view, |part| is_written = is_written && file.write(part).is_ok())?;
        Ok(is_written)
    };
    Ok(match shared_file::map_blob(header, write)? {
        Some((blob, file)) => (blob, Some(file)),
        None => (B::open(blob::load(B::KIND, header, view)?)?, None),
    })
}

/// What is kept under a digest.
pub(super) fn kept<B: Blob>(digest: &[u8; 32]) -> Option<B> {
    B::cache().with_borrow_mut(|cache| cache.get(digest))
}

/// Keeps so many bytes under their digest: mapped from a file or, without one, on the heap.
pub(super) fn keep<B: Blob>(digest: [u8; 32], bytes: u64, blob: &B, file: Option<SharedFile>) {
    B::cache().with_borrow_mut(|cache| cache.insert(digest, bytes, blob.clone(), file));
}

/// Keeps none of these any longer; how many bytes of this backend's heap they had.
pub(super) fn let_go<'a, B: Blob>(digests: impl Iterator<Item = &'a [u8; 32]>) -> u64 {
    B::cache().with_borrow_mut(|cache| digests.map(|digest| cache.remove(digest)).sum())
}

impl<B: Blob> Cache<B> {
    fn get(&mut self, digest: &[u8; 32]) -> Option<B> {
        self.clock += 1;
        let cached = self.blobs.get_mut(digest)?;
        if cached.file.as_ref().is_some_and(|file| !file.is_intact()) {
            self.remove(digest);
            pgrx::warning!(
                "rag_ext: a cached {} was cut short from outside and will be replaced",
                B::KIND.noun()
            );
            return None;
        }
        cached.used = self.clock;
        Some(cached.blob.clone())
    }

    fn insert(&mut self, digest: [u8; 32], bytes: u64, blob: B, file: Option<SharedFile>) {
        self.remove(&digest);
        // Of those that come in one go none is as old as another: half of them are to stay.
        self.clock += 1;
        let heap_bytes = if file.is_some() { 0 } else { bytes };
        self.heap_bytes += heap_bytes;
        self.mapped += usize::from(file.is_some());
        self.blobs.insert(digest, Cached { blob, file, heap_bytes, used: self.clock });
        if self.heap_bytes > HEAP_BYTES || self.mapped > MAPPED_BLOBS {
            self.evict();
        }
    }

    /// How many bytes it had on the heap.
    fn remove(&mut self, digest: &[u8; 32]) -> u64 {
        let Some(removed) = self.blobs.remove(digest) else { return 0 };
        self.heap_bytes -= removed.heap_bytes;
        self.mapped -= usize::from(removed.file.is_some());
        removed.heap_bytes
    }

    /// Drops the older half, so that a scan over many does not evict once for each.
    fn evict(&mut self) {
        let mut ages: Vec<u64> = self.blobs.values().map(|c| c.used).collect();
        let middle = ages.len() / 2;
        let (_, median, _) = ages.select_nth_unstable(middle);
        let median = *median;
        self.blobs.retain(|_, cached| cached.used > median);
        self.heap_bytes = self.blobs.values().map(|c| c.heap_bytes).sum();
        self.mapped = self.blobs.values().filter(|c| c.file.is_some()).count();
    }
}
