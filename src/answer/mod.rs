//! L3: answers with citations. Retrieval, then sentences scored by the cross-encoder; either they are the
//! answer, or a chat model writes one whose citations are checked against them.
//!
//! Whatever a model says, the extension refuses where nothing found supports an answer.

mod extractive;
mod generative;
mod names;
mod options;

pub(crate) use options::AnswerOptions;

use crate::config;
use crate::error::{Error, Result};
use crate::search::diagnostics::{Stages, is_engine_trouble};
use crate::search::scope::Scope;
use crate::search::{SearchRequest, has_content, search};
use crate::storage::chunk::ShownChunk;
use crate::storage::{Id, document};
use generative::Generated;
use rag_core::filter::Filter;

/// One turn of the conversation before the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) is_user: bool,
    pub(crate) content: String,
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
    pub(crate) uri: Option<String>,
    pub(crate) header_path: Vec<String>,
    pub(crate) page_from: Option<i32>,
    pub(crate) page_to: Option<i32>,
    /// Equals the characters from `char_from` to `char_to` of the document's text.
    pub(crate) quote: String,
    pub(crate) char_from: i32,
    pub(crate) char_to: i32,
    /// From 0 to 1.
    pub(crate) support: f64,
}

impl Citation {
    /// Cites a quote that stands at `char_from` in the document of a chunk.
    fn new(n: usize, chunk: &ShownChunk, quote: &str, char_from: i32, support: f64) -> Self {
        Self {
            n,
            document: chunk.document,
            chunk: chunk.id,
            title: chunk.title.clone(),
            uri: chunk.uri.clone(),
            header_path: chunk.header_path.clone(),
            page_from: chunk.page_from,
            page_to: chunk.page_to,
            quote: quote.to_owned(),
            char_from,
            char_to: char_from + quote.chars().count() as i32,
            support,
        }
    }
}

/// What a question came to.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) refusal: Option<Refusal>,
    /// From 0 to 1: the support of the best citation.
    pub(crate) confidence: f64,
    pub(crate) citations: Vec<Citation>,
    /// Documents of the scope that are still being processed.
    pub(crate) pending: i64,
    /// Where a refused question came closest: headings of what was found.
    pub(crate) suggestions: Vec<String>,
    pub(crate) stages: Stages,
}

/// Headings suggested with a refusal.
const SUGGESTIONS: usize = 3;

/// Answers a question.
pub(crate) fn answer(request: &AnswerRequest<'_>) -> Result<Answer> {
    let (documents, pending) = document::counts(&request.scope.ids())?;
    let mut stages = Stages::default();
    if documents == 0 {
        return Ok(refused(Refusal::NoDocuments, pending, Vec::new(), stages));
    }
    let query = retrieval_query(request);
    let languages = request.scope.languages();
    // Text that is indexed with all its words may be searched for any of them, and no question is made of these.
    let with_stop_words =
        languages.values().map(|language| if language == "simple" { "english" } else { language.as_str() });
    if !has_content(&query, with_stop_words, &mut stages) {
        return Ok(refused(Refusal::BelowThreshold, pending, Vec::new(), stages));
    }
    let found = search(
        request.scope,
        &SearchRequest {
            query: &query,
            k: request.options.k,
            mode: request.options.mode,
            filter: request.filter,
            options: &request.options.search,
        },
    )?;
    stages.extend(found.stages);
    let hits = found.hits;
    let mut evidence = extractive::evidence(&query, &hits, request.options, &mut stages)?;
    let languages: Vec<&str> =
        hits.iter().map(|hit| languages.get(&hit.chunk.domain).map_or("simple", String::as_str)).collect();
    if names::has_unknown_name(request.question, &hits, &languages) {
        evidence.iter_mut().for_each(|e| e.support *= names::UNKNOWN_NAME_FACTOR);
    }

    let best = evidence.iter().map(|e| e.support).fold(0.0, f64::max);
    if evidence.is_empty() || best < request.options.min_support {
        let refusal = if pending > 0 { Refusal::Pending } else { Refusal::BelowThreshold };
        return Ok(refused(refusal, pending, suggestions(&hits), stages));
    }
    if request.options.generate && config::llm_url().is_some() {
        let watch = stages.start("generate");
        match generative::answer(request, &hits) {
            Ok(Generated::Answered(text, citations)) => {
                stages.done_as(watch, hits.len(), citations.len(), "chat");
                return Ok(answered(text, citations, pending, stages));
            }
            Ok(Generated::Refused(refusal)) => {
                stages.done_as(watch, hits.len(), 0, "chat");
                return Ok(refused(refusal, pending, suggestions(&hits), stages));
            }
            Ok(Generated::Unsupported) => stages.fell_back(
                watch,
                "extractive answer",
                &Error::internal("nothing of the model's answer is supported by what it cites"),
            ),
            // Whatever is wrong with the endpoint or its settings, the caller did nothing wrong.
            Err(error) => stages.fell_back(watch, "extractive answer", &error),
        }
    }
    let (text, citations) = extractive::compose(&evidence, &hits, request.options);
    Ok(answered(text, citations, pending, stages))
}

