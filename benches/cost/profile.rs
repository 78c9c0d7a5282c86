//! Where the time of a search goes, by statement: with `RAG_BENCH_PROFILE=1`, from `pg_stat_statements`. Counting
//! costs time itself, so the table's figures are not to be quoted then.

use rag_benches::{Library, Table};
use rag_tests::Builder;

/// Statements shown.
const SHOWN: usize = 12;

fn is_wanted() -> bool {
    std::env::var_os("RAG_BENCH_PROFILE").is_some()
}

/// Makes the server count statements, nested ones too.
pub(crate) fn prepare(cluster: Builder) -> Builder {
    if !is_wanted() {
        return cluster;
    }
    cluster
        .setting("shared_preload_libraries", "rag_ext,pg_stat_statements")
        .setting("pg_stat_statements.track", "all")
        .setting("pg_stat_statements.track_planning", "on")
}

/// Forgets what was counted so far.
pub(crate) fn begin(library: &Library<'_>) {
    if is_wanted() {
        library
            .admin()
            .run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset()");
    }
}

/// Prints the dearest statements since [`begin`].
pub(crate) fn print(library: &Library<'_>, what: &str) {
    if !is_wanted() {
        return;
    }
    let rows = library.admin().rows(&format!(
        "SELECT calls, round((total_exec_time / greatest(calls, 1))::numeric, 3), round((total_plan_time / greatest(calls, 1))::numeric, 3),
                plans, left(regexp_replace(query, '\\s+', ' ', 'g'), 110)
         FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
         ORDER BY total_exec_time + total_plan_time DESC LIMIT {SHOWN}"
    ));
    let mut table = Table::new(&["calls", "ms each", "planning ms", "plans", what]);
    for row in rows {
        table.add(row.into_iter().map(Option::unwrap_or_default).collect());
    }
    table.print();
}
