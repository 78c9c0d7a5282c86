//! A turn at the documents of one domain: claimed, prepared, embedded, written.
//!
//! Short documents are embedded together, so that a model sees full batches and an endpoint few requests. What
//! fails together is tried one by one, so that no document holds up another.

use super::failure::{give_back, settle_failure};
use super::looks::Looks;
use super::unwritten::Unwritten;
use super::write::write;
use crate::error::{Error, Result, unless_locked};
use crate::ingest::extract::{Extraction, extract_again};
use crate::ingest::process::{self, PreparedWork, ProcessedDocument, TEXTS_PER_REQUEST};
use crate::pg::{interrupts, worker};
use crate::storage::collection::Collection;
use crate::storage::document::{self, StoredDocument, VersionLock};
use crate::storage::job::{self, Claim, ClaimedUpTo, Pause};
use crate::storage::{Id, model_change};
use pgrx::PgSqlErrorCode as Code;
use rag_wire::Lane;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Documents claimed at a time: what one worker's death delays.
pub(super) const CLAIM: usize = 8;

/// Documents claimed at a time after short ones: the next are likely to be short, too, and claiming and reading them costs by
/// the statement.
const CLAIM_AFTER_SHORT: usize = 24;

/// Chunks after which a batch that has taken [`MORE_TIME`] is written, though claimed documents are left.
const BATCH_CHUNKS: usize = 64;

/// Chunks after which it is written even if it took less: each batch has a segment, which has to be merged with others.
const MOST_BATCH_CHUNKS: usize = 256;

/// Time after which a batch is written: how long a document that is ready waits for its neighbours.
const BATCH_TIME: Duration = Duration::from_secs(2);

/// More documents are claimed in a turn while a batch is younger than that, and not full, and nobody else waits.
const MORE_TIME: Duration = Duration::from_millis(200);

/// Time after which a turn is over, though claimed documents are left: they go back to the others of their owner.
const TURN_TIME: Duration = Duration::from_secs(5);

/// How long a document that was read before its turn is good for: rules, pauses and changes count from then on.
const READ_AHEAD: Duration = Duration::from_millis(100);

/// Between two looks whether the document at hand is still wanted: a short one is done before the first.
const CLAIM_LOOK: Duration = Duration::from_secs(1);
const CLAIM_LOOK_WHEN_ASKED: Duration = Duration::from_millis(50);

/// Between two looks, from document to document, whether another owner waits.
const LOOK_BETWEEN: Duration = Duration::from_millis(250);
const LOOK_BETWEEN_WHEN_ASKED: Duration = Duration::from_millis(10);

/// Pause before another look at a document that changed while it was processed.
const STALE_DELAY_S: f64 = 0.2;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// All is done, or the time is over.
    Regular,
    /// Another owner waits, the worker is to stop, or the collection is paused.
    Early,
}

