//! L3: answers with citations. Retrieval, then sentences scored by the cross-encoder; either they are the
//! answer, or a chat model writes one whose citations are checked against them.
//!
//! Whatever a model says, the extension refuses where nothing found supports an answer.

mod check;
pub(crate) mod evaluate;
mod extractive;
mod follow_up;
mod generative;
pub(crate) mod log;
mod names;
mod options;
mod route;
mod stream;
mod support;

pub(crate) use options::AnswerOptions;
pub(crate) use stream::{AnswerPart, AnswerStream};

use crate::config;
use crate::error::{Error, Result};
use crate::search::diagnostics::{Stages, Watch};
use crate::search::scope::Scope;
use crate::search::{SearchHit, SearchRequest, has_content, search};
use crate::storage::chunk::ChunkPlace;
use crate::storage::{Id, document};
use check::Checked;
use generative::Generated;
use options::Policy;
use rag_core::answer::confidence::{self, Grounds, Level};
use rag_core::answer::{cite, neutralise, plain};
use rag_core::filter::Filter;
use route::{OnFailure, Route};
use serde_json::json;
use std::time::Instant;

/// One turn of the conversation before the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) is_user: bool,
    pub(crate) content: String,
}

impl Turn {
    fn role(&self) -> &'static str {
        if self.is_user { "user" } else { "assistant" }
    }
}

/// A question, and where to look for its answer.
pub(crate) struct AnswerRequest<'a> {
    pub(crate) question: &'a str,
    pub(crate) scope: &'a Scope,
    pub(crate) filter: Option<&'a Filter>,
    pub(crate) history: &'a [Turn],
    pub(crate) options: &'a AnswerOptions,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The scope has no documents.
    NoDocuments,
    /// Documents are still being processed, and what is done carries no answer.
    Pending,
    /// Nothing supports an answer well enough.
    BelowThreshold,
}

impl Refusal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoDocuments => "no_documents",
            Self::Pending => "pending",
            Self::BelowThreshold => "below_threshold",
        }
    }
}

/// A place in a document that supports the answer.
#[derive(Debug, Clone)]
pub(crate) struct Citation {
    /// The number in the answer's text, from 1.
    pub(crate) n: usize,
    pub(crate) document: Id,
    pub(crate) chunk: Id,
    pub(crate) title: Option<String>,
    /// None where a program might run the document's: see [`plain::link_target`].
    pub(crate) uri: Option<String>,
    pub(crate) header_path: Vec<String>,
    pub(crate) page_from: Option<i32>,
    pub(crate) page_to: Option<i32>,
    /// Equals the characters from `char_from` to `char_to` of the document's text.
    pub(crate) quote: String,
    pub(crate) char_from: i32,
    pub(crate) char_to: i32,
    /// From 0 to 1; `None` if no model measured it.
    pub(crate) support: Option<f64>,
    /// The rank of the hit by which it was found, from 1.
    rank: usize,
}

impl Citation {
    /// Cites a quote that stands at `char_from` in the document of a hit, in its chunk if [`Self::stands_in`] does not say otherwise.
    fn new(
        n: usize,
        hits: &[SearchHit],
        hit: usize,
        quote: &str,
        char_from: i32,
        support: Option<f64>,
    ) -> Self {
        let chunk = &hits[hit].chunk;
        Self {
            n,
            rank: hit + 1,
            document: chunk.document,
            chunk: chunk.id,
            title: chunk.title.clone(),
            uri: chunk.uri.as_deref().and_then(plain::link_target).map(str::to_owned),
            header_path: chunk.header_path.clone(),
            page_from: chunk.page_from,
            page_to: chunk.page_to,
            quote: quote.to_owned(),
            char_from,
            char_to: char_from + quote.chars().count() as i32,
            support,
        }
    }

