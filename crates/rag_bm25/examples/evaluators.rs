//! Our evaluator beside tantivy's, on the same terms of SciFact and Cranfield, in one segment and in many.
//!
//! `cargo run --release -p rag_bm25 --example evaluators -- DATA`, where `DATA` holds folders `scifact` and
//! `cranfield` in the layout of BEIR. Texts are stemmed before, so that both index the same words. tantivy is asked in
//! two ways: one index of all segments, and an index for each segment, as blobs are kept, with statistics summed over
//! all of them. Times are means per query, of the best of three rounds.
#![allow(clippy::print_stdout)]

use rag_bm25::{Entry, Language, Segment, build, search};
use rag_core::words::{Algorithm, Stemmer, stop_words};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tantivy::collector::{FilterCollector, TopDocs};
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, STORED, Schema, TEXT};
use tantivy::{DocAddress, Index, Searcher, TantivyDocument, Term};

const LIMIT: usize = 25;
const ROUNDS: usize = 3;
/// Most queries of a set.
const QUERIES: usize = 300;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
/// Ids with their scores, the best first.
type Ranking = Vec<(u64, f32)>;

/// A text as terms, of title and body.
struct Document {
    title: String,
    body: String,
}

fn main() -> Result<()> {
    let data: PathBuf = std::env::args_os().nth(1).ok_or("usage: evaluators DATA")?.into();
    for (name, parts) in [("cranfield", &[1, 100][..]), ("scifact", &[1, 100, 1000])] {
        let documents: Vec<Document> = records(&data.join(name).join("corpus.jsonl"))?
            .iter()
            .map(|record| Document { title: terms(&record["title"]), body: terms(&record["text"]) })
            .collect();
        let queries: Vec<String> = records(&data.join(name).join("queries.jsonl"))?
            .iter()
            .take(QUERIES)
            .map(|record| terms(&record["text"]))
            .collect();
        let mut of_one_segment = None;
        for count in parts {
            println!("\n{name}: {} texts, {} queries, segments: {count}", documents.len(), queries.len());
            let rankings = compare(&documents, &queries, *count)?;
            let whole = of_one_segment.get_or_insert_with(|| rankings.clone());
            if *count > 1 {
                for (rankings, who) in rankings.iter().zip(WHO) {
                    let other = rankings.iter().zip(&whole[0]).filter(|(a, b)| ids(a) != ids(b)).count();
                    println!("  {who:<24} {other:>5} rankings differ from ours of one segment");
                }
            }
        }
    }
    Ok(())
}

const WHO: [&str; 3] = ["ours", "tantivy, one index", "tantivy, index each"];

fn compare(documents: &[Document], queries: &[String], count: usize) -> Result<[Vec<Ranking>; 3]> {
    let size = documents.len().div_ceil(count);
    let half = |id: u64| id.is_multiple_of(2);
    let mut segments = Vec::new();
    for (part, first) in documents.chunks(size).zip((0..).step_by(size)) {
        let entries = part.iter().zip(first..);
        let entries = entries.map(|(text, id)| Entry { id, title: &text.title, body: &text.body });
        segments.push(Segment::open(build(Language::Simple, entries)?)?);
    }
    let ours = |text: &str, is_half: bool| {
        let query = rag_bm25::Query::parse(text, Language::Simple);
        let accept = |id: u128| half(id as u64);
        let hits = search(&segments, &query, LIMIT, is_half.then_some(&accept as &dyn Fn(u128) -> bool))?;
        Ok(hits.into_iter().map(|hit| (hit.id as u64, hit.score)).collect())
    };
    let mut one = Tantivy::build(documents, size, false)?;
    let each = Tantivy::build(documents, size, true)?;
    let rankings = [
        timed(WHO[0], queries, ours)?,
        timed(WHO[1], queries, |text, is_half| one.search(text, is_half.then_some(half)))?,
        timed(WHO[2], queries, |text, is_half| each.search(text, is_half.then_some(half)))?,
    ];
    // Other scores, and the only case in which tantivy passes over blocks of postings.
    one.is_weighted = false;
    timed("the same without weights", queries, |text, is_half| one.search(text, is_half.then_some(half)))?;
    Ok(rankings)
}

/// Runs all queries, and prints the time of one, with and without a condition on ids; the rankings without.
fn timed(
    who: &str,
    queries: &[String],
    search: impl Fn(&str, bool) -> Result<Ranking>,
) -> Result<Vec<Ranking>> {
    let mut best = [f64::INFINITY; 2];
    let mut rankings = Vec::new();
    for _ in 0..ROUNDS {
        for (is_half, best) in [false, true].into_iter().zip(&mut best) {
            let begin = Instant::now();
            let found = queries.iter().map(|text| search(text, is_half)).collect::<Result<Vec<Ranking>>>()?;
            *best = best.min(begin.elapsed().as_secs_f64() * 1e6 / queries.len() as f64);
            if !is_half {
                rankings = found;
            }
        }
    }
    println!("  {who:<24} {:>9.1} µs, half of the ids accepted {:>9.1} µs", best[0], best[1]);
    Ok(rankings)
}

