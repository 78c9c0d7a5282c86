//! Ingestion beside a model that costs nothing: documents of one chunk from one INSERT … SELECT, into an empty collection
//! and into a large one, and whether it slows down on the way.

use crate::figures::Figures;
use crate::made::{Maker, Source};
use crate::owner::Owner;
use rag_benches::{Library, StandIn, escaped, processor_time, timed};
use rag_tests::Cluster;
use std::io::Write as _;

/// Documents that are ingested, of one chunk each, unless `RAG_BENCH_INGESTED` names another number.
const DOCUMENTS: usize = 20_000;

/// A table of the documents-to-be, which are many.
const MADE: &str = "made";

/// Name of the model behind the endpoint.
const STAND_IN: &str = "stand-in";

pub(crate) fn measure(figures: &mut Figures, source: &Source, sizes: &[usize]) {
    let model = StandIn::start(STAND_IN);
    let cluster = Cluster::builder("ingest")
        .setting("shared_buffers", "1GB")
        .setting("max_wal_size", "8GB")
        .setting("rag_ext.embedding_model", STAND_IN)
        .setting("rag_ext.model_path", &model.model_path())
        .start();
    for size in [0].iter().chain(sizes) {
        let library = Library::new(&cluster, &format!("ingest_{size}"));
        library.database().leave_damaged();
        figures.begin(*size);
        let mut owner = Owner::new(&library, library.role(), "large");
        if *size > 0 {
            owner.fill(&library, source, *size);
        }
        library.settle();
        ingest(figures, &cluster, &library, source);
    }
}

fn documents() -> usize {
    std::env::var("RAG_BENCH_INGESTED").map_or(DOCUMENTS, |documents| documents.parse().unwrap())
}

fn ingest(figures: &mut Figures, cluster: &Cluster, library: &Library<'_>, source: &Source) {
    make_documents(library, source);
    let engine = cluster.running_engine().pid;
    let before = (processor_time(cluster.postmaster()), processor_time(engine));
    let done = library.ingest_by(documents(), |transaction| {
        let insert = format!("INSERT INTO rag.document (title, content) SELECT title, content FROM {MADE}");
        let (inserting, _) = timed(|| transaction.execute(&insert, &[]).unwrap());
        figures.add("ingestion, the INSERT", "large", "s", inserting.as_secs_f64());
    });
    let after = (processor_time(cluster.postmaster()), processor_time(engine));
    let per_chunk = |seconds: f64| seconds * 1000.0 / done.chunks as f64;
    let all = per_chunk((after.0 - before.0).as_secs_f64());
    let of_engine = per_chunk((after.1 - before.1).as_secs_f64());
    figures.add("ingestion", "large", "chunks/s", done.chunks as f64 / done.time.as_secs_f64());
    if let (Some(first), Some(last)) = (done.rate(0, 20), done.rate(80, 100)) {
        figures.add("ingestion, first fifth", "large", "chunks/s", first);
        figures.add("ingestion, last fifth", "large", "chunks/s", last);
    }
    figures.add("ingestion, processor per chunk, engine", "large", "ms", of_engine);
    figures.add("ingestion, processor per chunk, server", "large", "ms", all - of_engine);
}

/// Makes the documents beforehand, so that all come from one INSERT … SELECT.
fn make_documents(library: &Library<'_>, source: &Source) {
    let mut maker = Maker::seeded(source, 4711);
    let mut admin = library.admin();
    admin.run(&format!("CREATE TABLE {MADE} (title text, content text); GRANT SELECT ON {MADE} TO public"));
    let mut rows = admin.client().copy_in(&format!("COPY {MADE} FROM STDIN")).unwrap();
    for _ in 0..documents() {
        let (title, content) = (maker.title(), maker.text());
        writeln!(rows, "{}\t{}", escaped(&title), escaped(&content)).unwrap();
    }
    rows.finish().unwrap();
    admin.run(&format!("VACUUM ANALYZE {MADE}"));
}
