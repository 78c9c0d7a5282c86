//! What a chat model makes of a query. All that is asked of it for one search ends by one deadline.

use super::{NOT_WANTED, PLAIN, Step, told};
use crate::config;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::principal;
use crate::search::diagnostics::{Stages, is_engine_trouble};
use rag_core::rewrite::Task;
use rag_wire::{Chat, ChatMessage};
use std::time::Instant;

const NO_MODEL: &str = "no chat model is configured";

/// Asks the chat model about one query.
pub(super) struct Writer<'a> {
    query: &'a str,
    /// Since the first question.
    deadline: Option<Instant>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(query: &'a str) -> Self {
        Self { query, deadline: None }
    }

    /// What the model makes of the query, as a stage; nothing where the step is not taken, or failed.
    pub(super) fn write(
        &mut self,
        task: Task,
        step: Step,
        is_wanted: fn(&str) -> bool,
        stages: &mut Stages,
    ) -> Result<Vec<String>> {
        let watch = match (step, task) {
            (Step::Off, _) => return Ok(Vec::new()),
            (_, Task::Rewrite) => stages.start("rewrite"),
            (_, Task::Decompose) => stages.start("decompose"),
            (_, Task::Passage) => stages.start("hyde"),
        };
        if step == Step::Auto && !is_wanted(self.query) {
            stages.done_as(watch, 1, 0, NOT_WANTED);
            return Ok(Vec::new());
        }
        if step == Step::Auto && config::llm_url().is_none() {
            stages.done_as(watch, 1, 0, NO_MODEL);
            return Ok(Vec::new());
        }
        match self.ask(task) {
            Ok(texts) if task == Task::Decompose && texts.is_empty() => {
                stages.done_as(watch, 1, 0, "chat: one question");
                Ok(texts)
            }
            Ok(texts) => {
                stages.done_as(watch, 1, texts.len(), told("chat: ", texts.iter().map(String::as_str)));
                Ok(texts)
            }
            Err(error) if is_engine_trouble(&error) => {
                stages.fell_back(watch, PLAIN, &error);
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    fn ask(&mut self, task: Task) -> Result<Vec<String>> {
        if config::llm_url().is_none() {
            return Err(Error::not_ready(NO_MODEL).hint("rag_ext.llm_url names an endpoint."));
        }
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert_with(|| now + config::query_deadline());
        let within = deadline.saturating_duration_since(now);
        if within.is_zero() {
            return Err(Error::engine_down("the time to prepare the query is over")
                .hint("rag_ext.query_deadline sets it."));
        }
        let messages = task.prompt(self.query).into_iter();
        let chat = Chat {
            messages: messages
                .map(|(role, content)| ChatMessage { role: role.to_owned(), content })
                .collect(),
            max_tokens: task.max_tokens(),
            temperature: 0.0,
            json_schema: Some(task.schema().to_owned()),
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
}
