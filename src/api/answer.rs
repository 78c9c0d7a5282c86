//! `rag_answer` and its two other shapes.

use super::search::filter_of;
use super::{call, options_of, required};
use crate::answer::{self, Answer, AnswerOptions, AnswerRequest, Turn, log as answer_log};
use crate::error::{Error, Result, excerpt};
use crate::pg::ErrorReport;
use crate::pg::given_jsonb::GivenJsonb;
use crate::search::log::{self, LoggedCall};
use crate::search::options::{MAX_QUERY_BYTES, checked_query};
use crate::search::scope::{InForce, Scope};
use crate::storage::uuid;
use pgrx::JsonB;
use pgrx::prelude::*;
use rag_core::answer::confidence::Level;
use rag_core::answer::plain::defused;
use rag_core::filter::Filter;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

/// Most turns of a history.
const MAX_TURNS: usize = 100;

/// A call of a function that answers, with its arguments read.
pub(super) struct Call {
    question: String,
    collection: Option<String>,
    filter: Option<Filter>,
    history: Vec<Turn>,
    options: AnswerOptions,
    scope: Scope,
}

impl Call {
    pub(super) fn read(
        question: Option<&str>,
        collection: Option<&str>,
        filter: Option<GivenJsonb>,
        history: Option<GivenJsonb>,
        options: Option<GivenJsonb>,
    ) -> Result<Self> {
        Ok(Self {
            question: asked(question)?.to_owned(),
            collection: collection.map(str::to_owned),
            filter: filter_of(filter)?,
            history: history.map(|history| turns(&history.0)).transpose()?.unwrap_or_default(),
            options: AnswerOptions::read(&options_of(options)?)?,
            scope: Scope::to_read(collection)?,
        })
    }

    /// For a call of whose answer the rest comes later: see [`Scope::suspend`].
    pub(super) fn suspend(&mut self) {
        self.scope.suspend();
    }

    pub(super) fn in_force(&self) -> Result<InForce> {
        self.scope.in_force()
    }

    pub(super) fn request(&self) -> AnswerRequest<'_> {
        AnswerRequest {
            question: &self.question,
            scope: &self.scope,
            filter: self.filter.as_ref(),
            history: &self.history,
            options: &self.options,
        }
    }

    /// Leaves notes of its answer for the logs.
    pub(super) fn note(&self, answer: &Answer, since: Instant) -> Result<()> {
        note(&self.request(), answer, self.collection.as_deref(), since)
    }
}

