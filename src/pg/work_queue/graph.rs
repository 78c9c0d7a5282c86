//! The workers that ask the chat model about chunks, one per database: such work takes long and can wait, so they take what
//! places are left, and leave where one is wanted.

use super::table::Stage;
use super::{Kind, Limits, Next, Wake, WorkQueue};

/// Delay after a graph worker has ended by an error.
const DELAY: i64 = 10_000_000;

impl WorkQueue {
    /// A worker found that the chat model is to be asked about chunks of its database, from `due` on.
    pub(crate) fn request_graph(&mut self, oid: u32, due: i64, wake: Wake<'_>) {
        let is_sooner = |known: Option<i64>| known.is_none_or(|known| due < known);
        if let Some(database) = self.database(oid)
            && is_sooner(database.graph_wanted.then_some(database.graph_due))
        {
            (database.graph_wanted, database.graph_due) = (true, due);
            self.wake_launcher(wake);
        }
    }

    /// One per database, where a place is left over.
    pub(super) fn next_graph(&mut self, now: i64, limits: Limits) -> Option<Next> {
        if limits.per_database == 0 || self.occupied() >= limits.in_all {
            return None;
        }
        let place = self.workers.iter().position(|worker| worker.stage == Stage::Free)?;
        let index = self.databases.iter().position(|database| {
            let is_due = database.oid != 0 && database.graph_at().is_some_and(|at| at <= now);
            is_due && !self.workers_of(database.oid).any(|worker| worker.kind == Kind::Graph)
        })?;
        Some(self.keep_place(index, place, Kind::Graph, now))
    }

    /// When the next graph worker may start that has to wait for its time.
    pub(super) fn graph_due(&self, now: i64) -> i64 {
        let due = self.databases.iter().filter_map(|database| database.graph_at());
        due.filter(|at| *at > now).min().unwrap_or(i64::MAX)
    }

    /// All workers, whatever they are for.
    pub(super) fn occupied(&self) -> usize {
        self.workers.iter().filter(|worker| worker.stage != Stage::Free).count()
    }

    /// Asks a graph worker to leave, if there is one; of several, the one that came last.
    pub(super) fn dismiss_graph_worker(&mut self, wake: Wake<'_>) {
        let running = |worker: &&mut super::Worker| {
            worker.stage == Stage::Running && worker.kind == Kind::Graph && !worker.leave
        };
        if let Some(last) = self.workers.iter_mut().filter(running).max_by_key(|worker| worker.started) {
            last.leave = true;
            wake(last.wake);
        }
    }

    /// A graph worker left, with work from `due` on, or (`i64::MAX`) none.
    pub(super) fn graph_left(&mut self, oid: u32, due: i64) {
        if let Some(database) = self.database(oid).filter(|_| due < i64::MAX) {
            database.graph_due = if database.graph_wanted { database.graph_due.min(due) } else { due };
            database.graph_wanted = true;
        }
    }

    /// A graph worker ended by an error.
    pub(super) fn graph_failed(&mut self, oid: u32, now: i64) {
        if let Some(database) = self.database(oid) {
            database.graph_not_before = now + DELAY;
        }
        self.graph_left(oid, now);
    }
}
