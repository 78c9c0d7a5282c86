//! Two versions of the extension, each on a server of its own, asked the same in turn: whether a change made something
//! slower. `RAG_BENCH_AGAINST` is the `pg_config` of a Postgres that has the other one; `scripts/bench.sh against COMMIT`
//! builds it. Searches of this version have the options `RAG_BENCH_OPTIONS`, a JSON object: stages that the other one does
//! not have are switched off by them.
//!
//! A ratio is the median of the ratios of single calls, which were a moment apart: what slows the machine down slows both.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

use rag_benches::{Library, Table, Texts, Times, set_by_make, timed};
use rag_tests::{Cluster, Installation, Session, literal};
use std::path::PathBuf;
use std::time::Duration;

const DOCUMENTS: usize = 400;
/// Documents of one measured ingestion.
const PART: usize = 20;
const QUERIES: usize = 200;
const QUESTIONS: usize = 40;
const ROUNDS: usize = 3;

/// What is asked, by names of arguments, for their order has changed once, and of how many queries.
const CALLS: [(&str, &str, usize); 4] = [
    (
        "keyword",
        "SELECT rank, uri, title, score, snippet FROM rag_search(query => $1, k => 10, mode => 'keyword')",
        QUERIES,
    ),
    (
        "vector",
        "SELECT rank, uri, title, score, snippet FROM rag_search(query => $1, k => 10, mode => 'vector')",
        QUERIES,
    ),
    (
        "hybrid",
        "SELECT rank, uri, title, score, snippet FROM rag_search(query => $1, k => 10, mode => 'hybrid')",
        QUERIES,
    ),
    ("answer", "SELECT rag_answer_text(question => $1)", QUESTIONS),
];

fn main() {
    let texts = Texts::choose();
    let other = Installation::of(PathBuf::from(set_by_make("RAG_BENCH_AGAINST")));
    let clusters = [Cluster::builder("before").installation(other).start(), Cluster::builder("now").start()];
    let libraries = clusters.each_ref().map(|cluster| Library::new(cluster, "library"));
    let mut table =
        Table::new(&["what", "runs", "before, p50 / p95", "now, p50 / p95", "now / before, median"]);

    let documents = &texts.documents[..DOCUMENTS.min(texts.documents.len())];
    let mut pairs = Pairs::default();
    for part in documents.chunks(PART) {
        pairs.take([&mut || libraries[0].ingest(part).time, &mut || libraries[1].ingest(part).time]);
    }
    pairs.report(&format!("ingestion of {PART} documents"), &mut table);

    let options = std::env::var("RAG_BENCH_OPTIONS").ok();
    let mut sessions = libraries.each_ref().map(Library::session);
    for (name, call, count) in CALLS {
        let of_now = match &options {
            Some(options) => call.replace("mode =>", &format!("options => {}, mode =>", literal(options))),
            None => call.to_owned(),
        };
        let [mut first, mut again] = std::array::from_fn(|_| Pairs::default());
        for round in 0..=ROUNDS {
            let into = if round == 0 { &mut first } else { &mut again };
            for query in texts.queries.iter().take(count) {
                let [before, now] = &mut sessions;
                into.take([&mut || asked(before, call, query), &mut || asked(now, &of_now, query)]);
            }
        }
        first.report(&format!("{name}, first time"), &mut table);
        again.report(&format!("{name}, again"), &mut table);
    }
    table.print();
}

fn asked(session: &mut Session, call: &str, query: &str) -> Duration {
    // The server keeps the plan: the statement is prepared by its text.
    let statement = session.client().prepare(call).unwrap();
    timed(|| session.client().query(&statement, &[&query]).unwrap()).0
}

/// Times of the same calls of both, in turn.
#[derive(Default)]
struct Pairs {
    times: [Times; 2],
}

impl Pairs {
    /// Makes both calls, the first of which is the other's with every second pair.
    fn take(&mut self, calls: [&mut dyn FnMut() -> Duration; 2]) {
        let turned = self.times[0].len() % 2 == 1;
        let [before, now] = calls;
        let (before, now) = if turned {
            let now = now();
            (before(), now)
        } else {
            (before(), now())
        };
        self.times[0].push(before);
        self.times[1].push(now);
    }

    fn report(self, what: &str, table: &mut Table) {
        let [before, now] = &self.times;
        let median = now.ratio_to(before);
        eprintln!("{what}: {median:.3}");
        table.row([
            what.to_owned(),
            now.len().to_string(),
            before.shown(),
            now.shown(),
            format!("{median:.3}"),
        ]);
    }
}
