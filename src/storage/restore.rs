//! Whether a dump is being restored into this database: workers keep away until all of it is there.

use crate::error::Result;
use crate::pg::spi;

/// Whether a script of pg_dump has created the extension, and no worker has found the restore over yet.
pub(crate) fn is_noted() -> Result<bool> {
    let found =
        spi::read_latest_one("SELECT EXISTS (SELECT FROM rag.restore)", vec![], |row| row.require(1))?;
    Ok(found.unwrap_or(false))
}

/// Whether somebody is at it: the session that created the extension, or one of pg_restore, which loads tables in others. Whoever
/// has done nothing for a minute has forgotten to leave, and who selects anything but what scripts of pg_dump do has gone on to
/// something else, such as waiting for the work that the dump has brought.
pub(crate) fn is_under_way() -> Result<bool> {
    let found = spi::read_latest_one(
        "SELECT EXISTS (
             SELECT FROM pg_catalog.pg_stat_activity a
             WHERE a.datname = pg_catalog.current_database()
               AND (a.state NOT LIKE 'idle%' OR a.state_change > pg_catalog.clock_timestamp() - interval '1 min')
               AND a.query !~* '^\\s*select\\s+(?!pg_catalog\\.)'
               AND (EXISTS (SELECT FROM rag.restore r WHERE r.pid = a.pid AND r.backend_start = a.backend_start)
                    OR a.application_name = 'pg_restore'
                       AND EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid = a.usesysid AND r.rolsuper)))",
        vec![],
        |row| row.require(1),
    )?;
    Ok(found.unwrap_or(false))
}

/// Notes that it is over.
pub(crate) fn forget() -> Result<()> {
    spi::run("DELETE FROM rag.restore", vec![])
}
