//! The four methods of chunking on the articles of XQuAD in English, at equal size: how soon does a search show the answer,
//! and how much is to be read until then?
//!
//! An article is the paragraphs of one title, joined by blank lines. The rule favours no cut: a chunk answers a question
//! where it is of the question's article and an answer stands in it, letter by letter. So a chunk that cuts an answer in two
//! does not count, one that begins in the middle of a paragraph does, and a longer one is paid for by what is to be read.
//!
//! `RAG_BENCH_DOCUMENTS=12` takes so many articles.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(clippy::print_stdout, reason = "a table is what a bench is for")]

use rag_benches::{Corpus, Document, KeptVectors, Library, Query, Table, eval_data, model_digest};
use rag_core::evaluate::{RESAMPLES, paired_bootstrap};
use rag_tests::Cluster;
use std::collections::HashMap;
use std::process::ExitCode;

const METHODS: [&str; 4] = ["recursive", "section", "parent_child", "semantic"];

/// Tokens of a chunk at most.
const SIZES: [usize; 2] = [128, 256];

/// Chunks of a search that are looked at.
const ROWS: usize = 10;

/// What a search came to: where the first chunk with an answer stands, from 1, and the tokens up to its end.
struct Read {
    rank: Option<usize>,
    tokens: i64,
}

fn main() -> ExitCode {
    let Some(data) = eval_data() else {
        eprintln!("RAG_EVAL_DATA is not set: it names the folder with xquad-en");
        return ExitCode::from(2);
    };
    let limit = std::env::var("RAG_BENCH_DOCUMENTS").map_or(usize::MAX, |count| count.parse().unwrap());
    let corpus = Corpus::read(&data, "xquad-en");
    let (articles, questions) = articles(&corpus, limit);
    println!("{} articles, {} questions", articles.len(), questions.len());

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let cluster = Cluster::builder("chunking").setting("rag_ext.bulk_threads", &threads.to_string()).start();
    let mut table = Table::new(&[
        "size",
        "method",
        "chunks",
        "tokens each",
        "in the first",
        "in the first 3",
        "MRR@10",
        "beside recursive",
        "tokens to the answer",
    ]);
    for size in SIZES {
        let mut recursive: Option<Vec<f64>> = None;
        for method in METHODS {
            let (chunks, tokens, reads) = measure(&cluster, method, size, &articles, &questions);
            let reciprocal: Vec<f64> =
                reads.iter().map(|read| read.rank.map_or(0.0, |r| 1.0 / r as f64)).collect();
            let differences =
                recursive.as_ref().map(|of| reciprocal.iter().zip(of).map(|(a, b)| a - b).collect());
            let beside = differences.map_or_else(
                || "–".to_owned(),
                |differences: Vec<f64>| {
                    let p = paired_bootstrap(&differences, RESAMPLES, 8);
                    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
                    format!(
                        "{mean:+.3}, p {}",
                        if p < 0.001 { "< 0.001".into() } else { format!("= {p:.3}") }
                    )
                },
            );
            let share = |within: usize| {
                let found = reads.iter().filter(|read| read.rank.is_some_and(|rank| rank <= within)).count();
                format!("{:.3}", found as f64 / reads.len() as f64)
            };
            table.row([
                size.to_string(),
                method.to_owned(),
                chunks.to_string(),
                format!("{:.0}", tokens as f64 / chunks as f64),
                share(1),
                share(3),
                format!("{:.3}", reciprocal.iter().sum::<f64>() / reads.len() as f64),
                beside,
                format!(
                    "{:.0}",
                    reads.iter().map(|read| read.tokens).sum::<i64>() as f64 / reads.len() as f64
                ),
            ]);
            recursive.get_or_insert(reciprocal);
        }
    }
    table.print();
    ExitCode::SUCCESS
}

/// Articles, and the questions about them, each with its article's title.
fn articles(corpus: &Corpus, limit: usize) -> (Vec<Document>, Vec<(String, &Query)>) {
    let mut articles: Vec<Document> = Vec::new();
    let mut titles: HashMap<&str, &str> = HashMap::new();
    for Document { id, title, text } in &corpus.documents {
        titles.insert(id, title);
        match articles.iter_mut().find(|article| article.title == *title) {
            Some(article) => {
                article.text += "\n\n";
                article.text += text;
            }
            None => articles.push(Document { id: title.clone(), title: title.clone(), text: text.clone() }),
        }
    }
    articles.truncate(limit);
    let questions = corpus
        .judged_queries()
        .filter_map(|query| {
            let title = query.relevant.iter().find_map(|id| titles.get(&id[..]))?;
            articles.iter().any(|article| article.title == *title).then(|| ((*title).to_owned(), query))
        })
        .collect();
    (articles, questions)
}

/// Cuts by one method, and searches: number of chunks, their tokens, and what each question came to.
fn measure(
    cluster: &Cluster,
    method: &str,
    size: usize,
    articles: &[Document],
    questions: &[(String, &Query)],
) -> (i64, i64, Vec<Read>) {
    eprintln!("{method}, {size} tokens");
    let library = Library::new(cluster, &format!("{method}_{size}"));
    let mut session = library.session();
    session.run(&format!(
        r#"SELECT rag_create_collection('default', options =>
             '{{"chunking": {{"method": "{method}", "unit": "tokens", "size": {size}, "overlap": 0}}}}')"#
    ));
    let mut kept = KeptVectors::open(&format!("chunking-{method}-{size}.vectors"), &model_digest());
    library.ingest_with(&mut kept, || library.ingest(articles));
    let chunks = session.count("SELECT count(*) FROM rag.chunk");
    let tokens = session.count("SELECT sum(tokens) FROM rag.chunk");
    let client = session.client();
    let search = client
        .prepare(&format!(
            "SELECT s.title, s.content, (SELECT tokens FROM rag.chunk c WHERE c.id = s.chunk_id)
             FROM rag_search($1, k => {ROWS}) s ORDER BY rank"
        ))
        .unwrap();
    let read = |(title, query): &(String, &Query)| {
        let mut tokens = 0;
        for (at, row) in client.query(&search, &[&query.text]).unwrap().iter().enumerate() {
            tokens += i64::from(row.get::<_, i32>(2));
            let content: &str = row.get(1);
            if row.get::<_, &str>(0) == title && query.answers.iter().any(|answer| content.contains(answer)) {
                return Read { rank: Some(at + 1), tokens };
            }
        }
        Read { rank: None, tokens }
    };
    let reads = questions.iter().map(read).collect();
    (chunks, tokens, reads)
}
