//! Files that hold copies of stored bytes, mapped into the backend: one map per file, shared by all backends.

use super::socket::own_user;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folder of the cache, relative to the data directory, where every backend lives. Base backups and `pg_rewind`
/// leave out what is in `pg_stat_tmp`, and checksums are looked for elsewhere.
pub(crate) const FOLDER: &str = "pg_stat_tmp/rag_ext";

/// Read by the server's user, written by nobody: a file is whole before it gets its name.
const MODE: u32 = 0o400;

/// Bytes of a mapped file.
pub(crate) struct MappedFile(memmap2::Mmap);

/// By what a mapped file is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    length: u64,
}

impl std::ops::Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

// SAFETY: the map stays where it is when the value moves, and is never written.
unsafe impl stable_deref_trait::StableDeref for MappedFile {}

/// Maps a cached file, if it is there, has this length, is the server's own and nobody may write it.
pub(crate) fn map(name: &str, length: u64) -> Option<(MappedFile, Identity)> {
    // Neither a link nor a pipe that somebody has put there is followed or waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path(name)).ok()?;
    let found = file.metadata().ok()?;
    let is_ours = found.is_file() && found.uid() == own_user() && found.mode() & 0o777 == MODE;
    if !is_ours || found.len() != length {
        return None;
    }
    // SAFETY: files of the cache are written aside, renamed into place and later only unlinked. Nobody may write them;
    // one that the server's user or root has cut short nevertheless is noticed by `is_intact` before it is used again.
    let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    Some((MappedFile(map), Identity { device: found.dev(), inode: found.ino(), length }))
}

/// Whether a mapped file still has all its bytes. Reading those that are gone would end the server (SIGBUS).
pub(crate) fn is_intact(name: &str, file: &Identity) -> bool {
    match fs::symlink_metadata(path(name)) {
        Ok(found) if (found.dev(), found.ino()) == (file.device, file.inode) => found.len() == file.length,
        // Unlinked or replaced: what is mapped has no name by which anybody could reach it.
        _ => true,
    }
}

/// All bytes of a cached file; `None` if it is not there or cannot be read.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    fs::read(path(name)).ok()
}

/// Writes a file aside, makes it durable and renames it into place. Of two that write at once one wins; their
/// bytes are the same.
pub(crate) fn store(name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(FOLDER)?;
    let aside = path(&format!("{name}.{}", std::process::id()));
    let written = (|| {
        // Left by a process of the same number that was killed.
        let _ = fs::remove_file(&aside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&aside)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&aside, path(name))
    })();
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

/// Names of the cached files with this prefix.
pub(crate) fn names(prefix: &str) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(FOLDER) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string()
            && name.starts_with(prefix)
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Unlinks a cached file. If it is mapped it lives on until its last map is gone.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    fs::remove_file(path(name))
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}
