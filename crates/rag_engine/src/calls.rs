//! What each call does, from request to reply.

use crate::backend::{Input, too_long};
use crate::cache::Value;
use crate::completion::{complete, count_tokens};
use crate::device::pair_budget;
use crate::dispatch::{self, refuse_bulk_when_short};
use crate::engine::Engine;
use crate::failure::{Explain, failure};
use crate::model::ModelFolder;
use crate::model::tokenizer::{CutPair, PIECE_BYTES, Tokenizer};
use crate::parse::{self, Permit, Waiter};
use crate::principal::PrincipalKey;
use rag_wire::{Call, Embeddings, Failure, FailureCode, Lane, ModelKind, Reply, Request, TextRole};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Most bytes of one text to embed, or of a query: far beyond any model's limit, so that none costs much to refuse.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// What of a passage to score is beyond so many bytes per token that the model takes is not looked at.
const MOST_BYTES_PER_TOKEN: usize = 64;

/// Sentences of a document that wait for a model together.
const SENTENCES_AT_ONCE: usize = 64;

/// Passages to score whose tokens a thread makes at least: some milliseconds.
const PASSAGES_PER_THREAD: usize = 16;

/// Most threads that make tokens for one call.
const MOST_THREADS: usize = 8;

/// From so many bytes on, documents are prepared one after the other.
const LARGE_DOCUMENT_BYTES: u64 = 4 << 20;

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// The client hung up.
    Gone,
    /// The call failed; the failure is the reply.
    Failed(Failure),
}

impl From<Failure> for NoReply {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Who asks, and until when.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) lane: Lane,
    pub(crate) principal: PrincipalKey,
    pub(crate) deadline: Option<Instant>,
    /// Whether nothing of it may go beyond this machine, whatever the settings allow.
    pub(crate) local_only: bool,
    pub(crate) client: BorrowedFd<'a>,
}

/// Answers one request; `None` if the client hung up meanwhile. What comes before the last reply goes to `deliver`, which is
/// false where the client has gone.
pub(crate) fn answer(
    engine: &Arc<Engine>,
    request: Request,
    client: BorrowedFd<'_>,
    deliver: &mut dyn FnMut(Reply) -> bool,
) -> Option<Reply> {
    let deadline = request.deadline_ms.map(|ms| Instant::now() + Duration::from_millis(ms.into()));
    let principal = engine.key.principal(&request.principals);
    let caller = Caller { lane: request.lane, principal, deadline, local_only: request.local_only, client };
    let reply = match request.call {
        Call::Status => Ok(Reply::Status(engine.status())),
        Call::Models => Ok(Reply::Models(engine.list_models())),
        Call::Embed { model, role, texts } => embed(engine, &caller, model.as_deref(), role, &texts),
        Call::Rerank { model, query, passages, within_budget } => {
            rerank(engine, &caller, model.as_deref(), &query, &passages, within_budget)
        }
        Call::Prepare(prepare) => with_document_permit(engine, &caller, prepare.content.bytes(), |waiter| {
            let (models, settings) = (&engine.models, engine.settings());
            let embed = |model: &str, texts| {
                parse::unless_background(caller.lane, embed_sentences(engine, &caller, model, texts))
            };
            parse::prepare(models, &settings.parse, &engine.child_lock, prepare, waiter, embed)
                .map(Reply::Prepared)
        }),
        Call::Parse { content, media_type } => {
            with_document_permit(engine, &caller, content.bytes(), |waiter| {
                parse::parse_document(
                    &engine.settings().parse,
                    &engine.child_lock,
                    content,
                    media_type,
                    waiter,
                )
                .map(Reply::Parsed)
            })
        }
        Call::Chat(request) => complete(engine, &caller, request, None).map(Reply::Completion),
        Call::ChatStream(request) => {
            let mut deliver = |delta| deliver(Reply::Delta(delta));
            complete(engine, &caller, request, Some(&mut deliver)).map(Reply::Completion)
        }
        Call::CountTokens { model, texts } => {
            count_tokens(engine, &caller, &model, texts).map(Reply::TokenCounts)
        }
    };
    match reply {
        Ok(reply) => {
            engine.counters.served.fetch_add(1, Ordering::Relaxed);
            Some(reply)
        }
        Err(NoReply::Failed(failure)) => {
            engine.counters.failed.fetch_add(1, Ordering::Relaxed);
            Some(Reply::Failed(failure))
        }
        Err(NoReply::Gone) => None,
    }
}

