//! Whose work each worker is at: so that no owner has all of them.

use super::table::{Stage, Worker};
use super::{WorkQueue, WorkerSlot};

/// What a worker follows before it has chosen an attached table: no role has this OID.
const ANY_OWNER: u32 = u32::MAX;

impl WorkQueue {
    /// A worker is about to work on documents of this owner, and no more on another's. False, and it goes on as it was, if
    /// `most` others of its database are at theirs: then somebody else's are to be found for it.
    pub(crate) fn serve(&mut self, place: WorkerSlot, owner: u64, most: usize) -> bool {
        let is_free =
            self.ingest_workers_beside(place).filter(|worker| worker.serves == owner).count() < most;
        if is_free && let Some(worker) = self.worker(place) {
            worker.serves = owner;
        }
        is_free
    }

    /// A worker is at nobody's documents any more.
    pub(crate) fn serve_nobody(&mut self, place: WorkerSlot) {
        if let Some(worker) = self.worker(place) {
            worker.serves = 0;
        }
    }

    /// Whether a worker is the one beyond `most` of its database, which are all at work: it is kept for an owner whom
    /// nobody serves. Of several that have nothing to do, the last one is.
    pub(crate) fn is_spare(&self, place: WorkerSlot, most: usize) -> bool {
        let beside = || self.ingest_workers_beside(place);
        beside().all(|worker| !worker.pausing) && beside().count() >= most
    }

    /// A worker is about to look for an attached table to follow. False if as many others of its database are at some.
    pub(crate) fn begin_following(&mut self, place: WorkerSlot, most: usize) -> bool {
        let Some(oid) = self.worker(place).map(|worker| worker.database) else { return false };
        let is_free = self.workers_of(oid).filter(|worker| worker.follows != 0).count() < most;
        if is_free {
            self.follow(place, ANY_OWNER);
        }
        is_free
    }

    /// The owners whose attached tables other workers of the same database are at.
    pub(crate) fn followed_by_others(&mut self, place: WorkerSlot) -> Vec<u32> {
        let Some(oid) = self.worker(place).map(|worker| worker.database) else { return Vec::new() };
        let others = self.workers_of(oid).filter(|worker| worker.token != place.token);
        others.map(|worker| worker.follows).filter(|owner| *owner != 0 && *owner != ANY_OWNER).collect()
    }

    /// A worker has chosen an attached table of this owner. False if another one is at their tables.
    pub(crate) fn take_owner(&mut self, place: WorkerSlot, owner: u32) -> bool {
        let is_free = !self.followed_by_others(place).contains(&owner);
        if is_free {
            self.follow(place, owner);
        }
        is_free
    }

    /// A worker is at no attached table any more.
    pub(crate) fn end_following(&mut self, place: WorkerSlot) {
        self.follow(place, 0);
    }

    fn follow(&mut self, place: WorkerSlot, owner: u32) {
        if let Some(worker) = self.worker(place) {
            worker.follows = owner;
        }
    }

    /// The running ones of a worker's database, without itself.
    fn ingest_workers_beside(&self, place: WorkerSlot) -> impl Iterator<Item = &Worker> {
        let own = self.workers.get(place.index).filter(|worker| worker.token == place.token);
        let database = own.map_or(0, |worker| worker.database);
        self.ingest_workers_of(database)
            .filter(move |worker| worker.stage == Stage::Running && worker.token != place.token)
    }
}
