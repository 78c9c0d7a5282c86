//! The method `recursive`, and what all methods share: borders, overlap, context, pages.

use super::{
    BIG, ChunkMethod, ChunkOptions, Nasty, SizeUnit, Words, check_invariants, chunk, cut, options, texts,
};
use rag_core::chunk::{MAX_CONTEXT_TOKENS, TokenBudget, Tokenizer};
use rag_core::document::{Heading, PageStart, ParsedDocument};
use rag_parse::{DocumentContent, parse};
use std::cell::Cell;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

#[test]
fn a_section_that_fits_is_one_chunk_and_small_ones_are_not_merged() {
    let document = cut("Before.\n\n# A\n\nOne.\n\n## B\n\nTwo.\n\n# C\n\nThree.\n", None, 100, 10);
    assert_eq!(texts(&document), ["Before.", "# A\n\nOne.", "## B\n\nTwo.", "# C\n\nThree."]);
    let paths: Vec<String> = document.sections.iter().map(|section| section.header_path.join("/")).collect();
    assert_eq!(paths, ["", "A", "A/B", "C"]);
}

#[test]
fn headings_without_text_go_with_the_section_that_follows() {
    let document = cut("# A\n\n## B\n\nText.\n\n# C\n# D\n", None, 100, 10);
    assert_eq!(texts(&document), ["# A\n\n## B\n\nText.\n\n# C\n# D"]);
    assert_eq!(document.sections[0].header_path, ["A", "B"]);
    assert_eq!(texts(&cut("# A\n# B\n", None, 100, 10)), ["# A\n# B"]);
    assert!(cut(" \n\n", None, 100, 10).chunks.is_empty());
}

#[test]
fn context_is_title_and_headings_and_names_nothing_twice() {
    let document = cut("# Guide\n\n## Setup\n\nText.", Some("Guide"), 100, 10);
    assert_eq!(document.chunks[0].context, "Guide > Setup");
    assert_eq!(document.embedded_text(&document.chunks[0]), "Guide > Setup\n# Guide\n\n## Setup\n\nText.");
    let document = cut("# Guide\n\nText.", Some("Manual"), 100, 10);
    assert_eq!(document.chunks[0].context, "Manual > Guide");
    assert_eq!(cut("Text.", None, 100, 10).chunks[0].context, "");
}

#[test]
fn context_loses_its_left_parts_when_the_text_needs_the_room() {
    let body = "w ".repeat(9);
    let budget = TokenBudget { max_tokens: 16, special_tokens: 2, passage_prefix_tokens: 1 };
    let parsed =
        parse(DocumentContent::Text(&format!("# Outer\n\n## Inner\n\n{body}")), Some("text/markdown"))
            .unwrap();
    let document = chunk(parsed, Some("Title"), &options(13, 0), &budget, &Words);
    // 13 tokens of text fill the room, so the context is empty.
    assert_eq!(document.chunks[0].tokens, 13);
    assert_eq!(document.chunks[0].context, "");
    let parsed =
        parse(DocumentContent::Text("# Outer\n\n## Inner\n\nw w w w w w"), Some("text/markdown")).unwrap();
    let document = chunk(parsed, Some("Title"), &options(13, 0), &budget, &Words);
    assert_eq!(document.chunks[0].context, "Outer > Inner");
}

#[test]
fn context_has_at_most_64_tokens() {
    let long = "word ".repeat(500);
    let document = cut(&format!("# {long}\n\nText."), None, 600, 0);
    let tokens = Words.count(&document.chunks[0].context);
    assert!((32..=MAX_CONTEXT_TOKENS).contains(&tokens), "{tokens}");
}

#[test]
fn a_long_section_is_cut_at_paragraphs_then_sentences() {
    let text = "One two three. Four five six.\n\nSeven eight nine. Ten eleven twelve.";
    assert_eq!(
        texts(&cut(text, None, 6, 0)),
        ["One two three. Four five six.", "Seven eight nine. Ten eleven twelve."]
    );
    assert_eq!(
        texts(&cut(text, None, 4, 0)),
        ["One two three.", "Four five six.", "Seven eight nine.", "Ten eleven twelve."]
    );
    assert_eq!(texts(&cut("a b c d e", None, 2, 0)), ["a b", "c d", "e"]);
}

