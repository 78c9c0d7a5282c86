//! Deaths: of the engine, of its supervisor, of the postmaster, and with Postgres as PID 1.

use super::{LIMIT, LONG_CALL, wait_for_service, wait_until_active};
use rag_tests::{Cluster, Process, Shutdown, Witness, eventually, wait_until};
use rustix::process::Signal;

/// Kills the engine under a running query, and checks that only this query notices.
fn kill_under_a_query(cluster: &Cluster, role: &str, database: &str) {
    let engine = cluster.running_engine();
    let mut witness = Witness::of(cluster);
    let mut bystander = cluster.connect(role, database);
    let mut session = cluster.connect(role, database);
    let pid = session.pid();
    std::thread::scope(|scope| {
        let call = scope.spawn(move || (session.try_rows(LONG_CALL), session.lives()));
        wait_until_active(cluster, pid);
        engine.signal(Signal::KILL);
        // A retry may take as long as the call does, so it is ended once the engine is back.
        wait_for_service(&mut bystander);
        cluster.connect("postgres", "postgres").run(&format!("SELECT pg_cancel_backend({pid})"));
        let (outcome, lives) = call.join().unwrap();
        if let Err(failure) = outcome {
            assert!(["58000", "57014"].contains(&failure.code.as_str()), "{failure}");
        }
        assert!(lives, "the session of the query that failed");
    });
    assert!(!engine.runs());
    let next = cluster.running_engine();
    assert_ne!(next.pid, engine.pid);
    witness.assert_no_restart();
}

#[test]
fn an_engine_killed_under_a_query_hurts_only_that_query_and_comes_back() {
    let cluster = Cluster::builder("killed").start();
    let database = cluster.database("killed");
    let role = database.role("ann");
    for _ in 0..2 {
        kill_under_a_query(&cluster, &role, database.name());
    }
    let mut ann = database.connect(&role);
    assert!(ann.count("SELECT restarts FROM rag.engine_status") >= 2);
    ann.ingest("Life goes on after the engine died.", "on");
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('engine died')"), 1);
}

#[test]
fn an_engine_killed_five_times_is_there_a_sixth_time_and_no_work_is_lost() {
    let cluster = Cluster::builder("five").start();
    let database = cluster.database("five");
    let mut ann = database.user("ann");
    let mut witness = Witness::of(&cluster);
    ann.run("INSERT INTO rag.document (uri, content) SELECT 'd' || n, repeat('Sentence ' || n || ' about the ferry. ', 60) FROM generate_series(1, 30) n");
    for _ in 0..5 {
        let engine = cluster.running_engine();
        engine.signal(Signal::KILL);
        wait_until("it is gone", LIMIT, || !engine.runs());
    }
    wait_for_service(&mut ann);
    ann.settle();
    assert_eq!(
        ann.column("SELECT DISTINCT status FROM rag.document"),
        ["done"],
        "a dying engine is not the document's fault"
    );
    assert_eq!(
        ann.count(
            "SELECT count(DISTINCT document_id) FROM rag_search('ferry', k => 1000, mode => 'keyword')"
        ),
        30
    );
    witness.assert_no_restart();
    assert_eq!(cluster.processes().iter().filter(|p| p.command.contains("rag-engine serve")).count(), 1);
}

#[test]
fn a_parser_that_is_killed_is_tried_again_and_only_then_given_up() {
    let cluster = Cluster::builder("parser").start();
    let database = cluster.database("parser");
    let role = database.role("ann");
    cluster.running_engine();
    let parsers = || cluster.processes().into_iter().filter(|p| p.command.ends_with("/exe parse"));
    wait_until("the engine has tested its sandbox", LIMIT, || parsers().count() == 0);
    // Kills so many parsers, one after the other, while a page is parsed that takes one a moment.
    let parse_while_killing = |kills: usize| {
        let mut session = database.connect(&role);
        std::thread::scope(|scope| {
            let call = scope.spawn(move || {
                session.try_rows("SELECT length(text) FROM rag_parse(convert_to('<html>' || repeat('<h2>Part</h2><p>Of <b>some</b> <i>note</i>.</p>', 100000), 'UTF8'))")
            });
            let mut killed = Vec::new();
            for _ in 0..kills {
                let next = eventually("another parser", LIMIT, || parsers().find(|p| !killed.contains(p)));
                next.signal(Signal::KILL);
                killed.push(next);
            }
            call.join().unwrap()
        })
    };
    assert_eq!(parse_while_killing(1).unwrap().len(), 1);
    let failure = parse_while_killing(2).unwrap_err();
    assert_eq!(failure.code, "38000", "{failure}");
    assert!(failure.message.contains("was killed (signal 9)"), "{failure}");
}

#[test]
fn a_terminated_supervisor_comes_back_and_leaves_no_second_engine() {
    let cluster = Cluster::builder("supervisor").start();
    let database = cluster.database("supervisor");
    let mut ann = database.user("ann");
    let mut witness = Witness::of(&cluster);
    // SIGTERM is what pg_terminate_backend sends; SIGKILL would be a crash of the server's own process.
    for round in 0..3 {
        let engine = cluster.running_engine();
        let supervisor = engine.parent().unwrap();
        assert!(supervisor.command.contains("rag_ext engine"), "{supervisor:?}");
        supervisor.signal(Signal::TERM);
        wait_until("both are gone", LIMIT, || !engine.runs() && !supervisor.runs());
        wait_for_service(&mut ann);
        let engines: Vec<_> =
            cluster.processes().into_iter().filter(|p| p.command.contains("rag-engine serve")).collect();
        assert_eq!(engines.len(), 1, "round {round}: {engines:#?}");
    }
    witness.assert_no_restart();
}

