//! Whether the extension is in this database, and of the version that this library was made for.

use crate::error::{Error, Result};
use crate::pg::{circumstances, relation, spi};
use std::cell::Cell;

/// The version of the SQL objects that the library knows.
const LIBRARY: &str = env!("CARGO_PKG_VERSION");

/// What a database has of the extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Installed {
    No,
    Yes,
    /// SQL objects of another version than the library's: this one.
    Other(String),
}

pub(crate) fn installed() -> Result<Installed> {
    let found = spi::read_snapshot_one(
        "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'rag_ext'",
        vec![],
        |row| row.require::<String>(1),
    )?;
    Ok(match found {
        None => Installed::No,
        Some(version) if version == LIBRARY => Installed::Yes,
        Some(version) => Installed::Other(version),
    })
}

/// Whether the extension is there, in the library's version.
pub(crate) fn is_installed() -> Result<bool> {
    installed().map(|found| found == Installed::Yes)
}

/// 55000 where library and SQL objects are of different versions: neither knows what the other expects.
pub(crate) fn require_version() -> Result<()> {
    let changes = circumstances::catalog_changes();
    if FOUND_AT.get() == Some(changes) {
        return Ok(());
    }
    if let Installed::Other(version) = installed()? {
        return Err(other_version(&version));
    }
    FOUND_AT.set(Some(changes));
    Ok(())
}

/// Whether all who write what sessions keep something of note what they write, see `rag.note_write()`. Not so before an
/// update of the extension, or where an administrator has switched a trigger off.
pub(crate) fn writes_are_noted() -> bool {
    let changes = circumstances::catalog_changes();
    if NOTED_AT.get() == Some(changes) {
        return true;
    }
    let has = |table, trigger| relation::has_constant_trigger(c"rag", table, trigger);
    let tables =
        [c"collection", c"domain", c"collection_grant", c"accepted_collection", c"attachment", c"acronym"];
    let are_noted = tables.into_iter().all(|table| has(table, c"note_write") && has(table, c"note_truncate"));
    if are_noted {
        NOTED_AT.set(Some(changes));
    }
    are_noted
}

thread_local! {
    /// When it was found to be right: an update of the extension changes relations and functions.
    static FOUND_AT: Cell<Option<u64>> = const { Cell::new(None) };
    /// When the triggers were found.
    static NOTED_AT: Cell<Option<u64>> = const { Cell::new(None) };
}

pub(crate) fn other_version(version: &str) -> Error {
    Error::not_ready(format!("rag_ext is of version {version} in this database, and its library of {LIBRARY}")).hint(
        "ALTER EXTENSION rag_ext UPDATE brings the database to the library's version. A library that is older than the database is replaced, and the server restarted.",
    )
}
