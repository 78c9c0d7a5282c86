//! `rag-engine`: the command line. Subcommands do their work in the library.

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs the models of rag_ext. The server starts it; only `pull` and `measure` are for people.
#[derive(Parser)]
#[command(name = "rag-engine", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Read settings from standard input and serve models on a unix socket
    Serve,
    /// Read one document from standard input, confined, and write it parsed to standard output
    Parse,
    /// Run a program under limits; the engine does
    Ocr(rag_engine::OcrArguments),
    /// Fetch a model from a hub into a folder of models
    Pull(rag_engine::PullArguments),
    /// Print how many chunks, tokens and pairs a second the models of a folder do on a device
    Measure(rag_engine::MeasureArguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve => rag_engine::serve(),
        Command::Parse => rag_engine::parse(),
        Command::Ocr(arguments) => rag_engine::ocr(&arguments),
        Command::Pull(arguments) => rag_engine::pull(arguments),
        Command::Measure(arguments) => rag_engine::measure(&arguments),
    }
}
