//! Long work that somebody may end.

use std::path::Path;
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, RamDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use crate::Error;

/// Asked again and again while work goes on, at least each few thousand entries or kilobytes. Once it says no, the work
/// ends with [`Error::Interrupted`].
pub type GoesOn = fn() -> bool;

/// An error once somebody wants the work to end.
pub(crate) fn check(goes_on: GoesOn) -> Result<(), Error> {
    if goes_on() { Ok(()) } else { Err(Error::Interrupted) }
}

/// Memory that takes nothing more once somebody wants the work to end: tantivy asks nobody, but stops at the first
/// file that it cannot write.
#[derive(Clone)]
pub(crate) struct Interruptible {
    pub(crate) memory: RamDirectory,
    pub(crate) goes_on: GoesOn,
}

impl std::fmt::Debug for Interruptible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interruptible")
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

impl Directory for Interruptible {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.memory.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.memory.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.memory.exists(path)
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
