//! Ingestion beside a model that costs nothing: documents of one chunk from one INSERT … SELECT, into an empty collection
//! and into a large one.

use crate::figures::Figures;
use crate::made::{Maker, Source};
use crate::owner::Owner;
use rag_benches::{Library, StandIn, processor_time};
use rag_tests::Cluster;

/// Documents that are ingested, of one chunk each: so many that a queue shows whether it slows down.
const DOCUMENTS: usize = 20_000;

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

fn ingest(figures: &mut Figures, cluster: &Cluster, library: &Library<'_>, source: &Source) {
    let mut maker = Maker::seeded(source, 4711);
    let (titles, contents): (Vec<String>, Vec<String>) =
        (0..DOCUMENTS).map(|_| (maker.title(), maker.text())).unzip();
    let engine = cluster.running_engine().pid;
    let before = (processor_time(cluster.postmaster()), processor_time(engine));
    let done = library.ingest_by(DOCUMENTS, |transaction| {
        let insert = "INSERT INTO rag.document (title, content) SELECT * FROM unnest($1::text[], $2::text[])";
        transaction.execute(insert, &[&titles, &contents]).unwrap();
    });
    let after = (processor_time(cluster.postmaster()), processor_time(engine));
    let per_chunk = |seconds: f64| seconds * 1000.0 / done.chunks as f64;
    let all = per_chunk((after.0 - before.0).as_secs_f64());
    let of_engine = per_chunk((after.1 - before.1).as_secs_f64());
    figures.add("ingestion", "large", "chunks/s", done.chunks as f64 / done.time.as_secs_f64());
    figures.add("ingestion, processor per chunk, engine", "large", "ms", of_engine);
    figures.add("ingestion, processor per chunk, server", "large", "ms", all - of_engine);
}
