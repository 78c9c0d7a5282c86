//! Files of the server's machine, for roles that may read them.

use crate::error::{Error, Result, excerpt};
use pgrx::PgSqlErrorCode as Code;
use pgrx::pg_sys;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// `pg_read_server_files`.
const ROLE_READ_SERVER_FILES: u32 = 4569;

/// A file of the server.
pub(crate) struct ServerFile {
    /// Absolute; symbolic links stay as they were written.
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a file; a path that is not absolute begins at the data directory.
///
/// 42501: the current user is no member of `pg_read_server_files`, or the server's own user may not read the file.
/// 58P01: there is none. 42809: it is a folder or a device. 54000: it has more than `limit` bytes, which is known
/// before any is read.
pub(crate) fn read(path: &str, limit: u64) -> Result<ServerFile> {
    // SAFETY: catalog look-up within a transaction.
    let may_read =
        unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), pg_sys::Oid::from(ROLE_READ_SERVER_FILES)) };
    if !may_read {
        return Err(Error::forbidden("permission denied to read files of the server")
            .hint("Only roles with privileges of pg_read_server_files may; a client sends files with rag-load or rag_ingest_bytes."));
    }
    if path.is_empty() || path.contains('\0') {
        return Err(Error::invalid("path must not be empty"));
    }
    let failed = |error: std::io::Error| -> Error {
        let code = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Code::ERRCODE_UNDEFINED_FILE,
            ErrorKind::PermissionDenied => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            ErrorKind::InvalidFilename => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            _ => Code::ERRCODE_IO_ERROR,
        };
        Error::new(code, format!("file \"{}\" cannot be read: {error}", excerpt(path)))
    };
    let no_file = || {
        Error::new(Code::ERRCODE_WRONG_OBJECT_TYPE, format!("\"{}\" is not a regular file", excerpt(path)))
            .hint("A folder is loaded by rag-load, or file by file: SELECT rag_ingest_file(folder || '/' || name) FROM pg_ls_dir(folder) name.")
    };
    // A backend's working directory is the data directory.
    let absolute = std::path::absolute(Path::new(path)).map_err(failed)?;
    if !std::fs::metadata(&absolute).map_err(failed)?.is_file() {
        return Err(no_file());
    }
    // Should a pipe have taken its place meanwhile: opening it does not wait for a writer.
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&absolute).map_err(failed)?;
    let status = file.metadata().map_err(failed)?;
    if !status.is_file() {
        return Err(no_file());
    }
    let too_large = |bytes: u64| {
        Error::limit(format!("file \"{}\" has {bytes} bytes, but the limit is {limit}", excerpt(path)))
            .hint("A superuser can raise rag_ext.max_document_size.")
    };
    if status.len() > limit {
        return Err(too_large(status.len()));
    }
    let mut bytes = Vec::with_capacity(status.len() as usize);
    // It may grow while it is read.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(ServerFile { path: absolute, bytes })
}
