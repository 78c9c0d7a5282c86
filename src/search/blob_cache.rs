//! Open keyword segments and vector codes of this backend: large ones mapped from files that all backends share, small
//! ones on the heap.
//!
//! What is kept under a digest never changes, so what is cached is never wrong; what may be seen is decided anew by each
//! call, which lists the segments in its snapshot. What the caller's own open transaction has written is not cached.

use crate::error::{Error, Result};
use crate::pg::cache_file::{self, Identity, Writing};
use crate::pg::elevation::elevated;
use crate::pg::{database, interrupts, transaction};
use crate::storage::blob::{self, BlobHeader, BlobKind, View};
use rag_bm25::Segment;
use rag_core::hash::sha256;
use rag_vector::Codes;
use stable_deref_trait::StableDeref;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::thread::LocalKey;
use std::time::{Duration, Instant};

/// What is up to this size is kept on the heap: a file and a map would cost more.
const HEAP_BLOB_BYTES: u64 = 64 * 1024;

/// Most bytes of one kind on this backend's heap.
const HEAP_BYTES: u64 = 12 * 1024 * 1024;

/// What is up to this size is on the heap of a worker that reads it once.
const WORKER_HEAP_BYTES: u64 = 4 * 1024 * 1024;

/// How long somebody else's file is waited for, and between two looks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

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
    file: Option<Identity>,
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

/// Between two looks of a standby's session for files that nobody needs.
const BETWEEN_STANDBY_LOOKS: Duration = Duration::from_secs(600);

thread_local! {
    static SEGMENTS: RefCell<Cache<Segment>> = RefCell::default();
    static CODES: RefCell<Cache<Codes>> = RefCell::default();
    static STANDBY_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
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
        } else if let Some(cached) = B::cache().with_borrow_mut(|cache| cache.get(header)) {
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
                B::cache().with_borrow_mut(|cache| cache.insert(header, blob.clone(), None));
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
        B::cache().with_borrow_mut(|cache| cache.insert(header, blob.clone(), file));
    }
    Ok(blob)
}

/// Mapped from its file. Whoever finds none writes it, and the others who want it wait for that, but not for ever: they
/// read the rows themselves then.
fn map_or_load<B: Blob>(header: &BlobHeader, view: View) -> Result<(B, Option<Identity>)> {
    let name = file_name(&header.sha256);
    let begun = Instant::now();
    loop {
        if let Some((blob, file)) = map(&name, header) {
            return Ok((blob, Some(file)));
        }
        match cache_file::begin(&name) {
            Ok(Some(writing)) => {
                if fill(B::KIND, header, view, writing)? {
                    remove_stale_files_of_standby()?;
                    if let Some((blob, file)) = map(&name, header) {
                        return Ok((blob, Some(file)));
                    }
                }
                break;
            }
            Ok(None) if begun.elapsed() < LONGEST_WAIT => interrupts::pause(BETWEEN_LOOKS),
            // A full disk must not stop a search.
            Ok(None) | Err(_) => break,
        }
    }
    Ok((B::open(blob::load(B::KIND, header, view)?)?, None))
}

fn map<B: Blob>(name: &str, header: &BlobHeader) -> Option<(B, Identity)> {
    let (map, file) = cache_file::map(name, header.bytes)?;
    match B::open(map) {
        Ok(blob) => Some((blob, file)),
        // The rows are the truth; the file is written anew.
        Err(_) => {
            pgrx::warning!("rag_ext: a cached {} is damaged and will be replaced", B::KIND.noun());
            let _ = cache_file::remove(name);
            None
        }
    }
}

/// Writes what the rows have; false where the disk does not take it.
fn fill(kind: BlobKind, header: &BlobHeader, view: View, mut file: Writing) -> Result<bool> {
    let mut is_written = true;
    blob::read(kind, header, view, |part| is_written = is_written && file.write(part).is_ok())?;
    Ok(is_written && file.finish().is_ok())
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

/// Unlinks files of what this database no longer has. For workers, in a transaction.
pub(crate) fn remove_stale_files() -> Result<()> {
    // Before the digests are listed: one that is committed meanwhile may be in use already, with a file.
    let files = cache_file::names(&file_prefix()).unwrap_or_default();
    if files.is_empty() {
        return Ok(());
    }
    let wanted: HashSet<String> = blob::all_digests()?.iter().map(|digest| file_name(digest)).collect();
    // One that is being written has a dot behind its digest.
    let digest_of = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    remove(files.iter().filter(|name| !wanted.contains(&digest_of(name))));
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

/// Whether the cached file is what the rows say; `None` if there is none.
pub(crate) fn is_file_sound(header: &BlobHeader) -> Option<bool> {
    let bytes = cache_file::read(&file_name(&header.sha256))?;
    Some(sha256(&bytes) == header.sha256)
}

/// Has the cached file written anew when it is wanted next.
pub(crate) fn remove_file(header: &BlobHeader) {
    let _ = cache_file::remove(&file_name(&header.sha256));
}

impl<B: Blob> Cache<B> {
    fn get(&mut self, header: &BlobHeader) -> Option<B> {
        self.clock += 1;
        let cached = self.blobs.get_mut(&header.sha256)?;
        if cached.file.is_some_and(|file| !cache_file::is_intact(&file_name(&header.sha256), &file)) {
            self.blobs.remove(&header.sha256);
            self.mapped -= 1;
            pgrx::warning!(
                "rag_ext: a cached {} was cut short from outside and will be replaced",
                B::KIND.noun()
            );
            return None;
        }
        cached.used = self.clock;
        Some(cached.blob.clone())
    }

    fn insert(&mut self, header: &BlobHeader, blob: B, file: Option<Identity>) {
        let heap_bytes = if file.is_some() { 0 } else { header.bytes };
        self.heap_bytes += heap_bytes;
        self.mapped += usize::from(file.is_some());
        self.blobs.insert(header.sha256, Cached { blob, file, heap_bytes, used: self.clock });
        if self.heap_bytes > HEAP_BYTES || self.mapped > MAPPED_BLOBS {
            self.evict();
        }
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
