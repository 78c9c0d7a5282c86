//! Files that hold copies of stored bytes, mapped into the backend: one map per file, shared by all backends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folder of the cache, relative to the data directory, where every backend lives. Base backups and `pg_rewind`
/// leave out what is in `pg_stat_tmp`, and checksums are looked for elsewhere.
pub(crate) const FOLDER: &str = "pg_stat_tmp/rag_ext";

/// Bytes of a mapped file.
pub(crate) struct MappedFile(memmap2::Mmap);

impl std::ops::Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

// SAFETY: the map stays where it is when the value moves, and is never written.
unsafe impl stable_deref_trait::StableDeref for MappedFile {}

/// Maps a cached file, if it is there and has this length.
pub(crate) fn map(name: &str, length: u64) -> io::Result<Option<MappedFile>> {
    let file = match File::open(path(name)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    if file.metadata()?.len() != length {
        return Ok(None);
    }
    // SAFETY: files of the cache are written aside, renamed into place and later only unlinked, never changed or
    // truncated, so the mapped bytes stay what they are.
    unsafe { memmap2::Mmap::map(&file) }.map(|map| Some(MappedFile(map)))
}

/// Writes a file aside, makes it durable and renames it into place. Of two that write at once one wins; their
/// bytes are the same.
pub(crate) fn store(name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(FOLDER)?;
    let aside = path(&format!("{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&aside, path(name))
    })();
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

/// Unlinks the cached files with this prefix that `keep` does not want. Those that are mapped live on until
/// their last map is gone.
pub(crate) fn remove_others(prefix: &str, keep: impl Fn(&str) -> bool) -> io::Result<usize> {
    let mut removed = 0;
    let entries = match fs::read_dir(FOLDER) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if let Some(name) = name.to_str()
            && name.starts_with(prefix)
            && !keep(name)
        {
            fs::remove_file(path(name))?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}
