//! Files that hold copies of stored bytes, mapped into the backend: one map per file, shared by all backends.

use super::socket::own_user;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folder of the cache, relative to the data directory, where every backend lives. Base backups and `pg_rewind`
/// leave out what is in `pg_stat_tmp`, and checksums are looked for elsewhere.
pub(crate) const FOLDER: &str = "pg_stat_tmp/rag_ext";

/// Read by the server's user, written by nobody: a file is whole before it gets its name.
const MODE: u32 = 0o400;

/// End of the name of a file that is being written.
const ASIDE: &str = ".part";

const NEITHER_LINK_NOR_PIPE: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

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

/// Maps a cached file, if it is there, has this length where one is given, is the server's own and nobody may write it.
pub(crate) fn map(name: &str, length: Option<u64>) -> Option<(MappedFile, Identity)> {
    let file = open_to_read(name).ok()?;
    let found = file.metadata().ok()?;
    let is_ours = found.is_file() && found.uid() == own_user() && found.mode() & 0o777 == MODE;
    if !is_ours || length.is_some_and(|length| found.len() != length) {
        return None;
    }
    // SAFETY: files of the cache are written aside, renamed into place and later only unlinked. Nobody may write them;
    // one that the server's user or root has cut short nevertheless is noticed by `is_intact` before it is used again.
    let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    Some((MappedFile(map), Identity { device: found.dev(), inode: found.ino(), length: found.len() }))
}

/// Whether a mapped file still has all its bytes. Reading those that are gone would end the server (SIGBUS).
pub(crate) fn is_intact(name: &str, file: &Identity) -> bool {
    match fs::symlink_metadata(path(name)) {
        Ok(found) if (found.dev(), found.ino()) == (file.device, file.inode) => found.len() == file.length,
        // Unlinked or replaced: what is mapped has no name by which anybody could reach it.
        _ => true,
    }
}

/// Time since a cached file was written or [`touch`]ed, and its bytes.
pub(crate) fn age_and_length(name: &str) -> Option<(Duration, u64)> {
    let found = fs::symlink_metadata(path(name)).ok()?;
    Some((found.modified().ok()?.elapsed().unwrap_or_default(), found.len()))
}

/// Notes that a cached file is still wanted.
pub(crate) fn touch(name: &str) {
    // One that is gone is written anew.
    let _ = open_to_read(name).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Neither a link nor a pipe that somebody has put there is followed or waited for.
fn open_to_read(name: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NEITHER_LINK_NOR_PIPE).open(path(name))
}

/// All bytes of a cached file; `None` if it is not there or cannot be read.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    fs::read(path(name)).ok()
}

/// A file that is being written: aside, until it is whole. No other process writes the same one meanwhile.
pub(crate) struct Writing {
    file: File,
    aside: PathBuf,
    name: PathBuf,
    is_finished: bool,
}

/// Begins to write a file; `None` while another process does. One that died at it has left no lock.
pub(crate) fn begin(name: &str) -> io::Result<Option<Writing>> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(FOLDER)?;
    let (aside, name) = (path(&format!("{name}{ASIDE}")), path(name));
    loop {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.custom_flags(NEITHER_LINK_NOR_PIPE).open(&aside)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // Whoever was at it before may have given it its name meanwhile, or taken it away.
        let (ours, named) = (file.metadata()?, fs::symlink_metadata(&aside));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            file.set_len(0)?;
            return Ok(Some(Writing { file, aside, name, is_finished: false }));
        }
    }
}

impl Writing {
    /// Appends bytes and makes them durable: a disk that is full is to say so now, not when they are read.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_data()
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(MODE))?;
        fs::rename(&self.aside, &self.name)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_file(&self.aside);
        }
    }
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
