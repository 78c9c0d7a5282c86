//! Which database has background work and which workers are at it: plain data that lies in shared memory, and
//! the rules by which the launcher starts workers. Knows no Postgres; times are microseconds on any one clock.
//!
//! A request raises a database's `wanted`. A worker remembers the `wanted` that it saw before it looked for
//! work, and when it finds none, that number becomes `done`. So a request that comes while a worker is leaving
//! is never lost: `wanted` then differs from `done`, and the launcher starts another.

#[path = "work_queue/graph.rs"]
mod graph;
#[path = "work_queue/owners.rs"]
mod owners;
#[path = "work_queue/plan.rs"]
mod plan;
#[path = "work_queue/table.rs"]
mod table;

pub(crate) use plan::{Kind, Limits, Next, WorkerSlot};
use table::{Database, NO_DATABASE, NO_WORKER, Stage, Worker};

/// Databases that can be told apart. More share the table: one that has nothing to do makes room.
pub(crate) const DATABASES: usize = 256;
/// Workers of all databases together.
pub(crate) const WORKERS: usize = 64;

const SECOND: i64 = 1_000_000;
/// A worker that did not pause for so long is taken to have more work than it can do alone.
const BUSY: i64 = SECOND / 5;
/// After this long a worker makes room for a database that has none.
const TURN: i64 = 30 * SECOND;
/// Delay after the first of several failures in a row; it doubles with each.
const FIRST_DELAY: i64 = 5 * SECOND;
const LONGEST_DELAY: i64 = 300 * SECOND;
/// Delay before a vector index is tried again.
const INDEX_DELAY: i64 = 10 * SECOND;
/// Time between two looks at a database without the extension.
const ABSENT_NAP: i64 = 600 * SECOND;

/// Asked for whenever a worker has to be woken; the value is what [`WorkQueue::attach`] was given.
type Wake<'a> = &'a mut dyn FnMut(usize);

/// The state of all databases and workers.
#[derive(Clone, Copy)]
pub(crate) struct WorkQueue {
    databases: [Database; DATABASES],
    workers: [Worker; WORKERS],
    /// How to wake the launcher; 0 while there is none.
    launcher: usize,
    /// A request found no place in the table: look at all databases.
    unlisted: bool,
    last_token: u32,
}

impl WorkQueue {
    pub(crate) const EMPTY: Self = Self {
        databases: [NO_DATABASE; DATABASES],
        workers: [NO_WORKER; WORKERS],
        launcher: 0,
        unlisted: false,
        last_token: 0,
    };

    /// A commit left work in a database.
    pub(crate) fn request(&mut self, oid: u32, wake: Wake<'_>) {
        match self.place_for(oid) {
            Some(database) => database.wanted += 1,
            None => self.unlisted = true,
        }
        for worker in self.workers.iter_mut().filter(|worker| worker.runs_in(oid) && worker.pausing) {
            worker.called = true;
            wake(worker.wake);
        }
        self.wake_launcher(wake);
    }

    /// A worker found that a vector index is to be built.
    pub(crate) fn request_index(&mut self, oid: u32, wake: Wake<'_>) {
        if let Some(database) = self.database(oid).filter(|database| !database.index_wanted) {
            database.index_wanted = true;
            self.wake_launcher(wake);
        }
    }

    /// Asks a database's workers to leave, and lets none start until then. 0 lets them start again.
    pub(crate) fn close(&mut self, oid: u32, until: i64, wake: Wake<'_>) {
        if let Some(database) = self.place_for(oid) {
            database.closed_until = until;
        }
        for worker in self.workers.iter_mut().filter(|worker| until != 0 && worker.runs_in(oid)) {
            worker.leave = true;
            wake(worker.wake);
        }
        self.wake_launcher(wake);
    }

    /// Processes of a database's workers.
    pub(crate) fn processes(&self, oid: u32) -> impl Iterator<Item = i32> {
        self.workers.iter().filter(move |worker| worker.runs_in(oid)).map(|worker| worker.pid)
    }

    /// The launcher is there, or (0) is gone. A start that an earlier launcher left unfinished is forgotten.
    pub(crate) fn set_launcher(&mut self, launcher: usize) {
        self.launcher = launcher;
        for worker in self.workers.iter_mut().filter(|worker| worker.stage == Stage::Starting) {
            *worker = NO_WORKER;
        }
    }

    /// Whether there is a launcher.
    pub(crate) fn has_launcher(&self) -> bool {
        self.launcher != 0
    }

