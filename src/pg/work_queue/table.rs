//! What the queue of work knows of each database and of each worker.

use super::Kind;

#[derive(Clone, Copy)]
pub(super) struct Database {
    /// 0 is an empty place.
    pub(super) oid: u32,
    pub(super) wanted: u64,
    pub(super) done: u64,
    /// When something is to be tried again.
    pub(super) due: i64,
    /// When a worker left it last with nothing to do; the regular look comes a nap later.
    pub(super) looked: i64,
    /// The extension is not there: the nap is longer.
    pub(super) absent: bool,
    /// No worker starts before this, after failures.
    pub(super) not_before: i64,
    pub(super) failures: u32,
    pub(super) last_start: i64,
    /// A vector index is to be built, not before the time.
    pub(super) index_wanted: bool,
    pub(super) index_not_before: i64,
    /// The chat model is to be asked about chunks, from `graph_due` on.
    pub(super) graph_wanted: bool,
    pub(super) graph_due: i64,
    /// No graph worker starts before this, after failures.
    pub(super) graph_not_before: i64,
    /// Nobody starts before this: the database or the extension is being dropped.
    pub(super) closed_until: i64,
}

#[derive(Clone, Copy)]
pub(super) struct Worker {
    pub(super) stage: Stage,
    pub(super) kind: Kind,
    pub(super) pid: i32,
    pub(super) database: u32,
    pub(super) token: u32,
    pub(super) wake: usize,
    pub(super) seen: u64,
    /// It found nothing to do and pauses.
    pub(super) pausing: bool,
    /// It was asked for work, or woken, since it paused.
    pub(super) called: bool,
    /// It is asked to make room.
    pub(super) leave: bool,
    pub(super) started: i64,
    pub(super) busy_since: i64,
    /// The role whose attached tables it is at; 0: it is at none.
    pub(super) follows: u32,
    /// Whose documents it is at, as [`super::WorkQueue::serve`] was told; 0: nobody's.
    pub(super) serves: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    Starting,
    Running,
}

pub(super) const NO_DATABASE: Database = Database {
    oid: 0,
    wanted: 0,
    done: 0,
    due: i64::MAX,
    looked: i64::MAX,
    absent: false,
    not_before: 0,
    failures: 0,
    last_start: 0,
    index_wanted: false,
    index_not_before: 0,
    graph_wanted: false,
    graph_due: 0,
    graph_not_before: 0,
    closed_until: 0,
};
pub(super) const NO_WORKER: Worker = Worker {
    stage: Stage::Free,
    kind: Kind::Ingest,
    pid: 0,
    database: 0,
    token: 0,
    wake: 0,
    seen: 0,
    pausing: false,
    called: false,
    leave: false,
    started: 0,
    busy_since: 0,
    follows: 0,
    serves: 0,
};

impl Database {
    /// When a graph worker may start that is wanted.
    pub(super) fn graph_at(&self) -> Option<i64> {
        let at = self.graph_due.max(self.graph_not_before).max(self.closed_until);
        self.graph_wanted.then_some(at)
    }
}

impl Worker {
    pub(super) fn runs_in(&self, oid: u32) -> bool {
        self.stage == Stage::Running && self.database == oid
    }
}
