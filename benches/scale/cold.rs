//! What a merge and the first search take where nothing is at hand yet: memory of a process's own at its most, and how
//! long they go on once they are to end.

use crate::codes;
use crate::figures::Figures;
use crate::made::Source;
use crate::owner::Owner;
use crate::questions::{Form, Questions};
use postgres::NoTls;
use rag_benches::{Library, Times, peak_anonymous_mib, timed};
use rag_tests::{Cluster, Session};
use std::time::{Duration, Instant};

/// Segments of one size: as many as are merged into one.
const SEGMENTS: usize = 8;

/// First searches and merges that are ended on the way.
const ENDED: u32 = 20;
const ENDED_MERGES: u32 = 5;

/// A merge that has not begun by then will not.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Where the server has its copies of segments and codes.
const COPIES: &str = "pg_stat_tmp/rag_ext";

const MERGING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'rag_ext: merging%'";

pub(crate) fn measure(figures: &mut Figures, source: &Source, questions: &Questions, sizes: &[usize]) {
    let cluster = crate::quiet(Cluster::builder("cold")).setting("rag_ext.merge_enabled", "off").start();
    for size in sizes {
        let library = Library::new(&cluster, &format!("cold_{size}"));
        library.database().leave_damaged();
        figures.begin(*size);
        codes::hold_workers(&library);
        let mut owner = Owner::new(&library, library.role(), "large");
        owner.fill_evenly(&library, source, *size, SEGMENTS);
        codes::wait_for_codes(&library);
        first_searches(figures, &cluster, &library, &questions.of_form(Form::Sentence)[0]);
        merges(figures, &library);
    }
}

/// The first search of a session, with copies and without; and without, cancelled on the way.
fn first_searches(figures: &mut Figures, cluster: &Cluster, library: &Library<'_>, query: &str) {
    let search = |session: &mut Session| {
        session.client().query("SELECT uri FROM rag_search($1, k => 10)", &[&query]).map(|rows| rows.len())
    };
    // The engine knows the query's vector from here on.
    search(&mut library.session()).unwrap();
    let mut longest = Duration::ZERO;
    for (what, has_copies) in
        [("first search, nothing cached", false), ("first search of another session", true)]
    {
        let mut times = Times::default();
        let mut peak: f64 = 0.0;
        for _ in 0..5 {
            if !has_copies {
                forget_copies(cluster);
            }
            let mut session = library.session();
            let (added, found) =
                peak_anonymous_mib(session.pid(), || times.take(|| search(&mut session)).unwrap());
            assert!(found > 0);
            peak = peak.max(added);
        }
        longest = longest.max(Duration::from_secs_f64(times.p50() / 1e3));
        figures.add_times(what, "large", &times);
        figures.add(&format!("{what}, memory added"), "large", "MiB", peak);
    }

    let mut late = Times::default();
    for number in 0..ENDED {
        forget_copies(cluster);
        let mut session = library.session();
        let token = session.client().cancel_token();
        let delay = longest * number / ENDED;
        std::thread::scope(|scope| {
            let canceller = scope.spawn(move || {
                std::thread::sleep(delay);
                let asked = Instant::now();
                token.cancel_query(NoTls).unwrap();
                asked
            });
            let outcome = search(&mut session);
            let ended = Instant::now();
            let asked = canceller.join().unwrap();
            if outcome.is_err() {
                late.push(ended.saturating_duration_since(asked));
            }
        });
    }
    figures.add("first searches cancelled on the way", "large", "", late.len() as f64);
    figures.add_times("first search goes on after a cancel", "large", &late);
    figures.add("first search goes on after a cancel, longest", "large", "ms", late.quantile_ms(1.0));
}

/// A merge of all segments into one: ended on the way, and then to its end.
fn merges(figures: &mut Figures, library: &Library<'_>) {
    let mut admin = library.admin();
    admin.run("ALTER SYSTEM SET rag_ext.merge_enabled = on");
    admin.run("SELECT pg_reload_conf()");
    let mut late = Times::default();
    for number in 1..=ENDED_MERGES {
        let Some(worker) = merging(&mut admin) else { break };
        std::thread::sleep(Duration::from_millis(200) * number);
        let asked = Instant::now();
        admin.run(&format!("SELECT pg_terminate_backend({worker})"));
        while std::path::Path::new(&format!("/proc/{worker}")).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        late.push(asked.elapsed());
    }
    figures.add_times("merge goes on after it is to end", "large", &late);
    figures.add("merge goes on after it is to end, longest", "large", "ms", late.quantile_ms(1.0));

    if let Some(worker) = merging(&mut admin) {
        let still = format!("{MERGING} AND pid = {worker}");
        let (time, (added, ())) = timed(|| {
            peak_anonymous_mib(worker, || {
                while admin.try_rows(&still).is_ok_and(|rows| !rows.is_empty()) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        });
        figures.add("merge", "large", "s", time.as_secs_f64());
        figures.add("merge, memory added", "large", "MiB", added);
    }
    library.settle();
    let segments = admin.float("SELECT count(*) FROM rag.segment WHERE part = 0 AND entries >= 64");
    figures.add("segments after the merge", "large", "", segments);
    admin.run("ALTER SYSTEM RESET rag_ext.merge_enabled");
    admin.run("SELECT pg_reload_conf()");
}

/// The process of a worker that merges; none where no merge begins.
fn merging(admin: &mut Session) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < LONGEST_WAIT {
        admin.run("SELECT rag.wake_workers()");
        if let Some(pid) = admin.column(MERGING).first() {
            return Some(pid.parse().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    None
}

fn forget_copies(cluster: &Cluster) {
    for file in std::fs::read_dir(cluster.data().join(COPIES)).unwrap() {
        let _ = std::fs::remove_file(file.unwrap().path());
    }
}
