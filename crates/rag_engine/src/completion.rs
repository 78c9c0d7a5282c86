//! Completions by the configured chat models, at an endpoint or on this machine: from the cache, or by the first of several models that answers.
//!
//! As long as others are left, a model has its share of the time that is left, for all of its tries: one that hangs leaves
//! time for the next.

use crate::backend::{Backend, ChatBackend, Conditions, LocalChatBackend, chat_target};
use crate::cache::{Key, Value};
use crate::calls::{Caller, NoReply};
use crate::dispatch;
use crate::engine::Engine;
use crate::failure::{Explain, failure, internal};
use rag_wire::{Chat, ChatEndpoint, ChatModels, Completion, FailedModel, Failure, FailureCode, local_model};
use std::collections::VecDeque;
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
    let Some(chat) = engine.settings().chat.clone() else { return Err(not_configured().into()) };
    let mut models = VecDeque::from(models(&chat, request.model.as_deref()));
    let mut failed_models = Vec::new();
    while let Some(model) = models.pop_front() {
        let share = share(caller.deadline, models.len() + 1);
        let asked = Chat { model: Some(model.clone()), ..request.clone() };
        let mut is_begun = false;
        let answer = match (place(&chat, &model, caller.local_only), &mut deliver) {
            (Err(failure), _) => Err(failure.into()),
            (Ok(place), None) => ask(engine, &Caller { deadline: share, ..*caller }, place, asked),
            (Ok(place), Some(deliver)) => {
                let mut noting = |delta| {
                    is_begun = true;
                    deliver(delta)
                };
                follow(engine, caller, share, place, asked, &mut noting)
            }
        };
        let failure = match answer {
            Ok(completion) => {
                return Ok(Completion { asked_model: model, failed_models, ..completion });
            }
            Err(NoReply::Failed(failure)) => failure,
            Err(NoReply::Gone) => return Err(NoReply::Gone),
        };
        if models.is_empty() || is_begun || !is_of_the_model(&failure, &model, &models) {
            return Err(failure_of_all(failure, &failed_models, &model).into());
        }
        failed_models.push(FailedModel { reason: reason(&failure), model });
    }
    Err(internal("no chat model was asked").into())
}

/// How many tokens each of the texts has for a configured chat model of this machine.
pub(crate) fn count_tokens(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    model: &str,
    texts: Vec<String>,
) -> Result<Vec<u32>, NoReply> {
    let chat = engine.settings().chat.clone();
    // No caller has the engine load what nobody has configured.
    let is_configured =
        |folder: &&str| chat.is_some_and(|chat| chat.local_models().any(|known| known == *folder));
    let Some(folder) = local_model(model).filter(is_configured).map(str::to_owned) else {
        let message = format!("\"{model}\" is no chat model of this machine that is configured");
        return Err(failure(FailureCode::UnknownModel, message).into());
    };
    let models = engine.local_models.clone();
    dispatch::ask_elsewhere(engine, caller, move |conditions| {
        models.count_tokens(&folder, &texts, conditions)
    })
}

fn not_configured() -> Failure {
    failure(FailureCode::NotLoaded, "no chat endpoint is configured")
        .hint("Set rag_ext.llm_url and rag_ext.llm_model.")
}

