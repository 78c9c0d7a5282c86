//! A tenant who does their worst beside one who writes a line and waits for it: the line is done.
//!
//! How long it takes is printed, beside how long it takes alone; what is asserted is that it comes to its end.
//! `RAG_TEST_LINES` says how many lines the figures are of.

#![allow(clippy::unwrap_used)]

use rag_test_files::TestFile;
use rag_tests::{Cluster, Database, Session, literal, wait_until};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Lines of each case where nobody says how many.
const LINES: usize = 3;

/// For a line that is not stopped, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_secs(300);

/// Tables of the tenant whose code is slow.
const SLOW_TABLES: usize = 4;

/// Documents that are thrown at the workers at once.
const FLOOD: usize = 300;

/// What a tenant does to others: once, and then again and again until it is enough.
struct Hostility {
    name: &'static str,
    begin: fn(&mut Session),
    again: fn(&mut Session, usize),
}

const HOSTILITIES: [Hostility; 6] = [
    Hostility { name: "an idle transaction with row locks", begin: hold_rows, again: rest },
    Hostility { name: "attempts to lock tables", begin: own_documents, again: try_to_lock },
    Hostility { name: "a flood of documents", begin: |_| (), again: flood },
    Hostility { name: "slow code in attached tables", begin: attach_slow_tables, again: change_slow_tables },
    Hostility { name: "parse bombs", begin: |_| (), again: bomb },
    Hostility { name: "long texts and questions", begin: |_| (), again: ask },
];

fn rest(_: &mut Session, _: usize) {
    std::thread::sleep(Duration::from_millis(50));
}

fn own_documents(session: &mut Session) {
    session.run("SELECT rag_create_collection('own')");
    session.run(
        "INSERT INTO rag.document (collection, uri, content)
         SELECT 'own', n::text, 'Note number ' || n FROM generate_series(1, 20) n",
    );
    session.settle();
}

fn hold_rows(session: &mut Session) {
    own_documents(session);
    session.run("UPDATE rag.document SET content = content || ' again'");
    session.run("BEGIN; SELECT rag_pause(); SELECT FROM rag.document FOR UPDATE");
}

fn try_to_lock(session: &mut Session, n: usize) {
    let table = ["document", "chunk", "job", "embedding", "segment", "collection"][n % 6];
    session.error(&format!("LOCK TABLE rag.{table} IN ACCESS EXCLUSIVE MODE"));
    session.run("BEGIN; SELECT FROM rag.document FOR UPDATE; SELECT pg_sleep(0.05); ROLLBACK");
}

fn flood(session: &mut Session, n: usize) {
    session.run(&format!(
        "INSERT INTO rag.document (uri, content)
         SELECT '{n}/' || m, repeat('A line of flood ' || m || '. ', 20) FROM generate_series(1, {FLOOD}) m"
    ));
}

fn attach_slow_tables(session: &mut Session) {
    session.run(
        "CREATE FUNCTION public.slow() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
             IF current_setting('application_name') LIKE 'rag_ext%' THEN PERFORM pg_sleep(100); END IF;
             RETURN 'role:' || current_user;
         END $$",
    );
    for n in 0..SLOW_TABLES {
        session.run(&format!(
            "CREATE TABLE slow_{n} (id int PRIMARY KEY, body text); INSERT INTO slow_{n} VALUES (0, 'A row.');
             SELECT rag_attach('slow_{n}', content => ARRAY['body'], options => '{{\"owner\": \"public.slow()\"}}')"
        ));
    }
}

fn change_slow_tables(session: &mut Session, n: usize) {
    session.run(&format!("INSERT INTO slow_{} VALUES ({}, 'Another row.')", n % SLOW_TABLES, n + 1));
    rest(session, n);
}

fn bomb(session: &mut Session, n: usize) {
    static BOMBS: OnceLock<Vec<TestFile>> = OnceLock::new();
    let bombs = BOMBS.get_or_init(rag_test_files::bombs);
    let file = &bombs[n % bombs.len()];
    let sql = "SELECT rag_ingest_bytes($1, uri => $2)";
    // Some are too large even to be taken.
    let _ = session.client().execute(sql, &[&file.bytes, &format!("{n}/{}", file.name)]);
}

fn ask(session: &mut Session, n: usize) {
    let text = format!("The measured river number {n} is deep and wide. ").repeat(2000);
    let _ = session.try_rows(&format!("SELECT rag_chunk({})", literal(&text)));
    let _ = session.try_rows("SELECT rag_answer('How deep is the measured river?')");
}

/// One line, until it can be found: as the server tells it, for whoever waits looks only now and then.
#[track_caller]
fn line(victim: &mut Session, n: &mut usize) -> Duration {
    *n += 1;
    victim.run(&format!("INSERT INTO rag.document (uri, content) VALUES ('{n}', 'Line number {n}.')"));
    assert!(victim.holds(&format!("SELECT rag_wait(NULL, '{} s')", LIMIT.as_secs())), "line {n} is not done");
    assert_eq!(victim.count("SELECT count(*) FROM rag.document WHERE status = 'done'"), *n as i64);
    let took =
        "SELECT (extract(epoch FROM max(finished_at) - max(queued_at)) * 1000000)::bigint FROM rag.job";
    Duration::from_micros(u64::try_from(victim.count(took)).unwrap())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Does some work while the hostile tenant is at theirs.
fn beside(database: &Database<'_>, role: &str, hostility: &Hostility, work: impl FnOnce()) {
    let (begun, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _begun = Told(&begun);
            let mut session = database.connect(role);
            (hostility.begin)(&mut session);
            for n in 0.. {
                (hostility.again)(&mut session, n);
                begun.store(true, Ordering::SeqCst);
                if enough.load(Ordering::SeqCst) {
                    break;
                }
            }
            let _ = session.try_run("ROLLBACK");
        });
        let _enough = Told(&enough);
        wait_until("the other tenant is at it", LIMIT, || begun.load(Ordering::SeqCst));
        work();
    });
}

/// Says so when it is dropped, also where a test fails.
struct Told<'a>(&'a AtomicBool);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_line_is_done_whatever_the_neighbour_does() {
    let lines = std::env::var("RAG_TEST_LINES").map_or(LINES, |text| text.parse().unwrap());
    let cluster = Cluster::builder("neighbours").start();
    for hostility in &HOSTILITIES {
        // A database of its own each time: what one case leaves in the queue is not the next one's.
        let database = cluster.database("neighbours");
        let hostile = database.role("hostile");
        database.admin().run(&format!("GRANT CREATE ON SCHEMA public TO {hostile}"));
        let mut victim = database.user("victim");
        let mut n = 0;
        line(&mut victim, &mut n);
        let alone = median((0..lines).map(|_| line(&mut victim, &mut n)).collect());
        let mut times = Vec::new();
        beside(&database, &hostile, hostility, || {
            times = (0..lines).map(|_| line(&mut victim, &mut n)).collect();
        });
        let longest = *times.iter().max().unwrap();
        let with = median(times);
        eprintln!(
            "neighbours: {}: alone {} ms, beside {} ms ({:.1} times), longest {} ms, of {lines} lines",
            hostility.name,
            alone.as_millis(),
            with.as_millis(),
            with.as_secs_f64() / alone.as_secs_f64(),
            longest.as_millis()
        );
        // What is left of it need not be done. A table whose code a worker runs now is not let go of before that ends.
        database.admin().run(
            "DELETE FROM rag.collection c WHERE owner LIKE '%hostile%'
               AND NOT EXISTS (SELECT FROM rag.attachment a WHERE a.collection_id = c.id)",
        );
    }
}
