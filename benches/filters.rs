//! Filters, over 20,000 chunks: does a search return k rows always, are they the nearest ones, and what does it cost?
//! Ends with 1 where a count is wrong, or where the vector retriever misses a neighbour below the limit of exact search.
//!
//! Texts and vectors are made up: vectors have directions of chance, as far from helping a filter as can be, and are laid
//! in so that nothing is embedded but the questions. Some filters have to do with the questions: they let through what is
//! nearest to all of them, or farthest, where what is nearest to a question says little of what passes. Expected counts and
//! neighbours are found by plain SQL over the same rows, by the superuser and without any function of the extension.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

use postgres::types::ToSql;
use rag_benches::{Document, Key, Library, Table, Times, Words, digest, direction};
use rag_tests::{Cluster, Random, Session, literal};
use std::process::ExitCode;

const CHUNKS: usize = 20_000;
const QUESTIONS: usize = 100;
const DIMENSION: usize = 384;

/// Rows that are asked for.
const ROWS: [i32; 2] = [10, 250];

/// What is asked for to compare the vector retriever with plain SQL.
const NEIGHBOURS: i32 = 10;

/// What the nearest by codes have to be, of those that plain SQL finds: directions of chance are as hard as can be.
const LEAST_RECALL: f64 = 0.98;

