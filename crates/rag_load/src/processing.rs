//! Waiting until the server has parsed, embedded and indexed what was sent.

use crate::address::Address;
use crate::arguments::Arguments;
use crate::connection::{Failure, Session};
use crate::report::Report;
use crate::upload::{Waiting, bar};
use crate::{LoadError, interrupt};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Documents that are asked about at a time.
const ASKED_AT_ONCE: usize = 5_000;

/// Shortest and longest pause between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Lost connections in a row that end the wait.
const MAX_LOST: u32 = 30;

/// Waits for all of the documents; failed ones go to the report.
pub(crate) fn wait(
    arguments: &Arguments,
    address: &Address,
    session: &mut Session,
    waiting: Vec<Waiting>,
    report: &mut Report,
) -> Result<(), LoadError> {
    let until = arguments.timeout.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut left: HashMap<String, (PathBuf, bool)> =
        waiting.into_iter().map(|one| (one.id, (one.path, one.is_new))).collect();
    let bar = bar(arguments, left.len(), "processing");
    let mut pause = PAUSES.0;
    let mut lost = 0;
    while !left.is_empty() {
        if interrupt::came() {
            report.left_to_the_server = left.len();
            break;
        }
        // Which ones a map lists first is chance, so that those at its end get their turn as others finish.
        let asked: Vec<&str> = left.keys().take(ASKED_AT_ONCE).map(String::as_str).collect();
        let finished = match session.finished(&asked) {
            Ok(finished) => finished,
            Err(Failure::Connection(reason)) if lost >= MAX_LOST => return Err(LoadError::new(reason)),
            Err(Failure::Connection(_)) => {
                lost += 1;
                std::thread::sleep(PAUSES.1);
                if let Ok(open) = address.connect() {
                    *session = open;
                }
                continue;
            }
            Err(Failure::File(reason) | Failure::All(reason)) => return Err(LoadError::new(reason)),
        };
        lost = 0;
        let found_some = !finished.is_empty();
        for (id, status, error) in finished {
            let Some((path, is_new)) = left.remove(&id) else { continue };
            match status.as_str() {
                "done" => report.processed += usize::from(is_new),
                "gone" => report.fail(&path, "its document was deleted meanwhile"),
                _ => report.fail(&path, error.unwrap_or_else(|| format!("its document is {status}"))),
            }
            bar.inc(1);
        }
        pause = if found_some { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
        if left.is_empty() {
            break;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            report.time_out(left.len());
            break;
        }
        std::thread::sleep(pause);
    }
    bar.finish_and_clear();
    Ok(())
}
