//! Cost, each figure a ratio of two times (or sizes) taken in turn in one run: what rag_ext adds to the parts that it
//! is made of. Prints one table with targets; asserts no time, for a shared machine says nothing absolute.
//!
//! `cargo bench --bench cost -- keyword domains` measures these alone: keyword, vector, ingest, embed, memory, domains,
//! merge, attach, policies, steady, pdf, plain.
//! `RAG_BENCH_PROFILE=1` shows where the time of a keyword search goes.
//! The texts are SciFact's where `RAG_EVAL_DATA` names it; else they are made of words with Zipf-like frequencies.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

mod attach;
mod domains;
mod embed;
mod ingest;
mod keyword;
mod memory;
mod merge;
mod pdf;
mod plain;
mod policies;
mod profile;
mod report;
mod steady;
mod vector;

use rag_benches::{KeptVectors, Library, Texts, model_digest};
use rag_tests::Cluster;
use report::Report;

/// Documents ingested where no vectors are kept: what takes some minutes to embed.
const WITHOUT_VECTORS: usize = 600;

fn main() {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wants = |part: &str| chosen.is_empty() || chosen.iter().any(|name| name == part);
    let texts = Texts::choose();
    let cluster = profile::prepare(Cluster::builder("cost")).start();
    let mut report = Report::default();

    if wants("ingest") {
        ingest::measure(&mut report, &cluster, &texts);
    }
    if wants("embed") {
        embed::measure(&mut report, &cluster, &texts);
    }
    if wants("keyword") || wants("vector") || wants("memory") || wants("merge") {
        let mut kept = KeptVectors::open(&format!("{}.vectors", texts.name), &model_digest());
        let count =
            if kept.len() >= texts.documents.len() / 2 { texts.documents.len() } else { WITHOUT_VECTORS };
        let documents = &texts.documents[..count.min(texts.documents.len())];
        let library = Library::new(&cluster, "library");
        let log = merge::watch(&library);
        eprintln!("ingesting {} documents", documents.len());
        library.ingest_with(&mut kept, || library.ingest(documents));
        if wants("merge") {
            merge::measure(&mut report, &library, &log);
        }
        if wants("keyword") {
            profile::begin(&library);
            keyword::measure(&mut report, &library, &texts);
            profile::print(&library, "keyword search");
        }
        if wants("vector") {
            vector::measure(&mut report, &library, &texts);
        }
        if wants("memory") {
            memory::measure(&mut report, &library, &texts);
        }
    }
    if wants("plain") {
        plain::measure(&mut report, &cluster);
    }
    if wants("domains") {
        domains::measure(&mut report, &cluster);
    }
    if wants("attach") {
        attach::measure(&mut report, &cluster);
    }
    if wants("policies") {
        policies::measure(&mut report, &cluster);
    }
    if wants("steady") {
        steady::measure(&mut report, &cluster);
    }
    if wants("pdf") {
        pdf::measure(&mut report, &cluster);
    }
    println!("texts: {}", texts.name);
    report.print();
}
