//! Completions by the configured chat endpoint: from the cache, or by the first of several models that answers.
//!
//! As long as others are left, a model has its share of the time that is left, for all of its tries: one that hangs leaves
//! time for the next.

use crate::backend::{Backend, ChatBackend, Conditions, chat_target};
use crate::cache::Value;
use crate::calls::{Caller, NoReply};
use crate::dispatch;
use crate::engine::Engine;
use crate::failure::{Explain, failure, internal};
use rag_wire::{Chat, ChatEndpoint, Completion, FailedModel, Failure, FailureCode};
use std::sync::Arc;
use std::time::Instant;

/// A completion. The failure, where no model answers, is the last one's; where there were several, its message tells of all.
///
/// With `deliver`, what a model writes is delivered as it is written. One that fails after that is the last that is asked.
pub(crate) fn complete(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    request: Chat,
    mut deliver: Option<&mut dyn FnMut(String) -> bool>,
) -> Result<Completion, NoReply> {
    let Some(endpoint) = engine.settings().chat.clone() else {
        return Err(failure(FailureCode::NotLoaded, "no chat endpoint is configured")
            .hint("Set rag_ext.llm_url and rag_ext.llm_model.")
            .into());
    };
    if caller.local_only && chat_target(&endpoint, false).is_err() {
        return Err(failure(
            FailureCode::NotAllowed,
            "the chat endpoint is beyond this machine, and a collection in scope lets nothing leave it",
        )
        .hint("See option remote of the collections.")
        .into());
    }
    let models = models(&endpoint, request.model.as_deref());
    let mut failed_models = Vec::new();
    for (index, model) in models.iter().enumerate() {
        let share = share(caller.deadline, models.len() - index);
        let asked = Chat { model: Some(model.clone()), ..request.clone() };
        let mut is_begun = false;
        let answer = match &mut deliver {
            None => ask(engine, &Caller { deadline: share, ..*caller }, &endpoint, asked),
            Some(deliver) => {
                let mut noting = |delta| {
                    is_begun = true;
                    deliver(delta)
                };
                follow(engine, caller, share, &endpoint, asked, &mut noting)
            }
        };
        let failure = match answer {
            Ok(completion) => {
                return Ok(Completion { asked_model: model.clone(), failed_models, ..completion });
            }
            Err(NoReply::Failed(failure)) => failure,
            Err(NoReply::Gone) => return Err(NoReply::Gone),
        };
        // What is wrong otherwise is wrong with any model.
        if index + 1 == models.len()
            || is_begun
            || !matches!(failure.code, FailureCode::Provider | FailureCode::Deadline)
        {
            return Err(failure_of_all(failure, &failed_models, model).into());
        }
        failed_models.push(FailedModel { model: model.clone(), reason: reason(&failure) });
    }
    Err(internal("no chat model was asked").into())
}

/// The model that is asked for, then the others, each once.
fn models(endpoint: &ChatEndpoint, wanted: Option<&str>) -> Vec<String> {
    let mut models = vec![wanted.unwrap_or(&endpoint.model).to_owned()];
    for model in &endpoint.fallback_models {
        if !models.contains(model) {
            models.push(model.clone());
        }
    }
    models
}

/// When the next of so many models is given up.
fn share(deadline: Option<Instant>, models: usize) -> Option<Instant> {
    deadline.map(|deadline| {
        let now = Instant::now();
        now + deadline.saturating_duration_since(now) / u32::try_from(models).unwrap_or(u32::MAX)
    })
}

fn ask(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    endpoint: &ChatEndpoint,
    request: Chat,
) -> Result<Completion, NoReply> {
    let body = serde_json::to_vec(&request).map_err(|e| internal(e.to_string()))?;
    let key = engine.key.question("chat", caller.principal, &[endpoint.url.as_bytes(), &body]);
    if let Some(Value::Completion(completion)) = engine.cached(&key) {
        return Ok(completion);
    }
    let backend = ChatBackend::new(endpoint.clone());
    let generate = move |conditions: &Conditions<'_>| backend.generate(&request, conditions);
    let completion = dispatch::ask_elsewhere(engine, caller, generate)?;
    engine.keep(key, Value::Completion(completion.clone()));
    Ok(completion)
}

/// As [`ask`], delivering what is written, which begins in time or not at all. What the cache has is delivered at once.
fn follow(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    first_part_by: Option<Instant>,
    endpoint: &ChatEndpoint,
    request: Chat,
    deliver: &mut dyn FnMut(String) -> bool,
) -> Result<Completion, NoReply> {
    let body = serde_json::to_vec(&request).map_err(|e| internal(e.to_string()))?;
    let key = engine.key.question("chat", caller.principal, &[endpoint.url.as_bytes(), &body]);
    if let Some(Value::Completion(completion)) = engine.cached(&key) {
        return if deliver(completion.text.clone()) { Ok(completion) } else { Err(NoReply::Gone) };
    }
    let backend = ChatBackend::new(endpoint.clone());
    let generate = move |conditions: &Conditions<'_>, deliver: &mut dyn FnMut(&str)| {
        let conditions = Conditions { first_part_by, ..*conditions };
        backend.generate_by_parts(&request, &conditions, deliver)
    };
    let completion = dispatch::follow_elsewhere(engine, caller, generate, deliver)?;
    engine.keep(key, Value::Completion(completion.clone()));
    Ok(completion)
}

fn reason(failure: &Failure) -> String {
    match failure.code {
        FailureCode::Deadline => "the chat endpoint did not answer in its share of the time".to_owned(),
        _ => failure.message.clone(),
    }
}

fn failure_of_all(last: Failure, before: &[FailedModel], model: &str) -> Failure {
    if before.is_empty() {
        return last;
    }
    let told = |model: &str, reason: &str| format!("model \"{model}\": {reason}");
    let mut all: Vec<String> = before.iter().map(|failed| told(&failed.model, &failed.reason)).collect();
    all.push(told(model, &reason(&last)));
    Failure { message: format!("no chat model answered: {}", all.join("; ")), ..last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_model_is_asked_once_and_the_one_that_is_wanted_first() {
        let endpoint = ChatEndpoint {
            url: String::new(),
            model: "a".into(),
            fallback_models: vec!["b".into(), "a".into(), "c".into(), "b".into()],
            api_key: None,
            timeout_ms: 1,
            retries: 0,
        };
        assert_eq!(models(&endpoint, None), ["a", "b", "c"]);
        assert_eq!(models(&endpoint, Some("c")), ["c", "b", "a"]);
        assert_eq!(models(&endpoint, Some("d")), ["d", "b", "a", "c"]);
    }

    #[test]
    fn a_model_leaves_time_for_the_next() {
        let deadline = Instant::now() + Duration::from_secs(600);
        let of_two = share(Some(deadline), 2);
        assert!(of_two.is_some_and(|at| at + Duration::from_secs(299) <= deadline));
        assert_eq!(share(None, 2), None);
    }
}
