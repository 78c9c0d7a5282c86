//! Many clients at once, who ask as ingestion and searches do: each makes the tokens of its request itself, hands it to the
//! scheduler and waits. So tokens are made on other threads than those that compute.

use crate::backend::Input;
use crate::batch_limits::BatchLimits;
use crate::engine::Counters;
use crate::model::Model;
use crate::principal::PrincipalKey;
use crate::scheduler::{Job, Scheduler};
use crate::ticket::{Ticket, Waited};
use rag_wire::{Failure, Lane};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Chunks of one request: as many as a worker of the server asks for.
pub(super) const TEXTS_PER_REQUEST: usize = 16;

/// Whether a pair's score is the same whatever runs beside it, as in searches.
pub(super) const SCORES_ARE_REPRODUCIBLE: bool = true;

/// Of so many calls of one client, one after the other, the median is told.
const CALLS: usize = 50;

/// Pairs and texts whose results are compared alone and in company.
const COMPARED: usize = 24;

/// Tokens of a text of [`super::texts`], about: by it the number of clients is chosen.
const TYPICAL_TOKENS: u32 = 160;

/// The scheduler and its clients.
pub(super) struct Load {
    scheduler: Arc<Scheduler>,
    counters: Arc<Counters>,
    clients: usize,
}

/// What was done in a time.
pub(super) struct Done {
    pub(super) rows: u64,
    pub(super) tokens: u64,
    pub(super) time: Duration,
}

impl Done {
    pub(super) fn per_second(&self, number: u64) -> String {
        format!("{:.1}", number as f64 / self.time.as_secs_f64().max(1e-9))
    }
}

impl Load {
    /// Starts the workers. There are clients enough to fill a batch while two others run, and to keep all workers busy.
    pub(super) fn start(threads: usize, limits: BatchLimits) -> Result<Self, String> {
        let for_batches = 3 * (limits.rows_of(TYPICAL_TOKENS) as usize).div_ceil(TEXTS_PER_REQUEST);
        let clients = for_batches.max(threads + 1);
        let counters = Arc::<Counters>::default();
        let scheduler = Scheduler::start(threads, threads, limits, clients as u32, counters.clone())
            .map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(Self { scheduler, counters, clients })
    }

    /// The vectors of a request's texts.
    pub(super) fn vectors(&self, model: &Arc<Model>, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let prefix = &model.folder.passage_prefix;
        let input = |text: &String| {
            Ok(Input { row: model.tokenizer.encode(&format!("{prefix}{text}"))?, ..Input::default() })
        };
        let inputs: Result<Vec<_>, String> = texts.iter().map(input).collect();
        self.compute(model, Lane::Bulk, false, inputs?)
    }

    /// Embeds the texts, again and again, for a time; each client finishes what it has begun.
    pub(super) fn embed(&self, model: &Arc<Model>, texts: &[String], time: Duration) -> Result<Done, String> {
        let before = self.counted();
        let took = self.repeat(|elapsed| elapsed < time, |round| self.request(model, texts, round))?;
        let after = self.counted();
        Ok(Done { rows: after.0 - before.0, tokens: after.1 - before.1, time: took })
    }

    /// Scores pairs of a question and so many texts for a time.
    pub(super) fn score(
        &self,
        model: &Arc<Model>,
        texts: &[String],
        pairs: usize,
        time: Duration,
    ) -> Result<Done, String> {
        let before = self.counted().2;
        let took = self.repeat(
            |elapsed| elapsed < time,
            |round| {
                let inputs = pairs_of(model, texts, round * pairs, pairs)?;
                self.compute(model, Lane::Interactive, SCORES_ARE_REPRODUCIBLE, inputs).map(drop)
            },
        )?;
        Ok(Done { rows: self.counted().2 - before, tokens: 0, time: took })
    }

    /// Embeds the texts of one request.
    fn request(&self, model: &Arc<Model>, texts: &[String], round: usize) -> Result<(), String> {
        let from = round % texts.len().div_ceil(TEXTS_PER_REQUEST) * TEXTS_PER_REQUEST;
        self.vectors(model, &texts[from..texts.len().min(from + TEXTS_PER_REQUEST)]).map(drop)
    }

    /// How long the vector of a question takes while texts are embedded in all places that bulk work may have.
    pub(super) fn query_beside_bulk(&self, model: &Arc<Model>, texts: &[String]) -> Result<Duration, String> {
        let is_done = AtomicBool::new(false);
        let bulk = || {
            let goes_on = |_| !is_done.load(Ordering::Relaxed);
            self.repeat(goes_on, |round| self.request(model, texts, round))
        };
        std::thread::scope(|scope| {
            let bulk = scope.spawn(bulk);
            let query = self.query(model, texts);
            is_done.store(true, Ordering::Relaxed);
            bulk.join().unwrap_or_else(|_| Err("a thread panicked".into()))?;
            query
        })
    }

    /// How long the vector of a question takes, alone on the device.
    pub(super) fn query(&self, model: &Arc<Model>, texts: &[String]) -> Result<Duration, String> {
        median(|round| {
            let row = model.tokenizer.encode(&question(&texts[round % texts.len()]))?;
            self.compute(model, Lane::Interactive, true, vec![Input { row, ..Input::default() }]).map(drop)
        })
    }