/// Where a model is asked.
enum Place<'a> {
    /// In a process of this machine: the name of its folder.
    Local(&'a str),
    Endpoint(&'a ChatEndpoint),
}

/// Where a model is asked; why it may not be, if so.
fn place<'a>(chat: &'a ChatModels, model: &'a str, local_only: bool) -> Result<Place<'a>, Failure> {
    if let Some(folder) = local_model(model) {
        return Ok(Place::Local(folder));
    }
    let endpoint = chat.endpoint.as_ref().ok_or_else(not_configured)?;
    if local_only && chat_target(endpoint, false).is_err() {
        return Err(failure(
            FailureCode::NotAllowed,
            "the chat endpoint is beyond this machine, and a collection in scope lets nothing leave it",
        )
        .hint("See option remote of the collections."));
    }
    Ok(Place::Endpoint(endpoint))
}

/// Whether one of the others may answer where this one failed. What is wrong otherwise is wrong with any model, unless one is
/// asked elsewhere.
fn is_of_the_model(failure: &Failure, model: &str, others: &VecDeque<String>) -> bool {
    let is_local = local_model(model).is_some();
    match failure.code {
        FailureCode::Provider | FailureCode::Deadline => true,
        FailureCode::NotLoaded if is_local => true,
        _ => others.iter().any(|other| local_model(other).is_some() != is_local),
    }
}

/// The model that is asked for, then the others, each once.
fn models(chat: &ChatModels, wanted: Option<&str>) -> Vec<String> {
    let mut models = vec![wanted.unwrap_or(&chat.model).to_owned()];
    for model in &chat.fallback_models {
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

impl Place<'_> {
    /// What asks there, and what the cache knows the place by.
    fn backend(&self, engine: &Engine, model: &str) -> (Box<dyn Backend>, String) {
        match *self {
            Self::Local(folder) => {
                (Box::new(LocalChatBackend::new(engine.local_models.clone(), folder)), String::new())
            }
            Self::Endpoint(endpoint) => {
                (Box::new(ChatBackend::new(endpoint.clone(), model.to_owned())), endpoint.url.clone())
            }
        }
    }
}

/// A request to one model.
struct Question {
    request: Chat,
    backend: Box<dyn Backend>,
    key: Key,
}

impl Question {
    fn new(engine: &Engine, caller: &Caller<'_>, place: &Place<'_>, request: Chat) -> Result<Self, Failure> {
        let body = serde_json::to_vec(&request).map_err(|e| internal(e.to_string()))?;
        let (backend, address) = place.backend(engine, request.model.as_deref().unwrap_or_default());
        let key = engine.key.question("chat", caller.principal, &[address.as_bytes(), &body]);
        Ok(Self { request, backend, key })
    }
}

fn ask(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    place: Place<'_>,
    request: Chat,
) -> Result<Completion, NoReply> {
    let Question { request, backend, key } = Question::new(engine, caller, &place, request)?;
    if let Some(Value::Completion(completion)) = engine.cached(&key) {
        return Ok(completion);
    }
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
    place: Place<'_>,
    request: Chat,
    deliver: &mut dyn FnMut(String) -> bool,
) -> Result<Completion, NoReply> {
    let Question { request, backend, key } = Question::new(engine, caller, &place, request)?;
    if let Some(Value::Completion(completion)) = engine.cached(&key) {
        return if deliver(completion.text.clone()) { Ok(completion) } else { Err(NoReply::Gone) };
    }
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
        FailureCode::Deadline => "the chat model did not answer in its share of the time".to_owned(),
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
        let chat = ChatModels {
            model: "a".into(),
            simple_model: None,
            fallback_models: vec!["b".into(), "a".into(), "c".into(), "b".into()],
            endpoint: None,
        };
        assert_eq!(models(&chat, None), ["a", "b", "c"]);
        assert_eq!(models(&chat, Some("c")), ["c", "b", "a"]);
        assert_eq!(models(&chat, Some("d")), ["d", "b", "a", "c"]);
    }

    #[test]
    fn what_a_model_of_this_machine_lacks_is_no_fault_of_the_next() {
        let check = |code, model: &str, others: &[&str]| {
            let others = others.iter().map(|other| (*other).to_owned()).collect();
            is_of_the_model(&failure(code, "x"), model, &others)
        };
        assert!(check(FailureCode::NotLoaded, "local/a", &["local/b"]));
        assert!(check(FailureCode::NotAllowed, "a", &["local/b"]));
        assert!(check(FailureCode::NotLoaded, "a", &["b", "local/c"]));
        assert!(!check(FailureCode::NotLoaded, "a", &["b"]));
        assert!(!check(FailureCode::InvalidArgument, "local/a", &["local/b"]));
    }

    #[test]
    fn a_model_leaves_time_for_the_next() {
        let deadline = Instant::now() + Duration::from_secs(600);
        let of_two = share(Some(deadline), 2);
        assert!(of_two.is_some_and(|at| at + Duration::from_secs(299) <= deadline));
        assert_eq!(share(None, 2), None);
    }
}