    /// Takes in the list of all databases: new ones are due now, dropped ones are forgotten.
    pub(crate) fn list(&mut self, oids: &[u32], now: i64) {
        for database in &mut self.databases {
            if database.oid != 0 && !oids.contains(&database.oid) {
                *database = NO_DATABASE;
            }
        }
        self.unlisted = false;
        for &oid in oids {
            let known = self.databases.iter().any(|database| database.oid == oid);
            if !known && let Some(database) = self.place_for(oid) {
                database.due = now;
            }
        }
    }

    /// Whether a request found no place in the table.
    pub(crate) fn has_unlisted(&self) -> bool {
        self.unlisted
    }

    /// Chooses the next worker to start and keeps its place, or says how long there is nothing to start.
    pub(crate) fn next(&mut self, now: i64, limits: Limits, wake: Wake<'_>) -> Next {
        if let Some(start) = self.next_index(now, limits) {
            return start;
        }
        let mut until = self.index_due(now);
        // A database without a worker comes before one that wants a second, one with a request before one that is
        // only due; then the longest unserved.
        let mut best: Option<(usize, bool, i64, usize)> = None;
        for (index, database) in self.databases.iter().enumerate() {
            if database.oid == 0 || limits.per_database == 0 {
                continue;
            }
            let asked = database.wanted != database.done;
            let nap = if database.absent { limits.nap.max(ABSENT_NAP) } else { limits.nap };
            let due = if asked { i64::MIN } else { database.due.min(database.looked.saturating_add(nap)) };
            let at = due.max(database.not_before).max(database.closed_until);
            if at > now {
                until = until.min(at);
                continue;
            }
            let workers = self.ingest_workers_of(database.oid).count();
            if workers > 0 {
                if !asked || workers >= limits.per_database {
                    continue;
                }
                // The spare one takes no last place.
                if workers + 1 == limits.per_database && self.is_full(limits.in_all.saturating_sub(1)) {
                    continue;
                }
                let busy_since = self.busy_since(database.oid).unwrap_or(now);
                if busy_since + BUSY > now {
                    until = until.min(busy_since + BUSY);
                    continue;
                }
            }
            let rank = (workers, !asked, database.last_start, index);
            if best.is_none_or(|best| rank < best) {
                best = Some(rank);
            }
        }
        let Some((workers, _, _, index)) = best else {
            return match self.next_graph(now, limits) {
                Some(start) => start,
                None => Next::Wait { until: until.min(self.graph_due(now)) },
            };
        };
        if self.occupied() >= limits.in_all {
            self.dismiss_graph_worker(wake);
        }
        let free = self.workers.iter().position(|worker| worker.stage == Stage::Free);
        match free {
            Some(place) if !self.is_full(limits.in_all) => self.keep_place(index, place, Kind::Ingest, now),
            _ => {
                // Whoever waits is served when a worker leaves, which wakes the launcher.
                if workers == 0 {
                    until = until.min(self.make_room(now, wake));
                }
                Next::Wait { until }
            }
        }
    }

    /// One index worker per database, beyond the limit per database.
    fn next_index(&mut self, now: i64, limits: Limits) -> Option<Next> {
        let place = self.workers.iter().position(|worker| worker.stage == Stage::Free)?;
        let index = self.databases.iter().position(|database| {
            let is_due = database.index_wanted && database.index_not_before.max(database.closed_until) <= now;
            is_due && !self.workers_of(database.oid).any(|worker| worker.kind == Kind::Index)
        })?;
        (!self.is_full(limits.in_all)).then(|| self.keep_place(index, place, Kind::Index, now))
    }

    /// When the next index worker may start that has to wait for its time.
    fn index_due(&self, now: i64) -> i64 {
        let wanted = self.databases.iter().filter(|database| database.index_wanted);
        let due = wanted.map(|database| database.index_not_before.max(database.closed_until));
        due.filter(|at| *at > now).min().unwrap_or(i64::MAX)
    }

    fn keep_place(&mut self, database: usize, place: usize, kind: Kind, now: i64) -> Next {
        self.last_token = self.last_token.wrapping_add(1);
        let oid = self.databases[database].oid;
        match kind {
            Kind::Ingest => self.databases[database].last_start = now,
            Kind::Graph => self.databases[database].graph_wanted = false,
            Kind::Index => {}
        }
        self.workers[place] = Worker {
            stage: Stage::Starting,
            kind,
            database: oid,
            token: self.last_token,
            started: now,
            busy_since: now,
            ..NO_WORKER
        };
        Next::Start { database: oid, place: WorkerSlot { index: place, token: self.last_token }, kind }
    }

