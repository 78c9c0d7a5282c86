//! Who runs next: two bounded queues, the workers, and the book of what each principal has been served.
//!
//! Which rows make a batch is decided in [`crate::batch`]; this file keeps what that decision needs and carries it
//! out. Requests whose client has gone or whose deadline has passed are dropped before each batch.

use crate::backend::{Conditions, Input};
use crate::batch::{Budget, Bulk, Company, Pick, Waiting, next_batch};
use crate::batch_limits::BatchLimits;
use crate::engine::Counters;
use crate::failure::{Explain, deadline_passed, failure, internal};
use crate::log;
use crate::model::Model;
use crate::principal::PrincipalKey;
use crate::ticket::Ticket;
use rag_wire::{Failure, FailureCode, Lane, ModelKind};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Principals remembered beyond those that wait now, so that one who asks again is not taken for a new one.
const REMEMBERED: usize = 4096;

/// How long an interactive request has half of the workers at most. One that takes longer has all that are idle: what it
/// gains is more than what the next one waits.
const SHARING: Duration = Duration::from_millis(200);

/// One request's rows for a model.
pub(crate) struct Job {
    /// Its lane.
    pub(crate) lane: Lane,
    /// Who asks.
    pub(crate) principal: PrincipalKey,
    /// The model.
    pub(crate) model: Arc<Model>,
    /// Whether each row's result must be the same whatever runs beside it.
    pub(crate) reproducible: bool,
    /// When it is given up.
    pub(crate) deadline: Option<Instant>,
    /// The inputs, one row each; never empty.
    pub(crate) inputs: Vec<Input>,
    /// Where the results go, in the order of the inputs.
    pub(crate) ticket: Arc<Ticket<Result<Vec<Vec<f32>>, Failure>>>,
}

/// A job in the queue.
struct Entry {
    job: Arc<Job>,
    arrived: u64,
    /// Until when it leaves half of the workers to others.
    shares_until: Instant,
    /// How many batches with rows of it run.
    running: usize,
    /// Rows that have not run, the longest first.
    order: Vec<usize>,
    /// Their tokens, for the policy.
    tokens: Vec<u32>,
    /// How many of them have been handed out.
    next: usize,
    results: Arc<Mutex<Results>>,
}

struct Results {
    vectors: Vec<Vec<f32>>,
    missing: usize,
}

#[derive(Default)]
struct State {
    waiting: Vec<Entry>,
    arrivals: u64,
    running: usize,
    bulk_running: usize,
    /// Whether the place is taken that is kept for bulk work of others than whoever has all of bulk's places.
    spare_running: bool,
    /// The models and lanes of the batches that run.
    models: Vec<(usize, Lane)>,
    /// Whose bulk work runs, once for each part of a batch.
    bulk_principals: Vec<PrincipalKey>,
    served: HashMap<(Lane, PrincipalKey), u64>,
    /// Per lane, what the principal served last had been served: newcomers start there.
    clock: HashMap<Lane, u64>,
}

/// The queues and their workers.
pub(crate) struct Scheduler {
    state: Mutex<State>,
    wake: Condvar,
    workers: usize,
    bulk_workers: usize,
    batch_limits: BatchLimits,
    counters: Arc<Counters>,
    queue_limit: AtomicU64,
}

impl Scheduler {
    /// Starts `workers` threads, of which bulk work may use `bulk_workers` at a time; and one for bulk work of others
    /// where one principal has all of these: one batch may take seconds.
    pub(crate) fn start(
        workers: usize,
        bulk_workers: usize,
        batch_limits: BatchLimits,
        queue_limit: u32,
        counters: Arc<Counters>,
    ) -> std::io::Result<Arc<Self>> {
        let scheduler = Arc::new(Self {
            state: Mutex::default(),
            wake: Condvar::new(),
            workers: workers.max(1),
            bulk_workers: bulk_workers.max(1),
            batch_limits,
            counters,
            queue_limit: AtomicU64::new(queue_limit.into()),
        });
        for number in 0..=workers.max(1) {
            let scheduler = scheduler.clone();
            std::thread::Builder::new().name(format!("rag-run-{number}")).spawn(move || scheduler.work())?;
        }
        Ok(scheduler)
    }

