//! Which chat model is asked for an answer, and how: decided from the question and the caller's options alone.

use super::AnswerRequest;
use crate::config;
use crate::engine;
use crate::error::Error;
use pgrx::PgSqlErrorCode;
use rag_core::answer::block;
use rag_core::answer::complexity::Complexity;
use rag_core::choices;
use rag_wire::{Chat, ChatMessage, Completion, FailedModel, local_model};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Instant;

choices! {
    /// What becomes of an answer that no chat model could be had for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum OnFailure {
        /// It is extracted from the documents.
        Extractive = "extractive",
        /// It is an error.
        Error = "error",
    }
}

/// Tokens of passages and conversation in a prompt, and in one for a model of this machine.
const BUDGET: usize = 4_000;
const LOCAL_BUDGET: usize = 1_000;

/// Of the time for an answer, the part that a model may take to be loaded and count tokens: one over this.
const COUNTING_SHARE: u32 = 4;

/// What is asked of the chat endpoint, beside the words.
pub(super) struct Route {
    complexity: Complexity,
    /// The model that is asked first; `None` is the configured one.
    model: Option<String>,
    max_tokens: u32,
    temperature: f32,
    top_p: Option<f32>,
    /// Who answered, once somebody has.
    answered: Option<Answered>,
    /// Whether the model counted the tokens of its prompt itself, once it was asked to.
    is_counted: Cell<Option<bool>>,
    /// Places of the prompt that gave orders or were hidden.
    pub(super) neutralised: usize,
    /// Whether the model told its instructions.
    pub(super) repeats_prompt: bool,
}

struct Answered {
    model: String,
    failed: Vec<FailedModel>,
    prompt_tokens: Option<u32>,
    completion_tokens: Option<u32>,
}

impl Route {
    pub(super) fn of(request: &AnswerRequest<'_>) -> Self {
        let complexity = Complexity::of(request.question);
        let options = request.options;
        let is_simple = complexity == Complexity::Simple;
        Self {
            complexity,
            model: is_simple.then(config::llm_simple_model).flatten(),
            max_tokens: options.max_tokens.unwrap_or(complexity.max_tokens()),
            temperature: options.temperature,
            top_p: options.top_p,
            answered: None,
            is_counted: Cell::new(None),
            neutralised: 0,
            repeats_prompt: false,
        }
    }

    /// The request for a conversation.
    pub(super) fn chat(&self, messages: Vec<ChatMessage>, json_schema: &str) -> Chat {
        Chat {
            model: self.model.clone(),
            messages,
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            top_p: self.top_p,
            json_schema: Some(json_schema.to_owned()),
        }
    }

    /// How many tokens each of the texts has: for a model of this machine as its own tokenizer counts them, if it does so in
    /// time, else as [`block::tokens`] estimates them.
    pub(super) fn count_tokens(
        &self,
        texts: &[&str],
        deadline: Instant,
        principals: &[String],
    ) -> Vec<usize> {
        let model = self.model.clone().unwrap_or_else(config::llm_model);
        let within = deadline.saturating_duration_since(Instant::now()) / COUNTING_SHARE;
        let may_count = local_model(&model).is_some() && self.is_counted.get() != Some(false);
        let counted = may_count.then(|| {
            let texts = texts.iter().map(|text| (*text).to_owned()).collect();
            engine::count_tokens(&model, texts, within, principals).ok()
        });
        let counted = counted.flatten();
        self.is_counted.set(Some(counted.is_some()));
        match counted {
            Some(counted) => counted.into_iter().map(|tokens| tokens as usize).collect(),
            None => texts.iter().map(|text| block::tokens(text)).collect(),
        }
    }

    /// Tokens of passages and conversation that the first model reads where nobody says how many: a processor reads some tens a
    /// second.
    pub(super) fn context_budget(&self) -> usize {
        let model = self.model.clone().unwrap_or_else(config::llm_model);
        if local_model(&model).is_some() { LOCAL_BUDGET } else { BUDGET }
    }

    /// Notes who answered.
    pub(super) fn answered_by(&mut self, completion: &Completion) {
        self.answered = Some(Answered {
            model: completion.asked_model.clone(),
            failed: completion.failed_models.clone(),
            prompt_tokens: completion.prompt_tokens,
            completion_tokens: completion.completion_tokens,
        });
    }

    /// What the diagnostics say of it.
    pub(super) fn told(&self) -> Value {
        let mut told = json!({
            "question": self.complexity.name(),
            "model": self.model.clone().unwrap_or_else(config::llm_model),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "tokens_counted_by": if self.is_counted.get() == Some(true) { "model" } else { "estimate" },
            "neutralised": self.neutralised,
        });
        if self.repeats_prompt {
            told["repeats_prompt"] = true.into();
        }
        if let Some(top_p) = self.top_p {
            told["top_p"] = top_p.into();
        }
        if let Some(answered) = &self.answered {
            told["model"] = answered.model.clone().into();
            told["prompt_tokens"] = answered.prompt_tokens.into();
            told["completion_tokens"] = answered.completion_tokens.into();
            if !answered.failed.is_empty() {
                told["failed_models"] = answered
                    .failed
                    .iter()
                    .map(|failed| json!({ "model": failed.model, "reason": failed.reason }))
                    .collect();
            }
        }
        told
    }
}

/// 58000, for a caller who wants to know that no chat model could be had.
pub(super) fn failed(error: Error) -> Error {
    Error { code: PgSqlErrorCode::ERRCODE_SYSTEM_ERROR, ..error }
}

/// The same where none is configured.
pub(super) fn not_configured() -> Error {
    failed(
        Error::not_ready("no chat model is configured")
            .hint("rag_ext.llm_model names one: at rag_ext.llm_url, or local/FOLDER."),
    )
}