    /// Asks a worker that had its turn to leave; else says when one will have had it.
    fn make_room(&mut self, now: i64, wake: Wake<'_>) -> i64 {
        if self.workers.iter().any(|worker| worker.leave && worker.kind != Kind::Graph) {
            return i64::MAX;
        }
        let oldest = self
            .workers
            .iter_mut()
            .filter(|worker| worker.stage == Stage::Running && worker.kind == Kind::Ingest)
            .min_by_key(|worker| worker.started);
        let Some(oldest) = oldest else { return i64::MAX };
        if oldest.started + TURN > now {
            return oldest.started + TURN;
        }
        oldest.leave = true;
        wake(oldest.wake);
        i64::MAX
    }

    /// A worker's process did not start, or ended before it took its place.
    pub(crate) fn start_failed(&mut self, place: WorkerSlot, now: i64) {
        if let Some(worker) = self.worker(place).filter(|worker| worker.stage == Stage::Starting) {
            let (oid, kind) = (worker.database, worker.kind);
            *worker = NO_WORKER;
            self.failed(oid, kind, now);
        }
    }

    /// A worker's process could not be had: its database is not to blame.
    pub(crate) fn start_refused(&mut self, place: WorkerSlot) {
        if let Some(worker) = self.worker(place).filter(|worker| worker.stage == Stage::Starting) {
            let (oid, kind) = (worker.database, worker.kind);
            *worker = NO_WORKER;
            if kind == Kind::Graph {
                self.graph_left(oid, 0);
            }
        }
    }

    /// A started worker takes its place. False if nobody keeps it: then it must leave at once.
    pub(crate) fn attach(&mut self, place: WorkerSlot, pid: i32, wake: usize, now: i64) -> bool {
        let Some(oid) =
            self.worker(place).filter(|worker| worker.stage == Stage::Starting).map(|worker| worker.database)
        else {
            return false;
        };
        let wanted = self.wanted(oid);
        let is_closed = self.database(oid).is_some_and(|database| database.closed_until > now);
        match self.worker(place) {
            Some(worker) if is_closed => {
                let kind = worker.kind;
                *worker = NO_WORKER;
                if kind == Kind::Graph {
                    self.graph_left(oid, 0);
                }
            }
            Some(worker) => {
                *worker =
                    Worker { stage: Stage::Running, pid, wake, seen: wanted, busy_since: now, ..*worker };
            }
            None => {}
        }
        !is_closed
    }

    /// A worker is about to look for work.
    pub(crate) fn look(&mut self, place: WorkerSlot) {
        let wanted = self.worker(place).map(|worker| worker.database).map(|oid| self.wanted(oid));
        if let (Some(wanted), Some(worker)) = (wanted, self.worker(place)) {
            worker.seen = wanted;
        }
    }

    /// How often work was asked for in a worker's database.
    pub(crate) fn requests(&mut self, place: WorkerSlot) -> u64 {
        self.worker(place).map(|worker| worker.database).map_or(0, |oid| self.wanted(oid))
    }

    /// A worker found nothing to do and pauses for a moment. False if there was a request since it looked.
    pub(crate) fn pause(&mut self, place: WorkerSlot) -> bool {
        let Some((oid, seen)) = self.worker(place).map(|worker| (worker.database, worker.seen)) else {
            return true;
        };
        let wanted = self.wanted(oid);
        if let Some(database) = self.database(oid) {
            database.done = database.done.max(seen);
        }
        if let Some(worker) = self.worker(place) {
            worker.pausing = seen == wanted;
            worker.called = !worker.pausing;
            worker.serves = 0;
        }
        seen == wanted
    }

    /// A worker's pause is over. True if it was called to work, and then counts as looking for it.
    pub(crate) fn resume(&mut self, place: WorkerSlot, now: i64) -> bool {
        let called = match self.worker(place) {
            Some(worker) => {
                worker.pausing = false;
                worker.busy_since = now;
                std::mem::take(&mut worker.called)
            }
            None => false,
        };
        if called {
            self.look(place);
        }
        called
    }

    /// Whether there is no place for another worker. Graph workers make room.
    pub(crate) fn is_full(&self, in_all: usize) -> bool {
        let counts = |worker: &&Worker| worker.stage != Stage::Free && worker.kind != Kind::Graph;
        self.workers.iter().filter(counts).count() >= in_all
    }

