//! Kills at random moments of everything that runs, while documents come, change and go: what was acknowledged is there,
//! once and whole, and what was not is there or is not.
//!
//! `RAG_TEST_SEED` draws the same victims again, `RAG_TEST_KILLS` says how many.

#![allow(clippy::unwrap_used)]

#[path = "faults/ledger.rs"]
mod ledger;

use ledger::Ledger;
use rag_tests::{Cluster, Database, Process, Random, Session, eventually, literal, wait_until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Kills where nobody says how many.
const KILLS: usize = 36;

/// After so many, the writers rest, and everything is compared.
const KILLS_PER_ROUND: usize = 12;

const WRITERS: usize = 3;

const LIMIT: Duration = Duration::from_secs(180);

/// Who is killed, by what its command line holds.
const VICTIMS: [(&str, &str); 6] = [
    ("engine", "rag-engine serve"),
    ("parse child", "/proc/self/exe parse"),
    ("worker", "rag_ext ingest"),
    ("launcher", "rag_ext launcher"),
    ("backend", "[local]"),
    ("postmaster", ""),
];

/// What one writer does next.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Put,
    PutAtOnce,
    PutFile,
    Delete,
}

impl Deed {
    fn sql(self, uri: &str, text: &str) -> String {
        let (uri, text) = (literal(uri), literal(text));
        match self {
            Self::Put => format!(
                "INSERT INTO rag.document (uri, content) VALUES ({uri}, {text})
                 ON CONFLICT (collection, owner, uri) DO UPDATE SET content = excluded.content, file = NULL"
            ),
            Self::PutAtOnce => {
                format!("SELECT rag_ingest({text}, uri => {uri}, options => '{{\"sync\": true}}')")
            }
            Self::PutFile => format!(
                "SELECT rag_ingest_bytes(convert_to('<html><body><p>' || {text} || '</p></body></html>', 'UTF8'), uri => {uri})"
            ),
            Self::Delete => format!("DELETE FROM rag.document WHERE uri = {uri}"),
        }
    }
}

