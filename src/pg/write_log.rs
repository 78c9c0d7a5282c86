//! Which transactions have written about what: plain data that lies in shared memory. Knows no Postgres.
//!
//! What a backend has read of some rows under one snapshot holds under another if both show the same of the transactions
//! that have written about these rows. Nothing has to be done when a transaction ends, however it ends: whether it is shown
//! is the snapshots' to say.

/// Newest writings of all databases together that are remembered.
pub(crate) const ENTRIES: usize = 1024;

/// What rows are about, as a number. Two that share one by chance are read again with each other, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject(u64);

impl Subject {
    /// Concerns everybody.
    pub(crate) const ALL: Self = Self(0);

    /// Of a number that tells it apart.
    pub(crate) fn new(number: u64) -> Self {
        Self(number.max(1))
    }
}

/// What a snapshot shows of other transactions. Their ids are full ones, which never come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// All before this had ended.
    xmin: u64,
    /// None from this on had ended.
    xmax: u64,
    /// Of those between, the ones that had not ended, in order.
    running: Vec<u64>,
    /// The transaction that has the snapshot, if it has an id.
    own: Option<u64>,
}

impl View {
    pub(crate) fn new(
        (xmin, xmax): (u64, u64),
        running: impl IntoIterator<Item = u64>,
        own: Option<u64>,
    ) -> Self {
        let mut running: Vec<u64> = running.into_iter().collect();
        running.sort_unstable();
        Self { xmin, xmax, running, own }
    }

    /// Whether it shows what another transaction has written, if that has not failed.
    fn shows(&self, xid: u64) -> bool {
        let has_ended = || self.own != Some(xid) && self.running.binary_search(&xid).is_err();
        xid < self.xmin || xid < self.xmax && has_ended()
    }
}

#[derive(Clone, Copy)]
struct Entry {
    xid: u64,
    subject: Subject,
    /// 0: an empty place.
    database: u32,
}

/// The newest writings.
#[derive(Clone, Copy)]
pub(crate) struct WriteLog {
    /// All writings of transactions from this id on are here. 0: nobody has asked yet, and nothing is.
    complete_from: u64,
    /// Where the oldest is, and the next goes.
    next: usize,
    entries: [Entry; ENTRIES],
}

impl WriteLog {
    pub(crate) const EMPTY: Self = Self {
        complete_from: 0,
        next: 0,
        entries: [Entry { xid: 0, subject: Subject::ALL, database: 0 }; ENTRIES],
    };

    /// Whether writings are remembered already: from [`Self::begin`] on.
    pub(crate) fn has_begun(&self) -> bool {
        self.complete_from != 0
    }

    /// Remembers from here on; `next_xid` is the id of the transaction that comes next. Those that run, or are prepared, may
    /// have written before.
    pub(crate) fn begin(&mut self, next_xid: u64) {
        if !self.has_begun() {
            self.complete_from = next_xid;
        }
    }

    /// A transaction is about to write.
    pub(crate) fn note(&mut self, database: u32, xid: u64, subject: Subject) {
        let Some(place) = self.entries.get_mut(self.next) else { return };
        if place.database != 0 {
            self.complete_from = self.complete_from.max(place.xid + 1);
        }
        *place = Entry { xid, subject, database };
        self.next = (self.next + 1) % ENTRIES;
    }

    /// Whether two snapshots show the same of what was written about these subjects, which are in order. What the transaction
    /// that has one of them has written itself is never the same: it has seen it, and may yet take it back, or be prepared.
    pub(crate) fn is_same(&self, database: u32, subjects: &[Subject], then: &View, now: &View) -> bool {
        let is_own = |xid| [then.own, now.own].contains(&Some(xid));
        let differs = |entry: &Entry| {
            entry.database == database
                && (is_own(entry.xid) || then.shows(entry.xid) != now.shows(entry.xid))
                && (entry.subject == Subject::ALL || subjects.binary_search(&entry.subject).is_ok())
        };
        self.has_begun() && then.xmin.min(now.xmin) >= self.complete_from && !self.entries.iter().any(differs)
    }
}
