//! The way of a note from a search or an answer to the worker that writes it: through shared memory, because nothing on the
//! read path writes.

use crate::pg::note_queue::{ANSWER_BYTES, AnswerQueue, Holder, Pushed, QUERY_BYTES, QueryQueue};
use crate::pg::{server, shared, transaction};
use pgrx::{PGRXSharedMemory, PgLwLock, pg_guard, pg_shmem_init, pg_sys};

// SAFETY: plain data without pointers.
unsafe impl PGRXSharedMemory for QueryQueue {}
// SAFETY: plain data without pointers.
unsafe impl PGRXSharedMemory for AnswerQueue {}

// SAFETY: the prefix makes the names ours.
static QUERIES: PgLwLock<QueryQueue> = unsafe { PgLwLock::new(c"rag_ext_query_log") };
// SAFETY: the prefix makes the names ours.
static ANSWERS: PgLwLock<AnswerQueue> = unsafe { PgLwLock::new(c"rag_ext_answer_log") };

/// What notes are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// `rag.query_log`.
    Queries,
    /// `rag.answer_log`.
    Answers,
}

impl Log {
    pub(crate) const ALL: [Self; 2] = [Self::Queries, Self::Answers];

    /// What it is a log of.
    pub(crate) fn subject(self) -> &'static str {
        match self {
            Self::Queries => "searches",
            Self::Answers => "answers",
        }
    }

    /// Most bytes of a note.
    pub(crate) fn note_bytes(self) -> usize {
        match self {
            Self::Queries => QUERY_BYTES,
            Self::Answers => ANSWER_BYTES,
        }
    }

    fn push(self, holder: Holder, note: &[u8], now: i64) -> Pushed {
        match self {
            Self::Queries => QUERIES.exclusive().push(holder, note, now),
            Self::Answers => ANSWERS.exclusive().push(holder, note, now),
        }
    }
}

/// Asks for the shared memory. Call once, from `_PG_init`, while libraries are preloaded.
// The macro asks for majors that this crate does not build for.
#[allow(unexpected_cfgs)]
pub(super) fn reserve() {
    pg_shmem_init!(QUERIES = QueryQueue::EMPTY);
    pg_shmem_init!(ANSWERS = AnswerQueue::EMPTY);
}

/// Whether notes of this transaction can be written: not on a standby, nor where it must not write.
pub(crate) fn can_be_written() -> bool {
    shared::is_available() && !transaction::in_recovery() && !transaction::is_read_only()
}

/// Hands a note of the current database to the workers: of an owner, told by a number, with the role behind them. On a standby
/// and in a read-only transaction it is dropped, as where there is no place, and counted. Never waits for more than the lock.
pub(crate) fn push(log: Log, role: u32, owner: u64, note: &[u8]) {
    if !can_be_written() {
        return drop_note(log);
    }
    let holder = Holder { database: transaction::database(), role, owner };
    if log.push(holder, note, server::now()) == Pushed::First {
        shared::request_work();
    }
}

/// Counts a note that could not be made.
pub(crate) fn drop_note(log: Log) {
    if !shared::is_available() {
        return;
    }
    match log {
        Log::Queries => QUERIES.exclusive().drop_note(),
        Log::Answers => ANSWERS.exclusive().drop_note(),
    }
}

/// Takes at most so many notes of the current database, the oldest first.
pub(crate) fn take(log: Log, most: usize) -> Vec<Vec<u8>> {
    if !shared::is_available() {
        return Vec::new();
    }
    match log {
        Log::Queries => QUERIES.exclusive().take(transaction::database(), most),
        Log::Answers => ANSWERS.exclusive().take(transaction::database(), most),
    }
}

/// Notes that were dropped since the server started, in all databases.
pub(crate) fn dropped(log: Log) -> u64 {
    if !shared::is_available() {
        return 0;
    }
    match log {
        Log::Queries => QUERIES.share().dropped(),
        Log::Answers => ANSWERS.share().dropped(),
    }
}