    /// Whether a worker is asked to make room for another database.
    pub(crate) fn must_leave(&self, place: WorkerSlot) -> bool {
        self.workers.get(place.index).is_some_and(|worker| worker.token == place.token && worker.leave)
    }

    /// A worker leaves because nothing is left to do before `due`, or because the extension is `absent`.
    pub(crate) fn leave_idle(&mut self, place: WorkerSlot, due: i64, absent: bool, now: i64, wake: Wake<'_>) {
        if let Some(worker) = self.worker(place) {
            let (oid, seen, kind, made_room) = (worker.database, worker.seen, worker.kind, worker.leave);
            *worker = NO_WORKER;
            if kind == Kind::Graph {
                self.graph_left(oid, if made_room { now } else { due });
            } else if let Some(database) = self.database(oid).filter(|_| kind == Kind::Index) {
                database.index_wanted = made_room;
            } else if let Some(database) = self.database(oid) {
                if made_room {
                    // It may have left work behind, which goes on when it is the database's turn again.
                    database.wanted += 1;
                }
                database.done = database.done.max(seen);
                database.due = due;
                database.looked = now;
                database.absent = absent;
                database.failures = 0;
            }
            self.wake_launcher(wake);
        }
    }

    /// A worker ends otherwise: by an error or a signal.
    pub(crate) fn leave_early(&mut self, place: WorkerSlot, now: i64, wake: Wake<'_>) {
        if let Some(worker) = self.worker(place) {
            let (oid, kind) = (worker.database, worker.kind);
            *worker = NO_WORKER;
            self.failed(oid, kind, now);
            self.wake_launcher(wake);
        }
    }

    fn failed(&mut self, oid: u32, kind: Kind, now: i64) {
        if kind == Kind::Graph {
            self.graph_failed(oid, now);
        } else if let Some(database) = self.database(oid).filter(|_| kind == Kind::Index) {
            database.index_not_before = now + INDEX_DELAY;
        } else if let Some(database) = self.database(oid) {
            let delay = FIRST_DELAY << database.failures.min(8);
            database.failures += 1;
            database.not_before = now + delay.min(LONGEST_DELAY);
            // Whatever it was at is not done.
            database.wanted += 1;
        }
    }

    fn wake_launcher(&self, wake: Wake<'_>) {
        if self.launcher != 0 {
            wake(self.launcher);
        }
    }

    fn wanted(&self, oid: u32) -> u64 {
        self.databases.iter().find(|database| database.oid == oid).map_or(0, |database| database.wanted)
    }

    fn database(&mut self, oid: u32) -> Option<&mut Database> {
        self.databases.iter_mut().find(|database| database.oid == oid && oid != 0)
    }

    /// The database's place, or a new one: an empty one, else that of a database with nothing to do.
    fn place_for(&mut self, oid: u32) -> Option<&mut Database> {
        let idle = |database: &Database| database.wanted == database.done && database.failures == 0;
        let at = |wanted: &dyn Fn(&Database) -> bool| self.databases.iter().position(wanted);
        let index = at(&|database| database.oid == oid)
            .or_else(|| at(&|database| database.oid == 0))
            .or_else(|| {
                self.databases
                    .iter()
                    .enumerate()
                    .filter(|(_, database)| idle(database) && self.workers_of(database.oid).next().is_none())
                    .max_by_key(|(_, database)| (database.absent, database.due))
                    .map(|(index, _)| index)
            })?;
        let database = &mut self.databases[index];
        if database.oid != oid {
            *database = Database { oid, ..NO_DATABASE };
        }
        Some(database)
    }

    fn worker(&mut self, place: WorkerSlot) -> Option<&mut Worker> {
        self.workers
            .get_mut(place.index)
            .filter(|worker| worker.stage != Stage::Free && worker.token == place.token)
    }

    fn workers_of(&self, oid: u32) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(move |worker| worker.stage != Stage::Free && worker.database == oid)
    }

    fn ingest_workers_of(&self, oid: u32) -> impl Iterator<Item = &Worker> {
        self.workers_of(oid).filter(|worker| worker.kind == Kind::Ingest)
    }

    /// Since when all of a database's workers are at work; `None` if one is not.
    fn busy_since(&self, oid: u32) -> Option<i64> {
        let mut since = i64::MIN;
        for worker in self.ingest_workers_of(oid) {
            if worker.stage != Stage::Running || worker.pausing {
                return None;
            }
            since = since.max(worker.busy_since);
        }
        Some(since)
    }
}
