//! Files of this database that all backends share: copies of what is kept as rows, and bundles of it.

use super::blob_cache::Blob;
use crate::error::Result;
use crate::pg::cache_file::{self, Identity, Writing};
use crate::pg::elevation::elevated;
use crate::pg::{database, interrupts, transaction};
use crate::storage::blob::{self, BlobHeader};
use rag_core::hash::sha256;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How long somebody else's file is waited for, and between two looks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Between two looks of a standby's session for files that nobody needs.
const BETWEEN_STANDBY_LOOKS: Duration = Duration::from_secs(600);

/// How long a bundle is kept after it was last opened, how often that is noted, and most bytes of all bundles.
const BUNDLE_AGE: Duration = Duration::from_secs(3600);
const BETWEEN_NOTES: Duration = Duration::from_secs(300);
const BUNDLE_BYTES: u64 = 1 << 30;

/// Before the digest in the name of a bundle: no digest begins so.
const BUNDLE: &str = "bundle_";

thread_local! {
    static STANDBY_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A mapped file.
#[derive(Debug, Clone)]
pub(super) struct SharedFile {
    name: String,
    identity: Identity,
}

impl SharedFile {
    /// See [`cache_file::is_intact`].
    pub(super) fn is_intact(&self) -> bool {
        cache_file::is_intact(&self.name, &self.identity)
    }
}

/// Maps the copy of a blob. Whoever finds none writes it, and the others who want it wait for that, but not for ever. `None`
/// where there is none in the end. `write` tells whether the disk took it.
pub(super) fn map_blob<B: Blob>(
    header: &BlobHeader,
    write: impl FnOnce(&mut Writing) -> Result<bool>,
) -> Result<Option<(B, SharedFile)>> {
    let (name, length) = (file_name(&header.sha256), Some(header.bytes));
    let begun = Instant::now();
    let mut writing = loop {
        if let Some(mapped) = map(&name, length) {
            return Ok(Some(mapped));
        }
        match cache_file::begin(&name) {
            Ok(Some(writing)) => break writing,
            Ok(None) if begun.elapsed() < LONGEST_WAIT => interrupts::pause(BETWEEN_LOOKS),
            // A full disk must not stop a search.
            Ok(None) | Err(_) => return Ok(None),
        }
    };
    if !write(&mut writing)? || writing.finish().is_err() {
        return Ok(None);
    }
    remove_stale_files_of_standby()?;
    Ok(map(&name, length))
}

/// Maps a bundle, if there is one.
pub(super) fn map_bundle<B: Blob>(digest: &[u8; 32]) -> Option<(B, SharedFile)> {
    let name = bundle_name(digest);
    let (age, _) = cache_file::age_and_length(&name)?;
    if age > BETWEEN_NOTES {
        cache_file::touch(&name);
    }
    map(&name, None)
}

/// Writes a bundle and maps it; `None` where the disk does not take it, or somebody else is at it.
pub(super) fn write_bundle<B: Blob>(digest: &[u8; 32], bytes: &[u8]) -> Result<Option<(B, SharedFile)>> {
    let name = bundle_name(digest);
    let Ok(Some(mut writing)) = cache_file::begin(&name) else { return Ok(None) };
    if writing.write(bytes).is_err() || writing.finish().is_err() {
        return Ok(None);
    }
    remove_stale_files_of_standby()?;
    Ok(map(&name, None))
}

fn map<B: Blob>(name: &str, length: Option<u64>) -> Option<(B, SharedFile)> {
    let (map, identity) = cache_file::map(name, length)?;
    match B::open(map) {
        Ok(blob) => Some((blob, SharedFile { name: name.to_owned(), identity })),
        // The rows are the truth; the file is written anew.
        Err(_) => {
            pgrx::warning!("rag_ext: a cached {} is damaged and will be replaced", B::KIND.noun());
            let _ = cache_file::remove(name);
            None
        }
    }
}

/// Named by database and content: ids repeat after PITR, promotion and CREATE DATABASE … TEMPLATE.
fn file_name(sha256: &[u8]) -> String {
    with_digest(file_prefix(), sha256)
}

fn bundle_name(digest: &[u8]) -> String {
    with_digest(file_prefix() + BUNDLE, digest)
}

fn with_digest(mut name: String, digest: &[u8]) -> String {
    for byte in digest {
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
    let before_bundles = file_prefix() + BUNDLE;
    let is_bundle = |name: &&String| name.starts_with(&before_bundles);
    let (bundles, copies): (Vec<&String>, Vec<&String>) = files.iter().partition(is_bundle);
    remove_old_bundles(bundles);
    let wanted: HashSet<String> = blob::all_digests()?.iter().map(|digest| file_name(digest)).collect();
    // One that is being written has a dot behind its digest.
    let digest_of = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    remove(copies.into_iter().filter(|name| !wanted.contains(&digest_of(name))));
    Ok(())
}

/// Nobody knows of a bundle whether its parts are there still: one that was not opened for long is unlinked, and the oldest
/// where they are too much.
fn remove_old_bundles(bundles: Vec<&String>) {
    let mut aged: Vec<(Duration, u64, &String)> = bundles
        .into_iter()
        .filter_map(|name| cache_file::age_and_length(name).map(|(age, length)| (age, length, name)))
        .collect();
    aged.sort_unstable();
    let mut bytes = 0;
    remove(aged.into_iter().filter_map(|(age, length, name)| {
        bytes += length;
        (age > BUNDLE_AGE || bytes > BUNDLE_BYTES).then_some(name)
    }));
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
