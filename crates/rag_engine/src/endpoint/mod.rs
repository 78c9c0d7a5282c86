//! Requests to endpoints: one JSON body posted, with tries, time-out and limits.
//!
//! Where a request may go is decided in [`address`]. What is asked, and what is made of the answer, is left to the
//! callers. Neither key nor body nor the endpoint's words appear in a log line or a failure.

mod address;

pub(crate) use address::Target;

use crate::backend::Conditions;
use crate::engine::Engine;
use crate::failure::{Explain, deadline_passed, failure};
use rag_wire::{Failure, FailureCode};
use reqwest::blocking::{Client, Response};
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use serde_json::Value;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Requests under way at once; each has a thread that mostly waits.
const MAX_REQUESTS: usize = 64;

/// Pause before the second try; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause between two tries, whatever the endpoint asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// An answer is read in parts of at most so many bytes.
const PART_BYTES: usize = 64 << 10;

/// How often a pause looks whether anybody still waits.
const GLANCE: Duration = Duration::from_millis(50);

/// What an endpoint is for: how messages name it, and what to look at when it fails.
#[derive(Debug)]
pub(crate) struct Purpose {
    /// As in "the chat endpoint".
    pub(crate) name: &'static str,
    /// What holds its address.
    pub(crate) address_setting: &'static str,
    /// What holds its key.
    pub(crate) key_setting: &'static str,
}

/// `POST /chat/completions`.
pub(crate) const CHAT: Purpose =
    Purpose { name: "chat", address_setting: "rag_ext.llm_url", key_setting: "rag_ext.llm_api_key_file" };

/// `POST /embeddings`.
pub(crate) const EMBEDDINGS: Purpose = Purpose {
    name: "embeddings",
    address_setting: "endpoint.url in the model's rag_model.json",
    key_setting: "endpoint.api_key_file in the model's rag_model.json",
};

/// Scores of passages, in one of several ways.
pub(crate) const RERANK: Purpose = Purpose { name: "rerank", ..EMBEDDINGS };

/// Permission for one of [`MAX_REQUESTS`], given back when dropped.
pub(crate) struct RequestPermit(Arc<Engine>);

