//! What a cross-encoder makes of the first hits of a hybrid search, and what it costs.

use crate::sets::Searched;
use rag_benches::{Difference, Half, Outcome, Query, Table};

/// Pairs per question.
const DEPTHS: [usize; 3] = [10, 20, 50];

/// Sets that are measured at each depth; the others at the first alone.
const DEEP: [&str; 3] = ["SciFact", "Cranfield", "ClapNQ"];

/// Questions of a set, for a pair takes tens of milliseconds; `RAG_BENCH_RERANK_QUESTIONS` takes others, 0 all.
const QUESTIONS: usize = 60;
/// The same of a part of a set.
const QUESTIONS_OF_PART: usize = 4;

/// One set: hybrid search as it is, and reranked at each depth.
pub(crate) struct Measured {
    title: &'static str,
    plain: Outcome,
    reranked: Vec<(usize, Outcome)>,
}

pub(crate) fn measure(searched: &mut Searched<'_>) -> Measured {
    let set = searched.set;
    let usual = if set.corpus.is_partial { QUESTIONS_OF_PART } else { QUESTIONS };
    let wanted = match std::env::var("RAG_BENCH_RERANK_QUESTIONS") {
        Ok(count) => count.parse().expect("RAG_BENCH_RERANK_QUESTIONS is a number"),
        Err(_) => usual,
    };
    let questions = sample(set.corpus.judged_queries().collect(), wanted);
    let depths = if DEEP.contains(&set.title) { &DEPTHS[..] } else { &DEPTHS[..1] };
    let mut rerank = |depth: &usize| {
        let options = format!(r#"{{"rerank": true, "rerank_limit": {depth}}}"#);
        (*depth, searched.outcome_on(&questions, "hybrid", &options))
    };
    let reranked = depths.iter().map(&mut rerank).collect();
    Measured { title: set.title, plain: searched.outcome_on(&questions, "hybrid", "{}"), reranked }
}

/// So many of them, evenly spread; all where 0 are wanted.
fn sample(all: Vec<&Query>, wanted: usize) -> Vec<&Query> {
    let count = if wanted == 0 { all.len() } else { wanted.min(all.len()) };
    (0..count).map(|at| all[at * all.len() / count]).collect()
}

/// A set's title, and its points: depth, nDCG@10 and milliseconds.
pub(crate) type Curve = (&'static str, Vec<(usize, f64, f64)>);

impl Measured {
    /// Depth, nDCG@10 and milliseconds, from no reranking at depth 0 on, if there is more than one depth.
    pub(crate) fn curve(&self) -> Option<Curve> {
        let all = std::iter::once((0, &self.plain)).chain(self.reranked.iter().map(|(depth, o)| (*depth, o)));
        let points = all.map(|(depth, o)| (depth, o.ndcg(Half::Both), o.milliseconds())).collect();
        (self.reranked.len() > 1).then_some((self.title, points))
    }
}

pub(crate) fn print(measured: &[Measured]) {
    let mut columns = vec!["set", "questions", "hybrid search"];
    columns.extend(Outcome::COLUMNS);
    columns.push("adds to nDCG@10");
    let mut table = Table::new(&columns);
    for set in measured {
        let mut add = |way: String, outcome: &Outcome, added: Option<Difference>| {
            let head = [set.title.to_owned(), outcome.count().to_string(), way];
            let last = added.map_or_else(|| "–".to_owned(), Difference::shown);
            table.add(head.into_iter().chain(outcome.cells()).chain([last]).collect());
        };
        add("as it is".into(), &set.plain, None);
        for (depth, outcome) in &set.reranked {
            add(format!("first {depth} reranked"), outcome, Some(outcome.beyond(&set.plain)));
        }
    }
    println!("\nreranked by the default cross-encoder, on a sample of the questions");
    table.print();
}
