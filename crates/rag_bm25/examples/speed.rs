//! Micro-benchmarks: build, open, search and merge, of one large segment and of 10,000 tiny ones.
//!
//! `cargo run --release -p rag_bm25 --example speed`. Texts are made of words with Zipf-like frequencies from
//! a fixed seed, so that runs compare. Each figure is the median of several runs.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use rag_bm25::{Entry, Language, Query, Segment, build, merge, search};

const QUERIES: [(&str, &str); 7] = [
    ("one rare word", "w4000"),
    ("one common word", "w3"),
    ("three words", "w20 w300 w4000"),
    ("eight words", "w1 w5 w20 w77 w300 w900 w2500 w4000"),
    ("eight common words", "w1 w2 w3 w4 w5 w6 w7 w8"),
    ("a phrase", "\"w1 w2\""),
    ("conditions", "+w20 w3 -w7"),
];

fn main() -> Result<(), Box<dyn Error>> {
    for (entries, words) in [(20_000, 60), (200_000, 100)] {
        one_segment(entries, words)?;
    }
    many_segments(10_000, 10, 60)?;
    Ok(())
}

fn one_segment(entries: usize, words: usize) -> Result<(), Box<dyn Error>> {
    println!("\n{entries} entries of {words} words, one segment");
    let texts = texts(entries, words);
    let begin = Instant::now();
    let blob = build(Language::English, numbered(&texts))?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("  build        {:>10.2} s, {:.0} entries/s", seconds, entries as f64 / seconds);
    println!("  size         {:>10.2} MiB", blob.len() as f64 / f64::from(1 << 20));
    let bytes = std::sync::Arc::<[u8]>::from(blob);
    println!("  open         {:>10.1} µs", median(51, || Segment::open(bytes.clone()).map(drop))?);
    println!("  open_trusted {:>10.1} µs", median(51, || Segment::open_trusted(bytes.clone()).map(drop))?);
    let segments = [Segment::open(bytes)?];
    queries(&segments, 201)?;
    tantivy_alone(&texts)?;
    let half = |id: u128| id.is_multiple_of(2);
    let begin = Instant::now();
    merge(&segments, &half)?;
    println!("  merge, half alive {:>5.2} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn many_segments(count: usize, entries: usize, words: usize) -> Result<(), Box<dyn Error>> {
    println!("\n{count} segments of {entries} entries of {words} words");
    let texts = texts(count * entries, words);
    let begin = Instant::now();
    let mut blobs = Vec::with_capacity(count);
    for (part, first) in texts.chunks(entries).zip((0..).step_by(entries)) {
        let numbered = numbered(part).map(|entry| Entry { id: entry.id + first, ..entry });
        blobs.push(std::sync::Arc::<[u8]>::from(build(Language::English, numbered)?));
    }
    println!("  build        {:>10.1} µs each", begin.elapsed().as_secs_f64() / count as f64 * 1e6);
    println!(
        "  size         {:>10.1} KiB each",
        blobs.iter().map(|b| b.len()).sum::<usize>() as f64 / count as f64 / 1024.0
    );
    let before = resident_kib();
    let begin = Instant::now();
    let segments = blobs.iter().map(|blob| Segment::open(blob.clone())).collect::<Result<Vec<_>, _>>()?;
    println!("  open all     {:>10.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    let again =
        (0..4).flat_map(|_| &blobs).map(|blob| Segment::open(blob.clone())).collect::<Result<Vec<_>, _>>()?;
    println!(
        "  memory       {:>10.1} KiB each, besides the bytes",
        (resident_kib() - before) / (5 * count) as f64
    );
    drop(again);
    queries(&segments, 11)?;
    let begin = Instant::now();
    merge(&segments[..100], &|_| true)?;
    println!("  merge of 100 {:>10.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

fn queries(segments: &[Segment], runs: usize) -> Result<(), Box<dyn Error>> {
    let half = |id: u128| id.is_multiple_of(2);
    for (name, text) in QUERIES {
        let query = Query::parse(text, Language::English);
        let plain = median(runs, || search(segments, &query, 25, None).map(drop))?;
        let filtered = median(runs, || search(segments, &query, 25, Some(&half)).map(drop))?;
        let all = search(segments, &query, usize::MAX, None)?.len();
        println!("  {name:<20} top 25 {plain:>10.1} µs, half accepted {filtered:>10.1} µs, of {all} matches");
    }
    Ok(())
}

/// The same words in the same fields, searched by tantivy's own collector.
fn tantivy_alone(texts: &[String]) -> Result<(), Box<dyn Error>> {
    use tantivy::collector::TopDocs;
    use tantivy::query::{BooleanQuery, BoostQuery, Occur, PhraseQuery, Query, TermQuery};
    use tantivy::schema::{IndexRecordOption, Schema, TEXT};
    use tantivy::{Index, IndexSettings, TantivyDocument, Term};
    let mut builder = Schema::builder();
    let (body, title) = (builder.add_text_field("body", TEXT), builder.add_text_field("title", TEXT));
    let directory = tantivy::directory::RamDirectory::create();
    let mut writer = Index::builder()
        .schema(builder.build())
        .settings(IndexSettings::default())
        .single_segment_index_writer::<TantivyDocument>(directory, 50_000_000)?;
    for entry in numbered(texts) {
        let mut document = TantivyDocument::default();
        document.add_text(body, entry.body);
        document.add_text(title, entry.title);
        writer.add_document(document)?;
    }
    let reader =
        writer.finalize()?.reader_builder().reload_policy(tantivy::ReloadPolicy::Manual).try_into()?;
    let searcher = reader.searcher();
    let words = ["w1", "w2"];
    let phrase = |field| PhraseQuery::new(words.map(|word| Term::from_field_text(field, word)).to_vec());
    let in_title: Box<dyn Query> = Box::new(BoostQuery::new(Box::new(phrase(title)), 0.5));
    let phrase = BooleanQuery::new(vec![(Occur::Should, Box::new(phrase(body))), (Occur::Should, in_title)]);
    let time = median(51, || searcher.search(&phrase, &TopDocs::with_limit(25).order_by_score()).map(drop))?;
    println!("  tantivy alone, {:<20} {time:>10.1} µs", "a phrase");
    for (name, text) in QUERIES.iter().filter(|(_, text)| !text.contains(['"', '+'])) {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for word in text.split(' ') {
            for (field, weight) in [(body, 1.0), (title, 0.5)] {
                let term = TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs);
                clauses.push((Occur::Should, Box::new(BoostQuery::new(Box::new(term), weight))));
            }
        }
        let query = BooleanQuery::new(clauses);
        let time =
            median(201, || searcher.search(&query, &TopDocs::with_limit(25).order_by_score()).map(drop))?;
        println!("  tantivy alone, {name:<20} {time:>10.1} µs");
    }
    Ok(())
}

/// The median time of `runs` runs, in microseconds.
fn median<E: Error + 'static>(
    runs: usize,
    mut run: impl FnMut() -> Result<(), E>,
) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let begin = Instant::now();
        run()?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[runs / 2])
}

fn numbered(texts: &[String]) -> impl Iterator<Item = Entry<'_>> {
    texts.iter().zip(0..).map(|(text, id)| Entry { id, title: &text[..text.len() / 10], body: text })
}

/// Texts of words `w0`, `w1`, …, of which the n-th is about n times rarer than the first.
fn texts(count: usize, words: usize) -> Vec<String> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut word = || format!("w{}", (50_000f64.powf(random()) - 1.0) as u32);
    (0..count).map(|_| (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(f64::NAN)
}
