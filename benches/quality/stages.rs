//! What each optional stage adds to a hybrid search or costs, and whether that is worth being on by default.
//!
//! A stage earns its default where it adds at least 0.005 of nDCG@10 on two sets, with p < 0.05 each. Those that need a
//! chat model are not measured; reranking is, in a part of its own.

use crate::sets::Searched;
use rag_benches::{Difference, Half, Outcome, Table};

/// Sets on which a stage must be worth it.
const LEAST_SETS: usize = 2;

/// A stage: options of the search with it, and without it. Hybrid both.
struct Stage {
    name: &'static str,
    is_default: bool,
    with: &'static str,
    without: &'static str,
}

const STAGES: [Stage; 10] = [
    Stage::on("hybrid, beside RRF", r#"{"fusion": "rrf"}"#),
    Stage::on("weights by rules, beside even ones", r#"{"keyword_weight": 0.5}"#),
    Stage::on("acronyms: on", r#"{"acronyms": "off"}"#),
    Stage::on("near_duplicates: remove", r#"{"near_duplicates": "keep"}"#),
    Stage::off("spelling: on", r#"{"spelling": "on"}"#),
    Stage::off("decompose: auto", r#"{"decompose": "auto"}"#),
    Stage::off("source_boost: 0.05", r#"{"source_boost": 0.05}"#),
    Stage::off("graph: auto", r#"{"graph": "auto"}"#),
    Stage::off("graph: on", r#"{"graph": "on"}"#),
    Stage::off("hops: 2", r#"{"hops": 2}"#),
];

const BETTER_RETRIEVER: &str = "hybrid, beside the better retriever";

impl Stage {
    const fn on(name: &'static str, without: &'static str) -> Self {
        Self { name, is_default: true, with: "{}", without }
    }

    const fn off(name: &'static str, with: &'static str) -> Self {
        Self { name, is_default: false, with, without: "{}" }
    }
}

/// What a stage came to on one set.
#[derive(Clone, Copy)]
struct Added {
    difference: Difference,
    milliseconds: f64,
}

/// All stages on one set: first hybrid search itself, then in the order of [`STAGES`].
pub(crate) struct Measured {
    title: String,
    added: Vec<Added>,
}

pub(crate) fn measure(searched: &mut Searched<'_>) -> Measured {
    let added = |with: &Outcome, without: &Outcome| Added {
        difference: with.beyond(without),
        milliseconds: with.milliseconds() - without.milliseconds(),
    };
    let retrievers = ["keyword", "vector"].map(|mode| searched.outcome(mode, "{}"));
    let better = retrievers.iter().max_by(|a, b| a.ndcg(Half::Both).total_cmp(&b.ndcg(Half::Both)));
    let mut all = vec![added(&searched.outcome("hybrid", "{}"), better.unwrap())];
    for stage in &STAGES {
        let [with, without] = [stage.with, stage.without].map(|options| searched.outcome("hybrid", options));
        all.push(added(&with, &without));
    }
    let part = if searched.set.corpus.is_partial { " (part)" } else { "" };
    Measured { title: format!("{}{part}", searched.set.title), added: all }
}

pub(crate) fn print(measured: &[Measured]) {
    let mut columns = vec!["stage"];
    columns.extend(measured.iter().map(|set| &set.title[..]));
    columns.extend(["ms per query", "verdict"]);
    let mut table = Table::new(&columns);
    let stages = STAGES.iter().map(|stage| (stage.name, stage.is_default));
    for (place, (name, is_default)) in std::iter::once((BETTER_RETRIEVER, true)).chain(stages).enumerate() {
        let added: Vec<Added> = measured.iter().map(|set| set.added[place]).collect();
        let mut cells = vec![name.to_owned()];
        cells.extend(added.iter().map(|added| added.difference.shown()));
        let milliseconds = added.iter().map(|added| added.milliseconds).sum::<f64>() / added.len() as f64;
        cells.push(format!("{milliseconds:+.1}"));
        cells.push(verdict(is_default, added.iter().filter(|added| added.difference.is_worth_it()).count()));
        table.add(cells);
    }
    println!("\nnDCG@10 with the stage, less without it");
    table.print();
}

fn verdict(is_default: bool, sets: usize) -> String {
    let verdict = match (is_default, sets >= LEAST_SETS) {
        (true, true) => "earns its default",
        (true, false) => "on, does not earn its default",
        (false, true) => "off, would earn a default",
        (false, false) => "off",
    };
    format!("{verdict} ({sets})")
}