/// The documents of a turn between their claim and their rows.
pub(super) struct Turn<'a> {
    collection: &'a Rc<Collection>,
    /// Whose turn it is, as [`job::next_turn`] says.
    owner: &'a str,
    unwritten: &'a mut Unwritten,
    claimed: &'a mut ClaimedUpTo,
    claims: VecDeque<Claim>,
    /// Documents of claims that come next, and when they were read.
    read_ahead: (Instant, Vec<StoredDocument>),
    /// Short ones of one owner, whose texts go to the model together.
    short: Vec<(Claim, PreparedWork)>,
    /// Those that only have to be written.
    batch: Vec<(Claim, ProcessedDocument)>,
    /// When the batch was begun.
    since: Instant,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        collection: &'a Rc<Collection>,
        owner: &'a str,
        claims: Vec<Claim>,
        claimed: &'a mut ClaimedUpTo,
        unwritten: &'a mut Unwritten,
    ) -> Self {
        Self {
            collection,
            owner,
            unwritten,
            claimed,
            claims: claims.into(),
            read_ahead: (Instant::now(), Vec::new()),
            short: Vec::new(),
            batch: Vec::new(),
            since: Instant::now(),
        }
    }

    /// Processes what is claimed, and gives back what it does not come to.
    pub(super) fn run(mut self) -> Result<TurnEnd> {
        let begun = Instant::now();
        let mut looks = Looks::now();
        let mut number = 0;
        while let Some(claim) = self.next()? {
            let is_over = number > 0 && begun.elapsed() >= TURN_TIME;
            let gives_way = number > 0
                && looks.is_due(LOOK_BETWEEN_WHEN_ASKED, LOOK_BETWEEN)
                && worker::transaction(|| job::should_give_way(&claim))?;
            number += 1;
            if is_over || gives_way {
                self.claims.push_front(claim);
                let is_early = gives_way || !self.embed_short()?;
                self.end()?;
                return Ok(if is_early { TurnEnd::Early } else { TurnEnd::Regular });
            }
            if !self.take(claim, number)? {
                self.end()?;
                return Ok(TurnEnd::Early);
            }
        }
        let is_regular = self.embed_short()?;
        self.end()?;
        Ok(if is_regular { TurnEnd::Regular } else { TurnEnd::Early })
    }

    /// The next document. Once all that were claimed are in hand and were so short that they are no batch yet, more of the
    /// domain are claimed, if nobody else waits for a turn.
    fn next(&mut self) -> Result<Option<Claim>> {
        let in_hand =
            self.short.last().map(|(claim, _)| *claim).or(self.batch.last().map(|(claim, _)| *claim));
        if let Some(Claim { domain, .. }) = in_hand.filter(|_| self.claims.is_empty())
            && self.since.elapsed() < MORE_TIME
        {
            let more = unless_locked(worker::transaction(|| {
                if job::does_another_wait(self.owner)? {
                    Ok(Vec::new())
                } else {
                    job::claim(domain, CLAIM_AFTER_SHORT, self.claimed)
                }
            }))?;
            self.claims.extend(more.unwrap_or_default());
        }
        Ok(self.claims.pop_front())
    }

    /// Does the engine's part of a document, or has it wait for others like it; writes what is a batch. False if the turn is
    /// over.
    fn take(&mut self, claim: Claim, number: usize) -> Result<bool> {
        let prepared = self.read(&claim).and_then(|loaded| prepare(&claim, loaded, self.collection, number));
        let goes_on = match prepared {
            Err(outcome) => self.settle(claim, outcome)?,
            Ok(work) if work.chunks() >= TEXTS_PER_REQUEST => {
                let outcome = embed_alone(&claim, work, self.collection);
                self.settle(claim, outcome)?
            }
            Ok(work) => {
                let has_room = self.make_room(&work)?;
                self.short.push((claim, work));
                has_room
            }
        };
        if goes_on && self.is_batch() {
            let goes_on = self.embed_short()?;
            self.write()?;
            return Ok(goes_on);
        }
        Ok(goes_on)
    }

    /// The document of a claim, if it is as it was claimed. Short ones that come next are read with it.
    fn read(&mut self, claim: &Claim) -> std::result::Result<StoredDocument, Outcome> {
        let (since, known) = &mut self.read_ahead;
        if since.elapsed() >= READ_AHEAD {
            known.clear();
        }
        let is_claimed = |d: &StoredDocument| d.id == claim.document && d.version == claim.version;
        if let Some(index) = known.iter().position(is_claimed) {
            return Ok(known.swap_remove(index));
        }
        let mut wanted = vec![*claim];
        wanted.extend(self.claims.iter().filter(|next| !next.may_be_extraction && !claim.may_be_extraction));
        let mut loaded = match load(&wanted, self.collection) {
            // It says nothing about which of them it is about.
            Err(Outcome::Failed(_)) if wanted.len() > 1 => load(&wanted[..1], self.collection)?,
            loaded => loaded?,
        };
        let index = loaded.iter().position(is_claimed).ok_or(Outcome::Gone)?;
        let document = loaded.swap_remove(index);
        self.read_ahead = (Instant::now(), loaded);
        Ok(document)
    }

    /// Whether what is at hand is to be written.
    fn is_batch(&self) -> bool {
        let (chunks, age) = (self.chunks(), self.since.elapsed());
        chunks >= MOST_BATCH_CHUNKS || chunks >= BATCH_CHUNKS && age >= MORE_TIME || age >= BATCH_TIME
    }

    fn chunks(&self) -> usize {
        self.batch.iter().map(|(_, p)| p.chunks()).sum::<usize>() + self.short_chunks()
    }

    fn short_chunks(&self) -> usize {
        self.short.iter().map(|(_, work)| work.chunks()).sum()
    }

    /// Embeds the short documents at hand if another one does not go with them.
    fn make_room(&mut self, work: &PreparedWork) -> Result<bool> {
        let is_of_another = self.short.first().is_some_and(|(_, first)| first.owner() != work.owner());
        if is_of_another || self.short_chunks() + work.chunks() > TEXTS_PER_REQUEST {
            return self.embed_short();
        }
        Ok(true)
    }

    /// Embeds the short documents at hand together; if that fails, one by one. False if the turn is over.
    fn embed_short(&mut self) -> Result<bool> {
        let (claims, works): (Vec<Claim>, Vec<PreparedWork>) =
            std::mem::take(&mut self.short).into_iter().unzip();
        let works = match works.len() {
            // Alone in any case.
            0 | 1 => works,
            _ => match embed_together(&claims, works, self.collection) {
                Ok(processed) => {
                    self.batch.extend(claims.into_iter().zip(processed));
                    return Ok(true);
                }
                Err((_, Outcome::NotNow)) => {
                    give_back_all(&claims)?;
                    return Ok(false);
                }
                Err((works, _)) => works,
            },
        };
        for (index, work) in works.into_iter().enumerate() {
            let outcome = embed_alone(&claims[index], work, self.collection);
            if !self.settle(claims[index], outcome)? {
                give_back_all(&claims[index + 1..])?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps what came of a document, or says what becomes of it. False if the turn is over.
    fn settle(&mut self, claim: Claim, outcome: Outcome) -> Result<bool> {
        match outcome {
            Outcome::Processed(processed) => self.batch.push((claim, *processed)),
            Outcome::Gone => {}
            Outcome::Busy => give_back(&claim, Pause::FOR_A_LOCK)?,
            Outcome::Failed(error) => settle_failure(&claim, &error)?,
            Outcome::NotNow => {
                give_back_all([&claim])?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&mut self) -> Result<()> {
        self.since = Instant::now();
        write_batch(self.collection, std::mem::take(&mut self.batch), self.unwritten)
    }

    /// Writes what is ready, and gives back the rest.
    fn end(mut self) -> Result<()> {
        self.write()?;
        give_back_all(self.short.iter().map(|(claim, _)| claim).chain(&self.claims))
    }
}

/// Puts documents back that the turn has not come to.
fn give_back_all<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Result<()> {
    claims.into_iter().try_for_each(|claim| give_back(claim, Pause::exactly(0.0)))
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

/// Reads the document of the first of some claims of a domain, and short ones of the others, as far as they are as they were
/// claimed and nobody holds them.
fn load(claims: &[Claim], collection: &Collection) -> std::result::Result<Vec<StoredDocument>, Outcome> {
    let Some(first) = claims.first() else { return Ok(Vec::new()) };
    let loaded = worker::transaction(|| {
        if job::is_paused(first.domain)? {
            return Ok(Err(Outcome::NotNow));
        }
        // What cannot be written is not worth the engine's time.
        if !model_change::try_lock_model(collection.id)? {
            return Ok(Err(Outcome::Busy));
        }
        let versions: Vec<(Id, i64)> = claims.iter().map(|claim| (claim.document, claim.version)).collect();
        let locks = document::lock_versions(first.domain, &versions)?;
        match locks.first() {
            Some(VersionLock::Held) => {}
            Some(VersionLock::Busy) => return Ok(Err(Outcome::Busy)),
            Some(VersionLock::Changed) | None => return Ok(Err(Outcome::Gone)),
        }
        let held = claims.iter().zip(&locks).skip(1).filter(|(_, lock)| **lock == VersionLock::Held);
        let others: Vec<Id> = held.map(|(claim, _)| claim.document).collect();
        document::load(first.domain, first.document, &others).map(Ok)
    });
    loaded.map_err(Outcome::Failed)?
}

/// Has a document parsed and cut.
fn prepare(
    claim: &Claim,
    loaded: StoredDocument,
    collection: &Collection,
    number: usize,
) -> std::result::Result<PreparedWork, Outcome> {
    if worker::should_stop() {
        return Err(Outcome::NotNow);
    }
    if claim.may_be_extraction && extract_alone(claim).map_err(Outcome::Failed)? {
        return Err(Outcome::Gone);
    }
    worker::set_activity(&format!("rag_ext: parsing document {number} of a turn"));
    while_wanted(claim, || process::prepare(loaded, collection, Lane::Bulk))
}

/// Has a document embedded.
fn embed_alone(claim: &Claim, work: PreparedWork, collection: &Collection) -> Outcome {
    worker::set_activity(&format!("rag_ext: embedding a document of {} chunks", work.chunks()));
    let works = [work];
    match while_wanted(claim, || embed(&works, collection)) {
        Ok((known, new)) => {
            let [processed] = works.map(|work| work.with_vectors(&known, &new));
            Outcome::Processed(Box::new(processed))
        }
        Err(outcome) => outcome,
    }
}

/// Has several documents embedded, or none of them.
fn embed_together(
    claims: &[Claim],
    works: Vec<PreparedWork>,
    collection: &Collection,
) -> std::result::Result<Vec<ProcessedDocument>, (Vec<PreparedWork>, Outcome)> {
    let Some(first) = claims.first() else { return Ok(Vec::new()) };
    worker::set_activity(&format!("rag_ext: embedding {} documents", works.len()));
    match while_wanted(first, || embed(&works, collection)) {
        Ok((known, new)) => Ok(works.into_iter().map(|work| work.with_vectors(&known, &new)).collect()),
        Err(outcome) => Err((works, outcome)),
    }
}

/// Known and new vectors of documents.
fn embed(works: &[PreparedWork], collection: &Collection) -> Result<(process::Vectors, process::Vectors)> {
    let known = worker::transaction(|| process::known_vectors(works, &collection.model))?;
    let new = process::embed_new(works, &known, &collection.model, Lane::Bulk)?;
    Ok((known, new))
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

/// Runs what waits for the engine as long as the document is wanted.
fn while_wanted<T>(claim: &Claim, work: impl FnOnce() -> Result<T>) -> std::result::Result<T, Outcome> {
    let unwanted = Rc::new(Cell::new(None));
    interrupts::while_wanted(still_wanted(*claim, Rc::clone(&unwanted)), work).map_err(|error| match unwanted
        .get()
    {
        Some(Unwanted::Gone) => Outcome::Gone,
        Some(Unwanted::GivesWay) => Outcome::NotNow,
        None if worker::should_stop() => Outcome::NotNow,
        None => Outcome::Failed(error),
    })
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