#[test]
fn overlap_begins_at_a_sentence_or_a_word() {
    let text = "One two three. Four five six. Seven eight nine. Ten eleven twelve.";
    assert_eq!(
        texts(&cut(text, None, 6, 3)),
        [
            "One two three. Four five six.",
            "Four five six. Seven eight nine.",
            "Seven eight nine. Ten eleven twelve."
        ]
    );
    assert_eq!(texts(&cut("a b c d e f g", None, 4, 2)), ["a b c d", "c d e f", "e f g"]);
}

#[test]
fn overlap_does_not_begin_within_a_table_row() {
    let text = "| a b c d e f |\n| g h i j k l |\n| m n o p q r |";
    for chunk in texts(&cut(text, None, 12, 4)) {
        assert!(chunk.starts_with('|') && chunk.ends_with('|'), "{chunk}");
    }
}

#[test]
fn a_table_row_and_a_code_block_stay_whole_where_they_fit() {
    let text = "Intro here.\n\n| a | b |\n| - | - |\n| one x y z | two |\n| three | four |\n\nAfter that.";
    let rows = cut(text, None, 9, 0);
    for row in ["| a | b |", "| one x y z | two |", "| three | four |"] {
        assert_eq!(texts(&rows).iter().filter(|chunk| chunk.contains(row)).count(), 1, "{:?}", texts(&rows));
    }
    let text = "Some words before the code block starts.\n\n```\na b\n\nc d\n```\n\nSome words after it.";
    let code = cut(text, None, 8, 0);
    assert!(texts(&code).iter().any(|chunk| chunk.contains("```\na b\n\nc d\n```")), "{:?}", texts(&code));
}

#[test]
fn a_heading_is_never_a_chunk_without_its_text() {
    let text = format!("# Title\n\n{}.", "long ".repeat(40));
    assert!(texts(&cut(&text, None, 41, 0))[0].contains("long"));
    let table = format!("# Title\n\n| {} |", "cell ".repeat(38));
    assert!(texts(&cut(&table, None, 40, 0))[0].contains("cell"));
}

#[test]
fn pages_of_chunks_and_sections_are_known() {
    let text = "aa bb\ncc dd\nee ff".to_owned();
    let parsed = ParsedDocument {
        media_type: "application/pdf".into(),
        title: None,
        headings: vec![],
        pages: [(1, 0), (2, 6), (3, 12)].map(|(page, offset)| PageStart { page, offset }).to_vec(),
        metadata_json: "{}".into(),
        text,
    };
    let document = chunk(parsed, None, &options(4, 0), &BIG, &Words);
    assert_eq!(document.sections[0].pages, Some((1, 3)));
    assert_eq!(document.chunks.iter().map(|c| c.pages.unwrap()).collect::<Vec<_>>(), [(1, 2), (3, 3)]);
}

#[test]
fn headings_that_make_no_sense_are_passed_over() {
    let heading = |bytes| Heading { level: 1, title: "x".into(), bytes };
    let parsed = ParsedDocument {
        media_type: "text/plain".into(),
        title: None,
        text: "äää text".into(),
        headings: vec![heading(1..3), heading(50..60), heading(0..2), heading(0..2)],
        pages: vec![],
        metadata_json: "{}".into(),
    };
    assert_eq!(chunk(parsed, None, &options(4, 0), &BIG, &Words).chunks.len(), 1);
}

#[test]
fn an_endless_word_is_cut_between_graphemes() {
    let text = "👩‍👩‍👧‍👦".repeat(40);
    let budget = TokenBudget { max_tokens: 40, special_tokens: 2, passage_prefix_tokens: 0 };
    let parsed = parse(DocumentContent::Text(&text), Some("text/plain")).unwrap();
    let document = chunk(parsed, None, &options(32, 0), &budget, &Nasty);
    check_invariants(&document, &options(32, 0), &budget, &Nasty);
    assert!(texts(&document).iter().all(|chunk| chunk.graphemes(true).all(|g| g == "👩‍👩‍👧‍👦")));
}