fn ids(ranking: &Ranking) -> Vec<u64> {
    ranking.iter().map(|(id, _)| *id).collect()
}

/// Segments of tantivy, in one index or in one each.
struct Tantivy {
    searchers: Vec<Searcher>,
    fields: [(Field, f32); 2],
    /// Whether a title counts half.
    is_weighted: bool,
    /// Over all indexes, as they do not change between searches.
    documents: u64,
    tokens: HashMap<Field, u64>,
}

impl Tantivy {
    fn build(documents: &[Document], size: usize, one_each: bool) -> Result<Self> {
        let mut builder = Schema::builder();
        let body = builder.add_text_field("body", TEXT);
        let title = builder.add_text_field("title", TEXT);
        let id = builder.add_u64_field("id", FAST | STORED);
        let schema = builder.build();
        let mut searchers = Vec::new();
        let texts: Vec<(u64, &Document)> = (0..).zip(documents).collect();
        let per_index = if one_each { size } else { documents.len() };
        for texts in texts.chunks(per_index) {
            let index = Index::create_in_ram(schema.clone());
            let mut writer = index.writer_with_num_threads::<TantivyDocument>(1, 100_000_000)?;
            writer.set_merge_policy(Box::new(NoMergePolicy));
            for part in texts.chunks(size) {
                for (number, text) in part {
                    let mut document = TantivyDocument::default();
                    document.add_u64(id, *number);
                    document.add_text(body, &text.body);
                    document.add_text(title, &text.title);
                    writer.add_document(document)?;
                }
                writer.commit()?;
            }
            let searcher = index.reader()?.searcher();
            assert_eq!(searcher.segment_readers().len(), texts.len().div_ceil(size));
            searchers.push(searcher);
        }
        let tokens = |field: Field| {
            let each = searchers.iter().map(|one| one.total_num_tokens(field));
            Ok((field, each.sum::<tantivy::Result<u64>>()?))
        };
        let tokens = [body, title].into_iter().map(tokens).collect::<Result<_>>()?;
        Ok(Self {
            searchers,
            fields: [(body, 1.0), (title, 0.5)],
            is_weighted: true,
            documents: documents.len() as u64,
            tokens,
        })
    }

    fn search(&self, text: &str, accept: Option<fn(u64) -> bool>) -> Result<Ranking> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut frequencies = HashMap::new();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            for (field, weight) in self.fields {
                let term = Term::from_field_text(field, word);
                let frequency =
                    self.searchers.iter().map(|one| one.doc_freq(&term)).sum::<tantivy::Result<u64>>()?;
                frequencies.insert(term.clone(), frequency);
                let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                let query = if self.is_weighted { Box::new(BoostQuery::new(query, weight)) } else { query };
                clauses.push((Occur::Should, query));
            }
        }
        let query = BooleanQuery::new(clauses);
        let sums = Sums { index: self, frequencies };
        let mut ranking = Ranking::new();
        for searcher in &self.searchers {
            let top = TopDocs::with_limit(LIMIT).order_by_score();
            let hits: Vec<(f32, DocAddress)> = match accept {
                None => searcher.search_with_statistics_provider(&query, &top, &sums)?,
                Some(accept) => {
                    let top = FilterCollector::new("id".into(), accept, top);
                    searcher.search_with_statistics_provider(&query, &top, &sums)?
                }
            };
            for (score, address) in hits {
                let reader = searcher.segment_reader(address.segment_ord);
                let ids = reader.fast_fields().u64("id")?;
                ranking.push((ids.first(address.doc_id).ok_or("a text without an id")?, score));
            }
        }
        ranking.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranking.truncate(LIMIT);
        Ok(ranking)
    }
}

/// Statistics over all indexes of a search.
struct Sums<'a> {
    index: &'a Tantivy,
    frequencies: HashMap<Term, u64>,
}

impl Bm25StatisticsProvider for Sums<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.index.tokens.get(&field).copied().unwrap_or(0))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.index.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        Ok(self.frequencies.get(term).copied().unwrap_or(0))
    }
}

/// The stems of a text's words, without stop words.
fn terms(text: &str) -> String {
    let stemmer = Stemmer::new(Algorithm::English);
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.filter(|word| word.len() < 40 && !stop_words("en").contains(word));
    words.map(|word| stemmer.stem(word).into_owned()).collect::<Vec<_>>().join(" ")
}

fn records(path: &Path) -> Result<Vec<HashMap<String, String>>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let record = |line: &str| {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line)?;
        let text = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        Ok(object.into_iter().map(|(key, value)| (key, text(value))).collect())
    };
    text.lines().map(record).collect()
}