/// Changes documents of their own until they are told to rest, and notes what was acknowledged.
fn write(
    database: &Database<'_>,
    role: &str,
    writer: usize,
    seed: u64,
    ledger: &Mutex<Ledger>,
    rests: &AtomicBool,
) {
    let mut random = Random::seeded(seed);
    let mut session: Option<Session> = None;
    while !rests.load(Ordering::SeqCst) {
        let Some(open) = &mut session else {
            session = database.cluster().try_connect(role, database.name()).ok();
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let uri = format!("{writer}-{}", random.below(30));
        let deed = *random.pick(&[Deed::Put, Deed::Put, Deed::PutAtOnce, Deed::PutFile, Deed::Delete]);
        let text = format!("commonword {:016x} of writer {writer}.", random.bits());
        let after = (!matches!(deed, Deed::Delete)).then_some(text.clone());
        ledger.lock().unwrap().begins(&uri, after.clone());
        match open.try_run(&deed.sql(&uri, &text)) {
            Ok(()) => ledger.lock().unwrap().acknowledged(&uri),
            // Not known: the connection broke, and the commit may have come before.
            Err(failure) if ["closed", "57P01", "57P02", "57P03"].contains(&failure.code.as_str()) => {
                session = None;
            }
            // The engine was gone, its parser killed, or a queue full: nothing was done.
            Err(failure) => {
                let is_parser = failure.code == "38000" && failure.message.contains("the parser was killed");
                assert!(
                    is_parser
                        || ["58000", "53000", "57014", "40P01", "XX000"].contains(&failure.code.as_str()),
                    "{failure}"
                );
                ledger.lock().unwrap().refused(&uri);
            }
        }
    }
}

/// Kills one of its kind, if there is one.
fn kill(cluster: &Cluster, random: &mut Random, kind: &str, mark: &str) -> bool {
    if kind == "postmaster" {
        cluster.kill9();
        cluster.start();
        return true;
    }
    let alike = |cluster: &Cluster| -> Vec<Process> {
        cluster.processes().into_iter().filter(|process| process.command.contains(mark)).collect()
    };
    let begun = Instant::now();
    let mut found = alike(cluster);
    while found.is_empty() && begun.elapsed() < Duration::from_secs(5) {
        std::thread::yield_now();
        found = alike(cluster);
    }
    if found.is_empty() {
        return false;
    }
    random.pick(&found).signal(Signal::KILL);
    true
}

/// After a backend's death the server ends all others and recovers.
fn reconnect(database: &Database<'_>, role: &str) -> Session {
    eventually("the server lets somebody in", LIMIT, || {
        let mut session = database.cluster().try_connect(role, database.name()).ok()?;
        session.try_rows("SELECT count(*) FROM rag.document").is_ok().then_some(session)
    })
}

#[test]
fn nothing_acknowledged_is_lost_whoever_is_killed() {
    let mut random = Random::announced("faults");
    let kills = std::env::var("RAG_TEST_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let cluster = Cluster::builder("faults").setting("rag_ext.launcher_naptime", "1").start();
    let database = cluster.database("faults");
    let role = database.role("ann");
    cluster.running_engine();
    let ledger = Mutex::new(Ledger::default());
    let mut killed: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missed = 0;
    while killed.values().sum::<usize>() < kills {
        let rests = AtomicBool::new(false);
        let left = AtomicUsize::new(KILLS_PER_ROUND.min(kills - killed.values().sum::<usize>()));
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (database, role, ledger, rests) = (&database, role.as_str(), &ledger, &rests);
                let seed = random.bits();
                scope.spawn(move || write(database, role, writer, seed, ledger, rests));
            }
            // Writers end with the round, however it ends.
            let _rest = Rest(&rests);
            while left.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(Duration::from_millis(random.below(400) as u64));
                let (kind, mark) = *random.pick(&VICTIMS);
                if kill(&cluster, &mut random, kind, mark) {
                    *killed.entry(kind).or_default() += 1;
                    left.fetch_sub(1, Ordering::SeqCst);
                } else {
                    missed += 1;
                    assert!(missed < 10 * kills, "nobody to kill");
                }
            }
        });
        settle(&database, &role);
        compare(&mut reconnect(&database, &role), &mut ledger.lock().unwrap());
    }
    eprintln!("faults: {killed:?}, {} statements acknowledged", ledger.lock().unwrap().statements());
}

struct Rest<'a>(&'a AtomicBool);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until the background is through. Whoever was killed last may take the connection along.
fn settle(database: &Database<'_>, role: &str) {
    let open = "SELECT 1 FROM rag.job WHERE state IN ('queued', 'running')";
    wait_until("all work is done", LIMIT, || {
        reconnect(database, role).try_rows(open).is_ok_and(|rows| rows.is_empty())
    });
}

/// The tables, both retrievers and the ledger tell the same.
fn compare(session: &mut Session, ledger: &mut Ledger) {
    let failed = session.rows("SELECT uri, error FROM rag.document WHERE status <> 'done'");
    assert!(failed.is_empty(), "not done: {failed:?}");
    let rows = session.rows(
        "SELECT d.uri, string_agg(c.content, '|') FROM rag.document d LEFT JOIN rag.chunk c ON c.document_id = d.id GROUP BY d.id, d.uri",
    );
    let stored = rows.into_iter().map(|mut row| (row[0].take().unwrap(), row[1].take().unwrap_or_default()));
    let stored: BTreeMap<String, String> = stored.collect();
    for mode in ["keyword", "vector"] {
        let found = session.column(&format!(
            "SELECT content FROM rag_search('commonword', k => 1000, mode => '{mode}') ORDER BY content COLLATE \"C\""
        ));
        let mut texts: Vec<&String> = stored.values().collect();
        texts.sort();
        assert_eq!(found.iter().collect::<Vec<_>>(), texts, "{mode}");
    }
    // Merges go on meanwhile; what is wrong stays so.
    let mut unsound = Vec::new();
    wait_until("rag_verify has nothing to report", LIMIT, || {
        let found = session.rows("SELECT kind, problem FROM rag_verify()");
        if found != unsound && !found.is_empty() {
            eprintln!("found for a while, or for good: {found:?}");
        }
        unsound = found;
        unsound.is_empty()
    });
    ledger.compare(&stored);
}
