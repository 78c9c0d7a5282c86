//! Tests of cutting: examples of each method, and promises that hold for any text.
#![allow(clippy::unwrap_used)]

#[path = "chunk/any_text.rs"]
mod any_text;
#[path = "chunk/methods.rs"]
mod methods;
#[path = "chunk/pages.rs"]
mod pages;
#[path = "chunk/recursive.rs"]
mod recursive;
#[path = "chunk/semantic.rs"]
mod semantic;
#[path = "chunk/tables.rs"]
mod tables;

use rag_core::chunk::{ChunkRequest, TokenBudget, Tokenizer};
use rag_core::chunking::{ChunkMethod, ChunkOptions, SizeUnit};
use rag_core::document::{ParsedDocument, PreparedDocument};
use rag_core::sentence::SentenceLanguage;
use rag_parse::{DocumentContent, parse};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// One token per run of visible characters.
struct Words;

impl Tokenizer for Words {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        text.split_whitespace()
            .map(|word| {
                let start = word.as_ptr() as usize - text.as_ptr() as usize;
                start..start + word.len()
            })
            .collect()
    }
}

/// Tokens that cut code points, repeat spans, and depend on where the text begins.
struct Nasty;

impl Tokenizer for Nasty {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = (0..text.len()).step_by(3).map(|at| at..at + 3).collect();
        // A slice has a token more than its share of the whole, twice over for an odd length.
        spans.extend(std::iter::repeat_n(0..0, 1 + text.len() % 2));
        spans
    }
}

/// A model of 510 tokens.
const BIG: TokenBudget = TokenBudget { max_tokens: 512, special_tokens: 2, passage_prefix_tokens: 0 };

fn options(size: u32, overlap: u32) -> ChunkOptions {
    ChunkOptions { size, overlap, ..ChunkOptions::default() }
}

fn chunk(
    parsed: ParsedDocument,
    title: Option<&str>,
    options: &ChunkOptions,
    budget: &TokenBudget,
    tokenizer: &dyn Tokenizer,
) -> PreparedDocument {
    let language = SentenceLanguage::Unknown;
    let mut request = ChunkRequest { title, language, options, budget: *budget, breaks: None };
    let breaks =
        (options.method == ChunkMethod::Semantic).then(|| semantic::breaks_of(&parsed, &request, tokenizer));
    request.breaks = breaks.as_deref();
    rag_core::chunk::chunk(parsed, &request, tokenizer)
}

fn cut(text: &str, title: Option<&str>, size: u32, overlap: u32) -> PreparedDocument {
    let parsed = parse(DocumentContent::Text(text), Some("text/markdown")).unwrap();
    chunk(parsed, title, &options(size, overlap), &BIG, &Words)
}

fn texts(document: &PreparedDocument) -> Vec<&str> {
    document.chunks.iter().map(|chunk| document.chunk_text(chunk)).collect()
}

/// What holds for every prepared document.
#[track_caller]
fn check_invariants(
    document: &PreparedDocument,
    options: &ChunkOptions,
    budget: &TokenBudget,
    tokenizer: &dyn Tokenizer,
) {
    let text = &document.parsed.text;
    let mut borders: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
    borders.push(text.len());
    let room = budget.max_tokens - budget.special_tokens - budget.passage_prefix_tokens;
    let length = |text: &str| match options.unit {
        SizeUnit::Tokens => tokenizer.count(text),
        SizeUnit::Characters => text.chars().count(),
    };
    let size = options.size as usize;
    // A grapheme that alone is over the limit may be cut; the limit can be an eighth of the room smaller, and half
    // of a chunk can be taken by a table's header.
    let longest = text.graphemes(true).map(|one| tokenizer.count(one).max(length(one))).max().unwrap_or(0);
    let smallest = size.min(room - room / 8);
    let mut covered = vec![false; text.len()];
    let mut last = (0, 0, 0);
    for chunk in &document.chunks {
        let slice = document.chunk_text(chunk);
        let by_chars: String = text
            .chars()
            .skip(chunk.chars.from as usize)
            .take((chunk.chars.to - chunk.chars.from) as usize)
            .collect();
        assert_eq!(by_chars, slice, "character span");
        assert!(slice.graphemes(true).next().unwrap().contains(is_visible), "{slice:?} begins visibly");
        assert!(slice.graphemes(true).next_back().unwrap().contains(is_visible), "{slice:?} ends visibly");
        assert_eq!(chunk.tokens as usize, tokenizer.count(slice), "token count");
        if longest <= smallest {
            assert!(length(slice) <= size, "{} units of {slice:?}, {size} allowed", length(slice));
            assert!(borders.binary_search(&chunk.bytes.start).is_ok(), "begins at a grapheme");
            assert!(borders.binary_search(&chunk.bytes.end).is_ok(), "ends at a grapheme");
        }
        let embedded = tokenizer.count(&document.embedded_text(chunk));
        assert!(embedded <= room, "{embedded} tokens embedded, {room} allowed");
        assert!(chunk.section >= last.0, "chunks of a section stand together");
        if chunk.section == last.0 {
            assert!(
                (chunk.bytes.start, chunk.bytes.end) > (last.1, last.2) && chunk.bytes.end > last.2,
                "order"
            );
        }
        last = (chunk.section, chunk.bytes.start, chunk.bytes.end);
        let section = &document.sections[chunk.section];
        assert!(section.bytes.start <= chunk.bytes.start && chunk.bytes.end <= section.bytes.end);
        covered[chunk.bytes.clone()].fill(true);
    }
    for (at, c) in text.char_indices() {
        assert!(!is_visible(c) || covered[at], "{c:?} at {at} is in no chunk of {text:?}");
    }
    let mut end = 0;
    for (index, section) in document.sections.iter().enumerate() {
        let gap = text.get(end..section.bytes.start).unwrap_or_default();
        assert!(!gap.contains(is_visible), "sections leave no visible gap, but {gap:?}");
        assert!(section.bytes.end > end, "sections go on");
        end = section.bytes.end;
        assert!(document.chunks.iter().any(|chunk| chunk.section == index), "each section has a chunk");
    }
    assert!(!text[end..].contains(is_visible));
}

/// Whether a character counts as text that must not be lost.
fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control()
}
