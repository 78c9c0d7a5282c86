//! Answers beside what people judged right: how many are right, how many questions without an answer are refused, and
//! whether quotes and numbers are true. Ends with 1 where a quote or a number is not.
//!
//! `answers [SET…] [fit] [list] [hold]`, or `answers load` ([`load`]), `answers attacks` ([`attacks`]), or `answers model` ([`model`]):
//!
//! | set | asks |
//! |---|---|
//! | `clapnq` | 200 questions with an answer and 150 without one, of one pool of passages: is a gold sentence quoted? |
//! | `xquad-en` | questions with a gold string, each also without the paragraph that has it |
//! | `manual` | 220 questions about the whole PostgreSQL manual in four parts, of which sixty were written before anything was tuned |
//!
//! `fit` fits `answer_weights` of the default reranker to the first half of the questions, and prints them; `list` shows the
//! answers that are not right; `hold` keeps the server until it is ended, and prints how to connect.
//!
//! `RAG_EVAL_DATA` names the folder of the first two sets, `RAG_BENCH_MANUAL` that of the manual's pages: embedding all of it
//! takes a quarter of an hour, once. `RAG_BENCH_QUESTIONS=200` takes so many questions of XQuAD (all: 0), `RAG_BENCH_OPTIONS={…}`
//! are options of the answers. The engine's caches are off.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod asked;
mod attacks;
mod fit;
mod load;
mod model;
mod sets;
mod table;

use asked::Found;
use rag_tests::Cluster;
use std::process::ExitCode;

/// What may be asked for beside sets.
const OTHERS: [&str; 6] = ["fit", "list", "hold", "load", "attacks", "model"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let wants = |name: &str| arguments.iter().any(|argument| argument == name);
    if let Some(unknown) =
        arguments.iter().find(|name| !sets::NAMES.contains(&&name[..]) && !OTHERS.contains(&&name[..]))
    {
        eprintln!("{unknown} is no set ({}), and none of {}", sets::NAMES.join(", "), OTHERS.join(", "));
        return ExitCode::from(2);
    }
    let chosen: Vec<&'static str> = sets::NAMES.into_iter().filter(|name| wants(name)).collect();
    let chosen = if chosen.is_empty() { sets::NAMES.to_vec() } else { chosen };
    let options = std::env::var("RAG_BENCH_OPTIONS").unwrap_or_else(|_| "{}".to_owned());
    if wants("attacks") {
        attacks::measure(&options);
        return ExitCode::SUCCESS;
    }
    if wants("model") {
        return if model::measure(&options, wants("list")) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cluster = Cluster::builder("answers")
        .setting("rag_ext.bulk_threads", &threads.to_string())
        .setting("rag_ext.cache_lifetime", "0")
        .start();
    if wants("load") {
        return if load::measure(&cluster) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut measured = Vec::new();
    let mut held = Vec::new();
    for name in chosen {
        let mut set = sets::ingest(&cluster, name);
        if wants("hold") {
            held.push(set);
            continue;
        }
        let (replies, times) = asked::ask(&mut set, &options, Found::ByConfidence);
        if wants("list") {
            table::list(name, &replies);
        }
        measured.push((name, replies, times));
    }
    if !held.is_empty() {
        for set in &held {
            let database = set.library.database();
            println!(
                "psql -h {} -U {} {}",
                cluster.data().parent().unwrap().display(),
                set.library.role(),
                database.name()
            );
        }
        loop {
            std::thread::park();
        }
    }
    table::print(&measured);
    table::print_curve(&measured);
    if wants("fit") {
        fit::print(&measured);
    }
    if table::are_true(&measured) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
