//! The worker "rag_ext graph": asks the chat model what chunks name, one chunk after the other, beside the workers that
//! ingest. One per database, which leaves when its place is wanted.
//!
//! Claim (commit) → ask, with no transaction open → write, if the document is still the same. Owners take turns; one whose
//! request found the endpoint in trouble waits, longer each time, while others go on. Nothing is lost by that: what was not
//! answered stays queued.

use super::ingest::{LOCKED_DELAY, is_anothers, later, may_work, report};
use super::looks::Looks;
use crate::config;
use crate::engine::{self, LocalOnly};
use crate::error::{Error, Result, unless_locked};
use crate::pg::{interrupts, shared, worker};
use crate::storage::document::{self, VersionLock};
use crate::storage::graph_job::{self, AskedChunk, ChunkClaim};
use crate::storage::job::Pause;
use crate::storage::{Id, installed};
use pgrx::PgSqlErrorCode as Code;
use rag_core::collection::CollectionOptions;
use rag_core::graph::{
    ChatGraph, Extraction, GRAPH_SCHEMA, GRAPH_TOKENS, graph_prompt, graph_reminder, read_graph,
};
use rag_wire::{Chat, ChatMessage};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

worker::worker_entry! {
    /// Entry of the worker "rag_ext graph".
    rag_ext_graph_main => run
}

/// Chunks of one owner before it is another one's turn.
const TURN: usize = 4;

/// Tries at one chunk: after the first reply that cannot be used there is one more.
const TRIES: usize = 2;

/// How long a worker without work keeps its connection, and between two looks for some.
const IDLE_TIME: Duration = Duration::from_secs(1);
const IDLE_LOOK: Duration = Duration::from_millis(200);

/// Between two looks for chunks that nobody is at.
const ORPHAN_LOOK: Duration = Duration::from_secs(5);

/// Between two looks whether the chunk at hand is still wanted.
const CLAIM_LOOK: Duration = Duration::from_secs(1);
const CLAIM_LOOK_WHEN_ASKED: Duration = Duration::from_millis(100);

/// Pause of a chunk whose document waits to be processed or has changed.
const PENDING_S: f64 = 1.0;

/// Longest pause of a chunk before another try, and of its owner.
const LONGEST_S: f64 = 300.0;
const LONGEST_OF_OWNER_S: f64 = 60.0;

/// Owners that a worker remembers in a round.
const SERVED: usize = 1000;

fn run(database: u32) {
    if !worker::connect(c"rag_ext graph", database) || !may_work() {
        return;
    }
    let due = match work_until_idle() {
        Ok(due) => due,
        Err(error) => {
            return match worker::transaction(installed::is_installed) {
                Ok(false) => shared::worker_found_no_extension(),
                _ if error.is_about_a_lock() => shared::worker_idle(Some(later(LOCKED_DELAY))),
                _ => report("the chat model is not asked for the graph", &error),
            };
        }
    };
    shared::worker_idle(due.map(|seconds| later(Duration::from_secs_f64(seconds.clamp(0.0, 1e6)))));
}

/// Returns in how many seconds there is more to do.
fn work_until_idle() -> Result<Option<f64>> {
    let mut work = Work { last: 0, served: Vec::new(), put_off: HashMap::new(), reclaimed: None };
    let mut idle_since: Option<Instant> = None;
    while !worker::should_stop() {
        worker::reload_configuration();
        let is_off = !config::has_chat_model() || !config::graph() || config::ingest_workers() == 0;
        if is_off || is_anothers()? {
            return Ok(None);
        }
        if work.once()? {
            idle_since = None;
            continue;
        }
        // While somebody is put off, the worker is what remembers it.
        let is_idle =
            !work.is_waiting() && idle_since.get_or_insert_with(Instant::now).elapsed() >= IDLE_TIME;
        if is_idle {
            break;
        }
        worker::set_activity("");
        interrupts::pause(IDLE_LOOK);
    }
    Ok(unless_locked(worker::transaction(graph_job::seconds_until_due))?.flatten())
}