    /// Takes chunk and pages from where the quote stands, of the chunks in which a part of it may stand.
    fn stands_in(mut self, places: &[ChunkPlace]) -> Self {
        let has_part = |place: &&ChunkPlace| place.char_from < self.char_to && self.char_from < place.char_to;
        let has_all =
            |place: &&ChunkPlace| place.char_from <= self.char_from && self.char_to <= place.char_to;
        let parts: Vec<&ChunkPlace> = places.iter().filter(has_part).collect();
        let whole: Vec<&ChunkPlace> = parts.iter().copied().filter(has_all).collect();
        // Chunks overlap: of those that have all of it, the one that was found.
        let found = whole.iter().find(|place| place.chunk == self.chunk).or(whole.first());
        let parts = found.map_or(parts.as_slice(), std::slice::from_ref);
        if let Some(first) = parts.first() {
            self.chunk = first.chunk;
            self.page_from = parts.iter().filter_map(|place| place.page_from).min();
            self.page_to = parts.iter().filter_map(|place| place.page_to).max();
        }
        self
    }
}

/// A sentence of a chat model that nothing it cites supports.
#[derive(Debug, Clone)]
pub(crate) struct Unsupported {
    pub(crate) sentence: String,
    /// From 0 to 1; `None` if it cites nothing, or no model measured it.
    pub(crate) support: Option<f64>,
}

/// How an answer, or its refusal, came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// A chat model wrote it.
    Chat,
    /// Sentences of the documents, by the support that the cross-encoder measured.
    Extractive,
    /// Sentences of the documents, by the words that they share with the question: nothing could be measured.
    Degraded,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Extractive => "extractive",
            Self::Degraded => "degraded",
        }
    }
}

/// What a question came to.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) method: Method,
    /// From 0 to 1: how likely the citations answer the question, or the support of the best one where a chat model wrote the
    /// text; 0 for a refusal; `None` if no model measured it.
    pub(crate) confidence: Option<f64>,
    /// The same in a word, with what speaks for or against it; `None` for a refusal.
    pub(crate) level: Option<Level>,
    pub(crate) citations: Vec<Citation>,
    /// What a chat model wrote beyond that, left out or kept as the policy says.
    pub(crate) unsupported: Vec<Unsupported>,
    /// Documents of the scope that are still being processed.
    pub(crate) pending: i64,
    /// Where a refused question came closest: headings of what was found.
    pub(crate) suggestions: Vec<String>,
    pub(crate) stages: Stages,
}

/// Headings suggested with a refusal.
const SUGGESTIONS: usize = 3;

/// What is found for a question, ready to be made an answer of.
struct Ready {
    /// What was searched for.
    query: String,
    hits: Vec<SearchHit>,
    scored: extractive::Scored,
    min_support: f64,
    is_supported: bool,
    may_generate: bool,
    pending: i64,
    options: AnswerOptions,
    route: Route,
    stages: Stages,
}

/// What a search for an answer came to.
enum Found {
    Ready(Box<Ready>),
    /// There is nothing to make an answer of.
    Ended(Box<Answer>),
}

/// Answers a question.
pub(crate) fn answer(request: &AnswerRequest<'_>) -> Result<Answer> {
    match find(request)? {
        Found::Ended(answer) => Ok(*answer),
        Found::Ready(mut ready) if ready.may_generate => {
            let watch = ready.stages.start("generate");
            let deadline = Instant::now() + config::llm_deadline();
            let (terms, route) = ready.terms(deadline);
            let outcome = generative::answer(request, route, &terms);
            ready.generated(watch, outcome)
        }
        Found::Ready(ready) => ready.extracted(),
    }
}

