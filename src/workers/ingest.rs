//! The worker "rag_ext ingest": claims documents of one database, has the engine parse and embed them, and
//! writes the results.
//!
//! Claim (commit) → the engine's work, with no transaction open → write, if the document is still the same.
//! Leaves when there is nothing to do, so that an idle database has no connection of ours.

use super::chores::Chores;
use super::failure::{give_back, settle_failure};
use super::looks::Looks;
use super::unwritten::Unwritten;
use super::{attach, merge};
use crate::config;
use crate::error::{Error, Result, unless_locked};
use crate::ingest::extract::{Extraction, extract_again};
use crate::ingest::process::{self, ProcessedDocument};
use crate::pg::{interrupts, server, shared, worker};
use crate::storage::collection::Collection;
use crate::storage::document::{StoredDocument, VersionLock};
use crate::storage::installed::{self, Installed};
use crate::storage::job::{Claim, Pause};
use crate::storage::{self, Id, attachment, collection, document, job, model_change};
use pgrx::PgSqlErrorCode as Code;
use rag_wire::Lane;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

worker::worker_entry! {
    /// Entry of the worker "rag_ext ingest".
    rag_ext_ingest_main => run
}

/// Documents claimed at a time: what one worker's death delays.
const CLAIM: i64 = 8;

/// Chunks after which a batch is written, though claimed documents are left.
const BATCH_CHUNKS: usize = 64;

/// Time after which a batch is written: how long a document that is ready waits for its neighbours.
const BATCH_TIME: Duration = Duration::from_secs(2);

/// How long a worker without work keeps its connection.
const IDLE_TIME: Duration = Duration::from_millis(500);

/// Between two looks whether the document at hand is still wanted: a short one is done before the first.
const CLAIM_LOOK: Duration = Duration::from_secs(1);
const CLAIM_LOOK_WHEN_ASKED: Duration = Duration::from_millis(50);

/// Between two looks, from document to document, whether another owner waits.
const LOOK_BETWEEN: Duration = Duration::from_millis(250);
const LOOK_BETWEEN_WHEN_ASKED: Duration = Duration::from_millis(10);

/// Time after which a turn is over, though claimed documents are left: they go back to the others of their owner.
const TURN_TIME: Duration = Duration::from_secs(5);

/// Owners that a worker remembers in a round: beyond that many, turns go by domain.
const SERVED: usize = 1000;

/// Between two looks of a busy worker for jobs that nobody is at.
const ORPHAN_LOOK: Duration = Duration::from_secs(5);

/// When an attached table that is due is looked at again while enough workers are at others.
const FULL_DELAY_S: f64 = 2.0;

/// When a database is looked at again in which a whole table was locked.
pub(super) const LOCKED_DELAY: Duration = Duration::from_secs(5);

