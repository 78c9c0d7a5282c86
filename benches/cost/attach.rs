//! What the triggers of an attached table cost: a bulk INSERT of many rows, and of one row, beside the same into a
//! table that is not attached.

use crate::report::{Line, Report};
use rag_benches::timed;
use rag_tests::{Cluster, Session};
use std::time::Duration;

const ROWS: usize = 100_000;

/// Taken in turn, so that both tables get their share of the machine's bad moments.
const ROUNDS: usize = 7;

/// Statements of one row.
const SINGLE: usize = 500;

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let database = cluster.database("attach");
    let mut session = database.admin();
    // Workers would take the processor from what is measured, and their share is that of any ingestion.
    session.run("ALTER SYSTEM SET rag_ext.ingest_workers = 0");
    session.run("SELECT pg_reload_conf()");
    for key in ["int", "text"] {
        for table in ["plain", "attached"] {
            session.run(&format!("DROP TABLE IF EXISTS {table}"));
            session.run(&format!("CREATE TABLE {table} (id {key} PRIMARY KEY, title text, body text)"));
        }
        session.run("SELECT rag_attach('attached', title => 'title')");
        let bulk = |table: &str| {
            format!(
                "INSERT INTO {table} SELECT n, 'Title of ' || n, repeat('A line of text, number ' || n || '. ', 10)
                 FROM generate_series(1, {ROWS}) n"
            )
        };
        compare(
            report,
            &mut session,
            &format!("attached, key {key}: INSERT of {ROWS} rows"),
            bulk,
            "≤ 1.3 ×",
            Some(1.3),
        );
        compare(
            report,
            &mut session,
            &format!("attached, key {key}: UPDATE of {ROWS} rows"),
            |table| format!("UPDATE {table} SET title = title || '.'"),
            "",
            None,
        );
        compare(
            report,
            &mut session,
            &format!("attached, key {key}: INSERT of one row, {SINGLE} times"),
            |table| {
                format!(
                    "DO $$ BEGIN FOR n IN {ROWS} + 1 .. {ROWS} + {SINGLE} LOOP
                         INSERT INTO {table} VALUES (n, 'Title', 'A line of text.');
                     END LOOP; END $$"
                )
            },
            "",
            None,
        );
    }
    session.run("ALTER SYSTEM RESET rag_ext.ingest_workers");
    session.run("SELECT pg_reload_conf()");
}

fn compare(
    report: &mut Report,
    session: &mut Session,
    what: &str,
    statement: impl Fn(&str) -> String,
    target: &str,
    most: Option<f64>,
) {
    let mut times = [Vec::new(), Vec::new()];
    let fills = statement("x").starts_with("INSERT");
    for round in 0..ROUNDS {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            let table = ["plain", "attached"][side];
            if fills {
                session.run(&format!("TRUNCATE {table}; TRUNCATE rag.attached_change; CHECKPOINT"));
            }
            let is_kept = fills && round + 1 == ROUNDS;
            session.run("BEGIN");
            let (time, ()) = timed(|| session.run(&statement(table)));
            // A row is there once; only the last filling stays, for what is measured next.
            session.run(if is_kept { "COMMIT" } else { "ROLLBACK" });
            times[side].push(time);
        }
    }
    let [plain, attached] = times.map(median);
    let ratio = attached.as_secs_f64() / plain.as_secs_f64();
    report.add(Line {
        what: what.to_owned(),
        found: format!("{:.0} ms", attached.as_secs_f64() * 1000.0),
        beside: format!("not attached {:.0} ms", plain.as_secs_f64() * 1000.0),
        ratio: format!("{ratio:.2} ×"),
        target: target.to_owned(),
        reached: most.map(|most| ratio <= most),
    });
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
