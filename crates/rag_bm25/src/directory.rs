//! The directory that tantivy works in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, RamDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

use crate::interrupt::{GoesOn, check};

/// Files by their path.
pub(crate) type Files = HashMap<PathBuf, OwnedBytes>;

/// Memory, and files that are mounted in it, which are found first. It takes nothing more once somebody wants the work to
/// end: tantivy asks nobody, but stops at the first file that it cannot write.
#[derive(Clone)]
pub(crate) struct MemoryDirectory {
    memory: RamDirectory,
    mounted: Arc<Mutex<Files>>,
    goes_on: GoesOn,
}

impl MemoryDirectory {
    /// For reading what is mounted.
    pub(crate) fn of_mounted(mounted: Arc<Mutex<Files>>) -> Self {
        Self { memory: RamDirectory::create(), mounted, goes_on: || true }
    }

    /// For work that may be ended.
    pub(crate) fn interruptible(goes_on: GoesOn) -> Self {
        Self { memory: RamDirectory::create(), mounted: Arc::default(), goes_on }
    }

    /// What was written.
    pub(crate) fn written(&self) -> &RamDirectory {
        &self.memory
    }

    fn mounted(&self, path: &Path) -> Option<OwnedBytes> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

impl std::fmt::Debug for MemoryDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MemoryDirectory")
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

impl Directory for MemoryDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        match self.mounted(path) {
            Some(bytes) => Ok(Arc::new(bytes)),
            None => self.memory.get_file_handle(path),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.memory.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        if self.mounted(path).is_some() { Ok(true) } else { self.memory.exists(path) }
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let file = self.memory.open_write(path)?;
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
