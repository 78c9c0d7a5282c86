//! Measures nDCG@10 and recall@100 on SciFact and Cranfield, with the time to build and to search.
//!
//! `cargo run --release -p rag_bm25 --example quality -- DATA`, where `DATA` holds folders `scifact` and
//! `cranfield` in the layout of BEIR: `corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rag_bm25::{Entry, Language, Query, Segment, build, search};

fn main() -> Result<(), Box<dyn Error>> {
    let data: PathBuf = std::env::args_os().nth(1).ok_or("usage: quality DATA")?.into();
    println!(
        "{:<10} {:>8} {:>8} {:>8} {:>10} {:>12}",
        "set", "nDCG@10", "R@100", "MiB", "build s", "query µs"
    );
    for name in ["scifact", "cranfield"] {
        measure(name, &data.join(name))?;
    }
    Ok(())
}

fn measure(name: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let corpus = records(&folder.join("corpus.jsonl"))?;
    let queries = records(&folder.join("queries.jsonl"))?;
    let judged = judgements(&folder.join("qrels/test.tsv"))?;
    let begin = Instant::now();
    let entries = corpus.iter().zip(0..).map(|(d, id)| Entry { id, title: &d["title"], body: &d["text"] });
    let blob = build(Language::English, entries)?;
    let build_seconds = begin.elapsed().as_secs_f64();
    let size = blob.len();
    let segments = [Segment::open(blob)?];
    let (mut gain, mut recall, mut count, mut seconds) = (0.0, 0.0, 0, 0.0);
    for query in &queries {
        let Some(relevant) = judged.get(&query["_id"]) else { continue };
        let begin = Instant::now();
        let parsed = Query::parse(&query["text"], Language::English);
        search(&segments, &parsed, 10, None)?;
        seconds += begin.elapsed().as_secs_f64();
        let hits = search(&segments, &parsed, 100, None)?;
        let ranked: Vec<bool> =
            hits.iter().map(|hit| relevant.contains(&corpus[hit.id as usize]["_id"])).collect();
        gain += ndcg(&ranked, relevant.len());
        recall += ranked.iter().filter(|is_relevant| **is_relevant).count() as f64 / relevant.len() as f64;
        count += 1;
    }
    let (n, mib) = (f64::from(count), size as f64 / (1 << 20) as f64);
    println!(
        "{name:<10} {:>8.4} {:>8.4} {mib:>8.2} {build_seconds:>10.2} {:>12.1}",
        gain / n,
        recall / n,
        seconds / n * 1e6
    );
    Ok(())
}

/// nDCG@10 of binary judgements.
fn ndcg(ranked: &[bool], relevant: usize) -> f64 {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gained: f64 =
        ranked.iter().take(10).enumerate().filter(|(_, hit)| **hit).map(|(rank, _)| discount(rank)).sum();
    let ideal: f64 = (0..relevant.min(10)).map(discount).sum();
    gained / ideal
}

/// The text fields of each line.
fn records(path: &Path) -> Result<Vec<HashMap<String, String>>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut records = Vec::new();
    for line in text.lines() {
        let fields: HashMap<String, serde_json::Value> = serde_json::from_str(line)?;
        let text = |(name, value): (String, serde_json::Value)| Some((name, value.as_str()?.to_owned()));
        let mut record: HashMap<String, String> = fields.into_iter().filter_map(text).collect();
        for name in ["_id", "title", "text"] {
            record.entry(name.to_owned()).or_default();
        }
        records.push(record);
    }
    Ok(records)
}

/// The relevant documents of each query.
fn judgements(path: &Path) -> Result<HashMap<String, Vec<String>>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut judged: HashMap<String, Vec<String>> = HashMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        if let [query, document, score] = fields[..]
            && score.trim().parse::<i32>()? > 0
        {
            judged.entry(query.to_owned()).or_default().push(document.to_owned());
        }
    }
    Ok(judged)
}
