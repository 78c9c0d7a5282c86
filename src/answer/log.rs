//! Notes of answers for `rag.answer_log`, where `rag_ext.answer_log` is on.
//!
//! What is too large for a note loses a part after the other, and says which: see [`shorten`].

use super::{Answer, AnswerRequest, Citation, Method};
use crate::config;
use crate::error::{Error, Result};
use crate::pg::notes::{self, Log};
use crate::pg::server;
use crate::search::log::{NoteOwner, note_owner};
use crate::storage::{answer_log, text_of_id};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// Most characters that are kept of a question.
const MAX_QUESTION_CHARS: usize = 2_000;

/// Characters that are kept of an answer whose note would else be too large.
const SHORT_ANSWER_CHARS: usize = 2_000;

/// Citations that are kept in a note that would else be too large.
const FEW_CITATIONS: usize = 10;

/// Leaves a note of an answer. What cannot be noted is counted, and disturbs nobody.
pub(crate) fn note(
    request: &AnswerRequest<'_>,
    answer: &Answer,
    collection: Option<&str>,
    time: Duration,
) -> Result<()> {
    if !config::answer_log() {
        return Ok(());
    }
    let Ok(owner) = note_owner() else {
        notes::drop_note(Log::Answers);
        return Ok(());
    };
    // Nothing is read for a note that nobody can write.
    if !notes::can_be_written() {
        notes::drop_note(Log::Answers);
        return Ok(());
    }
    match fitting(noted(request, answer, collection, time, &owner)?) {
        Ok(text) => notes::push(Log::Answers, owner.role, owner.number, text.as_bytes()),
        Err(_) => notes::drop_note(Log::Answers),
    }
    Ok(())
}

fn noted(
    request: &AnswerRequest<'_>,
    answer: &Answer,
    collection: Option<&str>,
    time: Duration,
    owner: &NoteOwner,
) -> Result<Value> {
    let question: String = request.question.chars().take(MAX_QUESTION_CHARS).collect();
    let shortened: &[&str] = if question.len() < request.question.len() { &["question"] } else { &[] };
    let stages = answer.stages.to_json();
    let generated = generated(&stages);
    let is_measured = answer.method != Method::Degraded;
    let reranker = || request.options.search.rerank_model.clone().unwrap_or_else(config::rerank_model);
    let embedding: Vec<&str> = request.scope.by_model().into_iter().map(|(model, _)| model).collect();
    Ok(json!({
        "owner": owner.name,
        "owner_role": owner.role,
        "at": server::now(),
        "question": question,
        "collection": collection,
        "answer": answer.text,
        "found": answer.refusal.is_none(),
        "reason": answer.refusal.map(|refusal| refusal.name()),
        "method": answer.method.name(),
        "confidence": answer.confidence,
        "citations": citations(request, &answer.citations)?,
        "models": {
            "chat": (answer.method == Method::Chat).then(|| match generated["model"].as_str() {
                Some(model) => model.to_owned(),
                None => config::llm_model(),
            }),
            "reranker": is_measured.then(reranker).filter(|model| !model.is_empty()),
            "embedding": embedding.join(", "),
        },
        "prompt_tokens": generated["prompt_tokens"],
        "completion_tokens": generated["completion_tokens"],
        "milliseconds": time.as_secs_f64() * 1000.0,
        "stages": stages,
        "shortened": shortened,
    }))
}

/// What the stage that asks a chat model says of the model: its name and tokens, as far as they are known.
fn generated(stages: &Value) -> Value {
    let mut stages = stages.as_array().into_iter().flatten();
    let generate = stages.rfind(|stage| stage["stage"] == "generate");
    generate.map_or(Value::Null, |stage| stage["details"].clone())
}

/// Citations with the form of their document that they are of.
fn citations(request: &AnswerRequest<'_>, citations: &[Citation]) -> Result<Vec<Value>> {
    let documents: HashSet<_> = citations.iter().map(|citation| citation.document).collect();
    let cited = answer_log::cited_documents(&request.scope.ids(), documents)?;
    let own: HashSet<_> = request.scope.own_domains().iter().map(|domain| domain.id).collect();
    let of = |citation: &Citation| {
        let document = cited.get(&citation.document);
        json!({
            "n": citation.n,
            "document_id": text_of_id(citation.document),
            "domain_id": document.map(|document| text_of_id(document.domain)),
            "sha256": document.and_then(|document| document.sha256.as_deref()),
            "own": document.is_some_and(|document| own.contains(&document.domain)),
            "chunk_id": text_of_id(citation.chunk),
            "title": citation.title,
            "uri": citation.uri,
            "header_path": citation.header_path,
            "page_from": citation.page_from,
            "page_to": citation.page_to,
            "quote": citation.quote,
            "char_from": citation.char_from,
            "char_to": citation.char_to,
            "support": citation.support,
        })
    };
    Ok(citations.iter().map(of).collect())
}

/// The text of a note that is no larger than a note may be.
fn fitting(mut note: Value) -> Result<String> {
    let most = Log::Answers.note_bytes();
    for part in ["", "quotes", "stages", "headings", "answer", "citations"] {
        if !part.is_empty()
            && shorten(&mut note, part)
            && let Some(shortened) = note["shortened"].as_array_mut()
        {
            shortened.push(part.into());
        }
        let text = note.to_string();
        if text.len() <= most {
            return Ok(text);
        }
    }
    Err(Error::limit(format!("an answer of more than {most} bytes is not logged")))
}

/// Takes a part away: quotes of citations; what stages say beside their name and time; titles, uris and headings of
/// citations; the end of a long answer; citations beyond the first ten. False where there was nothing to take.
fn shorten(note: &mut Value, part: &str) -> bool {
    let cleared = |citation: &mut Value, keys: &[&str]| {
        keys.iter().for_each(|key| citation[*key] = Value::Null);
    };
    let list = |note: &mut Value, key: &str| note[key].as_array_mut().map(std::mem::take).unwrap_or_default();
    match part {
        "quotes" | "headings" => {
            let keys: &[&str] = if part == "quotes" { &["quote"] } else { &["title", "uri", "header_path"] };
            let mut citations = list(note, "citations");
            citations.iter_mut().for_each(|citation| cleared(citation, keys));
            let is_shorter = !citations.is_empty();
            note["citations"] = citations.into();
            is_shorter
        }
        "stages" => {
            let stages = list(note, "stages");
            let is_shorter = !stages.is_empty();
            note["stages"] = stages
                .into_iter()
                .map(|stage| json!({ "stage": stage["stage"], "ms": stage["ms"] }))
                .collect();
            is_shorter
        }
        "answer" => {
            let text = note["answer"].as_str().unwrap_or_default();
            let short: String = text.chars().take(SHORT_ANSWER_CHARS).collect();
            let is_shorter = short.len() < text.len();
            note["answer"] = short.into();
            is_shorter
        }
        _ => {
            let mut citations = list(note, "citations");
            let is_shorter = citations.len() > FEW_CITATIONS;
            citations.truncate(FEW_CITATIONS);
            note["citations"] = citations.into();
            is_shorter
        }
    }
}
