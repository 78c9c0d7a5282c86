//! Policies that an administrator has added: whether the tables have those that are recorded, and no others.

use crate::config;
use crate::error::{Error, Result, excerpt};
use crate::pg::statistics::Uncounted;
use crate::pg::time_limit::{self, Failure};
use crate::pg::{Oid, elevation, spi, table_watch, transaction};

/// 55000 where tables and records are apart: a policy that a restore has lost must not show what it is to hide, and
/// one that no dump takes along is not to be relied on.
///
/// Asked by every search, and answered from memory until one of the tables changes. Tables with added policies are opened
/// to compare them; where somebody holds one, 55000 after `rag_ext.query_deadline`.
pub(crate) fn require_recorded() -> Result<()> {
    if table_watch::is_unchanged() {
        return Ok(());
    }
    // Policies hold as they were committed last, whatever the caller's snapshot shows.
    let within = config::query_deadline();
    // When that is done tells of what others do with the tables.
    let _uncounted = Uncounted::begin();
    let check = || elevation::elevated(|| transaction::with_catalog_snapshot(check));
    let checked = time_limit::attempt(within, check).map_err(|failure| match failure {
        Failure::Late => Error::not_ready(format!(
            "added policies cannot be compared with their records within rag_ext.query_deadline, {} ms",
            within.as_millis()
        ))
        .detail("Somebody may hold a lock on rag.added_policy, or on a table that has an added policy or is named in one.")
        .hint("Try again when they are done; pg_locks shows who holds what."),
        Failure::Failed(error) | Failure::Ended(error) => error,
    });
    if checked.is_err() {
        table_watch::forget();
    }
    checked
}

fn check() -> Result<()> {
    let tables = spi::read_snapshot(
        "SELECT c.oid FROM pg_class c WHERE c.relnamespace = 'rag'::regnamespace AND c.relrowsecurity AND NOT c.relispartition",
        vec![],
        |row| row.require::<Oid>(1).map(Oid::to_u32),
    )?;
    table_watch::begin(tables);
    let apart = spi::read_snapshot_one(
        "SELECT table_name, name, is_present, is_recorded, is_builtin FROM rag.policies_apart() LIMIT 1",
        vec![],
        |row| {
            Ok(Apart {
                table: row.require(1)?,
                name: row.require(2)?,
                is_present: row.require(3)?,
                is_recorded: row.require(4)?,
                is_builtin: row.require(5)?,
            })
        },
    )?;
    apart.map_or(Ok(()), |apart| Err(apart.into_error()))
}

struct Apart {
    table: String,
    name: String,
    is_present: bool,
    is_recorded: bool,
    is_builtin: bool,
}

impl Apart {
    fn into_error(self) -> Error {
        let Self { table, name, .. } = &self;
        let arguments = format!("('rag.{table}', '{}')", name.replace('\'', "''"));
        let (detail, hint) = match (self.is_builtin, self.is_present, self.is_recorded) {
            (true, _, _) => (
                "A policy of the extension itself is not as it was made.",
                "A superuser makes it again as the extension's script has it.".to_owned(),
            ),
            (_, true, true) => (
                "It differs from what is recorded in rag.added_policy, which is what a dump takes along.",
                format!(
                    "A superuser keeps it by SELECT rag_record_policy{arguments}, or goes back to what is recorded by SELECT rag_restore_policies()."
                ),
            ),
            (_, true, false) => (
                "It is not recorded in rag.added_policy, so a dump would lose it.",
                format!(
                    "A superuser records it by SELECT rag_record_policy{arguments}, or drops it by SELECT rag_drop_policy{arguments}."
                ),
            ),
            (_, false, _) => (
                "It is recorded in rag.added_policy, and the table does not have it: what it is to hide would be shown.",
                format!(
                    "A superuser makes it again by SELECT rag_restore_policies(), or gives it up by SELECT rag_drop_policy{arguments}."
                ),
            ),
        };
        Error::not_ready(format!("policy \"{}\" of rag.{table} is not as it is to be", excerpt(name)))
            .detail(detail)
            .hint(hint)
    }
}