/// What a worker remembers from one turn to the next.
struct Work {
    /// The domain whose turn it was last.
    last: Id,
    /// The owners who had theirs in this round.
    served: Vec<String>,
    /// The owners who found the endpoint in trouble.
    put_off: HashMap<String, PutOff>,
    reclaimed: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct PutOff {
    /// How often in a row.
    failures: i32,
    until: Instant,
}

impl Work {
    /// Asks about some chunks of the next owner; false if there was nothing to do, or nothing that nobody else holds.
    fn once(&mut self) -> Result<bool> {
        if self.reclaimed.is_none_or(|at| at.elapsed() >= ORPHAN_LOOK) {
            self.reclaimed = Some(Instant::now());
            unless_locked(worker::transaction(graph_job::reclaim_orphans))?;
        }
        let put_off = self.put_off_now();
        let (last, served) = (self.last, &mut self.served);
        let turn = worker::transaction(|| graph_job::next_turn(last, served, &put_off));
        let Some((domain, owner)) = unless_locked(turn)?.flatten() else { return Ok(false) };
        self.last = domain;
        self.served.push(owner.clone());
        self.served.truncate(SERVED);
        let mut has_worked = false;
        for _ in 0..TURN {
            let claimed = unless_locked(worker::transaction(|| graph_job::claim(domain)))?.flatten();
            let Some(claim) = claimed else { break };
            has_worked = true;
            match do_chunk(&claim)? {
                Outcome::Settled => drop(self.put_off.remove(&owner)),
                Outcome::NotNow => break,
                Outcome::Trouble => {
                    self.put_off(owner);
                    break;
                }
            }
            if worker::should_stop() {
                break;
            }
        }
        Ok(has_worked)
    }

    fn put_off(&mut self, owner: String) {
        let failures = self.put_off.get(&owner).map_or(0, |known| known.failures) + 1;
        let until = Instant::now() + Duration::from_secs_f64(growing(failures - 1, LONGEST_OF_OWNER_S));
        self.put_off.insert(owner, PutOff { failures, until });
    }

    fn put_off_now(&self) -> Vec<String> {
        let now = Instant::now();
        self.put_off
            .iter()
            .filter(|(_, put_off)| put_off.until > now)
            .map(|(owner, _)| owner.clone())
            .collect()
    }

