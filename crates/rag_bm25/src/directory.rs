//! The directory that tantivy works in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, RamDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

use crate::folder::Folder;

use crate::interrupt::{GoesOn, check};

/// Files by their path.
pub(crate) type Files = HashMap<PathBuf, OwnedBytes>;

/// Files that are mounted in it, which are found first, and what is written: in memory or in a folder. It takes nothing
/// more once somebody wants the work to end: tantivy asks nobody, but stops at the first file that it cannot write.
#[derive(Clone)]
pub(crate) struct WorkDirectory {
    /// What tantivy writes about its files, and the files, where there is no folder for them.
    memory: RamDirectory,
    folder: Option<Folder>,
    mounted: Arc<Mutex<Files>>,
    goes_on: GoesOn,
}

impl WorkDirectory {
    /// For reading what is mounted.
    pub(crate) fn of_mounted(mounted: Arc<Mutex<Files>>) -> Self {
        Self { memory: RamDirectory::create(), folder: None, mounted, goes_on: || true }
    }

    /// For work that may be ended, with its files in a folder or in memory.
    pub(crate) fn interruptible(folder: Option<&Path>, goes_on: GoesOn) -> Self {
        let folder = folder.map(Folder::new);
        Self { memory: RamDirectory::create(), folder, mounted: Arc::default(), goes_on }
    }

    fn mounted(&self, path: &Path) -> Option<OwnedBytes> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

impl std::fmt::Debug for WorkDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkDirectory")
    }
}

struct Writer {
    file: WritePtr,
    goes_on: GoesOn,
}

impl std::io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // Not of the kind Interrupted, which asks for another try.
        check(self.goes_on).map_err(std::io::Error::other)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl TerminatingWrite for Writer {
    fn terminate_ref(&mut self, token: AntiCallToken) -> std::io::Result<()> {
        self.file.terminate_ref(token)
    }
}

impl Directory for WorkDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        match (self.mounted(path), &self.folder) {
            (Some(bytes), _) => Ok(Arc::new(bytes)),
            (None, Some(folder)) => folder.open(path),
            (None, None) => self.memory.get_file_handle(path),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        match &self.folder {
            Some(folder) => folder.delete(path),
            None => self.memory.delete(path),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        let is_there = self.mounted(path).is_some() || self.folder.as_ref().is_some_and(|f| f.has(path));
        if is_there { Ok(true) } else { self.memory.exists(path) }
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = match &self.folder {
            Some(folder) => folder.create(path)?,
            None => self.memory.open_write(path)?,
        };
        Ok(WritePtr::new(Box::new(Writer { file, goes_on: self.goes_on })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.memory.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> std::io::Result<()> {
        self.memory.atomic_write(path, data)
    }

    fn sync_directory(&self) -> std::io::Result<()> {
        self.memory.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.memory.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.memory.watch(watch_callback)
    }
}
