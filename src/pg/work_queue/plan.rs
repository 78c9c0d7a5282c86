//! What the queue of work and its callers say to each other: which worker is to start, where, and for what.

/// What a worker is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ingest,
    /// Builds vector indexes, which takes long: beside the others, so that ingestion goes on.
    Index,
    /// Asks the chat model what chunks name. It counts for no limit, and leaves where its place is wanted.
    Graph,
}

/// A worker's place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerSlot {
    pub(crate) index: usize,
    pub(crate) token: u32,
}

/// What the launcher is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start a worker for this database.
    Start { database: u32, place: WorkerSlot, kind: Kind },
    /// Nothing before this time.
    Wait { until: i64 },
}

/// How many workers there may be, and how often databases are looked at without a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// One of them is the spare one: see [`super::WorkQueue::is_spare`].
    pub(crate) per_database: usize,
    pub(crate) in_all: usize,
    pub(crate) nap: i64,
}