    fn is_waiting(&self) -> bool {
        !self.put_off_now().is_empty()
    }
}

/// 1 s, doubled with each failure.
fn growing(failures: i32, most_s: f64) -> f64 {
    2.0_f64.powi(failures.clamp(0, 16)).min(most_s)
}

/// What came of a chunk that was claimed.
enum Outcome {
    /// It was answered, or will not be.
    Settled,
    /// It was given back: its owner holds it back, somebody holds its document, or the worker is to stop.
    NotNow,
    /// It was given back, for the endpoint or the engine is in trouble.
    Trouble,
}

fn do_chunk(claim: &ChunkClaim) -> Result<Outcome> {
    let give_back = |pause: Pause| worker::transaction(|| graph_job::requeue(claim, pause, None));
    let Some(chunk) = worker::transaction(|| graph_job::load(claim))? else {
        worker::transaction(|| graph_job::drop_claim(claim))?;
        return Ok(Outcome::Settled);
    };
    if chunk.is_paused || worker::should_stop() {
        give_back(Pause::exactly(0.0))?;
        return Ok(Outcome::NotNow);
    }
    if CollectionOptions::from_json(&chunk.options)?.graph != Extraction::Chat {
        worker::transaction(|| graph_job::drop_claim(claim))?;
        return Ok(Outcome::Settled);
    }
    if chunk.is_pending {
        give_back(Pause::exactly(PENDING_S))?;
        return Ok(Outcome::Settled);
    }
    worker::set_activity("rag_ext: asking the chat model about a chunk");
    let is_unwanted = Rc::new(Cell::new(false));
    let answer = interrupts::while_wanted(still_wanted(*claim, Rc::clone(&is_unwanted)), || ask(&chunk));
    match answer {
        Ok(Answer::Graph(graph)) => write(claim, &chunk, &graph),
        Ok(Answer::Useless(problem)) => {
            let words = format!("the chat model's replies cannot be used: {problem}");
            worker::transaction(|| graph_job::give_up(claim, "skipped", &words))?;
            Ok(Outcome::Settled)
        }
        Err(_) if is_unwanted.get() || worker::should_stop() => {
            give_back(Pause::exactly(0.0))?;
            Ok(Outcome::NotNow)
        }
        Err(error) => settle_failure(claim, &error),
    }
}

/// What the chat model made of a chunk.
enum Answer {
    Graph(ChatGraph),
    /// No reply could be used; what is wrong with the last.
    Useless(String),
}

/// Asks about a chunk, in the name of its document's owner.
fn ask(chunk: &AskedChunk) -> Result<Answer> {
    let allows_remote = CollectionOptions::from_json(&chunk.options)?.remote;
    let _local_only = (!allows_remote).then(LocalOnly::enter);
    let mut messages = graph_prompt(&chunk.text);
    let mut last = String::new();
    for _ in 0..TRIES {
        let asked = messages.iter();
        let chat = Chat {
            messages: asked
                .map(|(role, content)| ChatMessage { role: (*role).to_owned(), content: content.clone() })
                .collect(),
            max_tokens: GRAPH_TOKENS,
            json_schema: Some(GRAPH_SCHEMA.to_owned()),
            ..Chat::default()
        };
        let principals = std::slice::from_ref(&chunk.owner);
        let reply = engine::chat_in_background(chat, config::llm_deadline(), principals)?;
        match read_graph(&reply.text, &chunk.text) {
            Ok(graph) => return Ok(Answer::Graph(graph)),
            Err(problem) => {
                // It also makes another prompt, which the engine's cache does not answer.
                messages.push(graph_reminder(&problem));
                last = problem;
            }
        }
    }
    Ok(Answer::Useless(last))
}

/// Ends a wait for the chat model when the worker is to stop, or (then it says so) when the chunk is not wanted now.
fn still_wanted(claim: ChunkClaim, is_unwanted: Rc<Cell<bool>>) -> impl Fn() -> Result<()> {
    let looks = RefCell::new(Looks::now());
    move || {
        if worker::should_stop() {
            return Err(Error::new(Code::ERRCODE_ADMIN_SHUTDOWN, "the worker is to stop"));
        }
        if !looks.borrow_mut().is_due(CLAIM_LOOK_WHEN_ASKED, CLAIM_LOOK)
            || worker::transaction(|| graph_job::is_wanted(&claim))?
        {
            return Ok(());
        }
        is_unwanted.set(true);
        Err(Error::new(Code::ERRCODE_QUERY_CANCELED, "the chunk is gone, or its work is held back"))
    }
}

/// Writes what was found, if the document is still the one that was asked about, and nobody is in the way. What was answered
/// stays in the engine's cache for a while, so another try soon asks nobody.
fn write(claim: &ChunkClaim, chunk: &AskedChunk, graph: &ChatGraph) -> Result<Outcome> {
    let written = worker::transaction(|| {
        let lock = document::lock_version(claim.domain, claim.document, chunk.version)?;
        if lock == VersionLock::Held && graph_job::hold(claim)? {
            graph_job::store(claim, graph)?;
            return Ok(None);
        }
        Ok(Some(lock))
    });
    match unless_locked(written)? {
        Some(None) => Ok(Outcome::Settled),
        // Of another version, or its chunk is gone.
        Some(Some(VersionLock::Changed | VersionLock::Held)) => {
            worker::transaction(|| graph_job::requeue(claim, Pause::exactly(PENDING_S), None))?;
            Ok(Outcome::Settled)
        }
        Some(Some(VersionLock::Busy)) | None => {
            worker::transaction(|| graph_job::requeue(claim, Pause::FOR_A_LOCK, None))?;
            Ok(Outcome::Settled)
        }
    }
}

/// Notes a failure. What is the endpoint's, the engine's or the server's trouble is tried until it is over, other failures
/// `rag_ext.max_tries` times.
fn settle_failure(claim: &ChunkClaim, error: &Error) -> Result<Outcome> {
    let is_trouble = matches!(
        error.code,
        Code::ERRCODE_SYSTEM_ERROR
            | Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
            | Code::ERRCODE_INSUFFICIENT_RESOURCES
            | Code::ERRCODE_INSUFFICIENT_PRIVILEGE
            | Code::ERRCODE_QUERY_CANCELED
    );
    // The message alone: a detail may name an address.
    let words = &error.message;
    if !is_trouble && claim.tries + 1 >= config::max_tries() {
        worker::transaction(|| graph_job::give_up(claim, "failed", words))?;
        return Ok(Outcome::Settled);
    }
    let pause = Pause::exactly(growing(claim.tries, LONGEST_S));
    worker::transaction(|| graph_job::requeue(claim, pause, Some(words)))?;
    Ok(if is_trouble { Outcome::Trouble } else { Outcome::Settled })
}
