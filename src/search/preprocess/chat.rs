//! What a chat model makes of a query. All that is asked of it for one search ends with the time of its optional stages.

use super::{NOT_WANTED, PLAIN, Step, told};
use crate::config;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::principal;
use crate::search::SearchRequest;
use crate::search::diagnostics::Stages;
use crate::search::rerank::passage;
use crate::search::scope::Scope;
use crate::storage::{Id, chunk};
use rag_core::fuse::Ranked;
use rag_core::rewrite::Task;
use rag_wire::{Chat, ChatMessage};
use std::time::Duration;

const NO_MODEL: &str = "no chat model is configured";

/// Best hits whose texts are shown for the next question.
const SHOWN_HITS: usize = 5;

/// What the chat model makes of the query, as a stage; nothing where the step is not taken, or failed.
pub(super) fn write(
    query: &str,
    task: Task,
    step: Step,
    is_wanted: fn(&str) -> bool,
    stages: &mut Stages,
) -> Result<Vec<String>> {
    let name = match (step, task) {
        (Step::Off, _) => return Ok(Vec::new()),
        (_, Task::Rewrite) => "rewrite",
        (_, Task::Decompose) => "decompose",
        (_, Task::Passage) => "hyde",
        (_, Task::NextQuestion) => NEXT_QUESTION,
        (_, Task::FollowUp) => "follow_up",
    };
    if step == Step::Auto && (!is_wanted(query) || !config::has_chat_model()) {
        let why = if is_wanted(query) { NO_MODEL } else { NOT_WANTED };
        let watch = stages.start(name);
        stages.done_as(watch, 1, 0, why);
        return Ok(Vec::new());
    }
    let written = stages.attempt(name, PLAIN, |within| ask(task, query, &[], within))?;
    let Some((watch, texts)) = written else { return Ok(Vec::new()) };
    if task == Task::Decompose && texts.is_empty() {
        stages.done_as(watch, 1, 0, "chat: one question");
    } else {
        stages.done_as(watch, 1, texts.len(), told("chat: ", texts.iter().map(String::as_str)));
    }
    Ok(texts)
}

const NEXT_QUESTION: &str = "next_question";

/// What the chat model would look for next after the best hits, as a stage; None where it failed. It is shown what the
/// caller sees of them.
pub(in crate::search) fn next_question(
    scope: &Scope,
    request: &SearchRequest<'_>,
    order: &[Ranked],
    stages: &mut Stages,
) -> Result<Option<String>> {
    let ids: Vec<Id> = order.iter().take(SHOWN_HITS).map(|hit| hit.id).collect();
    let ask = |within| {
        let mut shown = chunk::show(&scope.ids(), &ids)?;
        let found: Vec<String> =
            ids.iter().filter_map(|id| shown.remove(id)).map(|chunk| passage(&chunk)).collect();
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        ask(Task::NextQuestion, request.query, &found, within)
    };
    let asked = stages.attempt(NEXT_QUESTION, "entities", ask)?;
    Ok(asked.and_then(|(watch, texts)| {
        stages.done_as(watch, ids.len(), texts.len(), told("chat: ", texts.iter().map(String::as_str)));
        texts.into_iter().next()
    }))
}

/// What the chat model makes of a query. `found` is what the task shows beside it.
pub(crate) fn ask(task: Task, query: &str, found: &[&str], within: Duration) -> Result<Vec<String>> {
    if !config::has_chat_model() {
        return Err(Error::not_ready(NO_MODEL)
            .hint("rag_ext.llm_model names one: at rag_ext.llm_url, or local/FOLDER."));
    }
    let messages = task.prompt(query, found).into_iter();
    let chat = Chat {
        messages: messages.map(|(role, content)| ChatMessage { role: role.to_owned(), content }).collect(),
        max_tokens: task.max_tokens(),
        json_schema: Some(task.schema().to_owned()),
        ..Chat::default()
    };
    let reply = engine::chat(chat, within, &principal::current_principals()?)?;
    match task.read(&reply.text) {
        None => Err(Error::engine_down("the chat model's reply is not of the form that was asked for")),
        Some(texts) if texts.is_empty() && task != Task::Decompose => {
            Err(Error::engine_down("the chat model wrote nothing to search with"))
        }
        Some(texts) => Ok(texts),
    }
}
