//! What `rag_verify` says at the end of a test.

use crate::{Cluster, Session};
use std::time::{Duration, Instant};

/// While workers are in the middle of something, what is wrong is only wrong if it stays so.
const PATIENCE: Duration = Duration::from_secs(60);

/// SQLSTATEs by which a server says that it cannot look: not preloaded or policies apart on purpose, somebody holds
/// what is to be looked at, a standby, the extension or the server gone.
const CANNOT_LOOK: [&str; 9] =
    ["55000", "55006", "55P03", "57014", "25006", "57P01", "57P03", "42883", "closed"];

/// What does not agree in a database, however long one waits. Nothing where there is no extension, or nobody to ask.
pub(crate) fn findings(cluster: &Cluster, database: &str) -> Vec<String> {
    let Ok(mut admin) = cluster.try_connect("postgres", database) else { return Vec::new() };
    let begun = Instant::now();
    loop {
        let is_quiet = is_quiet(&mut admin);
        let found = look(&mut admin);
        if found.is_empty() || is_quiet || begun.elapsed() > PATIENCE {
            return found;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn is_quiet(admin: &mut Session) -> bool {
    let others =
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    admin.try_rows(others).is_ok_and(|rows| rows.is_empty())
}

fn look(admin: &mut Session) -> Vec<String> {
    match try_look(admin) {
        Ok(found) => found,
        Err(failure) if CANNOT_LOOK.contains(&failure.code.as_str()) => Vec::new(),
        Err(failure) => vec![failure.to_string()],
    }
}

fn try_look(admin: &mut Session) -> Result<Vec<String>, crate::Failure> {
    let installed =
        "SELECT quote_ident(nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                     WHERE extname = 'rag_ext'";
    let installed = admin.try_rows(installed)?;
    let Some(schema) = installed.first().and_then(|row| row[0].as_deref()) else { return Ok(Vec::new()) };
    admin.try_run(
        "SET rag_ext.all_domains = on; SET rag_ext.user_id = ''; SET lock_timeout = '10s'; SET statement_timeout = '60s'",)?;
    let rows = admin.try_rows(&format!(
        "SELECT concat_ws(' ', kind, collection, object, problem) FROM {schema}.rag_verify()"
    ))?;
    Ok(rows.into_iter().filter_map(|mut row| row.swap_remove(0)).collect())
}
