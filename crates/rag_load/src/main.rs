//! `rag-load PATH…`: loads files and folders into rag_ext over an ordinary connection.
//!
//! What is there already, by address and SHA-256, is not sent again, so a run that was cut short is resumed by
//! running it again. Parsing and embedding is the server's work; the program only waits for it.

mod address;
mod arguments;
mod connection;
mod connection_string;
mod files;
mod interrupt;
mod password;
mod processing;
mod report;
mod tls;
mod upload;

use arguments::Arguments;
use clap::Parser;
use report::Report;
use std::process::ExitCode;

/// A reason to give up: not one file's fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct LoadError(String);

impl LoadError {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Nothing was to be done, or everything is done.
const ALL_DONE: u8 = 0;
/// Some files failed, or are not processed yet though they were waited for.
const SOME_FAILED: u8 = 1;
/// The arguments, the connection or the collection are no good.
const GAVE_UP: u8 = 2;
/// As shells report a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { GAVE_UP } else { ALL_DONE });
        }
    };
    interrupt::watch();
    let mut report = Report::default();
    let ended = run(&arguments, &mut report);
    report.print(ended.is_err());
    match ended {
        Err(error) => {
            report::complain(&error.to_string());
            ExitCode::from(GAVE_UP)
        }
        Ok(()) if interrupt::came() => ExitCode::from(INTERRUPTED),
        Ok(()) if report.has_failures() => ExitCode::from(SOME_FAILED),
        Ok(()) => ExitCode::from(ALL_DONE),
    }
}

fn run(arguments: &Arguments, report: &mut Report) -> Result<(), LoadError> {
    let choice = files::Choice::new(arguments)?;
    let address = address::Address::find(arguments)?;
    let mut session = address.connect()?;
    let limit = session.check(&arguments.collection)?;
    let limit = arguments.max_size.map_or(limit, |own| own.min(limit));
    let found = files::find(arguments, &choice, report)?;
    let waiting = upload::upload(arguments, &address, &mut session, found, limit, report)?;
    if arguments.no_wait || interrupt::came() {
        report.left_to_the_server = waiting.len();
        return Ok(());
    }
    processing::wait(arguments, &address, &mut session, waiting, report)
}
