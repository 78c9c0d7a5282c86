//! Chat endpoints: what is asked of `POST /chat/completions`, and what is made of the answer.

use super::stream::Events;
use super::{Backend, Conditions, Limits};
use crate::endpoint::{self, CHAT, EndpointResponse, Spacing, Target, Terms};
use crate::failure::{Explain, failure};
use rag_wire::{Chat, ChatEndpoint, Completion, Failure, FailureCode, Settings, local_model};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Most bytes of an answer.
pub(super) const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// Most bytes of the events that bring one: some hundred for each token.
const MAX_STREAM_BYTES: u64 = 16 << 20;

/// Where completions are asked for, below the base address.
const PATH: [&str; 2] = ["chat", "completions"];

/// Which chat model is asked first, if one is configured and allowed, in words; `check` says what keeps one of this machine
/// from being asked. Asks no name server.
pub(crate) fn summary(
    settings: &Settings,
    check: impl FnOnce(&str) -> Result<(), String>,
) -> Result<String, String> {
    let models = settings.chat.as_ref().ok_or("no chat model is configured")?;
    if let Some(folder) = local_model(&models.model) {
        return check(folder).map(|()| format!("{} on this machine", models.model));
    }
    let endpoint = models.endpoint.as_ref().ok_or("no chat endpoint is configured")?;
    let target = target(endpoint, settings.allow_remote)?;
    Ok(format!("{} at {}", models.model, target.shown()))
}

/// Where the endpoint is; why it may not be asked, if so. Asks no name server.
pub(crate) fn target(endpoint: &ChatEndpoint, allow_remote: bool) -> Result<Target, String> {
    let in_words = |failure: Failure| match failure.detail {
        Some(detail) => format!("{}: {detail}", failure.message),
        None => failure.message,
    };
    let target = Target::read(&CHAT, &endpoint.url).map_err(in_words)?;
    target.expect_allowed(allow_remote).map_err(in_words)?;
    Ok(target)
}

/// A chat model at an endpoint.
pub struct ChatBackend {
    endpoint: ChatEndpoint,
    /// Asked for where the request names none.
    model: String,
}

impl ChatBackend {
    /// A model at this endpoint. It is not asked yet.
    pub fn new(endpoint: ChatEndpoint, model: String) -> Self {
        Self { endpoint, model }
    }

    fn with_terms<T>(
        &self,
        max_answer_bytes: u64,
        conditions: &Conditions<'_>,
        ask: impl FnOnce(&Target, &Terms<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let endpoint = &self.endpoint;
        let terms = Terms {
            api_key: endpoint.api_key.as_deref(),
            timeout: Duration::from_millis(endpoint.timeout_ms.max(1).into()),
            retries: endpoint.retries,
            spacing: Spacing::Spaced,
            max_answer_bytes,
            conditions,
        };
        ask(&Target::read(&CHAT, &endpoint.url)?, &terms)
    }
}

impl Backend for ChatBackend {
    /// Nothing counts a conversation's tokens on this side.
    fn limits(&self) -> Limits {
        Limits { one_by_one: true, ..Limits::new(None, usize::MAX) }
    }

    fn health(&self, allow_remote: bool) -> Result<(), String> {
        target(&self.endpoint, allow_remote).map(drop)
    }

    fn generate(&self, request: &Chat, conditions: &Conditions<'_>) -> Result<Completion, Failure> {
        let mut body = body(&self.model, request)?;
        self.with_terms(MAX_ANSWER_BYTES, conditions, |target, terms| {
            loop {
                match endpoint::post(target, &PATH, terms, &body)? {
                    EndpointResponse::Body(bytes) => return completion(target, &bytes),
                    EndpointResponse::Refused(400 | 422) if ask_for_less(&mut body) => {}
                    EndpointResponse::Refused(status) => {
                        return Err(endpoint::status_failure(target, status));
                    }
                }
            }
        })
    }

