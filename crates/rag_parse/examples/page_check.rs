//! Checks pages: parses and chunks PDFs and asks `pdftotext` (poppler-utils) whether each chunk's words stand on
//! the pages that the chunk names.
//!
//! `page_check FILE.pdf …` prints a row per file and the sum: share of words found (a chunk's words count once per
//! occurrence), median and 95th percentile of the pages a chunk names, and what parsing and chunking took.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use rag_core::chunk::{ChunkRequest, TokenBudget, Tokenizer, chunk};
use rag_core::chunking::ChunkOptions;
use rag_core::sentence::SentenceLanguage;
use rag_parse::{DocumentContent, parse};
use std::collections::HashMap;
use std::ops::Range;
use std::process::Command;
use std::time::{Duration, Instant};
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// About what a WordPiece tokenizer makes of English.
struct Words;

impl Tokenizer for Words {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        text.split_word_bound_indices()
            .filter(|(_, word)| !word.trim().is_empty())
            .map(|(at, word)| at..at + word.len())
            .collect()
    }
}

#[derive(Default)]
struct Tally {
    words: usize,
    found: usize,
    ranges: Vec<u32>,
    missing: HashMap<String, usize>,
    parsing: Duration,
    chunking: Duration,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.words += other.words;
        self.found += other.found;
        self.ranges.extend(other.ranges);
        self.parsing += other.parsing;
        self.chunking += other.chunking;
    }

    fn print(&mut self, name: &str) {
        self.ranges.sort_unstable();
        let at = |share: f64| {
            let last = self.ranges.len().saturating_sub(1);
            self.ranges.get((last as f64 * share).round() as usize).copied().unwrap_or(0)
        };
        println!(
            "{name:32} {:6} chunks {:8} words {:6.2} % on their pages; pages per chunk median {} 95 % {} most {}; \
             parse {:.2?} chunk {:.2?}",
            self.ranges.len(),
            self.words,
            100.0 * self.found as f64 / self.words.max(1) as f64,
            at(0.5),
            at(0.95),
            at(1.0),
            self.parsing,
            self.chunking
        );
    }
}

fn main() {
    let mut sum = Tally::default();
    for path in std::env::args().skip(1) {
        let mut tally = check(&path);
        tally.print(path.rsplit('/').next().unwrap());
        let mut missing: Vec<(String, usize)> = tally.missing.drain().collect();
        missing.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        missing.truncate(8);
        println!("    not found most often: {missing:?}");
        sum.add(tally);
    }
    sum.print("all");
}

fn check(path: &str) -> Tally {
    let bytes = std::fs::read(path).unwrap();
    let mut tally = Tally::default();
    let started = Instant::now();
    let parsed = parse(DocumentContent::Bytes(&bytes), None).unwrap();
    tally.parsing = started.elapsed();
    let count = parsed.pages.len();
    let budget = TokenBudget { max_tokens: 512, special_tokens: 2, passage_prefix_tokens: 0 };
    let options = ChunkOptions::default();
    let request = ChunkRequest {
        title: None,
        language: SentenceLanguage::Unknown,
        options: &options,
        budget,
        breaks: None,
    };
    let started = Instant::now();
    let document = chunk(parsed, &request, &Words);
    tally.chunking = started.elapsed();
    let pages = pages_by_poppler(path, count);
    for chunk in &document.chunks {
        let (first, last) = chunk.pages.unwrap();
        tally.ranges.push(last - first + 1);
        let there: String = pages[first as usize - 1..last as usize].join("\n");
        // Poppler keeps the hyphens at line ends; here the words are whole.
        let mut stock: HashMap<String, usize> = HashMap::new();
        let whole = there.replace("-\n", "").replace("\u{ad}\n", "");
        for text in [&there, &whole] {
            let mut counts: HashMap<String, usize> = HashMap::new();
            for word in words(text) {
                *counts.entry(word).or_default() += 1;
            }
            for (word, count) in counts {
                let have = stock.entry(word).or_default();
                *have = (*have).max(count);
            }
        }
        for word in words(document.chunk_text(chunk)) {
            tally.words += 1;
            match stock.get_mut(&word) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    tally.found += 1;
                }
                _ => *tally.missing.entry(word).or_default() += 1,
            }
        }
    }
    tally
}

/// The text of each page, as `pdftotext -f N -l N` gives it: one call for all, which parts pages by form feeds.
fn pages_by_poppler(path: &str, count: usize) -> Vec<String> {
    let output = Command::new("pdftotext").args(["-enc", "UTF-8", path, "-"]).output().unwrap();
    assert!(output.status.success(), "pdftotext failed on {path}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut pages: Vec<String> = text.split('\u{c}').map(str::to_owned).collect();
    pages.resize(count.max(pages.len()), String::new());
    pages
}

fn words(text: &str) -> Vec<String> {
    let text: String = text.nfkc().collect();
    text.unicode_words().map(str::to_lowercase).collect()
}