/// Searches, and scores what is found.
fn find(request: &AnswerRequest<'_>) -> Result<Found> {
    let ended = |answer| Ok(Found::Ended(Box::new(answer)));
    let (has_documents, pending) = document::pending(&request.scope.ids())?;
    let mut stages = Stages::default();
    if !has_documents {
        return ended(refused(Refusal::NoDocuments, Method::Extractive, pending, Vec::new(), stages));
    }
    let may_generate = request.options.generate && config::has_chat_model();
    let query = follow_up::query(request, may_generate, &mut stages)?;
    let languages = request.scope.languages();
    // Text that is indexed with all its words may be searched for any of them, and no question is made of these.
    let with_stop_words =
        languages.iter().map(|language| if *language == "simple" { "english" } else { *language });
    if !has_content(&query, with_stop_words, &mut stages) {
        return ended(refused(Refusal::BelowThreshold, Method::Extractive, pending, Vec::new(), stages));
    }
    let searched = search(
        request.scope,
        &SearchRequest {
            query: &query,
            k: request.options.k,
            mode: request.options.mode,
            filter: request.filter,
            options: &request.options.search,
        },
    )?;
    stages.extend(searched.stages);
    let mut hits = searched.hits;
    let watch = stages.start("context");
    let offered = hits.len();
    hits.truncate(request.options.context_limit());
    stages.done(watch, offered, hits.len());
    let mut scored = extractive::score(&query, &hits, request.options, &mut stages)?;
    let method = scored.method;
    let (min_support, by) = request.options.min_support(method);
    let mut details = json!({ "min_support": min_support, "by": by });
    if let Some(signals) = scored.signals {
        details["scores"] = json!(signals);
    }
    stages.detail(details);
    let languages: Vec<&str> = hits.iter().map(|hit| request.scope.language(hit.chunk.domain)).collect();
    if names::has_unknown_name(request.question, &hits, &languages) {
        scored.confidence *= names::UNKNOWN_NAME_FACTOR;
    }

    // Under the policy `free` it is the model that refuses.
    let asks_anyway = may_generate && request.options.policy == Policy::Free && !hits.is_empty();
    let is_supported = !scored.is_empty() && scored.confidence >= min_support;
    if !is_supported && !asks_anyway {
        return ended(unanswered(method, pending, &hits, stages));
    }
    if request.options.on_failure == OnFailure::Error && request.options.generate && !may_generate {
        return Err(route::not_configured());
    }
    Ok(Found::Ready(Box::new(Ready {
        query,
        hits,
        scored,
        min_support,
        is_supported,
        may_generate,
        pending,
        options: request.options.clone(),
        route: Route::of(request),
        stages,
    })))
}

impl Ready {
    /// What a completion is checked by, and the way that it is asked for.
    fn terms(&mut self, deadline: Instant) -> (check::Terms<'_>, &mut Route) {
        let Self { query, hits, min_support, options, route, .. } = self;
        let (policy, min_support) = (options.policy, *min_support);
        (check::Terms { policy, min_support, question: query, hits, deadline }, route)
    }

    /// The answer where a chat model was asked: its own, or what takes the place of it.
    fn generated(mut self, watch: Watch, outcome: Result<Generated>) -> Result<Answer> {
        let stages = &mut self.stages;
        match outcome {
            Ok(Generated::Answered(checked)) => {
                stages.done_as(watch, checked.sources, checked.citations.len(), "chat");
                stages.detail(self.route.told());
                let answer = generated(checked, self.options.policy, self.pending, self.stages);
                return Ok(levelled(answer, &self.query, self.options.policy));
            }
            Ok(Generated::Refused(refusal)) => {
                stages.done_as(watch, self.hits.len(), 0, "chat");
                stages.detail(self.route.told());
                return Ok(refused(
                    refusal,
                    Method::Chat,
                    self.pending,
                    suggestions(&self.hits),
                    self.stages,
                ));
            }
            Ok(outcome @ (Generated::Unsupported | Generated::RepeatsPrompt)) => {
                self.route.repeats_prompt = matches!(outcome, Generated::RepeatsPrompt);
                let nothing = "nothing of the model's answer is supported by what it cites";
                stages.fell_back(watch, "extractive answer", &Error::internal(nothing));
            }
            Err(error) if self.options.on_failure == OnFailure::Error => return Err(route::failed(error)),
            // Whatever is wrong with the endpoint or its settings, the caller did nothing wrong.
            Err(error) => stages.fell_back(watch, "extractive answer", &error),
        }
        stages.detail(self.route.told());
        self.extracted()
    }

    /// The answer made of sentences of the documents.
    fn extracted(self) -> Result<Answer> {
        let Self { query, hits, scored, min_support, pending, options, stages, .. } = self;
        let method = scored.method;
        if !self.is_supported {
            return Ok(unanswered(method, pending, &hits, stages));
        }
        let (text, citations) =
            extractive::compose(&query, &scored, &hits, options.max_sentences, min_support);
        let confidence = (method != Method::Degraded).then_some(scored.confidence);
        let answer = Answer { confidence, ..answered(text, method, citations, pending, stages) };
        Ok(levelled(answer, &query, options.policy))
    }
}

