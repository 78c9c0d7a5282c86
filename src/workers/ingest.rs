//! The worker "rag_ext ingest": claims documents of one database, has the engine parse and embed them, and
//! writes the results.
//!
//! Claim (commit) → the engine's work, with no transaction open → write, if the document is still the same.
//! Leaves when there is nothing to do, so that an idle database has no connection of ours.

use super::chores::{self, Chores};
use super::turn::{CLAIM, Turn, TurnEnd};
use super::unwritten::Unwritten;
use super::{attach, merge};
use crate::config;
use crate::error::{Error, Result, unless_locked};
use crate::pg::{server, shared, spi, worker};
use crate::storage::installed::{self, Installed};
use crate::storage::job::{self, ClaimedUpTo};
use crate::storage::{self, Id, attachment, collection, model_change, restore};
use std::rc::Rc;
use std::time::{Duration, Instant};

worker::worker_entry! {
    /// Entry of the worker "rag_ext ingest".
    rag_ext_ingest_main => run
}

/// How long a worker without work keeps its connection.
const IDLE_TIME: Duration = Duration::from_millis(500);

/// Owners that a worker remembers in a round: beyond that many, turns go by domain.
const SERVED: usize = 1000;

/// Between two looks of a busy worker for jobs that nobody is at.
const ORPHAN_LOOK: Duration = Duration::from_secs(5);

/// When an attached table that is due is looked at again while enough workers are at others.
const FULL_DELAY_S: f64 = 2.0;

/// When a database is looked at again in which a whole table was locked.
pub(super) const LOCKED_DELAY: Duration = Duration::from_secs(5);

/// Between two looks at a restore.
const RESTORE_LOOK: Duration = Duration::from_secs(5);

/// For so long nobody is at a restore that is over. With `--jobs`, pg_restore leaves, and comes back in several sessions.
const RESTORE_PAUSE: Duration = Duration::from_secs(3);

fn run(database: u32) {
    if !worker::connect(c"rag_ext ingest", database) {
        return;
    }
    if !may_work() {
        return;
    }
    if let Err(error) = work_until_idle() {
        // Without a reason of a document's own: the database's trouble. The launcher tries again later. Where the
        // extension was dropped meanwhile, there is none.
        return match worker::transaction(installed::is_installed) {
            Ok(false) => shared::worker_found_no_extension(),
            _ if error.is_about_a_lock() => shared::worker_idle(Some(later(LOCKED_DELAY))),
            _ => report("ingestion stopped", &error),
        };
    }
    // What ended the work may be that it is no longer ours.
    if !may_work() {
        return;
    }
    let due = match unless_locked(worker::transaction(seconds_until_due)) {
        Ok(Some(due)) => due.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.1, 1e6))),
        Ok(None) => Some(LOCKED_DELAY),
        Err(_) => None,
    };
    shared::worker_idle(due.map(later));
}

/// Whether this database's documents are ours to process. Where they are not, the worker has left, and said why.
pub(super) fn may_work() -> bool {
    match worker::transaction(|| Ok((installed::installed()?, storage::is_replicated()?))) {
        Ok((Installed::Yes, false)) => match is_whole() {
            Ok(true) => return true,
            Ok(false) => shared::worker_idle(Some(later(RESTORE_LOOK))),
            Err(error) => report("cannot look for a restore", &error),
        },
        // Looked at again with each nap of the launcher.
        Ok((Installed::Yes, true)) => shared::worker_idle(None),
        Ok((Installed::No, _)) => shared::worker_found_no_extension(),
        // As after any failure it is looked at again, and ever more seldom.
        Ok((Installed::Other(version), _)) => {
            report("nothing is ingested", &installed::other_version(&version))
        }
        Err(error) => report("cannot look for the extension", &error),
    }
    false
}

/// Whether nobody is restoring a dump into this database.
fn is_whole() -> Result<bool> {
    if !worker::transaction(restore::is_noted)? {
        return Ok(true);
    }
    let quiet_since = Instant::now();
    while quiet_since.elapsed() < RESTORE_PAUSE {
        if worker::should_stop() || worker::transaction(restore::is_under_way)? {
            return Ok(false);
        }
        worker::wait(IDLE_TIME);
    }
    worker::transaction(restore::forget)?;
    Ok(true)
}

/// Whether what is at hand is not this worker's, or not any more: a subscription has come meanwhile, the extension is another,
/// or a dump is being restored.
pub(super) fn is_anothers() -> Result<bool> {
    worker::transaction(|| {
        Ok(storage::is_replicated()? || !installed::is_installed()? || restore::is_noted()?)
    })
}

pub(super) fn later(delay: Duration) -> i64 {
    server::now().saturating_add(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX))
}

