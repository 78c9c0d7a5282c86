//! A folder for files that live no longer than the work that makes them.

use crate::error::{Error, Result};
use pgrx::PgSqlErrorCode;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where Postgres keeps temporary files. What is named like one is taken away when the server starts, or starts anew after
/// a crash, and base backups leave it out.
const PARENT: &str = "base/pgsql_tmp";
const PREFIX: &str = "pgsql_tmp_rag_ext";

/// How many this process has made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// An empty folder of this process, taken away with the value.
pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Makes it. Where that fails, 58030.
    pub(crate) fn new() -> Result<Self> {
        Self::make().map_err(|error| {
            let code = PgSqlErrorCode::ERRCODE_IO_ERROR;
            Error::new(code, format!("a folder for temporary files cannot be made: {error}"))
        })
    }

    fn make() -> io::Result<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(PARENT).join(format!("{PREFIX}.{}.{number}", std::process::id()));
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