fn answered(text: String, citations: Vec<Citation>, pending: i64, stages: Stages) -> Answer {
    let confidence = citations.iter().map(|c| c.support).fold(0.0, f64::max);
    Answer { text, refusal: None, confidence, citations, pending, suggestions: Vec::new(), stages }
}

fn refused(refusal: Refusal, pending: i64, suggestions: Vec<String>, stages: Stages) -> Answer {
    let text = match refusal {
        Refusal::NoDocuments => "No answer found: there are no documents to answer from.",
        Refusal::Pending => "No answer found yet: some documents are still being processed.",
        Refusal::BelowThreshold => "No answer found: nothing in the documents supports one well enough.",
    };
    Answer {
        text: text.to_owned(),
        refusal: Some(refusal),
        confidence: 0.0,
        citations: Vec::new(),
        pending,
        suggestions,
        stages,
    }
}

/// The question; a follow-up is searched together with the user's previous turn, which names its subject.
fn retrieval_query(request: &AnswerRequest<'_>) -> String {
    match request.history.iter().rev().find(|turn| turn.is_user) {
        Some(previous) => format!("{} {}", previous.content, request.question),
        None => request.question.to_owned(),
    }
}

fn suggestions(hits: &[crate::search::SearchHit]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for hit in hits {
        let name = match (hit.chunk.header_path.last(), &hit.chunk.title) {
            (Some(heading), _) => heading.clone(),
            (None, Some(title)) => title.clone(),
            (None, None) => continue,
        };
        if !found.contains(&name) {
            found.push(name);
        }
        if found.len() == SUGGESTIONS {
            break;
        }
    }
    found
}

/// Scores sentences by the cross-encoder; where it cannot be had, by the words that they share with the
/// question.
fn supports(question: &str, evidence: &[(String, String)], stages: &mut Stages) -> Result<Vec<f64>> {
    let watch = stages.start("support");
    let passages = evidence.iter().map(|(context, text)| join(context, text)).collect();
    match crate::search::rerank::logits(None, question, passages) {
        Ok(logits) => {
            stages.done_as(watch, evidence.len(), evidence.len(), "cross-encoder");
            Ok(logits.into_iter().map(crate::search::rerank::sigmoid).collect())
        }
        Err(error) if is_engine_trouble(&error) => {
            stages.fell_back(watch, "shared words", &error);
            Ok(evidence
                .iter()
                .map(|(context, text)| {
                    f64::from(rag_core::answer::extract::lexical_support(question, context, text))
                })
                .collect())
        }
        Err(error) => Err(error),
    }
}

fn join(context: &str, text: &str) -> String {
    if context.is_empty() { text.to_owned() } else { format!("{context}\n{text}") }
}
