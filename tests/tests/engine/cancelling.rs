//! A wait for the engine ends at once when the query is cancelled, times out or is terminated.

use super::{LONG_CALL, wait_for_service, wait_until_active};
use rag_tests::{Database, Witness};
use std::time::{Duration, Instant};

const AT_ONCE: Duration = Duration::from_millis(100);

/// Runs the long call in another thread, ends it by `how`, and says how long it took to return after that.
fn time_to_return(database: &Database<'_>, role: &str, code: &str, how: &str) -> Duration {
    let mut session = database.connect(role);
    let pid = session.pid();
    let mut admin = database.admin();
    std::thread::scope(|scope| {
        let call = scope.spawn(move || {
            let failure = session.error(LONG_CALL);
            (failure, Instant::now())
        });
        wait_until_active(database.cluster(), pid);
        let asked = Instant::now();
        admin.run(&format!("SELECT {how}({pid})"));
        let (failure, returned) = call.join().unwrap();
        assert!([code, "closed"].contains(&failure.code.as_str()), "{failure}");
        returned.saturating_duration_since(asked)
    })
}

#[test]
fn a_cancelled_or_terminated_wait_returns_within_100_ms() {
    let database = Database::new("cancel");
    let role = database.role("ann");
    database.cluster().running_engine();
    let mut witness = Witness::of(database.cluster());
    for (how, code) in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")] {
        // The machine may be busy with something else in one try.
        let tries: Vec<_> = (0..3).map(|_| time_to_return(&database, &role, code, how)).collect();
        let best = tries.iter().min().unwrap();
        assert!(*best < AT_ONCE, "{how}: {tries:?}");
        eprintln!("{how}: {tries:?}");
    }
    witness.assert_no_restart();
    wait_for_service(&mut database.connect(&role), Duration::from_secs(10));
}

#[test]
fn statement_timeout_holds_while_waiting_for_the_engine() {
    let database = Database::new("timeout");
    let mut ann = database.user("ann");
    database.cluster().running_engine();
    ann.run("SET statement_timeout = '700ms'");
    let overruns: Vec<_> = (0..3)
        .map(|_| {
            let start = Instant::now();
            ann.refuses("57014", LONG_CALL);
            start.elapsed().saturating_sub(Duration::from_millis(700))
        })
        .collect();
    assert!(*overruns.iter().min().unwrap() < AT_ONCE, "{overruns:?}");
    ann.run("RESET statement_timeout");
    assert!(ann.lives());
    wait_for_service(&mut ann, Duration::from_secs(10));
    ann.run("SET rag_ext.engine_timeout = '300ms'");
    let start = Instant::now();
    let failure = ann.error(LONG_CALL);
    assert!(["57014", "58000"].contains(&failure.code.as_str()), "{failure}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn work_of_a_client_that_has_gone_is_dropped() {
    let database = Database::new("gone");
    let role = database.role("ann");
    database.cluster().running_engine();
    let mut ann = database.connect(&role);
    for _ in 0..4 {
        time_to_return(&database, &role, "57014", "pg_cancel_backend");
    }
    // Four calls of 200 pairs would take minutes, were they still worked on.
    let start = Instant::now();
    wait_for_service(&mut ann, Duration::from_secs(20));
    ann.rows("SELECT * FROM rag_rerank('short', ARRAY['one ' || clock_timestamp()])");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(database.admin().count("SELECT queued FROM rag.engine_status"), 0);
}

#[test]
fn a_sync_ingestion_that_is_cancelled_leaves_nothing() {
    let database = Database::new("cancel_sync");
    let role = database.role("ann");
    let mut ann = database.connect(&role);
    ann.run("SET statement_timeout = '800ms'");
    // Chunks that differ, for equal ones are embedded once: thousands of them take any machine minutes.
    ann.refuses(
        "57014",
        "SELECT rag_ingest((SELECT string_agg('The surveyor measured river number ' || n || ' again.', ' ')
                            FROM generate_series(1, 60000) AS n), options => '{\"sync\": true}')",
    );
    ann.run("RESET statement_timeout");
    for table in ["document", "chunk", "section", "embedding", "segment", "job"] {
        assert_eq!(ann.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
    wait_for_service(&mut ann, Duration::from_secs(20));
}
