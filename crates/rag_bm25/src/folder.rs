//! Files of a merge that is too large for memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{AntiCallToken, FileHandle, OwnedBytes, TerminatingWrite, WritePtr};

/// A folder of the caller's, who makes it and takes it away.
#[derive(Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.0.join(path).exists()
    }

    pub(crate) fn create(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        match File::create_new(self.0.join(path)) {
            Ok(file) => Ok(BufWriter::new(Box::new(Written(file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.to_owned()))
            }
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.to_owned())),
        }
    }

    pub(crate) fn open(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        match Reading::open(&self.0.join(path)) {
            Ok(reading) => Ok(Arc::new(reading)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenReadError::FileDoesNotExist(path.to_owned()))
            }
            Err(error) => Err(OpenReadError::wrap_io_error(error, path.to_owned())),
        }
    }

    pub(crate) fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        std::fs::remove_file(self.0.join(path)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeleteError::FileDoesNotExist(path.to_owned()),
            _ => DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() },
        })
    }
}

struct Written(File);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TerminatingWrite for Written {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.flush()
    }
}

/// A whole file, of which parts are read when they are wanted.
#[derive(Debug)]
struct Reading {
    file: File,
    length: usize,
}

impl Reading {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        Ok(Self { file, length })
    }
}

impl HasLen for Reading {
    fn len(&self) -> usize {
        self.length
    }
}

impl FileHandle for Reading {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let mut bytes = vec![0; range.len()];
        self.file.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}
