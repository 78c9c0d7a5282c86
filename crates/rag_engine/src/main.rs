//! `rag-engine`: the command line. Subcommands do their work in the library.

use std::process::ExitCode;

const USAGE: &str = "usage: rag-engine serve | parse | ocr … | pull … | --version

  serve    read settings from standard input and serve models on a unix socket
  parse    read one document from standard input, confined, and write it parsed to standard output
  ocr      run a program under limits; the engine does
  pull     fetch a model from a hub into a folder of models; see rag-engine pull --help
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve"] => rag_engine::serve(),
        ["parse"] => rag_engine::parse(),
        ["ocr", rest @ ..] => rag_engine::ocr(rest),
        ["pull", rest @ ..] => rag_engine::pull(rest),
        ["--version"] => {
            eprintln!("rag-engine {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