/// Pause before another look at a document that changed while it was processed.
const STALE_DELAY_S: f64 = 0.2;

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
        Ok((Installed::Yes, false)) => return true,
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
        last_attached: 0,
        chores: Chores::new(),
        unwritten: Unwritten::default(),
        reclaimed: Instant::now(),
    };
    let mut idle_since: Option<Instant> = None;
    work.reclaim_orphans()?;
    while !worker::should_stop() && config::ingest_workers() > 0 {
        worker::reload_configuration();
        shared::look_for_work();
        // A subscription may have come meanwhile: what is at hand is another server's now. Or the extension is another.
        if worker::transaction(|| Ok(storage::is_replicated()? || !installed::is_installed()?))? {
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
    /// The attached collection that was followed last.
    last_attached: Id,
    chores: Chores,
    unwritten: Unwritten,
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
        let (last, served) = (self.last, &mut self.served);
        let claimed = unless_locked(worker::transaction(|| {
            let may_serve = |owner: &str| shared::serve(owner, config::ingest_workers());
            let Some(turn) = job::next_turn(last, served, may_serve)? else { return Ok(None) };
            let domain = turn.spent_in;
            let claims = job::claim(domain, CLAIM)?;
            Ok(Some((turn, claims, collection::of_domain(domain)?)))
        }))?;
        let Some((turn, claims, collection)) = claimed.flatten() else {
            shared::serve_nobody();
            // The spare one is to be free when somebody comes. The others do chores between their turns.
            return Ok(followed || !is_spare() && self.chores.do_all()?);
        };
        let domain = turn.spent_in;
        self.last = turn.of;
        self.served.push(turn.owner);
        self.served.truncate(SERVED);
        if let Some(collection) = collection
            && process_claims(&Rc::new(collection), claims, &mut self.unwritten)? == TurnEnd::Early
        {
            // What else is to be done can wait.
            return Ok(true);
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

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnEnd {
    /// All is done, or the time is over.
    Regular,
    /// Another owner waits, the worker is to stop, or the collection is paused.
    Early,
}

fn process_claims(
    collection: &Rc<Collection>,
    claims: Vec<Claim>,
    unwritten: &mut Unwritten,
) -> Result<TurnEnd> {
    let mut batch: Vec<(Claim, ProcessedDocument)> = Vec::new();
    let begun = Instant::now();
    let mut since = begun;
    let mut looks = Looks::now();
    for (index, claim) in claims.iter().enumerate() {
        let is_over = index > 0 && begun.elapsed() >= TURN_TIME;
        let gives_way = index > 0
            && looks.is_due(LOOK_BETWEEN_WHEN_ASKED, LOOK_BETWEEN)
            && worker::transaction(|| job::should_give_way(claim))?;
        let outcome = if is_over || gives_way {
            Outcome::NotNow
        } else {
            process(claim, collection, &format!("document {} of {}", index + 1, claims.len()))
        };
        match outcome {
            Outcome::Processed(processed) => batch.push((*claim, *processed)),
            Outcome::Gone => {}
            Outcome::Busy => give_back(claim, Pause::FOR_A_LOCK)?,
            Outcome::Failed(error) => settle_failure(claim, &error)?,
            Outcome::NotNow => {
                write_batch(collection, batch, unwritten)?;
                claims[index..].iter().try_for_each(|claim| give_back(claim, Pause::exactly(0.0)))?;
                return Ok(if is_over && !gives_way { TurnEnd::Regular } else { TurnEnd::Early });
            }
        }
        let chunks: usize = batch.iter().map(|(_, p)| p.chunks()).sum();
        if chunks >= BATCH_CHUNKS || since.elapsed() >= BATCH_TIME {
            write_batch(collection, std::mem::take(&mut batch), unwritten)?;
            since = Instant::now();
        }
    }
    write_batch(collection, batch, unwritten)?;
    Ok(TurnEnd::Regular)
}

/// What came of the engine's part of a document.
enum Outcome {
    Processed(Box<ProcessedDocument>),
    /// It is gone, was changed or cancelled since it was claimed, or wanted nothing but its metadata extracted,
    /// which then is done.
    Gone,
    /// Somebody else holds it, or its collection.
    Busy,
    Failed(Error),
    /// The turn is over, the worker is to stop, or its collection is paused.
    NotNow,
}

/// The engine's part of one document.
fn process(claim: &Claim, collection: &Collection, place: &str) -> Outcome {
    let loaded = worker::transaction(|| {
        if job::is_paused(claim.domain)? {
            return Ok(Err(Outcome::NotNow));
        }
        // What cannot be written is not worth the engine's time.
        if !model_change::try_lock_model(collection.id)? {
            return Ok(Err(Outcome::Busy));
        }
        match document::lock_version(claim.domain, claim.document, claim.version)? {
            VersionLock::Held => {}
            VersionLock::Busy => return Ok(Err(Outcome::Busy)),
            VersionLock::Changed => return Ok(Err(Outcome::Gone)),
        }
        Ok(document::load(claim.domain, claim.document)?.ok_or(Outcome::Gone))
    });
    let loaded: StoredDocument = match loaded {
        Ok(Ok(loaded)) => loaded,
        Ok(Err(outcome)) => return outcome,
        Err(error) => return Outcome::Failed(error),
    };
    if worker::should_stop() {
        return Outcome::NotNow;
    }
    match extract_alone(claim) {
        Ok(true) => return Outcome::Gone,
        Ok(false) => {}
        Err(error) => return Outcome::Failed(error),
    }
    let unwanted = Rc::new(Cell::new(None));
    let worked = interrupts::while_wanted(still_wanted(*claim, Rc::clone(&unwanted)), || {
        worker::set_activity(&format!("rag_ext: parsing {place}"));
        let work = process::prepare(loaded, collection, Lane::Bulk)?;
        let known = worker::transaction(|| work.known_vectors(&collection.model))?;
        worker::set_activity(&format!("rag_ext: embedding {place}, {} chunks", work.chunks()));
        work.embed(known, &collection.model, Lane::Bulk)
    });
    match worked {
        Ok(processed) => Outcome::Processed(Box::new(processed)),
        Err(error) => match unwanted.get() {
            Some(Unwanted::Gone) => Outcome::Gone,
            Some(Unwanted::GivesWay) => Outcome::NotNow,
            None if worker::should_stop() => Outcome::NotNow,
            None => Outcome::Failed(error),
        },
    }
}

/// Why a document that is being worked on is left alone.
#[derive(Debug, Clone, Copy)]
enum Unwanted {
    /// It was changed or cancelled.
    Gone,
    /// Another owner waits, and this one has other workers.
    GivesWay,
}

/// Whether the job was for metadata alone, which is extracted now, or soon where somebody is changing the document.
fn extract_alone(claim: &Claim) -> Result<bool> {
    match worker::transaction(|| extract_again(claim.domain, claim.document, claim.version))? {
        Extraction::NotAsked => return Ok(false),
        Extraction::Done => {}
        Extraction::Locked => give_back(claim, Pause::FOR_A_LOCK)?,
    }
    Ok(true)
}

/// Ends a wait for the engine when the worker is to stop, or (then it says why) when the document is to be left alone.
fn still_wanted(claim: Claim, unwanted: Rc<Cell<Option<Unwanted>>>) -> impl Fn() -> Result<()> {
    let looks = RefCell::new(Looks::now());
    move || {
        if worker::should_stop() {
            return Err(Error::new(Code::ERRCODE_ADMIN_SHUTDOWN, "the worker is to stop"));
        }
        if !looks.borrow_mut().is_due(CLAIM_LOOK_WHEN_ASKED, CLAIM_LOOK) {
            return Ok(());
        }
        let (is_held, gives_way) =
            worker::transaction(|| Ok((job::is_held(&claim)?, job::should_give_way(&claim)?)))?;
        let (why, message) = match (is_held, gives_way) {
            (true, false) => return Ok(()),
            (true, true) => (Unwanted::GivesWay, "the document makes way for another owner's"),
            (false, _) => (Unwanted::Gone, "the document was changed or cancelled"),
        };
        unwanted.set(Some(why));
        Err(Error::new(Code::ERRCODE_QUERY_CANCELED, message))
    }
}

/// Writes a batch in one transaction; if that fails, each document in its own, so that one cannot hold up the
/// others. What somebody else holds is kept, and written later.
fn write_batch(
    collection: &Rc<Collection>,
    batch: Vec<(Claim, ProcessedDocument)>,
    unwritten: &mut Unwritten,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    worker::set_activity(&format!("rag_ext: writing {} documents", batch.len()));
    match write(collection, &batch) {
        Ok(left) => {
            for (claim, processed) in batch {
                if left.busy.contains(&claim.document) {
                    unwritten.keep(collection, claim, processed)?;
                } else if left.stale.contains(&claim.document) {
                    // The change has queued its own job.
                    give_back(&claim, Pause::exactly(STALE_DELAY_S))?;
                }
            }
            Ok(())
        }
        Err(error) if error.is_about_a_lock() => {
            batch.into_iter().try_for_each(|(claim, processed)| unwritten.keep(collection, claim, processed))
        }
        Err(error) if batch.len() == 1 => settle_failure(&batch[0].0, &error),
        Err(_) => batch.into_iter().try_for_each(|one| write_batch(collection, vec![one], unwritten)),
    }
}

/// Documents that were not written.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// They changed meanwhile, or their claim is gone.
    stale: Vec<Id>,
    /// Somebody else holds them, their job or their collection.
    pub(super) busy: Vec<Id>,
}

/// Writes documents of one domain, as far as nothing has changed and nobody is in the way.
pub(super) fn write(collection: &Collection, batch: &[(Claim, ProcessedDocument)]) -> Result<Left> {
    let Some(domain) = batch.first().map(|(claim, _)| claim.domain) else { return Ok(Left::default()) };
    let documents: Vec<Id> = batch.iter().map(|(claim, _)| claim.document).collect();
    worker::transaction(|| {
        let mut left = Left::default();
        let held = job::hold(domain, &documents)?;
        for (claim, _) in batch.iter().filter(|(claim, _)| !held.contains(&claim.document)) {
            let is_wanted = job::is_held(claim)?;
            if is_wanted { &mut left.busy } else { &mut left.stale }.push(claim.document);
        }
        if !model_change::try_lock_model(collection.id)? {
            left.busy.extend(held);
            return Ok(left);
        }
        let processed: Vec<&ProcessedDocument> =
            batch.iter().filter(|(claim, _)| held.contains(&claim.document)).map(|(_, p)| p).collect();
        let written = process::write(domain, collection, &processed)?;
        left.stale.extend(written.stale);
        left.busy.extend(written.busy);
        Ok(left)
    })
}
