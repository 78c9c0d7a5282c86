//! A folder for files that live no longer than the work that makes them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where Postgres keeps temporary files. What is named like one is taken away when the server starts, or starts anew after
/// a crash, and base backups leave it out.
const PARENT: &str = "base/pgsql_tmp";
const PREFIX: &str = "pgsql_tmp_rag_ext";

/// An empty folder of this process, taken away with the value.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Makes it; a process has one at a time.
    pub(crate) fn new() -> io::Result<Self> {
        let path = Path::new(PARENT).join(format!("{PREFIX}.{}", std::process::id()));
        // Left by a process of the same number that was killed.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