fn embed(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    model: Option<&str>,
    role: TextRole,
    texts: &[String],
) -> Result<Reply, NoReply> {
    let known = engine.models.tokenizer(model, caller.deadline)?;
    let (folder, tokenizer) = known.as_ref();
    let prefix = match role {
        TextRole::Query => &folder.query_prefix,
        TextRole::Passage => &folder.passage_prefix,
    };
    // Only queries are cached: passages come once, and their vectors are kept by whoever asked.
    let cache_key = |text: &str| {
        engine.key.question("embed", caller.principal, &[folder.name.as_bytes(), text.as_bytes()])
    };
    texts.iter().enumerate().try_for_each(|(number, text)| check_length("text", number, text))?;
    let longest = texts.iter().map(String::len).max().unwrap_or(0);
    let permit = permit_for_text(engine, caller, longest)?;
    let mut rows = Rows::default();
    for (number, text) in texts.iter().enumerate() {
        if role == TextRole::Query
            && let Some(Value::Vector(vector)) = engine.cached(&cache_key(text))
        {
            rows.cached(vector.to_vec());
        } else {
            rows.wanted(number, text);
        }
    }
    let inputs = rows.encoded(|number, text| encode(folder, tokenizer, format!("{prefix}{text}"), number))?;
    drop(permit);
    let model = engine.models.model(Some(&folder.name), ModelKind::Embedding, caller.deadline)?;
    let reproducible = role == TextRole::Query;
    let vectors =
        rows.results(inputs, |inputs| dispatch::compute(engine, caller, &model, reproducible, inputs))?;
    if role == TextRole::Query {
        for (text, vector) in texts.iter().zip(&vectors) {
            engine.keep(cache_key(text), Value::Vector(vector.as_slice().into()));
        }
    }
    let dimension = match (vectors.first(), folder.dimension) {
        (Some(vector), _) => vector.len() as u32,
        (None, said) => said.unwrap_or(0),
    };
    let values = vectors.concat();
    Ok(Reply::Embeddings(Embeddings { model: folder.name.clone(), dimension, values }))
}

/// Vectors of a document's sentences, whatever else runs: where the document is cut depends on small differences, and it is
/// to be cut in the same way again.
fn embed_sentences(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    model: &str,
    texts: Vec<String>,
) -> Result<Vec<Vec<f32>>, NoReply> {
    let model = engine.models.model(Some(model), ModelKind::Embedding, caller.deadline)?;
    let prefix = &model.folder.passage_prefix;
    let mut vectors = Vec::with_capacity(texts.len());
    for (part, texts) in texts.chunks(SENTENCES_AT_ONCE).enumerate() {
        let mut rows = Rows::default();
        for (index, text) in texts.iter().enumerate() {
            rows.wanted(part * SENTENCES_AT_ONCE + index, text);
        }
        let inputs = rows.encoded(|number, text| {
            encode(&model.folder, &model.tokenizer, format!("{prefix}{text}"), number)
        })?;
        vectors
            .extend(rows.results(inputs, |inputs| dispatch::compute(engine, caller, &model, true, inputs))?);
    }
    Ok(vectors)
}

