//! What the planner knows of tables that grow.

use crate::error::Result;
use crate::pg::spi;

/// Has the planner look at tables of which more rows have changed, since it last did, than there were. Autovacuum comes a
/// minute later, and until then it would take tables that were just filled for nearly empty. For workers.
pub(crate) fn analyze_grown() -> Result<()> {
    let grown = spi::read_latest(
        "SELECT c.relname::text FROM pg_catalog.pg_class c
         WHERE c.relnamespace = pg_catalog.to_regnamespace('rag') AND c.relkind = 'r'
           AND pg_catalog.pg_stat_get_mod_since_analyze(c.oid) > 50 + greatest(c.reltuples, 0)",
        vec![],
        |row| row.require::<String>(1),
    )?;
    for table in grown {
        // Names of ours need no quotes.
        spi::run(&format!("ANALYZE (SKIP_LOCKED) rag.{table}"), vec![])?;
    }
    Ok(())
}
