//! How search scales with the number of chunks: its times, its recall, its room on the disk and in memory; what a small
//! owner pays for a large one in the same database; and the same written plainly with what Postgres and pgvector have.
//! Prints a table and ratios; asserts no time.
//!
//! An owner has as many chunks as the size says, another a twentieth of them, and a small one 1,000, who also has a database
//! of their own. Rows are made here and copied in; codes of vectors are made by the workers. `RAG_BENCH_SIZES=10000,20000`
//! takes other sizes (`0` none), `FULL=1` adds a million and three. `--plots` writes what was measured into `docs/scale.csv` and draws
//! `docs/plots/scale-*.svg` of all that is in it.
//!
//! `search`, `ingest`, `cold`, `crowd` and `peers` measure only what is named: searches; ingestion into a collection of each
//! size beside an endpoint whose vectors cost nothing; merges and first searches, and how soon they end once they are to; an
//! owner of 1,000 chunks beside 200,000 others and beside 300 attached tables; keyword search beside that of others, whose
//! server is downloaded, so that it has to be named.
//!
//! Times are of one session, the best of three of each query after a first one, so the engine knows the query's vector: what
//! embedding takes stands in a row of its own.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod codes;
mod ingest;
mod made;
mod owner;

mod cold;
mod crowd;

mod questions;
mod searches;

mod disk;
mod peers;
mod tantivy_alone;
mod tenants;

mod plainly;
mod recall;

mod figures;
mod plot;
mod ratios;

use figures::Figures;
use made::Source;
use owner::Owner;
use questions::Questions;
use rag_benches::{Library, Texts, timed};
use rag_tests::{Builder, Cluster};

/// Chunks of the large owner.
const SIZES: [usize; 3] = [10_000, 100_000, 300_000];

/// With `FULL=1`, as well.
const MORE_SIZES: [usize; 2] = [1_000_000, 3_000_000];

/// Chunks of the small owner.
const SMALL: usize = 1_000;

/// Of the chunks of the large owner, the middle one has one in so many.
const MIDDLE_SHARE: usize = 20;

/// Above it, the end does not wait for `rag_verify`.
const VERIFIED: usize = 20_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |argument: &str| arguments.iter().any(|given| given == argument);
    let names_none = !["search", "ingest", "cold", "crowd", "peers"].into_iter().any(has);
    let wants = |part: &str| has(part) || names_none;
    let texts = Texts::choose();
    let source = Source::of(&texts);
    let mut figures = Figures::default();
    if wants("ingest") {
        ingest::measure(&mut figures, &source, &sizes());
    }
    if wants("search") {
        search(&mut figures, &source, &Questions::of(&texts));
    }
    if wants("cold") {
        cold::measure(&mut figures, &source, &Questions::of(&texts), &sizes());
    }
    if wants("crowd") {
        crowd::measure(&mut figures, &source, &Questions::of(&texts));
    }
    if has("peers") {
        peers::measure(&mut figures, &source, &Questions::of(&texts), &sizes());
    }
    println!("texts: {}", texts.name);
    figures.print();
    if wants("search") {
        ratios::print(&figures);
    }
    if has("--plots") {
        let figures = figures.with_saved();
        figures.save_csv();
        plot::draw(&figures);
    }
}

/// What searching costs.
fn search(figures: &mut Figures, source: &Source, questions: &Questions) {
    let cluster = quiet(Cluster::builder("scale")).setting("rag_ext.merge_enabled", "off").start();
    let alone = Library::new(&cluster, "alone");
    codes::hold_workers(&alone);
    let mut alone_owner = Owner::new(&alone, alone.role(), "small");
    alone_owner.fill(&alone, source, SMALL);
    codes::wait_for_codes(&alone);

    for size in sizes() {
        measure(figures, &cluster, source, questions, &mut alone_owner, size);
    }
}

/// A server with some memory, on which nothing happens by itself while it is measured.
fn quiet(server: Builder) -> Builder {
    server
        .setting("shared_buffers", "2GB")
        .setting("maintenance_work_mem", "1GB")
        .setting("max_wal_size", "8GB")
        .setting("autovacuum", "off")
}

fn sizes() -> Vec<usize> {
    match std::env::var("RAG_BENCH_SIZES") {
        Ok(sizes) => {
            sizes.split(',').map(|size| size.trim().parse().unwrap()).filter(|size| *size > 0).collect()
        }
        Err(_) if std::env::var("FULL").is_ok_and(|full| full == "1") => [&SIZES[..], &MORE_SIZES].concat(),
        Err(_) => SIZES.to_vec(),
    }
}

/// Fills a database of its own, and adds all figures of this size.
fn measure(
    figures: &mut Figures,
    cluster: &Cluster,
    source: &Source,
    questions: &Questions,
    alone: &mut Owner,
    size: usize,
) {
    let library = Library::new(cluster, &format!("scale_{size}"));
    if size > VERIFIED {
        library.database().leave_damaged();
    }
    figures.begin(size);
    codes::hold_workers(&library);
    let mut large = Owner::new(&library, library.role(), "large");
    let [mut middle, mut small] = ["middle", "small"].map(|name| {
        let role = library.database().role(name);
        Owner::new(&library, &role, name)
    });
    let (filling, ()) = timed(|| {
        large.fill(&library, source, size);
        middle.fill(&library, source, size / MIDDLE_SHARE);
        small.fill(&library, source, SMALL);
    });
    figures.add("filling", "all", "s", filling.as_secs_f64());
    let building = codes::wait_for_codes(&library);
    figures.add("making codes", "all", "s", building.as_secs_f64());

    disk::measure(figures, &library);
    searches::measure_large(figures, &library, &mut large, questions);
    searches::measure_small(figures, &mut small, alone, questions);
    for owner in [&mut large, &mut middle, &mut small] {
        recall::measure(figures, &library, owner, questions);
    }
    plainly::measure(figures, &library, &large, questions);
}
