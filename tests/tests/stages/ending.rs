//! While a stage hangs, the caller's own cancel and time-outs end the call; in a parallel plan, too.

use super::{Place, cluster, row, search};
use rag_tests::{ChatReply, ChatStub, Session, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Searches in another thread, and does something once its session waits for what hangs.
fn while_it_hangs(
    place: &Place<'_>,
    session: &mut Session,
    options: &Value,
    event: &str,
    act: &str,
) -> (String, String) {
    let pid = session.pid();
    let mut admin = place.database.admin();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| session.try_rows(&super::call("hybrid", options)));
        wait_until("the session waits", LIMIT, || {
            admin.holds(&format!(
                "SELECT coalesce((SELECT wait_event_type || '/' || wait_event LIKE '{event}' FROM pg_stat_activity WHERE pid = {pid}), false)"
            ))
        });
        admin.run(&act.replace("PID", &pid.to_string()));
        let failure = call.join().unwrap().expect_err("the call ends");
        (failure.code, failure.message)
    })
}

#[test]
fn a_cancel_while_a_stage_hangs_ends_the_call() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("ending", &stub);
    let place = Place::of(&cluster, "ending");
    let mut holder = place.database.admin();
    let (graph, rewrite) = (json!({"graph": "on"}), json!({"rewrite": "on"}));
    let plain = search(&mut place.session(), "hybrid", &json!({})).0;
    for (hold, options, event) in [
        ("LOCK TABLE rag.mined_acronym IN ACCESS EXCLUSIVE MODE", &json!({}), "Lock/relation"),
        ("LOCK TABLE rag.entity_mention IN ACCESS EXCLUSIVE MODE", &graph, "Lock/relation"),
        ("SELECT 1", &rewrite, "Extension/%"),
    ] {
        holder.run(&format!("BEGIN; {hold}"));
        let mut session = place.session();
        session.run("SET rag_ext.query_deadline = '10min'");
        let (code, message) =
            while_it_hangs(&place, &mut session, options, event, "SELECT pg_cancel_backend(PID)");
        assert_eq!(code, "57014", "{message}");
        assert!(message.contains("user request"), "{message}");
        session.run("SET statement_timeout = '1s'");
        let late = session.refuses("57014", &super::call("hybrid", options));
        assert!(late.message.contains("statement timeout"), "{late}");
        session.run("SET statement_timeout = '60s'");
        let (code, _) =
            while_it_hangs(&place, &mut session, options, event, "SELECT pg_terminate_backend(PID)");
        assert!(["57P01", "closed"].contains(&code.as_str()), "{code}");
        holder.run("ROLLBACK");
        assert_eq!(search(&mut place.session(), "hybrid", &json!({})).0, plain);
    }
}

/// Cancels that come about when the time of a stage is over: whichever is first, the session goes on, and what was
/// cancelled is never another statement's.
#[test]
fn cancels_at_the_deadline_leave_a_session_that_works() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("race", &stub);
    let place = Place::of(&cluster, "race");
    let mut holder = place.database.admin();
    holder.run("BEGIN; LOCK TABLE rag.mined_acronym IN ACCESS EXCLUSIVE MODE");
    let mut session = place.session();
    session.run("SET rag_ext.query_deadline = '100ms'");
    let (mut answered, mut cancelled) = (0, 0);
    // The same moments by another clock: some before the end, some behind it.
    for milliseconds in (90..110).chain(97..107).chain(97..107) {
        session.run(&format!("SET statement_timeout = '{milliseconds}ms'"));
        match session.try_rows(&super::call("keyword", &json!({}))) {
            Ok(_) => answered += 1,
            Err(failure) => {
                assert_eq!(failure.code, "57014", "{failure}");
                assert!(failure.message.contains("statement timeout"), "{failure}");
                cancelled += 1;
            }
        }
        session.run("SET statement_timeout = 0");
        session.run("SELECT pg_sleep(0.01)");
    }
    eprintln!("{answered} answered, {cancelled} cancelled");
    session.run("SET statement_timeout = '60s'");
    let (_, stages) = search(&mut session, "keyword", &json!({}));
    assert_eq!(row(&stages, "acronyms")["fallback"], "plain query");
}

#[test]
fn in_a_parallel_plan_a_stage_is_left_out_or_ends_the_call() {
    let stub = ChatStub::start(ChatReply::Hang);
    let cluster = cluster("parallel", &stub);
    let place = Place::of(&cluster, "parallel");
    let major = cluster.installation().major();
    let mut admin = place.database.admin();
    admin.run("CREATE TABLE numbers AS SELECT n FROM generate_series(1, 10000) n; ANALYZE numbers; GRANT SELECT ON numbers TO public");
    let mut session = place.session();
    session.run(
        "SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET max_parallel_workers_per_gather = 2",
    );
    let parallel = format!(
        "SELECT s.uri, s.details FROM (SELECT count(*) AS n FROM numbers) c, LATERAL ({}) s WHERE c.n = 10000",
        super::call("hybrid", &json!({}))
    );
    assert!(session.column(&format!("EXPLAIN {parallel}")).iter().any(|line| line.contains("Gather")));
    let expected = search(&mut session, "hybrid", &json!({})).0;
    let found = |session: &mut Session| session.try_rows(&parallel);
    assert_eq!(found(&mut session).unwrap().len(), expected.len());
    admin.run("BEGIN; LOCK TABLE rag.mined_acronym IN ACCESS EXCLUSIVE MODE");
    session.run("SET rag_ext.query_deadline = '500ms'");
    match found(&mut session) {
        Ok(rows) => {
            let uris: Vec<_> = rows.iter().map(|row| row[0].clone().unwrap()).collect();
            assert_eq!(uris, expected);
            assert!(rows[0][1].as_ref().unwrap().contains("plain query"), "{rows:?}");
        }
        Err(failure) => {
            assert!(major < 18, "{failure}");
            assert_eq!(failure.code, "57014", "{failure}");
            assert!(failure.hint.contains("max_parallel_workers_per_gather"), "{failure}");
        }
    }
    admin.run("ROLLBACK");
    assert_eq!(found(&mut session).unwrap().len(), expected.len());
}
