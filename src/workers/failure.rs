//! What becomes of a document that could not be processed: it waits, is tried again, or has failed.

use crate::config;
use crate::error::{Error, Result, sqlstate_text};
use crate::pg::worker;
use crate::storage::document::{self, VersionLock};
use crate::storage::job::{self, Claim, Pause, Requeue};
use pgrx::PgSqlErrorCode as Code;

/// Pause after a failure that is not the document's fault.
const ENGINE_DELAY_S: f64 = 2.0;

/// Longest pause between two tries while the server cannot do its own work.
const SERVER_DELAY_S: f64 = 60.0;

/// Longest pause before another try.
const MAX_DELAY_S: f64 = 300.0;

/// Puts a document back into the queue.
pub(super) fn give_back(claim: &Claim, pause: Pause) -> Result<()> {
    let requeue = Requeue { pause, counts: false, sqlstate: None, error: None };
    worker::transaction(|| job::requeue(claim, &requeue))
}

/// What becomes of a document after a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// It will never work.
    Failed,
    /// Another try after so many seconds, that counts.
    Retry(f64),
    /// Another try after so many seconds: it was not the document's fault.
    Wait(f64),
    /// The server cannot do its own work now, as when the disk is full: not the document's fault either, but every
    /// try costs as much as the last, so they become rarer.
    WaitForServer,
}

fn verdict(error: &Error, tries: i32, max_tries: i32) -> Verdict {
    match error.code {
        // The document does not parse, is of an unknown type or too large, or its collection makes no sense.
        Code::ERRCODE_DATA_EXCEPTION
        | Code::ERRCODE_FEATURE_NOT_SUPPORTED
        | Code::ERRCODE_PROGRAM_LIMIT_EXCEEDED
        | Code::ERRCODE_INVALID_PARAMETER_VALUE => Verdict::Failed,
        // The engine is down, full, slow or without the model.
        Code::ERRCODE_SYSTEM_ERROR
        | Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE
        | Code::ERRCODE_INSUFFICIENT_RESOURCES
        | Code::ERRCODE_UNDEFINED_OBJECT
        | Code::ERRCODE_QUERY_CANCELED => Verdict::Wait(ENGINE_DELAY_S),
        code if is_of_server(code) => Verdict::WaitForServer,
        _ if tries + 1 >= max_tries => Verdict::Failed,
        _ => Verdict::Retry((2.0_f64).powi(tries.min(16)).min(MAX_DELAY_S)),
    }
}

/// Whether an error is about the server and not about what it was asked: insufficient resources (class 53, a full disk
/// among them), an operator's intervention (57P) or the system below it (58).
fn is_of_server(code: Code) -> bool {
    let sqlstate = sqlstate_text(code);
    ["53", "57P", "58"].iter().any(|class| sqlstate.starts_with(class))
}

/// Notes a failure, and when the document is tried again if it is.
pub(super) fn settle_failure(claim: &Claim, error: &Error) -> Result<()> {
    if error.is_about_a_lock() {
        return give_back(claim, Pause::FOR_A_LOCK);
    }
    let sqlstate = sqlstate_text(error.code);
    let text = error.one_line();
    let again =
        |pause: Pause, counts: bool| Requeue { pause, counts, sqlstate: Some(&sqlstate), error: Some(&text) };
    worker::transaction(|| match verdict(error, claim.tries, config::max_tries()) {
        Verdict::Failed => {
            // In the order of all who change documents. It fails once nobody holds it.
            if document::lock_version(claim.domain, claim.document, claim.version)? == VersionLock::Busy {
                return job::requeue(
                    claim,
                    &Requeue { pause: Pause::FOR_A_LOCK, counts: false, sqlstate: None, error: None },
                );
            }
            if job::fail(claim, &sqlstate, &text)? {
                document::fail(claim.domain, claim.document, claim.version, &text)?;
            }
            Ok(())
        }
        Verdict::Retry(delay_s) => job::requeue(claim, &again(Pause::exactly(delay_s), true)),
        Verdict::Wait(delay_s) => job::requeue(claim, &again(Pause::exactly(delay_s), false)),
        Verdict::WaitForServer => {
            let pause = Pause { least_s: ENGINE_DELAY_S, most_s: SERVER_DELAY_S };
            job::requeue(claim, &again(pause, false))
        }
    })
}
