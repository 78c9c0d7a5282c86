//! Quality on SciFact, Cranfield, XQuAD in English and German, ClapNQ's passages, and XQuAD in letters that no model
//! knows. Ends with 1 where a set is below its target.
//!
//! `quality [PART…] [SET…] [--plots]` measures some parts, or all, on some sets (names of folders), or all:
//!
//! | part | asks |
//! |---|---|
//! | `ways` | nDCG@10, recall@25, MRR and time of keyword, vector and hybrid search |
//! | `direct` | does the vector retriever rank as the same model does by ONNX Runtime alone? |
//! | `stages` | what does each optional stage add to hybrid search, and is that chance? |
//! | `rerank` | what does a cross-encoder add, and cost, at several depths? |
//!
//! What was tuned was tuned on questions with odd ids, so nDCG@10 is printed for odd and even ones, too. `--plots` draws
//! `ways` and `rerank` into `docs/plots/`.
//!
//! `RAG_EVAL_DATA` names the folder of the sets. Embedding them for the first time takes some 15 minutes of CPU time, and
//! as many again for `direct`; vectors are kept in `RAG_BENCH_HOME`, those of questions are not: the engine's caches
//! are off, so a search that embeds its question pays for it.
//!
//! `RAG_BENCH_DOCUMENTS=300` takes only so many documents of SciFact and Cranfield and a third as many of the others, and
//! the questions whose relevant ones are among them. Figures are then too good to compare with others, and only the
//! difference between the vector retriever and the model alone is checked, on SciFact.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod plot;
mod rerank;
mod sets;
mod stages;
mod ways;

use rag_tests::Cluster;
use sets::Searched;
use std::process::ExitCode;

const PARTS: [&str; 4] = ["ways", "direct", "stages", "rerank"];

/// What is to be done.
struct Plan {
    parts: Vec<String>,
    folders: Vec<String>,
    has_plots: bool,
}

impl Plan {
    /// Reads the arguments; names the first that is neither part nor set.
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self { parts: Vec::new(), folders: Vec::new(), has_plots: false };
        for argument in arguments {
            match &argument[..] {
                "--plots" => plan.has_plots = true,
                // Cargo's own.
                "--bench" => {}
                part if PARTS.contains(&part) => plan.parts.push(argument),
                folder if sets::folders().contains(&folder) => plan.folders.push(argument),
                _ => return Err(argument),
            }
        }
        Ok(plan)
    }

    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|name| name == part)
    }
}

fn main() -> ExitCode {
    let plan = match Plan::read(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(unknown) => {
            eprintln!(
                "{unknown} is no part ({}), no set ({}) and not --plots",
                PARTS.join(", "),
                sets::folders().join(", ")
            );
            return ExitCode::from(2);
        }
    };
    let documents = std::env::var("RAG_BENCH_DOCUMENTS").ok().map(|count| count.parse::<usize>().unwrap());
    if plan.has_plots && documents.is_some() {
        eprintln!("a part of the documents is nothing to draw: unset RAG_BENCH_DOCUMENTS");
        return ExitCode::from(2);
    }
    let Some(sets) = sets::read(&plan.folders, documents) else {
        eprintln!("RAG_EVAL_DATA is not set: it names the folder with {}", sets::folders().join(", "));
        return ExitCode::from(2);
    };

    // What a search finds does not depend on the threads, and the machine has nothing else to do.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cluster = Cluster::builder("quality")
        .setting("rag_ext.bulk_threads", &threads.to_string())
        .setting("rag_ext.cache_lifetime", "0")
        // However busy the machine is, each question is reranked.
        .setting("rag_ext.rerank_timeout", "10min")
        .start();
    let (mut ways, mut stages, mut reranked) = (Vec::new(), Vec::new(), Vec::new());
    for set in &sets {
        let is_judged = !set.corpus.is_partial || set.title == "SciFact";
        let direct =
            (plan.wants("direct") && is_judged && !set.is_rotated).then(|| ways::measure_directly(set));
        if plan.parts == ["direct"] && direct.is_none() {
            continue;
        }
        let mut searched = Searched::ingest(&cluster, set);
        if plan.wants("ways") || direct.is_some() {
            ways.push(ways::measure(&mut searched, plan.wants("ways"), direct));
        }
        if plan.wants("stages") && !set.is_rotated {
            stages.push(stages::measure(&mut searched));
        }
        if plan.wants("rerank") && !set.is_rotated {
            reranked.push(rerank::measure(&mut searched));
        }
    }
    if !stages.is_empty() {
        stages::print(&stages);
    }
    if !reranked.is_empty() {
        rerank::print(&reranked);
    }
    if plan.has_plots {
        plot::draw(&ways, &reranked);
    }
    if ways.is_empty() {
        return ExitCode::SUCCESS;
    }
    ways::print(&ways);
    if ways::judge(&ways) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