/// Name, filter of a search, and the same as a condition on `rag.document d`. A hundredth has each value of `part`, and of
/// `toward`, which is 99 for those that are nearest to the middle of the questions.
const FILTERS: [(&str, Option<&str>, &str); 7] = [
    ("none", None, "true"),
    ("30 %", Some(r#"{"part": {"lt": 30}}"#), "(d.metadata->>'part')::int < 30"),
    ("1 %", Some(r#"{"part": 71}"#), "(d.metadata->>'part')::int = 71"),
    ("30 %, near", Some(r#"{"toward": {"gte": 70}}"#), "(d.metadata->>'toward')::int >= 70"),
    ("30 %, far", Some(r#"{"toward": {"lt": 30}}"#), "(d.metadata->>'toward')::int < 30"),
    ("1 %, near", Some(r#"{"toward": 99}"#), "(d.metadata->>'toward')::int = 99"),
    ("1 %, far", Some(r#"{"toward": 0}"#), "(d.metadata->>'toward')::int = 0"),
];

fn main() -> ExitCode {
    let cluster = Cluster::builder("filters").setting("rag_ext.cache_lifetime", "0").start();
    let library = Library::new(&cluster, "filters");
    let began = std::time::Instant::now();
    let mut words = Words::seeded(13);
    let questions: Vec<String> = (0..QUESTIONS).map(|_| words.text(8)).collect();
    fill(&library, &questions);
    println!("{CHUNKS} chunks ingested in {:.0} s", began.elapsed().as_secs_f64());

    let mut bench = Bench::new(&library, questions);
    bench.searching.run(&format!("SET rag_ext.exact_search_limit = {}", 2 * CHUNKS));
    for (name, filter, condition) in FILTERS {
        bench.measure_filter(name, filter, condition);
    }
    bench.searching.run("RESET rag_ext.exact_search_limit");
    for (name, filter, condition) in FILTERS {
        bench.measure(&format!("{name}, by codes"), filter, condition, "vector", false);
    }
    bench.table.print();
    for fault in &bench.faults {
        println!("MISS {fault}");
    }
    if bench.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Documents of one chunk each, with vectors of chance.
fn fill(library: &Library<'_>, questions: &[String]) {
    let mut session = library.session();
    session.run("SELECT rag_create_collection('default', language => 'simple')");
    let mut words = Words::seeded(11);
    let document = |id: usize| Document { id: id.to_string(), title: words.text(4), text: words.text(30) };
    let documents: Vec<Document> = (0..CHUNKS).map(document).collect();
    let mut random = Random::seeded(12);
    let vectors: Vec<(Key, Vec<f32>)> = documents
        .iter()
        .map(|document| (digest(document.titled_text().as_bytes()), direction(&mut random, DIMENSION)))
        .collect();
    let toward = hundredths_toward(&mut session, questions, &vectors);
    let ingested = library.ingest_beside(vectors.iter().map(|(key, vector)| (key, vector)), || {
        library.ingest_by(documents.len(), |transaction| {
            for (batch, documents) in documents.chunks(500).enumerate() {
                let column =
                    |field: fn(&Document) -> &str| documents.iter().map(field).collect::<Vec<&str>>();
                let range = batch * 500..batch * 500 + documents.len();
                let parts: Vec<i32> = range.clone().map(|at| (at % 100) as i32).collect();
                transaction
                    .execute(
                        "INSERT INTO rag.document (uri, title, content, metadata)
                         SELECT uri, title, content, jsonb_build_object('part', part, 'toward', toward)
                         FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::int[])
                              d (uri, title, content, part, toward)",
                        &[
                            &column(|d| &d.id),
                            &column(|d| &d.title),
                            &column(|d| &d.text),
                            &parts,
                            &&toward[range],
                        ],
                    )
                    .unwrap();
            }
        })
    });
    assert_eq!(
        (ingested.chunks, ingested.embedded),
        (CHUNKS as i64, 0),
        "a chunk each, and none is embedded"
    );
}

/// Of each vector: how many hundredths of all are farther from the middle of the questions.
fn hundredths_toward(session: &mut Session, questions: &[String], vectors: &[(Key, Vec<f32>)]) -> Vec<i32> {
    let mut middle = vec![0.0; DIMENSION];
    for question in questions {
        let row = session.client().query_one("SELECT rag_embed($1)::real[]", &[question]).unwrap();
        middle.iter_mut().zip(row.get::<_, Vec<f32>>(0)).for_each(|(sum, value)| *sum += value);
    }
    let cosine = |at: &usize| -> f32 { vectors[*at].1.iter().zip(&middle).map(|(a, b)| a * b).sum() };
    let mut order: Vec<usize> = (0..vectors.len()).collect();
    order.sort_by(|a, b| cosine(a).total_cmp(&cosine(b)));
    let mut hundredths = vec![0; vectors.len()];
    for (farther, at) in order.into_iter().enumerate() {
        hundredths[at] = (farther * 100 / vectors.len()) as i32;
    }
    hundredths
}

struct Bench {
    searching: Session,
    plain: Session,
    questions: Vec<String>,
    table: Table,
    faults: Vec<String>,
}

impl Bench {
    fn new(library: &Library<'_>, questions: Vec<String>) -> Self {
        let mut plain = library.admin();
        plain.run("SET enable_indexscan = off");
        Self {
            searching: library.session(),
            plain,
            questions,
            table: Table::new(&["filter", "mode", "k", "wrong counts", "recall@10", "p50 ms", "p95 ms"]),
            faults: Vec::new(),
        }
    }

    fn measure_filter(&mut self, name: &str, filter: Option<&str>, condition: &str) {
        for mode in ["keyword", "vector", "hybrid"] {
            self.measure(name, filter, condition, mode, true);
        }
    }

    /// Adds the rows of one mode. Where all vectors are compared, each neighbour has to be found.
    fn measure(&mut self, name: &str, filter: Option<&str>, condition: &str, mode: &str, is_exact: bool) {
        eprintln!("filter {name}, {mode}");
        for k in ROWS {
            let mut times = Times::default();
            let (mut wrong, mut found, mut wanted) = (0, 0, 0);
            for question in self.questions.clone() {
                let uris = times.take(|| search(&mut self.searching, &question, mode, filter, k));
                wrong += usize::from(uris.len() != self.expected(&question, mode, condition, k));
                if mode == "vector" && k == NEIGHBOURS {
                    let nearest = self.nearest(&question, condition);
                    found += nearest.iter().filter(|uri| uris.contains(uri)).count();
                    wanted += nearest.len();
                }
            }
            let recall = found as f64 / wanted as f64;
            if wrong > 0 {
                self.faults
                    .push(format!("filter {name}, {mode}, k = {k}: {wrong} of {QUESTIONS} counts are wrong"));
            }
            if recall < if is_exact { 1.0 } else { LEAST_RECALL } {
                self.faults.push(format!("filter {name}, {mode}: {found} of {wanted} neighbours are found"));
            }
            self.table.row([
                name.to_owned(),
                mode.to_owned(),
                k.to_string(),
                format!("{wrong} of {QUESTIONS}"),
                if wanted > 0 { format!("{recall:.3}") } else { "–".into() },
                format!("{:.1}", times.p50()),
                format!("{:.1}", times.p95()),
            ]);
        }
    }

    /// How many rows a search must return: k, or all that there are. In mode `keyword` those with a word of the question.
    fn expected(&mut self, question: &str, mode: &str, condition: &str, k: i32) -> usize {
        let has_word = match mode {
            "keyword" => format!(
                "string_to_array(d.title || ' ' || d.content, ' ') && string_to_array({}, ' ')",
                literal(question)
            ),
            _ => "true".into(),
        };
        let count = format!(
            "SELECT count(*) FROM (SELECT FROM rag.document d WHERE {condition} AND {has_word} LIMIT {k}) d"
        );
        self.plain.count(&count) as usize
    }

    /// The documents whose vectors are nearest to the question's, of those that the condition lets through.
    fn nearest(&mut self, question: &str, condition: &str) -> Vec<String> {
        let vector = self.plain.value(&format!("SELECT rag_embed({})::text", literal(question)));
        let vector = vector.replace('{', "[").replace('}', "]");
        self.plain.column(&format!(
            "SELECT d.uri FROM rag.embedding e JOIN rag.chunk c ON c.id = e.chunk_id
             JOIN rag.document d ON d.id = c.document_id WHERE {condition}
             ORDER BY e.vector <=> {}::halfvec, e.chunk_id LIMIT {NEIGHBOURS}",
            literal(&vector)
        ))
    }
}

/// The addresses that are found. Whatever is alike counts.
fn search(session: &mut Session, question: &str, mode: &str, filter: Option<&str>, k: i32) -> Vec<String> {
    let arguments: [&(dyn ToSql + Sync); 4] = [&question, &filter, &k, &mode];
    let rows = session.client().query(
        "SELECT uri FROM rag_search($1, filter => $2::text::jsonb, k => $3, mode => $4,
                                    options => '{\"near_duplicates\": \"keep\"}') ORDER BY rank",
        &arguments,
    );
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}