    fn generate_by_parts(
        &self,
        request: &Chat,
        conditions: &Conditions<'_>,
        deliver: &mut dyn FnMut(&str),
    ) -> Result<Completion, Failure> {
        let mut body = body(&self.model, request)?;
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
        self.with_terms(MAX_STREAM_BYTES, conditions, |target, terms| {
            loop {
                let mut events = Events::new(target, deliver);
                match endpoint::post_to(target, &PATH, terms, &body, &mut events)? {
                    None => return events.finish(),
                    Some(400 | 422) if ask_for_less(&mut body) => {}
                    Some(status) => return Err(endpoint::status_failure(target, status)),
                }
            }
        })
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

/// What a completion cost, where its provider says so.
#[derive(Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub(super) prompt_tokens: Option<u32>,
    #[serde(default)]
    pub(super) completion_tokens: Option<u32>,
}

pub(super) fn completion(target: &Target, bytes: &[u8]) -> Result<Completion, Failure> {
    const WHAT: &str = "no chat completion";
    let unusable = |why: &str| endpoint::unusable(target, WHAT, why);
    let answer: Answer = endpoint::json(target, WHAT, bytes)?;
    let first = answer.choices.into_iter().next().ok_or_else(|| unusable("It has no choices."))?;
    let text = first.message.content.ok_or_else(|| unusable("Its message has no content."))?;
    Ok(Completion {
        text,
        model: answer.model.unwrap_or_default(),
        prompt_tokens: answer.usage.as_ref().and_then(|usage| usage.prompt_tokens),
        completion_tokens: answer.usage.as_ref().and_then(|usage| usage.completion_tokens),
        ..Completion::default()
    })
}

/// Takes from a request that was not understood what not every server knows; false where nothing is left to take.
///
/// First the JSON schema: the answer is read by whoever asked anyway. Then what the endpoint's reasoning models refuse: how
/// tokens are sampled, and the older name of their limit.
fn ask_for_less(body: &mut Value) -> bool {
    let Some(fields) = body.as_object_mut() else { return false };
    let is_less =
        [fields.remove("response_format"), fields.remove("stream_options")].iter().any(Option::is_some);
    if is_less {
        return true;
    }
    let Some(limit) = fields.remove("max_tokens") else { return false };
    fields.insert("max_completion_tokens".into(), limit);
    fields.remove("temperature");
    fields.remove("top_p");
    true
}

fn body(model: &str, request: &Chat) -> Result<Value, Failure> {
    let messages: Vec<Value> =
        request.messages.iter().map(|m| json!({"role": m.role, "content": m.content})).collect();
    let mut body = json!({
        "model": request.model.as_deref().unwrap_or(model),
        "messages": messages,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": false,
    });
    if let Some(top_p) = request.top_p {
        body["top_p"] = top_p.into();
    }
    if let Some(schema) = &request.json_schema {
        let schema: Value = serde_json::from_str(schema).map_err(|e| {
            failure(FailureCode::InvalidArgument, "the answer's JSON schema is no JSON").detail(e.to_string())
        })?;
        body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}});
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rag_wire::ChatModels;

    #[test]
    fn the_summary_names_no_key_and_says_what_is_wrong() {
        let models = |model: &str, url: Option<&str>| ChatModels {
            model: model.into(),
            simple_model: None,
            fallback_models: Vec::new(),
            endpoint: url.map(|url| ChatEndpoint {
                url: url.into(),
                api_key: Some("sesame".into()),
                timeout_ms: 1,
                retries: 0,
            }),
        };
        let summary = |settings: &Settings| {
            let check = |name: &str| if name == "here" { Ok(()) } else { Err(format!("no {name}")) };
            summary(settings, check)
        };
        let settings = |chat, allow_remote| Settings {
            socket: String::new(),
            model_folders: Vec::new(),
            onnxruntime: String::new(),
            embedding_model: String::new(),
            rerank_model: String::new(),
            device: String::new(),
            threads: 0,
            bulk_threads: 0,
            memory_limit_mb: 0,
            queue_limit: 0,
            cache_mb: 0,
            cache_ttl_s: 0,
            parse: rag_wire::ParseLimits {
                max_document_bytes: 0,
                memory_mb: 0,
                cpu_seconds: 0,
                sandbox: String::new(),
                ocr: None,
            },
            llm_program: String::new(),
            chat,
            allow_remote,
        };
        assert!(summary(&settings(None, false)).is_err());
        assert!(summary(&settings(Some(models("m", None)), false)).is_err());
        let loopback = models("m", Some("http://user:sesame@127.0.0.1:8080/v1"));
        assert_eq!(summary(&settings(Some(loopback), false)).unwrap(), "m at 127.0.0.1:8080");
        let remote = Some(models("m", Some("https://api.example.com/v1")));
        assert!(summary(&settings(remote.clone(), false)).unwrap_err().contains("api.example.com"));
        assert!(summary(&settings(remote, true)).is_ok());
        assert!(summary(&settings(Some(models("m", Some("file:///etc/passwd"))), true)).is_err());

        // A model of this machine needs none of that.
        let local = models("local/here", Some("https://api.example.com/v1"));
        assert_eq!(summary(&settings(Some(local), false)).unwrap(), "local/here on this machine");
        assert_eq!(summary(&settings(Some(models("local/away", None)), true)).unwrap_err(), "no away");
    }
}
