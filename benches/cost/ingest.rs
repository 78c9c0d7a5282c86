//! The rate of background ingestion beside the rate at which an engine with the same settings embeds the same texts.

use crate::report::{Line, Report};
use rag_benches::{Engine, Library, Texts, timed};
use rag_tests::Cluster;
use rag_wire::{Lane, TextRole};
use std::sync::Mutex;
use std::time::Duration;

/// Taken in turn, so that both sides get their share of the machine's bad moments.
const ROUNDS: usize = 3;
const DOCUMENTS: usize = 100;

/// As many as there are workers by default, and as many texts as these send at a time: neither side waits for itself.
pub(crate) const CONNECTIONS: usize = 2;
const TEXTS_PER_REQUEST: usize = 16;

pub(crate) fn measure(report: &mut Report, cluster: &Cluster, texts: &Texts) {
    let library = Library::new(cluster, "ingest");
    let engine = Engine::start();
    let (mut ingesting, mut embedding, mut chunks) = (Duration::ZERO, Duration::ZERO, 0);
    for documents in texts.documents.chunks(DOCUMENTS).rev().take(ROUNDS) {
        let ingested = library.ingest(documents);
        assert_eq!(ingested.embedded, ingested.chunks, "every vector is computed");
        let embedded: Vec<String> = library.admin().column(
            "SELECT c.context || CASE WHEN c.context = '' THEN '' ELSE E'\\n' END || c.content
             FROM rag.chunk c ORDER BY c.id DESC",
        );
        let latest = embedded[..usize::try_from(ingested.chunks).unwrap()].to_vec();
        embedding += embed(&engine, latest);
        ingesting += ingested.time;
        chunks += ingested.chunks;
        library.settle();
    }
    let rate = |time: Duration| chunks as f64 / time.as_secs_f64();
    let ratio = rate(ingesting) / rate(embedding);
    report.add(Line {
        what: format!("ingestion in the background, {chunks} chunks"),
        found: format!("{:.1} chunks/s", rate(ingesting)),
        beside: format!("engine alone, bulk lane {:.1} texts/s", rate(embedding)),
        ratio: format!("{ratio:.2} ×"),
        target: "≥ 0.85 ×".into(),
        reached: Some(ratio >= 0.85),
    });
}

/// The time that an engine takes to embed texts.
pub(crate) fn embed(engine: &Engine, texts: Vec<String>) -> Duration {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| engine.connect()).collect();
    let requests: Vec<Vec<String>> = texts.chunks(TEXTS_PER_REQUEST).map(<[String]>::to_vec).collect();
    let requests = Mutex::new(requests);
    let (time, ()) = timed(|| {
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    loop {
                        let Some(texts) = requests.lock().unwrap().pop() else { return };
                        client.embed(Lane::Bulk, TextRole::Passage, texts);
                    }
                });
            }
        });
    });
    time
}
