//! Where pages begin.

use super::{BIG, Words, check_invariants, chunk, options, texts};
use proptest::prelude::*;
use rag_core::document::{PageStart, PreparedDocument};
use rag_parse::{DocumentContent, parse};

/// Cuts sentences of ten words into chunks of 400 words with 64 repeated; pages begin at these bytes.
fn cut_pages(text: &str, offsets: &[usize]) -> PreparedDocument {
    let mut parsed = parse(DocumentContent::Text(text), Some("text/plain")).unwrap();
    parsed.pages = (1..).zip(offsets).map(|(page, &offset)| PageStart { page, offset }).collect();
    chunk(parsed, None, &options(400, 64), &BIG, &Words)
}

fn sentences(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("Sentence {n} of the book is ten words long, always. ")).collect()
}

#[test]
fn a_page_that_begins_with_a_sentence_begins_a_chunk_that_repeats_nothing() {
    let pages: Vec<String> = sentences(180).chunks(30).map(|page| page.concat()).collect();
    let offsets: Vec<usize> =
        pages.iter().scan(0, |at, page| Some(std::mem::replace(at, *at + page.len()))).collect();
    let document = cut_pages(&pages.concat(), &offsets);
    let named: Vec<_> = document.chunks.iter().map(|chunk| chunk.pages.unwrap()).collect();
    assert_eq!(named, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]);
    assert_eq!(document.chunks.iter().map(|chunk| chunk.tokens).sum::<u32>(), 1_800);
    check_invariants(&document, &options(400, 64), &BIG, &Words);
}

#[test]
fn a_page_that_begins_within_a_sentence_does_not_cut_it() {
    let text = sentences(120).concat();
    let within: Vec<usize> =
        sentences(120).iter().scan(0, |at, s| Some(std::mem::replace(at, *at + s.len()))).collect();
    let within: Vec<usize> = within.iter().skip(30).step_by(30).map(|at| at + 12).collect();
    assert_eq!(texts(&cut_pages(&text, &within)), texts(&cut_pages(&text, &[])));
}

#[test]
fn a_page_that_begins_early_in_a_chunk_leaves_no_short_one() {
    let pages: Vec<String> = sentences(120).chunks(10).map(|page| page.concat()).collect();
    let offsets: Vec<usize> =
        pages.iter().scan(0, |at, page| Some(std::mem::replace(at, *at + page.len()))).collect();
    let document = cut_pages(&pages.concat(), &offsets);
    // Of the pages of 100 words that begin in the second half of a chunk, the last one ends it.
    assert!(document.chunks.iter().all(|chunk| chunk.tokens >= 300), "{:?}", texts(&document));
}

proptest! {
    #[test]
    fn pages_that_begin_anywhere_break_no_promise(
        words in proptest::collection::vec("[a-zé]{1,8}[.]?[ \n]{1,2}", 0..2_000),
        offsets in proptest::collection::vec(0usize..12_000, 0..40),
    ) {
        let document = cut_pages(&words.concat(), &offsets);
        check_invariants(&document, &options(400, 64), &BIG, &Words);
    }
}
