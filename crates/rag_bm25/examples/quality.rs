//! nDCG@10 and recall@100 on test collections, with the time to build and to search, in seconds.
//!
//! `cargo run --release -p rag_bm25 --example quality -- DATA`, where `DATA` (or `RAG_EVAL_DATA`) holds folders `scifact`,
//! `cranfield`, `xquad-en` and `xquad-de` in the layout of BEIR (`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`), and
//! `clapnq`. SciFact is measured with the questions of its training part too, with every second document reduced to its
//! title, and with the acronyms that its documents define. What was tuned was tuned on odd ids.
#![allow(clippy::print_stdout)]

use rag_bm25::{Entry, Language, Query, Segment, build, search};
use rag_core::acronym::{Acronym, expand, long_key, mine};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Document {
    id: String,
    title: String,
    text: String,
}

struct Question {
    text: String,
    is_odd: bool,
    relevant: HashSet<String>,
}

struct Collection {
    name: &'static str,
    language: Language,
    documents: Vec<Document>,
    questions: Vec<Question>,
    with_acronyms: bool,
}

fn main() -> Result<()> {
    let data = std::env::args_os().nth(1).or_else(|| std::env::var_os("RAG_EVAL_DATA"));
    let data: PathBuf = data.ok_or("usage: quality DATA")?.into();
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}",
        "collection", "nDCG@10", "odd", "even", "R@100", "MiB", "build s", "query µs"
    );
    let scifact = || beir("scifact", &data.join("scifact"), "test", Language::English);
    measure(&scifact()?)?;
    measure(&Collection {
        name: "scifact, training",
        ..beir("", &data.join("scifact"), "train", Language::English)?
    })?;
    measure(&Collection { name: "scifact, acronyms", with_acronyms: true, ..scifact()? })?;
    let mut titles = Collection { name: "scifact, half titles", ..scifact()? };
    titles.documents.iter_mut().skip(1).step_by(2).for_each(|document| document.text.clear());
    measure(&titles)?;
    measure(&beir("cranfield", &data.join("cranfield"), "test", Language::English)?)?;
    measure(&beir("xquad-en", &data.join("xquad-en"), "test", Language::English)?)?;
    measure(&beir("xquad-de", &data.join("xquad-de"), "test", Language::German)?)?;
    measure(&clapnq(&data.join("clapnq"))?)
}

fn measure(collection: &Collection) -> Result<()> {
    let Collection { name, language, documents, .. } = collection;
    let begin = Instant::now();
    let entries = documents.iter().zip(0..).map(|(d, id)| Entry { id, title: &d.title, body: &d.text });
    let blob = build(*language, entries)?;
    let build_seconds = begin.elapsed().as_secs_f64();
    let size = blob.len();
    let segments = [Segment::open(blob)?];
    let acronyms = if collection.with_acronyms { acronyms(documents) } else { Vec::new() };
    let (mut gain, mut counts, mut recall, mut seconds) = ([0.0; 3], [0.0; 3], 0.0, 0.0);
    for question in &collection.questions {
        let more = expand(&question.text, &acronyms).map_or(String::new(), |expanded| expanded.more);
        let begin = Instant::now();
        let parsed = Query::parse(&question.text, *language).with_more(&more);
        search(&segments, &parsed, 10, None)?;
        seconds += begin.elapsed().as_secs_f64();
        let hits = search(&segments, &parsed, 100, None)?;
        let is_relevant = |id: u128| question.relevant.contains(&documents[id as usize].id);
        let ranked: Vec<bool> = hits.iter().map(|hit| is_relevant(hit.id)).collect();
        for half in [0, if question.is_odd { 1 } else { 2 }] {
            gain[half] += ndcg(&ranked, question.relevant.len());
            counts[half] += 1.0;
        }
        let found = ranked.iter().filter(|is_relevant| **is_relevant).count();
        recall += found as f64 / question.relevant.len() as f64;
    }
    let (n, mib) = (counts[0], size as f64 / f64::from(1 << 20));
    let [all, odd, even] = std::array::from_fn(|half| gain[half] / counts[half]);
    println!(
        "{name:<22} {all:>8.4} {odd:>8.4} {even:>8.4} {:>8.4} {mib:>8.2} {build_seconds:>8.2} {:>12.1}",
        recall / n,
        seconds / n * 1e6
    );
    Ok(())
}