impl RequestPermit {
    /// Takes a permit, or refuses at once.
    pub(crate) fn take(engine: &Arc<Engine>) -> Result<Self, Failure> {
        if engine.endpoint_requests.fetch_add(1, Ordering::AcqRel) < MAX_REQUESTS {
            return Ok(Self(engine.clone()));
        }
        engine.endpoint_requests.fetch_sub(1, Ordering::AcqRel);
        Err(failure(
            FailureCode::QueueFull,
            format!("{MAX_REQUESTS} requests to endpoints are under way already"),
        ))
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.endpoint_requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How a request is made.
pub(crate) struct Terms<'a> {
    pub(crate) api_key: Option<&'a str>,
    /// Of one try.
    pub(crate) timeout: Duration,
    /// Tries after the first.
    pub(crate) retries: u32,
    pub(crate) max_answer_bytes: u64,
    pub(crate) conditions: &'a Conditions<'a>,
}

/// What came back from an endpoint.
pub(crate) enum EndpointResponse {
    /// Success, with a body.
    Body(Vec<u8>),
    /// A status that says that the request is at fault.
    Refused(u16),
}

/// Posts a body to `path` below the base address until there is an answer that will not change.
pub(crate) fn post(
    target: &Target,
    path: &[&str],
    terms: &Terms<'_>,
    body: &Value,
) -> Result<EndpointResponse, Failure> {
    let conditions = terms.conditions;
    let mut pause = FIRST_PAUSE;
    let mut tries_left = terms.retries;
    loop {
        conditions.check()?;
        let (problem, wait) = match attempt(target, path, terms, body)? {
            Attempt::Ended(response) => return Ok(response),
            Attempt::Later(problem, wait) => (problem, wait),
        };
        // What the time-out of a try cut short for want of time is late, whatever else it is.
        if conditions.is_late() {
            return Err(deadline_passed());
        }
        let wait = wait.unwrap_or(pause).min(LONGEST_PAUSE);
        let too_late = conditions.deadline.is_some_and(|deadline| Instant::now() + wait >= deadline);
        if tries_left == 0 || too_late || !rest(wait, conditions.is_withdrawn) {
            return Err(problem);
        }
        tries_left -= 1;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// How one try ended, when it did not fail for good.
enum Attempt {
    Ended(EndpointResponse),
    /// In a way that may pass; with the pause that the endpoint asks for.
    Later(Failure, Option<Duration>),
}

fn attempt(target: &Target, path: &[&str], terms: &Terms<'_>, body: &Value) -> Result<Attempt, Failure> {
    let conditions = terms.conditions;
    let addresses = match target.resolve(conditions.allow_remote)? {
        Ok(addresses) => addresses,
        Err(reason) => return Ok(Attempt::Later(unreachable(target, &reason), None)),
    };
    let begun = Instant::now();
    let left = conditions
        .deadline
        .map_or(terms.timeout, |deadline| deadline.saturating_duration_since(begun).min(terms.timeout));
    // The addresses that were checked are the ones that are connected to: no second look-up, no proxy, no redirect.
    let client = Client::builder()
        .resolve_to_addrs(target.host(), &addresses)
        .no_proxy()
        .redirect(Policy::none())
        .timeout(left.max(Duration::from_millis(1)))
        .user_agent(concat!("rag-engine/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| explained(target, "cannot be asked", &words(&e)))?;
    let mut post = client.post(target.below(path)).json(body);
    if let Some(key) = terms.api_key {
        post = post.bearer_auth(key);
    }
    let response = match post.send() {
        Ok(response) => response,
        Err(e) if e.is_builder() => return Err(explained(target, "cannot be asked", &words(&e))),
        Err(e) if e.is_timeout() => return Ok(Attempt::Later(too_slow(target, left), None)),
        Err(e) => return Ok(Attempt::Later(unreachable(target, &words(&e)), None)),
    };
    let status = response.status();
    if status.is_success() {
        return read(target, terms, response, || (begun.elapsed() >= left).then(|| too_slow(target, left)));
    }
    if status.as_u16() == 429 || status.is_server_error() {
        let wait = response.headers().get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?));
        return Ok(Attempt::Later(status_failure(target, status.as_u16()), wait));
    }
    Ok(Attempt::Ended(EndpointResponse::Refused(status.as_u16())))
}

/// The body. The client's own time-out begins anew with each part of it, so `too_slow` is asked after each.
fn read(
    target: &Target,
    terms: &Terms<'_>,
    mut response: Response,
    too_slow: impl Fn() -> Option<Failure>,
) -> Result<Attempt, Failure> {
    let most = terms.max_answer_bytes;
    let (mut bytes, mut part) = (Vec::new(), vec![0; PART_BYTES]);
    loop {
        match response.read(&mut part) {
            Ok(0) => return Ok(Attempt::Ended(EndpointResponse::Body(bytes))),
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(e) => {
                let failure = explained(target, "broke off its answer", &e.kind().to_string());
                return Ok(Attempt::Later(failure, None));
            }
        }
        if bytes.len() as u64 > most {
            return Err(provider(target, &format!("answered with more than {most} bytes")));
        }
        terms.conditions.check()?;
        if let Some(failure) = too_slow() {
            return Ok(Attempt::Later(failure, None));
        }
    }
}

fn too_slow(target: &Target, limit: Duration) -> Failure {
    provider(target, &format!("did not answer within {} ms", limit.as_millis()))
}

/// An answer's JSON. The parser's own words would quote the answer.
pub(crate) fn json<T: serde::de::DeserializeOwned>(
    target: &Target,
    what: &str,
    bytes: &[u8],
) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|e| {
        let place = format!("Not the expected JSON at line {}, column {}.", e.line(), e.column());
        unusable(target, what, &place)
    })
}

/// The failure of an answer that is not what was asked for, such as `no chat completion`.
pub(crate) fn unusable(target: &Target, what: &str, why: &str) -> Failure {
    explained(target, &format!("gave an answer that is {what}"), why)
}

/// Seconds, or a date, as RFC 9110 allows.
fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(value.trim()).ok()?.duration_since(SystemTime::now()).ok()
}

/// Pauses; `false` as soon as nobody waits any more.
fn rest(pause: Duration, withdrawn: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + pause;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        if withdrawn() {
            return false;
        }
        std::thread::sleep(left.min(GLANCE));
    }
    true
}

/// Where the endpoint is stands in the detail, which is not for everybody.
fn provider(target: &Target, what: &str) -> Failure {
    failure(FailureCode::Provider, format!("the {} endpoint {what}", target.purpose().name))
        .detail(format!("It is at {}.", target.shown()))
}

fn explained(target: &Target, what: &str, why: &str) -> Failure {
    provider(target, what).detail(format!("It is at {}. {why}", target.shown()))
}

fn unreachable(target: &Target, reason: &str) -> Failure {
    explained(target, "cannot be reached", reason)
        .hint(format!("See {}, and whether the server there runs.", target.purpose().address_setting))
}

/// The failure of a request that was refused with this status.
pub(crate) fn status_failure(target: &Target, status: u16) -> Failure {
    let Purpose { address_setting, key_setting, .. } = target.purpose();
    let failure = provider(target, &format!("answered with status {status}"));
    match status {
        300..=399 => {
            failure.hint(format!("Redirects are not followed: set {address_setting} to where it leads."))
        }
        401 | 403 => failure.hint(format!("See {key_setting}.")),
        404 => failure.hint(format!(
            "The base address, such as http://127.0.0.1:8080/v1, belongs into {address_setting}."
        )),
        _ => failure,
    }
}

/// An error's innermost cause, without the URL that its outer layers name.
fn words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        let soon = SystemTime::now() + Duration::from_secs(100);
        let read = retry_after(&httpdate::fmt_http_date(soon)).unwrap();
        assert!((90..=100).contains(&read.as_secs()), "{read:?}");
        assert_eq!(retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), None);
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn a_pause_ends_when_nobody_waits() {
        assert!(!rest(Duration::from_secs(3600), &|| true));
        assert!(rest(Duration::ZERO, &|| false));
    }
}