fn ask(
    question: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    history: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> Result<Answer> {
    let call = Call::read(question, collection, filter, history, options)?;
    answer_and_note(&call.request(), collection)
}

/// A question, checked.
pub(super) fn asked(question: Option<&str>) -> Result<&str> {
    checked_query(required(question, "question")?, "question")
}

/// Answers a question, and leaves notes of it for the logs.
pub(super) fn answer_and_note(request: &AnswerRequest<'_>, collection: Option<&str>) -> Result<Answer> {
    let since = Instant::now();
    let answer = answer::answer(request)?;
    note(request, &answer, collection, since)?;
    Ok(answer)
}

/// Leaves notes of an answer for the logs.
fn note(
    request: &AnswerRequest<'_>,
    answer: &Answer,
    collection: Option<&str>,
    since: Instant,
) -> Result<()> {
    answer_log::note(request, answer, collection, since.elapsed())?;
    log::note(&LoggedCall {
        query: request.question,
        collection,
        mode: log::ANSWER,
        k: request.options.k,
        chunks: answer.citations.iter().map(|citation| citation.chunk).collect(),
        stages: &answer.stages,
        time: since.elapsed(),
    });
    Ok(())
}

/// `[{"role": "user"|"assistant", "content": text}, …]`, oldest first.
fn turns(history: &Value) -> Result<Vec<Turn>> {
    let wrong = |what: String| {
        Error::invalid(what).hint("history is [{\"role\": \"user\" | \"assistant\", \"content\": text}, …].")
    };
    let Some(turns) = history.as_array() else {
        return Err(wrong("history must be a JSON array".to_owned()));
    };
    if turns.len() > MAX_TURNS {
        return Err(Error::limit(format!("history has {} turns, but the limit is {MAX_TURNS}", turns.len())));
    }
    let mut bytes = 0;
    turns
        .iter()
        .map(|turn| {
            let role = turn.get("role").and_then(Value::as_str);
            let content = turn.get("content").and_then(Value::as_str);
            let (Some(role), Some(content)) = (role, content) else {
                return Err(wrong("a turn of history needs role and content".to_owned()));
            };
            if !matches!(role, "user" | "assistant") {
                return Err(wrong(format!("invalid role \"{}\" in history", excerpt(role))));
            }
            bytes += content.len();
            if bytes > MAX_QUERY_BYTES {
                return Err(Error::limit(format!("history has more than {MAX_QUERY_BYTES} bytes")));
            }
            Ok(Turn { is_user: role == "user", content: content.to_owned() })
        })
        .collect()
}

#[pg_extern(sql = false)]
fn rag_answer(
    question: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    history: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<JsonB, ErrorReport> {
    call(|| Ok(JsonB(object(&ask(question, collection, filter, history, options)?))))
}

/// An answer as `rag_answer` returns it.
pub(super) fn object(answer: &Answer) -> Value {
    let citations: Vec<Value> = answer
        .citations
        .iter()
        .map(|c| {
            json!({
                "n": c.n,
                "document_id": uuid(c.document).to_string(),
                "chunk_id": uuid(c.chunk).to_string(),
                "title": c.title,
                "uri": c.uri,
                "header_path": c.header_path,
                "page_from": c.page_from,
                "page_to": c.page_to,
                "quote": c.quote,
                "char_from": c.char_from,
                "char_to": c.char_to,
                "support": c.support.map(rounded),
            })
        })
        .collect();
    let unsupported: Vec<Value> = answer
        .unsupported
        .iter()
        .map(|u| json!({ "sentence": u.sentence, "support": u.support.map(rounded) }))
        .collect();
    json!({
        "answer": answer.text,
        "found": answer.refusal.is_none(),
        "reason": answer.refusal.map(|r| r.name()),
        "method": answer.method.name(),
        "confidence": answer.confidence.map(rounded),
        "confidence_level": answer.level.map(Level::name),
        "citations": citations,
        "unsupported": unsupported,
        "pending": answer.pending,
        "suggestions": answer.suggestions,
        "warnings": answer.stages.warnings().collect::<Vec<_>>(),
        "diagnostics": answer.stages.to_json(),
    })
}

/// Four digits: what a reader can use.
pub(super) fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}

#[pg_extern(sql = false)]
fn rag_answer_text(
    question: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    history: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<String, ErrorReport> {
    call(|| {
        let answer = ask(question, collection, filter, history, options)?;
        let mut text = answer.text.clone();
        if !answer.citations.is_empty() {
            text.push_str("\n\nSources:");
        }
        for c in &answer.citations {
            let name = c.title.as_deref().or(c.uri.as_deref()).unwrap_or("untitled document");
            let _ = write!(text, "\n[{}] {}", c.n, defused(name));
            // The first heading often is the title.
            let below = c.header_path.strip_prefix(&[name.to_owned()]).unwrap_or(&c.header_path);
            for heading in below {
                let _ = write!(text, " > {}", defused(heading));
            }
            match (c.page_from, c.page_to) {
                (Some(from), Some(to)) if from != to => {
                    let _ = write!(text, ", pages {from}-{to}");
                }
                (Some(page), _) => {
                    let _ = write!(text, ", page {page}");
                }
                _ => {}
            }
            if let Some(uri) = c.uri.as_deref().filter(|uri| *uri != name) {
                let _ = write!(text, " ({uri})");
            }
            let quote = defused(&c.quote.split_whitespace().collect::<Vec<_>>().join(" "));
            let _ = write!(text, "\n    \"{quote}\"");
        }
        if !answer.suggestions.is_empty() {
            let _ = write!(text, "\n\nClosest: {}", answer.suggestions.join("; "));
        }
        Ok(text)
    })
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_cite(
    question: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    history: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(answer, String),
            name!(found, bool),
            name!(confidence, Option<f64>),
            name!(n, Option<i32>),
            name!(document_id, Option<pgrx::Uuid>),
            name!(title, Option<String>),
            name!(uri, Option<String>),
            name!(header_path, Option<Vec<String>>),
            name!(page_from, Option<i32>),
            name!(page_to, Option<i32>),
            name!(quote, Option<String>),
            name!(support, Option<f64>),
        ),
    >,
    ErrorReport,
> {
    let answer = call(|| ask(question, collection, filter, history, options))?;
    let (text, found, confidence) = (answer.text, answer.refusal.is_none(), answer.confidence.map(rounded));
    let mut rows = Vec::new();
    if answer.citations.is_empty() {
        rows.push((text, found, confidence, None, None, None, None, None, None, None, None, None));
    } else {
        for c in answer.citations {
            rows.push((
                text.clone(),
                found,
                confidence,
                Some(c.n as i32),
                Some(uuid(c.document)),
                c.title,
                c.uri,
                Some(c.header_path),
                c.page_from,
                c.page_to,
                Some(c.quote),
                c.support.map(rounded),
            ));
        }
    }
    Ok(TableIterator::new(rows))
}
