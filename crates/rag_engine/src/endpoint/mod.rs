//! Requests to endpoints: one JSON body posted, with tries, time-out and limits.
//!
//! Where a request may go is decided in [`address`]. What is asked, and what is made of the answer, is left to the
//! callers. Neither key nor body nor the endpoint's words appear in a log line or a failure.

mod address;
mod attempt;
mod clients;

pub(crate) use address::Target;

use attempt::{Attempt, Cause};

use crate::backend::Conditions;
use crate::engine::Engine;
use crate::failure::{Explain, deadline_passed, failure};
use rag_wire::{Failure, FailureCode};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Requests under way at once; each has a thread that mostly waits.
const MAX_REQUESTS: usize = 64;

/// Pause before the second try; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Longest pause between two tries, whatever the endpoint asks for, where nobody says how long the answer is waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Pauses before the second try and all further ones, where they are spaced.
const SPACED_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// How often it is looked whether anybody still waits.
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
    /// Of one try; of an answer that is received part by part, of the wait for each part.
    pub(crate) timeout: Duration,
    /// Tries after the first.
    pub(crate) retries: u32,
    pub(crate) spacing: Spacing,
    pub(crate) max_answer_bytes: u64,
    pub(crate) conditions: &'a Conditions<'a>,
}

/// What is tried again, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Whatever may pass, soon: for what the work of others waits for.
    Doubling,
    /// A status that says that it may pass (429, 5xx) and a time-out: after 1 s, then after 3 s, or when the endpoint says.
    Spaced,
}

/// What came back from an endpoint.
pub(crate) enum EndpointResponse {
    /// Success, with a body.
    Body(Vec<u8>),
    /// A status that says that the request is at fault.
    Refused(u16),
}

/// Takes the body of an answer, part by part.
pub(crate) trait Receiver {
    /// Takes what came. True ends the answer.
    fn take(&mut self, part: &[u8]) -> Result<bool, Failure>;

    /// Drops what came of a try that failed. False where that is not possible any more: then there is no other try.
    fn forget(&mut self) -> bool;

    /// Whether each part is waited for as long as a whole answer otherwise.
    fn is_by_parts(&self) -> bool {
        false
    }
}

impl Receiver for Vec<u8> {
    fn take(&mut self, part: &[u8]) -> Result<bool, Failure> {
        self.extend_from_slice(part);
        Ok(false)
    }

    fn forget(&mut self) -> bool {
        self.clear();
        true
    }
}

/// Posts a body to `path` below the base address until there is an answer that will not change.
pub(crate) fn post(
    target: &Target,
    path: &[&str],
    terms: &Terms<'_>,
    body: &Value,
) -> Result<EndpointResponse, Failure> {
    let mut bytes = Vec::new();
    Ok(match post_to(target, path, terms, body, &mut bytes)? {
        None => EndpointResponse::Body(bytes),
        Some(status) => EndpointResponse::Refused(status),
    })
}

/// As [`post`]; the body of a success goes to `receiver`, and a status that says that the request is at fault is returned.
pub(crate) fn post_to(
    target: &Target,
    path: &[&str],
    terms: &Terms<'_>,
    body: &Value,
    receiver: &mut dyn Receiver,
) -> Result<Option<u16>, Failure> {
    let conditions = terms.conditions;
    target.expect_allowed(conditions.allow_remote)?;
    let mut tries = 0;
    loop {
        conditions.check()?;
        let (problem, cause) = match attempt::attempt(target, path, terms, body, receiver)? {
            Attempt::Received => return Ok(None),
            Attempt::Refused(status) => return Ok(Some(status)),
            Attempt::Failed(problem, cause) => (problem, cause),
        };
        // What the time-out of a try cut short for want of time is late, whatever else it is.
        if conditions.is_late() {
            return Err(deadline_passed());
        }
        let Some(wait) = terms.spacing.pause(tries, cause) else { return Err(problem) };
        let deadlines = [conditions.deadline, conditions.first_part_by];
        let too_late = deadlines.into_iter().flatten().any(|deadline| Instant::now() + wait >= deadline);
        let is_last = tries == terms.retries;
        if is_last || too_late || !receiver.forget() || !rest(wait, conditions.is_withdrawn) {
            return Err(problem);
        }
        tries += 1;
    }
}

impl Spacing {
    /// The pause after so many tries beside the last, which failed by this; none where another try makes no sense.
    fn pause(self, tries: u32, cause: Cause) -> Option<Duration> {
        let asked_for = match cause {
            Cause::Status { retry_after } => retry_after,
            _ => None,
        };
        match (self, cause) {
            (Self::Doubling, _) => {
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(tries));
                Some(asked_for.unwrap_or(pause).min(LONGEST_PAUSE))
            }
            (Self::Spaced, Cause::Connection) => None,
            (Self::Spaced, _) => {
                let pause = SPACED_PAUSES[(tries as usize).min(SPACED_PAUSES.len() - 1)];
                Some(asked_for.unwrap_or(pause))
            }
        }
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn spaced_tries_are_for_what_says_that_it_may_pass() {
        let seconds = |n| Some(Duration::from_secs(n));
        let status = |retry_after| Cause::Status { retry_after };
        for (tries, cause, expected) in [
            (0, status(None), seconds(1)),
            (1, status(None), seconds(3)),
            (7, Cause::TimeOut, seconds(3)),
            (0, status(seconds(100)), seconds(100)),
            (0, Cause::Connection, None),
        ] {
            assert_eq!(Spacing::Spaced.pause(tries, cause), expected, "{tries} {cause:?}");
        }
        assert_eq!(Spacing::Doubling.pause(1, Cause::Connection), Some(Duration::from_millis(500)));
        assert_eq!(Spacing::Doubling.pause(99, status(seconds(100))), Some(LONGEST_PAUSE));
    }

    #[test]
    fn a_pause_ends_when_nobody_waits() {
        assert!(!rest(Duration::from_secs(3600), &|| true));
        assert!(rest(Duration::ZERO, &|| false));
    }
}
