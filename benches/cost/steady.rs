//! Whether ingestion slows down as a collection grows: the rate at which a collection of thousands of documents takes
//! more, beside that of one that has just begun.
//!
//! Both take the same number of short documents in turn, so that both get their share of the machine's bad moments.
//! Short ones cost the engine little, so that whatever grows with the database shows.

use crate::report::{Line, Report};
use rag_benches::{Document, Library};
use rag_tests::Cluster;
use std::time::Duration;

/// Documents of the full collection before the rates are compared.
const FULL: usize = 9_000;
/// Taken in turn by the full collection and by a new one.
const ROUNDS: usize = 4;
const DOCUMENTS: usize = 250;
/// How much slower the end may be than the beginning.
const MOST_LOST: f64 = 0.10;

pub(crate) fn measure(report: &mut Report, cluster: &Cluster) {
    let full = Library::new(cluster, "steady_full");
    let mut next = 0;
    eprintln!("ingesting {FULL} short documents");
    let filling = full.ingest(&documents(&mut next, FULL));
    full.settle();
    let (mut at_the_end, mut at_the_beginning) = (Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS {
        // Its first documents make the domain and the engine's connections.
        let new = Library::new(cluster, &format!("steady_{round}"));
        new.ingest(&documents(&mut next, 50));
        new.settle();
        at_the_beginning += new.ingest(&documents(&mut next, DOCUMENTS)).time;
        new.settle();
        at_the_end += full.ingest(&documents(&mut next, DOCUMENTS)).time;
        full.settle();
    }
    let rate = |time: Duration| (ROUNDS * DOCUMENTS) as f64 / time.as_secs_f64();
    let ratio = rate(at_the_end) / rate(at_the_beginning);
    report.add(Line {
        what: format!("ingestion into a collection of {FULL} to {} documents", FULL + ROUNDS * DOCUMENTS),
        found: format!("{:.1} documents/s", rate(at_the_end)),
        beside: format!("into a new one {:.1} documents/s", rate(at_the_beginning)),
        ratio: format!("{ratio:.2} ×"),
        target: format!("≥ {:.2} ×", 1.0 - MOST_LOST),
        reached: Some(ratio >= 1.0 - MOST_LOST),
    });
    report.note(
        "ingestion of the first documents, all at once",
        format!("{:.1} documents/s", FULL as f64 / filling.time.as_secs_f64()),
        format!("{} chunks", filling.chunks),
    );
}

/// As many texts as wanted, none like another, all of the same length.
fn documents(next: &mut usize, count: usize) -> Vec<Document> {
    let first = *next;
    *next += count;
    (first..first + count)
        .map(|n| Document {
            id: format!("steady {n:06}"),
            title: format!("Gauge {n:06}"),
            text: format!("The gauge with the number {n:06} stands by river {:06}.", n * 7 % 1_000_000),
        })
        .collect()
}
