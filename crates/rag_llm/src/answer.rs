//! One answer, from the conversation to its last token.

use crate::llama::{Model, Unread};
use crate::sampler::Sampler;
use crate::{failure, is_stopped};
use rag_llm::{Outcome, Question};
use rag_wire::{Failure, FailureCode};

/// Writes an answer to `write`, which is false where nobody reads it.
pub(crate) fn write(model: &mut Model, question: &Question, write: &mut dyn FnMut(&[u8]) -> bool) -> Outcome {
    match try_write(model, question, write) {
        Ok(outcome) => outcome,
        Err(failure) => Outcome::Failed(failure),
    }
}

fn try_write(
    model: &mut Model,
    question: &Question,
    write: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<Outcome, Failure> {
    let unreadable = |reason: String| failure(FailureCode::Provider, reason);
    model.begin();
    let (tokens, instructions) = model.tokens(&question.messages).map_err(unreadable)?;
    let room = model.context() as usize;
    if tokens.len() >= room {
        let message = format!("the conversation has {} tokens, the model takes {room}", tokens.len());
        let mut failure = failure(FailureCode::Provider, message);
        failure.hint = Some("Lower rag_ext.context_budget, or take a model with more context.".to_owned());
        return Err(failure);
    }
    let grammar = question.grammar.as_deref();
    let mut sampler =
        Sampler::new(model, question.temperature, question.top_p, grammar).map_err(unreadable)?;
    // Only instructions are kept: how long it takes to read what somebody else asked would tell that it was asked.
    let known = model.has_read(&tokens).min(instructions);
    let known = model.keep(known);
    if let Err(unread) = model.read(&tokens[known..]) {
        return ended(unread);
    }
    let most = (question.max_tokens as usize).min(room - tokens.len());
    let mut completion_tokens = 0;
    while completion_tokens < most {
        if is_stopped() {
            return Ok(Outcome::Stopped);
        }
        let next = sampler.next(model);
        let token = next.ok_or_else(|| failure(FailureCode::Provider, "the model chose no token"))?;
        if model.vocabulary().is_end(token) {
            break;
        }
        completion_tokens += 1;
        if !write(&model.vocabulary().piece(token)) {
            return Ok(Outcome::Stopped);
        }
        if completion_tokens < most
            && let Err(unread) = model.read(&[token])
        {
            return ended(unread);
        }
    }
    Ok(Outcome::Whole { prompt_tokens: tokens.len() as u32, completion_tokens: completion_tokens as u32 })
}

fn ended(unread: Unread) -> Result<Outcome, Failure> {
    match unread {
        Unread::Stopped => Ok(Outcome::Stopped),
        Unread::Failed(status) => {
            Err(failure(FailureCode::Provider, format!("llama.cpp failed with status {status}")))
        }
    }
}
