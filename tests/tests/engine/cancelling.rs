//! A wait for the engine ends at once when the query is cancelled, times out or is terminated.

use super::{LIMIT, LONG_CALL, wait_for_service, wait_until_active};
use rag_tests::{Cluster, Database, Session, Witness, wait_until};
use std::time::{Duration, Instant};

const AT_ONCE: Duration = Duration::from_millis(100);

/// A wait of Postgres' own. What ends a call for the engine ends it too, beside each try: so long does it take on a
/// machine that may be busy with other things.
const CONTROL: &str = "SELECT pg_sleep(600)";

/// Runs a call in another thread, ends it by `how`, and says how long it took to return after that.
fn time_to_return(database: &Database<'_>, role: &str, call: &str, code: &str, how: &str) -> Duration {
    let mut session = database.connect(role);
    let pid = session.pid();
    let mut admin = database.admin();
    std::thread::scope(|scope| {
        let call = scope.spawn(move || {
            let failure = session.error(call);
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

/// Takes the long call and the control three times: in the best try the call took hardly longer.
#[track_caller]
fn assert_at_once(what: &str, mut time: impl FnMut(&str) -> Duration) {
    let tries: Vec<_> = (0..3).map(|_| (time(LONG_CALL), time(CONTROL))).collect();
    eprintln!("{what}: {tries:?}");
    let best = tries.iter().map(|(call, control)| call.saturating_sub(*control)).min().unwrap();
    assert!(best < AT_ONCE, "{what}: {tries:?}");
}

#[test]
fn a_cancelled_or_terminated_wait_returns_within_100_ms() {
    let database = Database::new("cancel");
    let role = database.role("ann");
    database.cluster().running_engine();
    let mut witness = Witness::of(database.cluster());
    for (how, code) in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")] {
        assert_at_once(how, |call| time_to_return(&database, &role, call, code, how));
    }
    witness.assert_no_restart();
    wait_for_service(&mut database.connect(&role));
}

#[test]
fn statement_timeout_holds_while_waiting_for_the_engine() {
    let database = Database::new("timeout");
    let mut ann = database.user("ann");
    database.cluster().running_engine();
    ann.run("SET statement_timeout = '700ms'");
    let elapsed = |session: &mut Session, call: &str| {
        let start = Instant::now();
        session.refuses("57014", call);
        start.elapsed()
    };
    assert_at_once("statement_timeout", |call| elapsed(&mut ann, call));
    ann.run("RESET statement_timeout");
    assert!(ann.lives());
    wait_for_service(&mut ann);
    ann.run("SET rag_ext.engine_timeout = '300ms'");
    let start = Instant::now();
    let failure = ann.error(LONG_CALL);
    assert!(["57014", "58000"].contains(&failure.code.as_str()), "{failure}");
    // An engine that is busy with others has five seconds more to say so.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn work_of_a_client_that_has_gone_is_dropped() {
    // A cluster of its own: the engine counts everybody's work.
    let cluster = Cluster::builder("gone").start();
    let database = cluster.database("gone");
    let role = database.role("ann");
    cluster.running_engine();
    for _ in 0..4 {
        time_to_return(&database, &role, LONG_CALL, "57014", "pg_cancel_backend");
    }
    let mut admin = database.admin();
    wait_until("nothing is queued any more", LIMIT, || {
        admin.count("SELECT queued FROM rag.engine_status") == 0
    });
    wait_for_service(&mut database.connect(&role));
    let scored = admin.count("SELECT pairs_scored FROM rag.engine_status");
    assert!(scored < 400, "{scored} pairs of four calls of 200, each cancelled soon after it began");
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
    let mut admin = database.admin();
    for table in ["document", "chunk", "section", "embedding", "segment", "job"] {
        assert_eq!(admin.count(&format!("SELECT count(*) FROM rag.{table}")), 0, "rag.{table}");
    }
    wait_for_service(&mut ann);
}
