//! The worker "rag_ext launcher": starts ingest workers in databases that have work. Connected to no database.
//!
//! It learns of work from commits, through shared memory, and looks at every database at its start and then
//! once per nap. The rules stand in `pg::work_queue`.

use crate::config;
use crate::error::Result;
#[cfg(doc)]
use crate::pg::work_queue::WorkQueue;
use crate::pg::work_queue::{Kind, Limits, Next, WorkerSlot};
use crate::pg::worker::{self, StartedWorker, Termination};
use crate::pg::{database, interrupts, server, shared};
use crate::search;
use pgrx::{PgLogLevel, PgSqlErrorCode};
use std::time::{Duration, Instant};

/// After the server could not give a worker.
const REFUSED: Duration = Duration::from_secs(5);
/// A list of databases that is older is made anew before a worker is sent to one.
const LIST_AGE: Duration = Duration::from_millis(500);

/// Launches until the server or an administrator ends it.
pub(super) fn run() {
    worker::handle_signals(Termination::Request);
    worker::connect_to_shared_catalogs();
    shared::with_work_queue(|queue, _| queue.set_launcher(shared::own_latch()));
    worker::at_exit(|| {
        shared::with_work_queue(|queue, _| queue.set_launcher(0));
    });
    let mut launcher = Launcher { started: Vec::new(), listed: None, databases: Vec::new(), refused: None };
    loop {
        if worker::stop_requested() {
            worker::exit_for_restart();
        }
        worker::reload_configuration();
        let at_most = launcher.step();
        interrupts::pause(at_most);
    }
}

struct Launcher {
    /// Workers whose process may still fail to start.
    started: Vec<(WorkerSlot, StartedWorker)>,
    /// When the databases were listed last, and which there were, those that take no connections too.
    listed: Option<Instant>,
    databases: Vec<u32>,
    /// Since when the server gives no worker.
    refused: Option<Instant>,
}

impl Launcher {
    /// Does what is due. Returns how long nothing is, unless something happens.
    fn step(&mut self) -> Duration {
        self.started.retain(|(place, started)| {
            if started.has_stopped() {
                shared::with_work_queue(|queue, _| queue.start_failed(*place, server::now()));
                return false;
            }
            true
        });
        let unlisted = shared::with_work_queue(|queue, _| queue.has_unlisted()).unwrap_or(false);
        if unlisted || self.list_age() >= config::launcher_naptime() {
            self.list();
        }
        let until_list = config::launcher_naptime().saturating_sub(self.list_age());
        if let Some(left) = self.refused.and_then(|refused| REFUSED.checked_sub(refused.elapsed())) {
            return left.min(until_list);
        }
        loop {
            let now = server::now();
            match shared::with_work_queue(|queue, wake| queue.next(now, limits(), wake)) {
                Some(Next::Start { place, .. }) if self.list_age() >= LIST_AGE => {
                    // A dropped database is not to be connected to.
                    shared::with_work_queue(|queue, _| queue.start_refused(place));
                    self.list();
                }
                Some(Next::Start { database, place, kind }) => {
                    if !self.start(database, place, kind) {
                        return REFUSED.min(until_list);
                    }
                }
                Some(Next::Wait { until }) => {
                    let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
                    return Duration::from_micros(left).min(until_list);
                }
                None => return until_list,
            }
        }
    }

    fn list_age(&self) -> Duration {
        self.listed.map_or(Duration::MAX, |listed| listed.elapsed())
    }

    fn list(&mut self) {
        self.listed = Some(Instant::now());
        let known = &self.databases;
        let found: Result<(Vec<u32>, Vec<u32>)> = worker::transaction(|| {
            let all = database::all();
            // At the first look too: a database may have been dropped while the launcher was not there. One that is
            // being dropped takes no connections any more, and is there for a while yet.
            if known.is_empty() || known.iter().any(|known| !all.contains(known)) {
                search::remove_files_of_dropped_databases();
            }
            Ok((database::list(), all))
        });
        match found {
            Ok((databases, all)) => {
                shared::with_work_queue(|queue, _| queue.list(&databases, server::now()));
                self.databases = all;
            }
            Err(error) => worker::log(PgLogLevel::WARNING, error.code, error.message, None),
        }
    }

    fn start(&mut self, database: u32, place: WorkerSlot, kind: Kind) -> bool {
        let (name, function) = match kind {
            Kind::Ingest => ("rag_ext ingest", "rag_ext_ingest_main"),
            Kind::Index => ("rag_ext index", "rag_ext_index_main"),
            Kind::Graph => ("rag_ext graph", "rag_ext_graph_main"),
        };
        let started = StartedWorker::start(name, function, database, place);
        match started {
            Some(started) => {
                self.started.push((place, started));
                self.refused = None;
                true
            }
            None => {
                shared::with_work_queue(|queue, _| queue.start_refused(place));
                // Said once per shortage, not once per try.
                if self.refused.replace(Instant::now()).is_none() {
                    worker::log(
                        PgLogLevel::WARNING,
                        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                        "rag_ext cannot start an ingest worker: no background worker slot is free".to_owned(),
                        Some("Raise max_worker_processes; it is tried again every few seconds."),
                    );
                }
                false
            }
        }
    }
}

/// One worker of a database's is beyond those that one owner may have: see [`WorkQueue::is_spare`].
fn limits() -> Limits {
    let of_one_owner = config::ingest_workers();
    Limits {
        per_database: if of_one_owner == 0 { 0 } else { of_one_owner + 1 },
        in_all: shared::most_workers(),
        nap: i64::try_from(config::launcher_naptime().as_micros()).unwrap_or(i64::MAX),
    }
}
