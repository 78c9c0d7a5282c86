//! What the logs of searches and answers have in common: rows that workers take away when they are old.

use crate::error::Result;
use crate::pg::notes::Log;
use crate::pg::spi;

/// Takes away at most `most` rows of a log that are older than so many days; true if there may be more. By workers.
pub(crate) fn delete_old(log: Log, days: i32, most: i64) -> Result<bool> {
    let (table, at) = match log {
        Log::Queries => ("rag.query_log", "searched_at"),
        Log::Answers => ("rag.answer_log", "answered_at"),
    };
    let deleted = spi::execute(
        &format!(
            "DELETE FROM {table} l USING (
                 SELECT o.owner, o.owner_role, o.id FROM {table} o
                 WHERE o.{at} < now() - make_interval(days => $1) ORDER BY o.{at} LIMIT $2
                 FOR UPDATE SKIP LOCKED) o
             WHERE l.owner = o.owner AND l.owner_role = o.owner_role AND l.id = o.id
             RETURNING 1"
        ),
        vec![days.into(), most.into()],
        |_| Ok(()),
    )?;
    Ok(deleted.len() as i64 == most)
}
