//! Tables: rows whole, headers repeated.

use super::{BIG, ChunkMethod, ChunkOptions, Words, check_invariants, chunk, options, texts};
use proptest::prelude::*;
use rag_core::chunk::{TokenBudget, Tokenizer, indexed_title, table_header};
use rag_core::document::PreparedDocument;
use rag_parse::{DocumentContent, parse};

const HEADER: &str = "| City | People |\n| --- | ---: |";

fn table(rows: usize) -> String {
    (0..rows).fold(HEADER.to_owned(), |table, row| format!("{table}\n| City number {row} | {row}000 |"))
}

fn cut(text: &str, options: &ChunkOptions, budget: &TokenBudget) -> PreparedDocument {
    let parsed = parse(DocumentContent::Text(text), Some("text/markdown")).unwrap();
    let document = chunk(parsed, Some("Atlas"), options, budget, &Words);
    check_invariants(&document, options, budget, &Words);
    document
}

#[test]
fn a_table_that_is_split_repeats_its_header_in_the_context() {
    let text = format!("# Cities\n\nBefore the table.\n\n{}\n\nAfter it.", table(30));
    let document = cut(&text, &options(60, 0), &BIG);
    let within: Vec<_> =
        document.chunks.iter().filter(|c| document.chunk_text(c).starts_with("| City number")).collect();
    assert!(within.len() >= 3, "{:?}", texts(&document));
    for chunk in &within {
        assert_eq!(chunk.context, format!("Atlas > Cities\n{HEADER}"));
        assert_eq!(table_header(&chunk.context), Some(HEADER));
        let own = Words.count(document.chunk_text(chunk)) + Words.count(HEADER);
        assert!(own <= 60, "{own} tokens with the header");
    }
    let others = document.chunks.iter().filter(|c| !document.chunk_text(c).starts_with("| City number"));
    assert!(others.clone().all(|c| c.context == "Atlas > Cities" && table_header(&c.context).is_none()));
    assert!(others.count() >= 1);
}

#[test]
fn a_header_is_not_parted_from_its_first_row() {
    let words = "word ".repeat(40);
    for size in 18..60 {
        let document = cut(&format!("{words}\n\n{}", table(9)), &options(size, 0), &BIG);
        for chunk in texts(&document) {
            assert!(!chunk.ends_with("People |") && !chunk.ends_with("---: |"), "{size}: {chunk}");
        }
    }
}

#[test]
fn a_header_that_takes_more_than_half_is_not_repeated() {
    let header = format!("| {} |\n|---|", "name ".repeat(30));
    let text = (0..20).fold(header, |table, row| format!("{table}\n| cell {row} |"));
    let document = cut(&text, &options(40, 0), &BIG);
    assert!(document.chunks.len() > 2);
    assert!(document.chunks.iter().all(|chunk| table_header(&chunk.context).is_none()));
}

#[test]
fn rows_without_a_delimiter_row_have_no_header() {
    let text = (0..20).map(|row| format!("| cell {row} | x |\n")).collect::<String>();
    let document = cut(&text, &options(30, 0), &BIG);
    assert!(document.chunks.len() > 3);
    assert!(document.chunks.iter().all(|chunk| chunk.context == "Atlas"));
}

#[test]
fn a_model_too_small_for_a_section_gets_the_header_with_each_chunk() {
    let options = ChunkOptions {
        size: 200,
        overlap: 20,
        ..ChunkOptions::of(ChunkMethod::Section, super::SizeUnit::Tokens)
    };
    let small = TokenBudget { max_tokens: 66, special_tokens: 2, passage_prefix_tokens: 0 };
    let document = cut(&table(60), &options, &small);
    assert!(document.sections.len() >= 2 && document.chunks.len() > 2 * document.sections.len());
    for chunk in &document.chunks {
        let has_own = document.chunk_text(chunk).starts_with("| City |");
        assert_eq!(table_header(&chunk.context).is_some(), !has_own, "{:?}", document.chunk_text(chunk));
    }
}

#[test]
fn the_index_has_the_columns_names_as_title() {
    let headings = ["Atlas".to_owned(), "Cities".to_owned()];
    assert_eq!(indexed_title("Atlas", &headings, "Atlas > Cities"), "Atlas Cities");
    let context = format!("Atlas > Cities\n{HEADER}");
    assert_eq!(indexed_title("Map", &headings, &context), "Map Atlas Cities | City | People |");
    assert_eq!(indexed_title("", &[], HEADER), "| City | People |");
    assert_eq!(indexed_title("", &[], ""), "");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_row_is_cut_only_if_it_alone_is_too_large(
        before in 0usize..60,
        columns in 1usize..5,
        rows in proptest::collection::vec(1usize..12, 1..40),
        size in 16u32..90,
        overlap in 0u32..8,
        method in prop_oneof![
            Just(ChunkMethod::Recursive), Just(ChunkMethod::Section), Just(ChunkMethod::ParentChild)
        ],
    ) {
        let row = |cell: String| format!("\n|{}", format!(" {cell} |").repeat(columns));
        let mut text = "word ".repeat(before) + "\n\n" + &row("head".into()) + &row("---".into());
        for (number, words) in rows.iter().enumerate() {
            text += &row(format!("r{number} {}", "c ".repeat(*words)));
        }
        text += "\n\nAfter.";
        let options = ChunkOptions { size, overlap, min_size: size / 4, ..ChunkOptions::of(method, super::SizeUnit::Tokens) };
        let document = cut(&text, &options, &BIG);
        for chunk in &document.chunks {
            for (at, is_start) in [(chunk.bytes.start, true), (chunk.bytes.end, false)] {
                let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
                let end = text[at..].find('\n').map_or(text.len(), |to| at + to);
                let row = &text[line..end];
                let inside = if is_start { at > line } else { at < row.trim_end().len() + line };
                prop_assert!(
                    !row.starts_with('|') || !inside || Words.count(row) > size as usize,
                    "{row:?} is cut at {} by size {size}", at - line
                );
            }
        }
    }
}
