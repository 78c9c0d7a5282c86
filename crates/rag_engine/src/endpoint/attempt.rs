//! One try: the connection, the request, and the answer as it comes.
//!
//! It ends as soon as nobody waits for it any more, and the connection with it.

use super::{GLANCE, Receiver, Target, Terms, clients, explained, provider, status_failure, unreachable};
use crate::failure::internal;
use rag_wire::Failure;
use reqwest::RequestBuilder;
use reqwest::header::RETRY_AFTER;
use serde_json::Value;
use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime};

/// How one try ended, when it did not fail for good.
pub(super) enum Attempt {
    /// With an answer, which the receiver has.
    Received,
    /// With a status that says that the request is at fault.
    Refused(u16),
    /// In a way that may pass.
    Failed(Failure, Cause),
}

/// What a try failed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// There is no server, or it broke off.
    Connection,
    /// It said nothing for too long.
    TimeOut,
    /// Status 429 or 5xx, perhaps with the pause that the endpoint asks for.
    Status { retry_after: Option<Duration> },
}

/// Posts a body once.
pub(super) fn attempt(
    target: &Target,
    path: &[&str],
    terms: &Terms<'_>,
    body: &Value,
    receiver: &mut dyn Receiver,
) -> Result<Attempt, Failure> {
    let conditions = terms.conditions;
    let addresses = match target.resolve(conditions.allow_remote)? {
        Ok(addresses) => addresses,
        Err(reason) => return Ok(Attempt::Failed(unreachable(target, &reason), Cause::Connection)),
    };
    let begun = Instant::now();
    let until = |since: Instant| {
        let first_part_by = conditions.first_part_by.filter(|_| since == begun);
        let end = [conditions.deadline, first_part_by]
            .into_iter()
            .flatten()
            .fold(since + terms.timeout, Instant::min);
        end.max(since)
    };
    let is_by_parts = receiver.is_by_parts();
    // The addresses that were checked are the ones that are connected to.
    let client = clients::client(target.host(), &addresses)
        .map_err(|e| explained(target, "cannot be asked", &words(&e)))?;
    let mut post = client.post(target.below(path)).json(body);
    if let Some(key) = terms.api_key {
        post = post.bearer_auth(key);
    }
    let last_part = Cell::new(begun);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| internal(format!("cannot wait for the endpoint: {e}")))?;
    runtime.block_on(async {
        let mut exchange = std::pin::pin!(exchange(target, terms, post, receiver, &last_part));
        loop {
            let since = if is_by_parts { last_part.get() } else { begun };
            let end = until(since);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Attempt::Failed(too_slow(target, end - since), Cause::TimeOut));
            }
            if let Ok(outcome) = tokio::time::timeout(left.min(GLANCE), exchange.as_mut()).await {
                return outcome;
            }
            if (conditions.is_withdrawn)() {
                conditions.check()?;
            }
        }
    })
}

async fn exchange(
    target: &Target,
    terms: &Terms<'_>,
    post: RequestBuilder,
    receiver: &mut dyn Receiver,
    last_part: &Cell<Instant>,
) -> Result<Attempt, Failure> {
    let mut response = match post.send().await {
        Ok(response) => response,
        Err(e) if e.is_builder() => return Err(explained(target, "cannot be asked", &words(&e))),
        Err(e) => return Ok(Attempt::Failed(unreachable(target, &words(&e)), Cause::Connection)),
    };
    let status = response.status();
    if status.as_u16() == 429 || status.is_server_error() {
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?));
        let failure = status_failure(target, status.as_u16());
        return Ok(Attempt::Failed(failure, Cause::Status { retry_after }));
    }
    if !status.is_success() {
        return Ok(Attempt::Refused(status.as_u16()));
    }
    let mut bytes = 0;
    loop {
        let part = match response.chunk().await {
            Ok(Some(part)) => part,
            Ok(None) => return Ok(Attempt::Received),
            Err(e) => {
                let failure = explained(target, "broke off its answer", &words(&e));
                return Ok(Attempt::Failed(failure, Cause::Connection));
            }
        };
        last_part.set(Instant::now());
        bytes += part.len() as u64;
        if bytes > terms.max_answer_bytes {
            return Err(provider(
                target,
                &format!("answered with more than {} bytes", terms.max_answer_bytes),
            ));
        }
        if receiver.take(&part)? {
            return Ok(Attempt::Received);
        }
    }
}

fn too_slow(target: &Target, limit: Duration) -> Failure {
    provider(target, &format!("did not answer within {} ms", limit.as_millis()))
}

/// Seconds, or a date, as RFC 9110 allows.
fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(value.trim()).ok()?.duration_since(SystemTime::now()).ok()
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
}
