//! Questions that a conversation leads to: what is searched for.

use super::AnswerRequest;
use crate::error::Result;
use crate::search::diagnostics::Stages;
use crate::search::preprocess;
use rag_core::rewrite::Task;

/// Latest turns that are looked at.
const MAX_TURNS: usize = 6;

/// What is searched for. A follow-up is written anew by the chat model, so that it stands alone; where there is none, or it fails,
/// it is searched together with the user's previous turn, which names its subject.
pub(super) fn query(request: &AnswerRequest<'_>, may_ask: bool, stages: &mut Stages) -> Result<String> {
    let Some(previous) = request.history.iter().rev().find(|turn| turn.is_user) else {
        return Ok(request.question.to_owned());
    };
    let together = format!("{} {}", previous.content, request.question);
    if !may_ask {
        return Ok(together);
    }
    let turns: Vec<String> = request.history[request.history.len().saturating_sub(MAX_TURNS)..]
        .iter()
        .map(|turn| format!("{}: {}", turn.role(), turn.content))
        .collect();
    let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
    let written = stages.attempt("follow_up", "previous question", |within| {
        preprocess::ask(Task::FollowUp, request.question, &turns, within)
    })?;
    let Some((watch, texts)) = written else { return Ok(together) };
    let told = preprocess::told("chat: ", texts.iter().map(String::as_str));
    stages.done_as(watch, turns.len(), texts.len(), told);
    Ok(texts.into_iter().next().unwrap_or(together))
}
