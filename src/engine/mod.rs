//! The backend's client of the engine: one request, one reply, over the engine's socket.
//!
//! A wait for the engine ends at once upon cancel, `statement_timeout` or termination. Every request may be sent
//! twice: if the engine dies in the middle, the supervisor starts another and the request is sent to that.

mod connection;
mod stream;

pub(crate) use stream::{ChatPart, ChatStream};

use crate::config;
use crate::error::{Error, Result};
use crate::pg::shared::{self, EnginePhase, EngineState};
use crate::pg::{interrupts, server};
use connection::{Connection, Lost};
use rag_bm25::Language;
use rag_core::answer::answerable::AnswerWeights;
use rag_core::document::{ParsedDocument, PreparedDocument};
use rag_wire::{
    Call, Chat, Completion, Content, Embeddings, EngineStatus, Lane, ModelInfo, Prepare, Reply, Request,
    TextRole,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The engine's socket, relative to the data directory: where every backend and the engine work.
///
/// Base backups and `pg_rewind` leave out what is in `pg_stat_tmp`. It is in no folder of its own: `pg_rewind` empties
/// that of its target, does not see a socket that a killed server has left, and could not remove the folder.
pub(crate) const SOCKET: &str = "pg_stat_tmp/rag_ext.sock";

/// How long a request waits for an engine that is being started.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it is remembered what models' folders say.
const MODELS_KEPT: Duration = Duration::from_secs(60);
/// Between two tries to connect.
const STEP: Duration = Duration::from_millis(20);
/// Added to a request's own deadline, so that it is the engine that tells of it, if it can.
const TELLING: Duration = Duration::from_millis(250);
/// Longest wait for bulk work, which has no deadline of its own.
const BULK_LIMIT: Duration = Duration::from_secs(3600);

thread_local! {
    /// The connection between two requests. Whoever uses it takes it out, and puts it back after a whole reply
    /// only: so an error in between, of whatever kind, closes it.
    static IDLE: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

/// While one lives, no text of documents goes beyond this machine, whatever the settings allow: neither to a chat endpoint
/// nor to a reranker's.
pub(crate) struct LocalOnly(());

thread_local! {
    static LOCAL_ONLY: Cell<usize> = const { Cell::new(0) };
}

impl LocalOnly {
    pub(crate) fn enter() -> Self {
        LOCAL_ONLY.set(LOCAL_ONLY.get() + 1);
        Self(())
    }

    fn is_in_force() -> bool {
        LOCAL_ONLY.get() > 0
    }
}

impl Drop for LocalOnly {
    fn drop(&mut self) {
        LOCAL_ONLY.set(LOCAL_ONLY.get() - 1);
    }
}

/// Vectors for texts, in their order.
pub(crate) fn embed(
    model: Option<&str>,
    role: TextRole,
    texts: Vec<String>,
    lane: Lane,
    principals: &[String],
) -> Result<Embeddings> {
    let wanted = texts.len();
    let call = Call::Embed { model: model.map(str::to_owned), role, texts };
    match send(call, lane, principals)? {
        Reply::Embeddings(embeddings)
            if embeddings.values.len() == wanted * embeddings.dimension as usize =>
        {
            Ok(embeddings)
        }
        other => Err(unexpected(&other)),
    }
}

/// The model that scored, and logits of passages for a query, in the order of the passages; where the engine's budget is
/// to be kept, perhaps of the first ones only.
pub(crate) fn rerank(
    model: Option<&str>,
    query: &str,
    passages: Vec<String>,
    within_budget: bool,
    within: Duration,
    principals: &[String],
) -> Result<(String, Vec<f32>)> {
    let wanted = passages.len();
    let model = model.map(str::to_owned);
    let call = Call::Rerank { model, query: query.to_owned(), passages, within_budget };
    let request = Request {
        lane: Lane::Interactive,
        principals: principals.to_vec(),
        deadline_ms: Some(milliseconds(within)),
        local_only: LocalOnly::is_in_force(),
        call,
    };
    match self::call(&request)? {
        Reply::Scores { model, scores }
            if scores.len() == wanted || (within_budget && (1..wanted).contains(&scores.len())) =>
        {
            Ok((model, scores))
        }
        other => Err(unexpected(&other)),
    }
}

/// A document, parsed and cut; a warning says if it was cut in another way than was asked for.
pub(crate) fn prepare(prepare: Prepare, lane: Lane, principals: &[String]) -> Result<PreparedDocument> {
    match send(Call::Prepare(prepare), lane, principals)? {
        Reply::Prepared(document) => {
            if let Some(reason) = &document.fallback {
                pgrx::warning!("rag_ext: cut as by recursive, not by semantic: {reason}");
            }
            Ok(document)
        }
        other => Err(unexpected(&other)),
    }
}

/// A document, parsed.
pub(crate) fn parse(
    content: Content,
    media_type: Option<String>,
    lane: Lane,
    principals: &[String],
) -> Result<ParsedDocument> {
    match send(Call::Parse { content, media_type }, lane, principals)? {
        Reply::Parsed(document) => Ok(document),
        other => Err(unexpected(&other)),
    }
}

/// One completion by the configured chat endpoint, all tries together within a time.
pub(crate) fn chat(chat: Chat, within: Duration, principals: &[String]) -> Result<Completion> {
    chat_in(Lane::Interactive, chat, within, principals)
}

/// [`chat`], for nobody who waits.
pub(crate) fn chat_in_background(chat: Chat, within: Duration, principals: &[String]) -> Result<Completion> {
    chat_in(Lane::Bulk, chat, within, principals)
}

fn chat_in(lane: Lane, chat: Chat, within: Duration, principals: &[String]) -> Result<Completion> {
    let request = chat_request(lane, Call::Chat(chat), within, principals);
    match self::call(&request)? {
        Reply::Completion(completion) => Ok(completion),
        other => Err(unexpected(&other)),
    }
}

fn chat_request(lane: Lane, call: Call, within: Duration, principals: &[String]) -> Request {
    Request {
        lane,
        principals: principals.to_vec(),
        deadline_ms: Some(milliseconds(within)),
        local_only: LocalOnly::is_in_force(),
        call,
    }
}

/// How many tokens each of the texts has for a chat model of this machine.
pub(crate) fn count_tokens(
    model: &str,
    texts: Vec<String>,
    within: Duration,
    principals: &[String],
) -> Result<Vec<u32>> {
    let call = Call::CountTokens { model: model.to_owned(), texts };
    match self::call(&chat_request(Lane::Interactive, call, within, principals))? {
        Reply::TokenCounts(counts) => Ok(counts),
        other => Err(unexpected(&other)),
    }
}

/// The models that the engine found.
pub(crate) fn models() -> Result<Vec<ModelInfo>> {
    match send(Call::Models, Lane::Interactive, &[])? {
        Reply::Models(models) => Ok(models),
        other => Err(unexpected(&other)),
    }
}

/// What is remembered of a model's folder.
#[derive(Clone)]
struct KnownModel {
    languages: Vec<String>,
    answer_threshold: Option<f64>,
    answer_weights: Option<AnswerWeights>,
}

/// What is known of a model, where the engine has it and answers. Asked once in a while; also again if it did not answer,
/// where somebody `insists`.
fn known(model: &str, insists: bool) -> Option<KnownModel> {
    type ByModel = HashMap<String, KnownModel>;
    thread_local! {
        static KNOWN: RefCell<Option<(Instant, ByModel)>> = const { RefCell::new(None) };
    }
    let of_info = |model: ModelInfo| {
        let ModelInfo { name, languages, answer_threshold, answer_weights, .. } = model;
        (name, KnownModel { languages, answer_threshold, answer_weights })
    };
    KNOWN.with_borrow_mut(|known| {
        let is_fresh = |(asked, models): &(Instant, ByModel)| {
            asked.elapsed() <= MODELS_KEPT && !(insists && models.is_empty())
        };
        let kept = known.take().filter(is_fresh);
        let (_, by_model) = known.insert(kept.unwrap_or_else(|| {
            (Instant::now(), models().unwrap_or_default().into_iter().map(of_info).collect())
        }));
        by_model.get(model).cloned()
    })
}

/// Languages that a model was made for, as ISO 639 codes; none where its folder does not say, or the engine does not
/// answer.
pub(crate) fn languages_of(model: &str) -> Vec<String> {
    known(model, false).map(|known| known.languages).unwrap_or_default()
}

/// Least score, from 0 to 1, of what supports an answer, where a reranker's folder says so and the engine answers.
pub(crate) fn answer_threshold(model: &str) -> Option<f64> {
    known(model, true)?.answer_threshold
}

/// How a reranker's scores tell whether there is an answer, where its folder says so and the engine answers.
pub(crate) fn answer_weights(model: &str) -> Option<AnswerWeights> {
    known(model, true)?.answer_weights
}

/// Whether a model that says which languages it was made for does not name a collection's.
pub(crate) fn is_foreign(model: &str, language: &str) -> bool {
    let known = languages_of(model);
    let code = Language::from_name(language).and_then(Language::iso_code);
    !known.is_empty() && code.is_some_and(|code| known.iter().all(|known| known != code))
}

/// The engine's health, load and counters.
pub(crate) fn status() -> Result<EngineStatus> {
    match send(Call::Status, Lane::Interactive, &[])? {
        Reply::Status(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

fn send(call: Call, lane: Lane, principals: &[String]) -> Result<Reply> {
    let deadline_ms = match lane {
        Lane::Interactive => Some(milliseconds(config::engine_timeout())),
        Lane::Bulk => None,
    };
    self::call(&Request { lane, principals: principals.to_vec(), deadline_ms, local_only: false, call })
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Sends a request and waits for its reply. A failure that the engine tells of is an error of its own code.
///
/// 55000: the library is not preloaded, or the engine speaks another protocol. 58000: the engine cannot be
/// reached, or died twice over this request. 54000: the request is too long to send. 57014: no reply in time.
pub(crate) fn call(request: &Request) -> Result<Reply> {
    shared::require()?;
    let frame = encoded(request)?;
    let deadline = deadline_of(request);

    let mut connection = IDLE.take();
    let mut deaths = 0;
    loop {
        let kept = connection.is_some();
        let mut open = match connection.take() {
            Some(open) => open,
            None => connect(deadline)?,
        };
        match open.exchange::<Reply>(&frame, deadline) {
            Ok(reply) => {
                IDLE.set(Some(open));
                return match reply {
                    Reply::Failed(failure) => Err(failure.into()),
                    reply => Ok(reply),
                };
            }
            // A kept connection may have been closed long ago: that says nothing about this request.
            Err(Lost::Closed(_)) if kept => {}
            Err(Lost::Closed(_)) if deaths == 0 => deaths += 1,
            Err(Lost::Closed(reason)) => {
                return Err(Error::engine_down("the engine ended while it worked on a request")
                    .detail(reason)
                    .hint("The server's log tells why. The engine is started again by itself."));
            }
            Err(Lost::Failed(error)) => return Err(error),
        }
    }
}

fn encoded(request: &Request) -> Result<Vec<u8>> {
    rag_wire::encode(request).map_err(|error| match error {
        rag_wire::FrameError::TooLong(bytes) => Error::limit(format!(
            "request of {bytes} bytes exceeds the limit of {} bytes",
            rag_wire::MAX_FRAME_BYTES
        )),
        other => Error::internal(format!("request cannot be encoded: {other}")),
    })
}

fn deadline_of(request: &Request) -> Instant {
    let limit = request.deadline_ms.map_or(BULK_LIMIT, |ms| Duration::from_millis(ms.into()) + TELLING);
    Instant::now() + limit
}

/// A new connection, waiting for an engine that is about to be there.
fn connect(deadline: Instant) -> Result<Connection> {
    let patience = deadline.min(Instant::now() + PATIENCE);
    loop {
        let reason = match Connection::open(SOCKET, deadline) {
            Ok(connection) => return Ok(connection),
            Err(Lost::Failed(error)) => return Err(error),
            Err(Lost::Closed(reason)) => reason,
        };
        let state = shared::engine_state();
        if Instant::now() >= patience || state.as_ref().is_some_and(|state| is_hopeless(state, patience)) {
            return Err(unreachable_engine(state, reason));
        }
        interrupts::pause(STEP);
    }
}

/// Whether the supervisor will not have tried again by then.
fn is_hopeless(state: &EngineState, patience: Instant) -> bool {
    let left =
        i64::try_from(patience.saturating_duration_since(Instant::now()).as_micros()).unwrap_or(i64::MAX);
    state.phase == EnginePhase::Down && state.retry_at.is_some_and(|at| at > server::now() + left)
}

fn unreachable_engine(state: Option<EngineState>, reason: String) -> Error {
    // What the supervisor noted may name paths, which are for superusers.
    let noted = state.and_then(|state| state.last_error).filter(|_| server::user_is_superuser());
    Error::engine_down("the rag_ext engine cannot be reached")
        .detail(noted.unwrap_or(reason))
        .hint("SELECT rag_status() and the server's log tell more. The engine is started again by itself.")
}

fn unexpected(reply: &Reply) -> Error {
    let kind = match reply {
        Reply::Status(_) => "a status",
        Reply::Models(_) => "a list of models",
        Reply::Embeddings(_) => "vectors",
        Reply::Scores { .. } => "scores",
        Reply::Prepared(_) | Reply::Parsed(_) => "a document",
        Reply::Completion(_) => "a completion",
        Reply::Delta(_) => "a part of a completion",
        Reply::TokenCounts(_) => "counts of tokens",
        Reply::Failed(_) => "a failure",
    };
    Error::internal(format!("the engine answered with {kind} that does not fit the request"))
}