#[test]
fn no_engine_outlives_its_postmaster() {
    let cluster = Cluster::builder("outlive").start();
    let database = cluster.database("outlive");
    drop(database.user("ann"));
    for end in ["fast", "immediate", "killed"] {
        let engine = cluster.running_engine();
        let tree = cluster.processes();
        match end {
            "fast" => cluster.stop(Shutdown::Fast),
            "immediate" => cluster.stop(Shutdown::Immediate),
            _ => cluster.kill9(),
        }
        wait_until("the engine is gone", LIMIT, || !engine.runs());
        let left: Vec<&Process> = tree.iter().filter(|process| process.runs()).collect();
        assert!(left.is_empty(), "{end}: {left:#?}");
        cluster.start();
    }
    let log = cluster.log();
    assert!(
        !log.contains("was terminated by signal 6") && !log.contains("was terminated by signal 11"),
        "{}",
        cluster.log_tail()
    );
}

#[test]
fn with_postgres_as_pid_1_a_killed_engine_restarts_nothing_else() {
    let cluster = Cluster::builder("pid_1").as_pid_1().start();
    let database = cluster.database("pid_1");
    let role = database.role("ann");
    let postmaster = Process::find(cluster.postmaster()).unwrap();
    assert_eq!(postmaster.inner_pid, 1);
    let mut ann = database.connect(&role);
    kill_under_a_query(&cluster, &role, database.name());

    let mut witness = Witness::of(&cluster);
    let engine = cluster.running_engine();
    let seen = eventually("the status names the engine", LIMIT, || {
        ann.column("SELECT pid FROM rag.engine_status WHERE running").pop()
    });
    assert_eq!(seen, engine.inner_pid.to_string());
    // Children of the engine, if it has any, become orphans; PID 1 inherits orphans.
    ann.run("INSERT INTO rag.document (content) SELECT repeat('word ' || n || '. ', 500) FROM generate_series(1, 20) n");
    for _ in 0..3 {
        let engine = cluster.running_engine();
        engine.signal(Signal::KILL);
        wait_until("it is gone", LIMIT, || !engine.runs());
    }
    let engine = cluster.running_engine();
    engine.parent().unwrap().signal(Signal::TERM);
    wait_until("it is gone with its supervisor", LIMIT, || !engine.runs());
    wait_for_service(&mut ann);
    ann.settle();
    witness.assert_no_restart();
    let log = cluster.log();
    assert!(
        !log.contains("untracked child process")
            && !log.contains("terminating any other active server processes"),
        "{}",
        cluster.log_tail()
    );
    let engine = cluster.running_engine();
    cluster.stop(Shutdown::Fast);
    assert!(!engine.runs());
}

#[test]
fn the_engine_is_the_first_to_go_when_memory_runs_out_and_tells_nobody_its_secrets() {
    let cluster = Cluster::builder("confined").start();
    let database = cluster.database("confined");
    drop(database.user("ann"));
    let engine = cluster.running_engine();
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", engine.pid)).unwrap();
    let score: i32 = read("oom_score_adj").trim().parse().unwrap();
    assert!(score > 0, "oom_score_adj is {score}");
    let session: Vec<String> =
        read("stat").rsplit(')').next().unwrap().split_whitespace().map(str::to_owned).collect();
    assert_eq!(session[3], engine.pid.to_string(), "it leads a session of its own");
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", engine.pid)).unwrap().flatten();
    let inherited: Vec<_> = descriptors
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|target| target.display().to_string())
        .filter(|target| {
            target.contains("/base/") || target.contains("pg_wal") || target.contains("/global/")
        })
        .collect();
    assert!(inherited.is_empty(), "{inherited:?}");
    let sockets: Vec<_> = std::fs::read_dir(cluster.data())
        .unwrap()
        .flatten()
        .filter(|entry| std::os::unix::fs::FileTypeExt::is_socket(&entry.file_type().unwrap()))
        .collect();
    assert!(sockets.len() <= 1, "{sockets:?}");
}

#[test]
fn an_engine_that_stands_still_costs_no_more_than_its_time_out() {
    let cluster = Cluster::builder("still").start();
    let database = cluster.database("still");
    let mut ann = database.user("ann");
    ann.ingest("A note about ferries.", "ferries");
    ann.run("SET rag_ext.engine_timeout = '100ms'");
    let engine = cluster.running_engine();
    engine.signal(Signal::STOP);
    let began = std::time::Instant::now();
    // The keyword index needs no engine.
    assert_eq!(ann.count("SELECT count(*) FROM rag_search('ferries')"), 1);
    ann.refuses("57014", "SELECT rag_embed('Nobody answers.')");
    let waited = began.elapsed();
    engine.signal(Signal::CONT);
    assert!(waited < std::time::Duration::from_secs(5), "{waited:?} for two calls of 100 ms");
}

#[test]
fn an_engine_that_is_stopped_is_told_from_a_slow_one() {
    let cluster = Cluster::builder("stopped").start();
    let database = cluster.database("stopped");
    let mut ann = database.user("ann");
    let engine = cluster.running_engine();
    engine.signal(Signal::STOP);
    let failure = ann.error("SELECT rag_embed('anybody there?')");
    engine.signal(Signal::CONT);
    assert_eq!(failure.code, "58000", "{failure}");
    assert!(failure.message.contains("has said nothing for 5 s"), "{failure}");
    wait_until("the engine answers again", LIMIT, || {
        ann.try_rows("SELECT rag_embed('anybody there?')").is_ok()
    });
}