fn rerank(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    model: Option<&str>,
    query: &str,
    passages: &[String],
    within_budget: bool,
) -> Result<Reply, NoReply> {
    let model = engine.models.model(model, ModelKind::Reranker, caller.deadline)?;
    let budget = pair_budget(model.backend.limits().device);
    let passages = if within_budget { &passages[..passages.len().min(budget)] } else { passages };
    check_length("query", 0, query)?;
    let cache_key = |passage: &str| {
        let parts = [model.folder.name.as_bytes(), query.as_bytes(), passage.as_bytes()];
        engine.key.question("rerank", caller.principal, &parts)
    };
    let (tokenizer, most) = (&model.tokenizer, model.folder.max_tokens);
    let unreadable = |e: String| not_encodable(&model.folder.name, &e);
    let longest = passages.iter().map(String::len).fold(query.len(), usize::max);
    let permit = permit_for_text(engine, caller, longest)?;
    // What is beyond the model's limit is cut off anyhow.
    let start = tokenizer.beginning(query, most).map_err(unreadable)?;
    let is_local = model.backend.limits().is_local();
    let whole_query: Arc<str> = start.into();
    let encode = |passage: &str| {
        // Blanks are no tokens, and a word of any length may be one.
        let passage = &passage[..passage.floor_char_boundary(most.saturating_mul(MOST_BYTES_PER_TOKEN))];
        let passage = tokenizer.beginning(passage, most)?;
        if is_local {
            let row = model.pairs.encode(start, passage)?;
            return Ok(Input { row, ..Input::default() });
        }
        let CutPair { query, passage, row } = tokenizer.cut_pair(start, passage)?;
        let query = if query == start { whole_query.clone() } else { query.into() };
        Ok(Input { query: Some(query), text: passage.to_owned(), row })
    };
    let mut rows = Rows::default();
    for (number, passage) in passages.iter().enumerate() {
        match engine.cached(&cache_key(passage)) {
            Some(Value::Score(score)) => rows.cached(vec![score]),
            _ => rows.wanted(number, passage),
        }
    }
    let inputs = encode_all(&rows.wanted, encode).map_err(unreadable)?;
    drop(permit);
    let results = rows.results(inputs, |inputs| dispatch::compute(engine, caller, &model, true, inputs))?;
    let scores: Vec<f32> = results.iter().filter_map(|logits| logits.first().copied()).collect();
    for (passage, score) in passages.iter().zip(&scores) {
        engine.keep(cache_key(passage), Value::Score(*score));
    }
    Ok(Reply::Scores { model: model.folder.name.clone(), scores })
}