    /// How long the scores of a search's pairs take, alone on the device.
    pub(super) fn search(
        &self,
        model: &Arc<Model>,
        texts: &[String],
        pairs: usize,
    ) -> Result<Duration, String> {
        median(|round| {
            let inputs = pairs_of(model, texts, round * pairs, pairs)?;
            self.compute(model, Lane::Interactive, SCORES_ARE_REPRODUCIBLE, inputs).map(drop)
        })
    }

    /// How many of some vectors and scores that must be reproducible differ, in any bit, between a call for each alone and
    /// calls for all, in either order.
    pub(super) fn changed_in_company(
        &self,
        embedding: &Arc<Model>,
        reranker: &Arc<Model>,
        texts: &[String],
    ) -> Result<usize, String> {
        // Of every length that a model takes, as questions, sentences and chunks are.
        let words: Vec<&str> = texts.iter().flat_map(|text| text.split(' ')).collect();
        let cut = |number: usize| {
            words
                .iter()
                .cycle()
                .skip(101 * number)
                .take(3 + 16 * number)
                .copied()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let texts: Vec<String> = (0..COMPARED).map(cut).collect();
        let row = |text: &String| {
            let row = embedding.tokenizer.encode(text)?;
            Ok((row.ids.len() <= embedding.folder.max_tokens).then(|| Input { row, ..Input::default() }))
        };
        let rows: Result<Vec<_>, String> = texts.iter().map(row).collect();
        let rows: Vec<Input> = rows?.into_iter().flatten().collect();
        let pairs = pairs_of(reranker, &texts, 0, texts.len())?;
        let mut changed = 0;
        for (model, inputs) in [(embedding, rows), (reranker, pairs)] {
            let ask = |inputs: Vec<Input>| self.compute(model, Lane::Interactive, true, inputs);
            let mut alone = Vec::new();
            for input in &inputs {
                alone.extend(ask(vec![input.clone()])?);
            }
            let together = ask(inputs.clone())?;
            let mut backwards = ask(inputs.into_iter().rev().collect())?;
            backwards.reverse();
            let all = alone.iter().zip(&together).zip(&backwards);
            changed +=
                all.filter(|((alone, together), backwards)| alone != together || alone != backwards).count();
        }
        Ok(changed)
    }

    /// Texts, their tokens and pairs so far.
    fn counted(&self) -> (u64, u64, u64) {
        let counters = &self.counters;
        let [texts, tokens, pairs] =
            [&counters.texts_embedded, &counters.tokens_embedded, &counters.pairs_scored]
                .map(|counter| counter.load(Ordering::Relaxed));
        (texts, tokens, pairs)
    }

    /// All clients ask, each at least once, as long as it goes on. Returns how long it took, or a problem of one of them.
    fn repeat(
        &self,
        goes_on: impl Fn(Duration) -> bool + Sync,
        ask: impl Fn(usize) -> Result<(), String> + Sync,
    ) -> Result<Duration, String> {
        let started = Instant::now();
        let next = AtomicUsize::new(0);
        let client = || -> Result<(), String> {
            loop {
                ask(next.fetch_add(1, Ordering::Relaxed))?;
                if !goes_on(started.elapsed()) {
                    return Ok(());
                }
            }
        };
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients).map(|_| scope.spawn(client)).collect();
            let mut ended = clients.into_iter().map(|client| client.join());
            ended.try_for_each(|end| end.unwrap_or_else(|_| Err("a thread panicked".into())))
        })?;
        Ok(started.elapsed())
    }

    fn compute(
        &self,
        model: &Arc<Model>,
        lane: Lane,
        reproducible: bool,
        inputs: Vec<Input>,
    ) -> Result<Vec<Vec<f32>>, String> {
        let ticket = Arc::new(Ticket::new().map_err(|e| format!("cannot wait for the model: {e}"))?);
        let job = Job {
            lane,
            principal: PrincipalKey(0),
            model: model.clone(),
            reproducible,
            deadline: None,
            inputs,
            ticket: ticket.clone(),
        };
        self.scheduler.submit(job).map_err(in_words)?;
        match ticket.wait(None, None) {
            Waited::Answered(answer) => answer.map_err(in_words),
            Waited::Gone | Waited::Late => Err("cannot wait for the model".into()),
        }
    }
}

/// The first words of a text.
fn question(text: &str) -> String {
    text.split(' ').take(8).collect::<Vec<_>>().join(" ")
}

/// Pairs of a question and so many texts, the first of which it is made of.
fn pairs_of(model: &Model, texts: &[String], from: usize, pairs: usize) -> Result<Vec<Input>, String> {
    let text = |number: usize| texts[(from + number) % texts.len()].as_str();
    let question = question(text(0));
    let input = |number| Ok(Input { row: model.pairs.encode(&question, text(number))?, ..Input::default() });
    (0..pairs).map(input).collect()
}

/// The median of how long some calls take, after a first one.
fn median(call: impl Fn(usize) -> Result<(), String>) -> Result<Duration, String> {
    call(0)?;
    let mut times = Vec::with_capacity(CALLS);
    for round in 1..=CALLS {
        let started = Instant::now();
        call(round)?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times[CALLS / 2])
}

/// A failure for a person at a terminal.
pub(super) fn in_words(failure: Failure) -> String {
    match failure.detail {
        Some(detail) => format!("{}: {detail}", failure.message),
        None => failure.message,
    }
}