/// The answer of a chat model, with what was found out about it.
fn generated(checked: Checked, policy: Policy, pending: i64, mut stages: Stages) -> Answer {
    let watch = stages.start("check");
    let (cited, unsupported) = (checked.citations.len(), checked.unsupported.len());
    let matched = checked.matched;
    match (checked.trouble, unsupported) {
        (Some(error), _) => stages.fell_back(watch, "a text that is not checked", &error),
        (None, 0) => stages.done(watch, cited, cited),
        (None, _) => {
            let verb = if policy == Policy::Strict { "left out" } else { "kept" };
            let what = if unsupported == 1 { "a sentence that nothing" } else { "sentences that nothing" };
            stages.done_but(
                watch,
                unsupported,
                cited,
                format!("{what} it cites supports: {unsupported} {verb}"),
            );
        }
    }
    if matched > 0 {
        stages.detail(json!({ "matched": matched }));
    }
    let answer = answered(checked.text, Method::Chat, checked.citations, pending, stages);
    let text = cite::with_citations_alone(&answer.text, answer.citations.len());
    Answer { text, unsupported: checked.unsupported, ..answer }
}

/// An answer with how sure it is in a word.
fn levelled(answer: Answer, query: &str, policy: Policy) -> Answer {
    let citations = &answer.citations;
    let texts =
        citations.iter().flat_map(|c| std::iter::once(&c.quote).chain(&c.header_path).chain(&c.title));
    let level = confidence::level(&Grounds {
        confidence: answer.confidence,
        weakest: citations.iter().filter_map(|c| c.support).fold(1.0, f64::min),
        coverage: confidence::coverage(query, texts.map(String::as_str)),
        rank: citations.first().map_or(0, |c| c.rank),
        has_unsupported: policy != Policy::Strict && !answer.unsupported.is_empty(),
    });
    Answer { level: Some(level), ..answer }
}

/// The refusal where nothing supports an answer.
fn unanswered(method: Method, pending: i64, hits: &[SearchHit], stages: Stages) -> Answer {
    let refusal = if pending > 0 { Refusal::Pending } else { Refusal::BelowThreshold };
    refused(refusal, method, pending, suggestions(hits), stages)
}

fn answered(text: String, method: Method, citations: Vec<Citation>, pending: i64, stages: Stages) -> Answer {
    let confidence = citations.iter().filter_map(|c| c.support).reduce(f64::max);
    Answer {
        text: plain::defused(&text),
        refusal: None,
        method,
        confidence,
        level: None,
        citations,
        unsupported: Vec::new(),
        pending,
        suggestions: Vec::new(),
        stages,
    }
}

fn refused(
    refusal: Refusal,
    method: Method,
    pending: i64,
    suggestions: Vec<String>,
    stages: Stages,
) -> Answer {
    let text = match refusal {
        Refusal::NoDocuments => "No answer found: there are no documents to answer from.",
        Refusal::Pending => "No answer found yet: some documents are still being processed.",
        Refusal::BelowThreshold => "No answer found: nothing in the documents supports one well enough.",
    };
    Answer {
        text: text.to_owned(),
        refusal: Some(refusal),
        method,
        confidence: (method != Method::Degraded).then_some(0.0),
        level: None,
        citations: Vec::new(),
        unsupported: Vec::new(),
        pending,
        suggestions,
        stages,
    }
}

fn suggestions(hits: &[SearchHit]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for hit in hits {
        let name = match (hit.chunk.header_path.last(), &hit.chunk.title) {
            (Some(heading), _) => plain::defused(heading),
            (None, Some(title)) => plain::defused(title),
            (None, None) => continue,
        };
        // A heading that gives orders to a model is no suggestion.
        if !found.contains(&name) && neutralise::misleading(&name).is_empty() {
            found.push(name);
        }
        if found.len() == SUGGESTIONS {
            break;
        }
    }
    found
}

fn join(context: &str, text: &str) -> String {
    if context.is_empty() { text.to_owned() } else { format!("{context}\n{text}") }
}