#[test]
fn a_grapheme_that_just_fits_is_not_cut() {
    // Ten bytes, one grapheme: five tokens, exactly the size, where any shorter try falls inside it.
    let text = "x".repeat(63)
        + "\n```\ncode line\n\n# Heading line\naaa ¡ \u{301}𑆳\u{cd5}\n- item one Aa. \n# Heading line\n";
    let budget = TokenBudget { max_tokens: 10, special_tokens: 2, passage_prefix_tokens: 0 };
    let parsed = parse(DocumentContent::Text(&text), None).unwrap();
    check_invariants(&chunk(parsed, None, &options(5, 0), &budget, &Nasty), &options(5, 0), &budget, &Nasty);
}

/// Words, and how often and how much of a text was read for them.
#[derive(Default)]
struct Counting {
    calls: Cell<usize>,
    bytes: Cell<usize>,
}

impl Tokenizer for Counting {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        self.calls.set(self.calls.get() + 1);
        self.bytes.set(self.bytes.get() + text.len());
        Words.token_spans(text)
    }
}

#[test]
fn a_short_text_and_its_title_are_read_once() {
    let (title, text) = ("A title", "Some words of a sentence. ".repeat(10));
    let parsed = parse(DocumentContent::Text(&text), Some("text/plain")).unwrap();
    let counting = Counting::default();
    let document = chunk(parsed, Some(title), &ChunkOptions::default(), &BIG, &counting);
    assert_eq!((document.chunks.len(), document.chunks[0].context.as_str()), (1, title));
    let bytes = counting.bytes.get();
    assert!(bytes <= text.len() + title.len(), "{bytes} bytes of {} were read", text.len());
}

#[test]
fn the_tokenizer_reads_a_text_a_bounded_number_of_times() {
    // Sections of ten paragraphs, and a table at the end of each.
    let section = format!(
        "# Heading\n\n{}| a | b |\n|---|---|\n{}\n",
        format!("{}\n\n", "Some words of a sentence. ".repeat(10)).repeat(10),
        "| cell | another cell |\n".repeat(80)
    );
    let text = section.repeat(40);
    for method in [ChunkMethod::Recursive, ChunkMethod::Section, ChunkMethod::ParentChild] {
        for unit in [SizeUnit::Tokens, SizeUnit::Characters] {
            let parsed = parse(DocumentContent::Text(&text), Some("text/markdown")).unwrap();
            let counting = Counting::default();
            let options = ChunkOptions::of(method, unit);
            let document = chunk(parsed, Some("Title"), &options, &BIG, &counting);
            let (calls, bytes) = (counting.calls.get(), counting.bytes.get());
            assert!(calls <= 10 * document.chunks.len(), "{calls} calls for {}", document.chunks.len());
            assert!(bytes <= 7 * text.len(), "{method:?} by {unit:?} read {bytes} bytes of {}", text.len());
        }
    }
}

#[test]
fn a_heading_within_a_chunk_is_not_parted_from_its_text() {
    // Merged, these are one section with headings in it, which a small model gets in parts.
    let text: String = (0..30).map(|n| format!("## Part {n}\n\nWords of part {n} here.\n\n")).collect();
    let section = ChunkOptions {
        size: 200,
        overlap: 0,
        min_size: 100,
        ..ChunkOptions::of(ChunkMethod::Section, SizeUnit::Tokens)
    };
    let small = TokenBudget { max_tokens: 33, special_tokens: 2, passage_prefix_tokens: 0 };
    let parsed = parse(DocumentContent::Text(&text), Some("text/markdown")).unwrap();
    let document = chunk(parsed, None, &section, &small, &Words);
    check_invariants(&document, &section, &small, &Words);
    assert!(document.chunks.len() > 2 * document.sections.len());
    for chunk in texts(&document) {
        assert!(chunk.starts_with("## Part") && chunk.ends_with("here."), "{chunk}");
    }
}

#[test]
fn a_text_of_one_grapheme_or_of_flags_alone_is_cut_in_time() {
    // Twenty times what takes a second where each piece reads the whole text again.
    for text in ["🇩🇪".repeat(60_000), format!("a{}", "\u{301}".repeat(200_000))] {
        let parsed = parse(DocumentContent::Text(&text), Some("text/plain")).unwrap();
        let document = chunk(parsed, None, &options(200, 20), &BIG, &Nasty);
        let end = document.chunks.iter().map(|chunk| chunk.bytes.end).max();
        assert_eq!(end, Some(text.len()));
    }
}