/// Seconds until a job or an attached table is due.
fn seconds_until_due() -> Result<Option<f64>> {
    let attached = attachment::seconds_until_due()?;
    let attached = attached.map(|due| if attach::is_full() { due.max(FULL_DELAY_S) } else { due });
    let due = [job::seconds_until_due()?, attached, model_change::seconds_until_due()?];
    Ok(due.into_iter().flatten().min_by(f64::total_cmp))
}

fn work_until_idle() -> Result<()> {
    let mut work = Work {
        last: 0,
        served: Vec::new(),
        claimed_up_to: ClaimedUpTo::default(),
        last_attached: 0,
        chores: Chores::new(),
        unwritten: Unwritten::default(),
        turns: 0,
        reclaimed: Instant::now(),
    };
    let mut idle_since: Option<Instant> = None;
    work.reclaim_orphans()?;
    while !worker::should_stop() && config::ingest_workers() > 0 {
        worker::reload_configuration();
        shared::look_for_work();
        if is_anothers()? {
            return Ok(());
        }
        if work.once()? {
            idle_since = None;
            continue;
        }
        match idle_since {
            // Another worker may have died meanwhile, with documents in its hands.
            None if work.reclaim_orphans()? => continue,
            None => idle_since = Some(Instant::now()),
            Some(_) if is_spare() && !shared::workers_are_full() => {}
            Some(since) if since.elapsed() >= IDLE_TIME && work.unwritten.is_empty() => break,
            Some(_) => {}
        }
        worker::wait(IDLE_TIME);
    }
    work.unwritten.give_back()
}

/// Whether as many others are at work as may be at one owner's documents: this one waits for who else comes.
fn is_spare() -> bool {
    shared::is_spare_worker(config::ingest_workers())
}

pub(super) fn report(what: &str, error: &Error) {
    worker::log(
        pgrx::PgLogLevel::WARNING,
        error.code,
        format!("rag_ext: {what}: {}", error.message),
        error.hint.as_deref(),
    );
}

/// What a worker remembers from one turn to the next.
struct Work {
    /// The domain whose turn it was last.
    last: Id,
    /// The owners who had theirs in this round.
    served: Vec<String>,
    claimed_up_to: ClaimedUpTo,
    /// The attached collection that was followed last.
    last_attached: Id,
    chores: Chores,
    unwritten: Unwritten,
    /// Turns so far. Tables grow with them, and a statement that was planned for a small one reads all of it: so all are
    /// planned anew from time to time.
    turns: u64,
    /// When jobs that nobody is at were looked for.
    reclaimed: Instant,
}

impl Work {
    /// Claims and processes some documents of the next domain, or does chores; false if there was nothing to do, or
    /// nothing that somebody else does not hold.
    fn once(&mut self) -> Result<bool> {
        // Cheap beside the engine's work on what it brings, and it keeps searches from missing changed rows.
        let followed = unless_locked(attach::follow_once(&mut self.last_attached))?.unwrap_or(false);
        self.unwritten.retry()?;
        if self.reclaimed.elapsed() >= ORPHAN_LOOK {
            self.reclaim_orphans()?;
        }
        let (last, served, claimed_up_to) = (self.last, &mut self.served, &mut self.claimed_up_to);
        let claimed = unless_locked(worker::transaction(|| {
            let may_serve = |owner: &str| shared::serve(owner, config::ingest_workers());
            let Some(turn) = job::next_turn(last, served, may_serve)? else { return Ok(None) };
            let domain = turn.spent_in;
            let claims = job::claim(domain, CLAIM, claimed_up_to)?;
            Ok(Some((turn, claims, collection::of_domain(domain)?)))
        }))?;
        let Some((turn, claims, collection)) = claimed.flatten() else {
            shared::serve_nobody();
            // The spare one is to be free when somebody comes. The others do chores between their turns.
            return Ok(followed || !is_spare() && self.chores.do_all()?);
        };
        let domain = turn.spent_in;
        self.last = turn.of;
        self.served.push(turn.owner.clone());
        self.served.truncate(SERVED);
        if let Some(collection) = collection
            && Turn::new(&Rc::new(collection), &turn.owner, claims, claimed_up_to, &mut self.unwritten)
                .run()?
                == TurnEnd::Early
        {
            // What else is to be done can wait.
            return Ok(true);
        }
        self.turns += 1;
        if self.turns.is_power_of_two() {
            chores::analyze_grown()?;
            worker::transaction(spi::plan_anew)?;
        }
        merge::merge_domain_if_due(domain)?;
        self.chores.do_some()?;
        Ok(true)
    }

    /// Puts jobs that nobody is at back into the queue, and lets go of attached tables that nobody is at; true if there
    /// were such jobs.
    fn reclaim_orphans(&mut self) -> Result<bool> {
        self.reclaimed = Instant::now();
        attach::take_lost()?;
        let at_hand = self.unwritten.documents();
        let found = unless_locked(worker::transaction(|| job::reclaim_orphans(&at_hand)))?;
        Ok(found.is_some_and(|found| found > 0))
    }
}
