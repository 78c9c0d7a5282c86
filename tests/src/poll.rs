//! Waiting for what happens elsewhere: polling with a limit, never a bare sleep.

use std::time::{Duration, Instant};

/// Asks until the answer is yes; panics with `what` when it is still no after `limit`.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    eventually(what, limit, || holds().then_some(()));
}

/// Asks until there is an answer; panics with `what` when there is none after `limit`.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