/// What documents define, those first that most of them define.
fn acronyms(documents: &[Document]) -> Vec<Acronym> {
    let mut defined: BTreeMap<(String, String), (usize, Acronym)> = BTreeMap::new();
    for document in documents {
        for acronym in mine(&format!("{}\n\n{}", document.title, document.text)) {
            let key = (acronym.short.clone(), long_key(&acronym.long));
            defined.entry(key).or_insert((0, acronym)).0 += 1;
        }
    }
    let mut defined: Vec<(usize, Acronym)> = defined.into_values().collect();
    defined.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    defined.into_iter().map(|(_, acronym)| acronym).collect()
}

fn beir(name: &'static str, folder: &Path, part: &str, language: Language) -> Result<Collection> {
    let mut judged = judgements(&folder.join(format!("qrels/{part}.tsv")))?;
    let documents = records(&folder.join("corpus.jsonl"))?;
    let documents =
        documents.iter().map(|r| Document { id: of(r, "_id"), title: of(r, "title"), text: of(r, "text") });
    let questions = records(&folder.join("queries.jsonl"))?;
    let questions = questions.iter().filter_map(|record| {
        let id = of(record, "_id");
        Some(Question { text: of(record, "text"), relevant: judged.remove(&id)?, is_odd: is_odd(&id) })
    });
    let (documents, questions) = (documents.collect(), questions.collect());
    Ok(Collection { name, language, documents, questions, with_acronyms: false })
}

/// Each question's own passages are the relevant ones, among those of all questions.
fn clapnq(folder: &Path) -> Result<Collection> {
    let mut collection = Collection {
        name: "clapnq",
        language: Language::English,
        documents: Vec::new(),
        questions: Vec::new(),
        with_acronyms: false,
    };
    let mut known: HashMap<String, String> = HashMap::new();
    for (part, is_answerable) in [("answerable.jsonl", true), ("unanswerable.jsonl", false)] {
        for record in records(&folder.join(part))? {
            let mut relevant = HashSet::new();
            for passage in record["passages"].as_array().into_iter().flatten() {
                let (title, text) = (of(passage, "title"), of(passage, "text"));
                let count = collection.documents.len();
                let id = known.entry(text.clone()).or_insert_with(|| count.to_string()).clone();
                if id == count.to_string() {
                    collection.documents.push(Document { id: id.clone(), title, text });
                }
                relevant.insert(id);
            }
            if is_answerable {
                let (text, is_odd) = (of(&record, "input"), is_odd(&of(&record, "id")));
                collection.questions.push(Question { text, is_odd, relevant });
            }
        }
    }
    Ok(collection)
}

/// Whether an id ends with an odd digit: ids of XQuAD are hexadecimal.
fn is_odd(id: &str) -> bool {
    id.chars().last().and_then(|last| last.to_digit(16)).is_some_and(|digit| digit % 2 == 1)
}

/// nDCG@10 of binary judgements.
fn ndcg(ranked: &[bool], relevant: usize) -> f64 {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gained: f64 =
        ranked.iter().take(10).enumerate().filter(|(_, hit)| **hit).map(|(rank, _)| discount(rank)).sum();
    let ideal: f64 = (0..relevant.min(10)).map(discount).sum();
    gained / ideal
}

/// A line each.
fn records(path: &Path) -> Result<Vec<serde_json::Value>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?)
}

/// A text field, empty where there is none.
fn of(record: &serde_json::Value, field: &str) -> String {
    record[field].as_str().unwrap_or_default().to_owned()
}

/// The relevant documents of each query.
fn judgements(path: &Path) -> Result<HashMap<String, HashSet<String>>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut judged: HashMap<String, HashSet<String>> = HashMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        if let [query, document, score] = fields[..]
            && score.trim().parse::<i32>()? > 0
        {
            judged.entry(query.to_owned()).or_default().insert(document.to_owned());
        }
    }
    Ok(judged)
}
