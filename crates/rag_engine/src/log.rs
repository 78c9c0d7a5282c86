//! Log lines on standard error, `LEVEL: message`, one write each: the supervisor passes them on to the server's log.
//!
//! No line carries a document's, a query's or a prompt's text, nor a key.

use std::fmt::Display;
use std::io::Write;

/// How serious a line is; the words are those of the server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For the administrator's information.
    Log,
    /// Something does not work as it should, and the engine goes on.
    Warning,
    /// Something failed for good.
    Error,
}

/// Writes one line. A line break in the message becomes a space, so that a line stays one line. Failure to write
/// is ignored: whoever read the lines is gone.
pub fn write(level: Level, message: impl Display) {
    let level = match level {
        Level::Log => "LOG",
        Level::Warning => "WARNING",
        Level::Error => "ERROR",
    };
    let line = format!("{level}: {}", message.to_string().replace(['\n', '\r'], " "));
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes a line at [`Level::Log`].
pub fn info(message: impl Display) {
    write(Level::Log, message);
}

/// Writes a line at [`Level::Warning`].
pub fn warning(message: impl Display) {
    write(Level::Warning, message);
}

/// Writes a line at [`Level::Error`].
pub fn error(message: impl Display) {
    write(Level::Error, message);
}

/// Writes a failure with its detail at [`Level::Warning`].
pub fn failure(failure: &rag_wire::Failure) {
    match &failure.detail {
        Some(detail) => warning(format_args!("{}: {detail}", failure.message)),
        None => warning(&failure.message),
    }
}