    /// Changes how many requests may wait per lane.
    pub(crate) fn set_queue_limit(&self, limit: u32) {
        self.queue_limit.store(limit.into(), Ordering::Relaxed);
    }

    /// Requests that wait.
    pub(crate) fn queued(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Puts a job into its queue. A full queue refuses at once.
    ///
    /// A single interactive row that would be next anyway runs at once in the calling thread, which takes the
    /// place of a worker meanwhile: two changes of thread are a good part of what a short query costs.
    pub(crate) fn submit(&self, job: Job) -> Result<(), Failure> {
        let mut order: Vec<usize> = (0..job.inputs.len()).collect();
        // Alone, rows keep their order; in batches, like lengths together need the least padding.
        if company(&job) != Company::Nobody {
            order.sort_by_key(|row| std::cmp::Reverse(job.inputs[*row].row.tokens()));
        }
        let tokens = order.iter().map(|row| job.inputs[*row].row.tokens()).collect();
        let results = Results { vectors: vec![Vec::new(); job.inputs.len()], missing: job.inputs.len() };
        let limit = self.queue_limit.load(Ordering::Relaxed) as usize;

        let mut state = self.lock();
        // One more of each principal, so that nobody's queue is full for the others.
        let is_full = |state: &State| {
            let in_lane = || state.waiting.iter().filter(|e| e.job.lane == job.lane);
            in_lane().count() >= limit && in_lane().any(|e| e.job.principal == job.principal)
        };
        if is_full(&state) {
            state.drop_abandoned();
            if is_full(&state) {
                let lane = match job.lane {
                    Lane::Interactive => "interactive",
                    Lane::Bulk => "bulk",
                };
                let message = format!("the engine's {lane} queue is full: {limit} requests wait");
                return Err(failure(FailureCode::QueueFull, message));
            }
        }
        state.admit(job.lane, job.principal);
        let arrived = state.arrivals;
        state.arrivals += 1;
        let (lane, rows) = (job.lane, job.inputs.len());
        let results = Arc::new(Mutex::new(results));
        let shares_until = Instant::now() + SHARING;
        let job = Arc::new(job);
        state.waiting.push(Entry { job, arrived, shares_until, running: 0, order, tokens, next: 0, results });
        let next = state.waiting.iter().filter(|e| e.job.lane == Lane::Interactive).count() == 1;
        if next && lane == Lane::Interactive && rows == 1 && state.running < self.workers {
            drop(self.run_next(state));
        } else {
            // Where all places are taken, whoever leaves one wakes the next.
            let spare = usize::from(!state.spare_running);
            let places = self.workers.saturating_sub(state.running) + spare;
            drop(state);
            (0..places.min(rows)).for_each(|_| self.wake.notify_one());
        }
        Ok(())
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            state.drop_abandoned();
            let ran;
            (state, ran) = self.run_next(state);
            if !ran {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Runs the next batch, if one may start now; says whether it did.
    fn run_next<'a>(&'a self, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let interactive = state.running < self.workers;
        let is_bulk_full = state.bulk_running >= self.bulk_workers;
        let bulk = match is_bulk_full {
            false if interactive => Bulk::Open,
            true if !state.spare_running => Bulk::Spare,
            _ => Bulk::Closed,
        };
        let budget = Budget { limits: self.batch_limits, interactive, bulk };
        let Some(batch) = state.take_batch(budget, self.workers.div_ceil(2)) else { return (state, false) };
        let slot = match (batch.lane, bulk) {
            (Lane::Interactive, _) => RunSlot::Interactive,
            (Lane::Bulk, Bulk::Spare) => RunSlot::Spare,
            (Lane::Bulk, _) => RunSlot::Bulk,
        };
        state.enter(slot, &batch);
        drop(state);
        batch.run(&self.counters);
        let mut state = self.lock();
        state.leave(slot, &batch);
        if !state.waiting.is_empty() {
            // Another worker may have found only work that was not allowed to start.
            self.wake.notify_one();
        }
        (state, true)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, slot: RunSlot, batch: &Batch) {
        match slot {
            RunSlot::Interactive => self.running += 1,
            RunSlot::Bulk => (self.running, self.bulk_running) = (self.running + 1, self.bulk_running + 1),
            RunSlot::Spare => self.spare_running = true,
        }
        self.models.push((batch.model, batch.lane));
        if batch.lane == Lane::Bulk {
            self.bulk_principals.extend(batch.parts.iter().map(|part| part.job.principal));
        }
    }

    fn leave(&mut self, slot: RunSlot, batch: &Batch) {
        match slot {
            RunSlot::Interactive => self.running -= 1,
            // The one in the spare place takes the regular one: so nobody has both.
            RunSlot::Bulk | RunSlot::Spare if self.spare_running => self.spare_running = false,
            RunSlot::Bulk | RunSlot::Spare => {
                (self.running, self.bulk_running) = (self.running - 1, self.bulk_running - 1);
            }
        }
        let ran = self.models.iter().position(|ran| *ran == (batch.model, batch.lane));
        ran.map(|index| self.models.swap_remove(index));
        for entry in &mut self.waiting {
            entry.running -= batch.parts.iter().filter(|part| Arc::ptr_eq(&part.job, &entry.job)).count();
        }
        if batch.lane == Lane::Bulk {
            for part in &batch.parts {
                let found =
                    self.bulk_principals.iter().position(|principal| *principal == part.job.principal);
                found.map(|index| self.bulk_principals.swap_remove(index));
            }
        }
    }

    /// A principal who comes anew starts level with the one served last: idling earns nothing.
    fn admit(&mut self, lane: Lane, principal: PrincipalKey) {
        let clock = self.clock.get(&lane).copied().unwrap_or(0);
        if self.served.len() >= REMEMBERED {
            let waiting = &self.waiting;
            self.served.retain(|key, _| waiting.iter().any(|e| (e.job.lane, e.job.principal) == *key));
        }
        let waits = self.waiting.iter().any(|e| (e.job.lane, e.job.principal) == (lane, principal));
        let served = self.served.entry((lane, principal)).or_insert(clock);
        if !waits {
            *served = clock.max(*served);
        }
    }

    /// Drops requests that nobody waits for, and answers those whose deadline has passed.
    fn drop_abandoned(&mut self) {
        let now = Instant::now();
        self.waiting.retain(|entry| {
            let late = entry.job.deadline.is_some_and(|deadline| deadline <= now);
            if late {
                entry.job.ticket.answer(Err(deadline_passed()));
            }
            !late && !entry.job.ticket.is_withdrawn()
        });
    }

    /// The next batch. A request that has just come has `share` workers at most.
    fn take_batch(&mut self, budget: Budget, share: usize) -> Option<Batch> {
        let now = Instant::now();
        let waiting: Vec<Waiting<'_>> = self
            .waiting
            .iter()
            .map(|entry| Waiting {
                lane: entry.job.lane,
                principal: entry.job.principal,
                has_bulk_running: self.bulk_principals.contains(&entry.job.principal),
                has_its_share: entry.running >= share && now < entry.shares_until,
                is_model_full: self.is_full(&entry.job),
                served: self.served.get(&(entry.job.lane, entry.job.principal)).copied().unwrap_or(0),
                arrived: entry.arrived,
                model: number_of(&entry.job.model),
                company: company(&entry.job),
                rows: &entry.tokens[entry.next..],
            })
            .collect();
        let picks = next_batch(&waiting, budget);
        drop(waiting);
        let first = &self.waiting[picks.first()?.request].job;
        let (lane, model) = (first.lane, number_of(&first.model));
        let parts: Vec<Part> = picks.into_iter().map(|pick| self.hand_out(pick)).collect();
        self.waiting.retain(|entry| entry.next < entry.order.len());
        Some(Batch { lane, model, parts })
    }

    /// Whether as many batches of a job's model run as may. Bulk work leaves one place to others where there are several.
    fn is_full(&self, job: &Job) -> bool {
        let places = job.model.backend.limits().places;
        let of_model = || self.models.iter().filter(|(model, _)| *model == number_of(&job.model));
        let of_bulk = || of_model().filter(|(_, lane)| *lane == Lane::Bulk);
        of_model().count() >= places || job.lane == Lane::Bulk && of_bulk().count() >= (places - 1).max(1)
    }

    fn hand_out(&mut self, Pick { request, rows }: Pick) -> Part {
        let entry = &mut self.waiting[request];
        let handed = entry.next + rows.start..entry.next + rows.end;
        let tokens: u64 = entry.tokens[handed.clone()].iter().map(|tokens| u64::from(*tokens)).sum();
        let part = Part {
            job: entry.job.clone(),
            rows: entry.order[handed].to_vec(),
            tokens,
            results: entry.results.clone(),
        };
        entry.next += rows.end;
        entry.running += 1;
        let served = self.served.entry((part.job.lane, part.job.principal)).or_default();
        self.clock.insert(part.job.lane, *served);
        *served += tokens;
        part
    }
}

/// Which slot a batch takes.
#[derive(Debug, Clone, Copy)]
enum RunSlot {
    Interactive,
    Bulk,
    Spare,
}

/// What may run beside a job's rows.
fn company(job: &Job) -> Company {
    let limits = job.model.backend.limits();
    match (limits.one_by_one, job.reproducible) {
        (false, false) => Company::Any,
        (false, true) if limits.has_fixed_shapes => Company::SameShape,
        _ => Company::Nobody,
    }
}

/// Rows of one job in a batch.
struct Part {
    job: Arc<Job>,
    rows: Vec<usize>,
    tokens: u64,
    results: Arc<Mutex<Results>>,
}

/// Tells a model from others that are open.
fn number_of(model: &Arc<Model>) -> usize {
    Arc::as_ptr(model) as usize
}

/// Rows that run together: one model, one lane.
struct Batch {
    lane: Lane,
    model: usize,
    parts: Vec<Part>,
}

impl Batch {
    fn run(&self, counters: &Counters) {
        let Some(model) = self.parts.first().map(|part| &part.job.model) else { return };
        let inputs: Vec<&Input> =
            self.parts.iter().flat_map(|part| part.rows.iter().map(|row| &part.job.inputs[*row])).collect();
        // Who asks late, or has gone, was dropped before; what has begun is finished.
        let is_reproducible = self.parts.iter().any(|part| part.job.reproducible);
        let conditions = Conditions { is_reproducible, ..Conditions::unlimited() };
        let compute = || model.compute(&inputs, &conditions);
        let outcome = catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|_| {
            let message = format!("model \"{}\" failed", model.folder.name);
            Err(internal(message).detail("the model's thread panicked"))
        });
        match outcome {
            Ok(vectors) => {
                let mut vectors = vectors.into_iter();
                for part in &self.parts {
                    counters.count(model.folder.kind, part.rows.len() as u64, part.tokens);
                    part.fulfil(&mut vectors);
                }
            }
            Err(failure) => {
                log::failure(&failure);
                self.parts.iter().for_each(|part| part.job.ticket.answer(Err(failure.clone())));
            }
        }
    }
}

impl Part {
    fn fulfil(&self, vectors: &mut impl Iterator<Item = Vec<f32>>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        for (row, vector) in self.rows.iter().zip(vectors) {
            results.vectors[*row] = vector;
            results.missing -= 1;
        }
        if results.missing == 0 {
            self.job.ticket.answer(Ok(std::mem::take(&mut results.vectors)));
        }
    }
}

impl Counters {
    pub(crate) fn count(&self, kind: ModelKind, rows: u64, tokens: u64) {
        match kind {
            ModelKind::Embedding => {
                self.texts_embedded.fetch_add(rows, Ordering::Relaxed);
                self.tokens_embedded.fetch_add(tokens, Ordering::Relaxed);
            }
            ModelKind::Reranker => {
                self.pairs_scored.fetch_add(rows, Ordering::Relaxed);
            }
            ModelKind::Chat => {}
        }
    }
}