/// Makes the inputs of passages, many of them on several threads: a GPU scores a pair in less time than it takes to read it.
fn encode_all(
    passages: &[(usize, &str)],
    encode: impl Fn(&str) -> Result<Input, String> + Sync,
) -> Result<Vec<Input>, String> {
    let encode = |passages: &[(usize, &str)]| passages.iter().map(|(_, passage)| encode(passage)).collect();
    let part = passages.len().div_ceil(MOST_THREADS).max(PASSAGES_PER_THREAD);
    if passages.len() <= part {
        return encode(passages);
    }
    let parts: Vec<Result<Vec<Input>, String>> = std::thread::scope(|scope| {
        let threads = passages.chunks(part).map(|part| scope.spawn(move || encode(part)));
        let threads: Vec<_> = threads.collect();
        let panicked = |_| Err("a thread panicked".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// The one permit for large texts, if this is one: what tokenising it takes of memory is then taken once.
fn permit_for_text<'a>(
    engine: &'a Engine,
    caller: &Caller<'_>,
    bytes: usize,
) -> Result<Option<Permit<'a>>, NoReply> {
    let waiter = Waiter { client: caller.client, deadline: caller.deadline };
    let limit = engine.settings().queue_limit as usize;
    (bytes > PIECE_BYTES).then(|| engine.large_texts.take(limit, caller.principal, &waiter)).transpose()
}

/// Does something with a document while few enough others are in work.
fn with_document_permit(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    bytes: u64,
    work: impl FnOnce(&Waiter<'_>) -> Result<Reply, NoReply>,
) -> Result<Reply, NoReply> {
    refuse_bulk_when_short(engine, caller)?;
    let waiter = Waiter { client: caller.client, deadline: caller.deadline };
    let (permits, large) = match caller.lane {
        Lane::Interactive => (&engine.interactive_documents, &engine.large_interactive_documents),
        Lane::Bulk => (&engine.bulk_documents, &engine.large_bulk_documents),
    };
    let limit = engine.settings().queue_limit as usize;
    // First, so that whoever waits for it keeps no other from work.
    let _large =
        (bytes > LARGE_DOCUMENT_BYTES).then(|| large.take(limit, caller.principal, &waiter)).transpose()?;
    let _permit = permits.take(limit, caller.principal, &waiter)?;
    work(&waiter)
}

/// A request's results: those found in the cache and those to compute, equal inputs once.
#[derive(Default)]
struct Rows<'a> {
    results: Vec<RowResult>,
    /// What is to be computed, each text once, with its number among all.
    wanted: Vec<(usize, &'a str)>,
    seen: HashMap<&'a str, usize>,
}

/// Where one result is, or will be.
enum RowResult {
    Cached(Vec<f32>),
    /// At this place among the computed ones.
    Computed(usize),
}

impl<'a> Rows<'a> {
    fn cached(&mut self, vector: Vec<f32>) {
        self.results.push(RowResult::Cached(vector));
    }

    fn wanted(&mut self, number: usize, text: &'a str) {
        let place = match self.seen.entry(text) {
            Entry::Occupied(seen) => *seen.get(),
            Entry::Vacant(new) => {
                self.wanted.push((number, text));
                *new.insert(self.wanted.len() - 1)
            }
        };
        self.results.push(RowResult::Computed(place));
    }

    /// The inputs of what is wanted.
    fn encoded(&self, encode: impl Fn(usize, &str) -> Result<Input, Failure>) -> Result<Vec<Input>, Failure> {
        self.wanted.iter().map(|(number, text)| encode(*number, text)).collect()
    }

    /// All results in the order of asking; `compute` gives those of the inputs, which are those of what is wanted.
    fn results(
        self,
        inputs: Vec<Input>,
        compute: impl FnOnce(Vec<Input>) -> Result<Vec<Vec<f32>>, NoReply>,
    ) -> Result<Vec<Vec<f32>>, NoReply> {
        let computed = if inputs.is_empty() { Vec::new() } else { compute(inputs)? };
        let result = |row| match row {
            RowResult::Cached(vector) => vector,
            RowResult::Computed(input) => computed.get(input).cloned().unwrap_or_default(),
        };
        Ok(self.results.into_iter().map(result).collect())
    }
}

/// A text with its prefix, and its tokens; refused if they are more than the model takes, which is known of a long text
/// from its beginning.
fn encode(
    folder: &ModelFolder,
    tokenizer: &Tokenizer,
    text: String,
    number: usize,
) -> Result<Input, Failure> {
    let (limit, name) = (folder.max_tokens, &folder.name);
    let unreadable = |e: String| not_encodable(name, &e);
    let start = tokenizer.beginning(&text, limit + 1).map_err(unreadable)?;
    let row = tokenizer.encode(start).map_err(unreadable)?;
    let is_whole = start.len() == text.len();
    if is_whole && row.ids.len() <= limit {
        return Ok(Input { query: None, text, row });
    }
    let tokens = if is_whole { row.ids.len().to_string() } else { format!("more than {limit}") };
    Err(too_long(name, limit, number, &tokens))
}

fn not_encodable(model: &str, reason: &str) -> Failure {
    failure(FailureCode::InvalidArgument, format!("model \"{model}\" cannot read the text")).detail(reason)
}

fn check_length(what: &str, number: usize, text: &str) -> Result<(), Failure> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let message = format!("{what} {} has {} bytes, the limit is {MAX_TEXT_BYTES}", number + 1, text.len());
    Err(failure(FailureCode::LimitExceeded, message))
}
