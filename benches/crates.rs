//! Criterion on the pure crates: cutting a megabyte, fusing two lists, the best 25 of 20,000 chunks.

#![allow(clippy::unwrap_used, reason = "a bench that fails must say where")]
#![allow(missing_docs, reason = "criterion's macros make a public function without one")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rag_bm25::{Entry, Language, Query, Segment};
use rag_core::chunk::{ChunkRequest, TokenBudget, Tokenizer, chunk};
use rag_core::chunking::ChunkOptions;
use rag_core::document::ParsedDocument;
use rag_core::fuse::{RRF_K, Ranked, rrf, weighted_min_max};
use rag_core::sentence::SentenceLanguage;
use rag_tests::Random;
use std::hint::black_box;
use std::ops::Range;

/// A token is a word: what is measured is our own work, not a model's tokenizer.
struct Words;

impl Tokenizer for Words {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        text.split_ascii_whitespace().map(|word| start(word)..start(word) + word.len()).collect()
    }
}

fn words(random: &mut Random, count: usize) -> String {
    let word = |random: &mut Random| {
        let share = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        format!("w{}", (40_000f64.powf(share) - 1.0) as u32)
    };
    (0..count).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn chunking(criterion: &mut Criterion) {
    let mut random = Random::seeded(1);
    let mut text = String::new();
    let mut headings = Vec::new();
    while text.len() < 1 << 20 {
        let start = text.len();
        text += "## A heading";
        headings.push(rag_core::document::Heading {
            level: 2,
            title: "A heading".into(),
            bytes: start..text.len(),
        });
        for _ in 0..12 {
            text += "\n\n";
            text += &(0..6).map(|_| words(&mut random, 14) + ". ").collect::<String>();
        }
        text += "\n\n";
    }
    let parsed = ParsedDocument {
        media_type: "text/markdown".into(),
        title: Some("A document".into()),
        text,
        headings,
        pages: Vec::new(),
        metadata_json: "{}".into(),
    };
    let budget = TokenBudget { max_tokens: 512, special_tokens: 2, passage_prefix_tokens: 0 };
    let options = ChunkOptions::default();
    let request = ChunkRequest {
        title: None,
        language: SentenceLanguage::Unknown,
        options: &options,
        budget,
        breaks: None,
    };
    let mut group = criterion.benchmark_group("chunk");
    group.throughput(Throughput::Bytes(parsed.text.len() as u64)).sample_size(10);
    group.bench_function("1 MB of Markdown", |bencher| {
        bencher.iter_with_setup(|| parsed.clone(), |parsed| chunk(black_box(parsed), &request, &Words));
    });
    group.finish();
}

fn fusion(criterion: &mut Criterion) {
    let mut random = Random::seeded(2);
    let mut list = || -> Vec<Ranked> {
        (0..100u16)
            .map(|rank| Ranked { id: random.below(150) as u128, score: f32::from(100 - rank) })
            .collect()
    };
    let (keyword, vector) = (list(), list());
    let lists = [(keyword.as_slice(), 0.5), (vector.as_slice(), 0.5)];
    criterion.bench_function("fuse 100 + 100, RRF", |bencher| bencher.iter(|| rrf(black_box(&lists), RRF_K)));
    criterion.bench_function("fuse 100 + 100, weighted", |bencher| {
        bencher.iter(|| weighted_min_max(black_box(&lists)));
    });
}

fn bm25(criterion: &mut Criterion) {
    let mut random = Random::seeded(3);
    let texts: Vec<(String, String)> =
        (0..20_000).map(|_| (words(&mut random, 6), words(&mut random, 60))).collect();
    let entries = texts.iter().zip(0..).map(|((title, body), id)| Entry { id, title, body });
    let segments = [Segment::open(rag_bm25::build(Language::English, entries).unwrap()).unwrap()];
    for text in ["w3000", "w20 w300 w3000", "w1 w5 w20 w77 w300 w900 w2500 w4000"] {
        criterion.bench_function(&format!("bm25 top 25 of 20,000: {text}"), |bencher| {
            bencher.iter(|| {
                let query = Query::parse(black_box(text), Language::English);
                rag_bm25::search(&segments, &query, 25, None).unwrap()
            });
        });
    }
}

criterion_group!(benches, chunking, fusion, bm25);
criterion_main!(benches);
