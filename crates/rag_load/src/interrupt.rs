//! Ctrl-C: the first ends the program after the files that are on their way, the second ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};

static CAME: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
pub(crate) fn watch() {
    // Without a handler Ctrl-C ends the program at once, which is safe too: every file is a transaction.
    let _ = ctrlc::set_handler(|| {
        if CAME.swap(true, Ordering::SeqCst) {
            end();
        }
    });
}

#[allow(clippy::disallowed_methods, reason = "a second Ctrl-C wants no destructors")]
fn end() {
    std::process::exit(i32::from(crate::INTERRUPTED));
}

/// Whether somebody wants the program to end.
pub(crate) fn came() -> bool {
    CAME.load(Ordering::SeqCst)
}
