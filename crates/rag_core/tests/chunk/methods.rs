//! The methods `section` and `parent_child`, sizes in characters, and texts that are larger than the model.

use super::{BIG, ChunkMethod, ChunkOptions, SizeUnit, Words, check_invariants, chunk, options, texts};
use rag_core::chunk::{TokenBudget, Tokenizer};
use rag_core::document::PreparedDocument;
use rag_parse::{DocumentContent, parse};

fn of(method: ChunkMethod, size: u32, overlap: u32, min_size: u32) -> ChunkOptions {
    ChunkOptions { size, overlap, min_size, ..ChunkOptions::of(method, SizeUnit::Tokens) }
}

fn cut_by(text: &str, options: &ChunkOptions, budget: &TokenBudget) -> PreparedDocument {
    let parsed = parse(DocumentContent::Text(text), Some("text/markdown")).unwrap();
    let document = chunk(parsed, None, options, budget, &Words);
    check_invariants(&document, options, budget, &Words);
    document
}

fn paths(document: &PreparedDocument) -> Vec<String> {
    document.sections.iter().map(|section| section.header_path.join("/")).collect()
}

fn sections(document: &PreparedDocument) -> Vec<&str> {
    document.sections.iter().map(|section| document.parsed.text[section.bytes.clone()].trim()).collect()
}

#[test]
fn short_sections_are_merged_with_the_neighbour_that_is_nearer_by_heading() {
    let long = "word ".repeat(30);
    let text = format!("# A\n\nIntro.\n\n## B\n\n{long}\n\n## C\n\nShort.\n\n# D\n\n{long}\n");
    let document = cut_by(&text, &of(ChunkMethod::Section, 100, 0, 20), &BIG);
    // The introduction goes with its first part, the short end of A with that and not with D.
    assert_eq!(paths(&document), ["A", "D"]);
    assert!(texts(&document)[0].ends_with("Short."));
}

#[test]
fn a_run_of_short_sections_becomes_as_few_as_are_long_enough() {
    let text: String = (0..40).map(|n| format!("## Q{n}\n\nFour words of answer.\n\n")).collect();
    let document = cut_by(&text, &of(ChunkMethod::Section, 100, 0, 20), &BIG);
    let lengths: Vec<usize> = texts(&document).iter().map(|text| Words.count(text)).collect();
    assert!(lengths.iter().all(|length| (20..=26).contains(length)), "{lengths:?}");
}

#[test]
fn a_short_section_goes_even_with_a_neighbour_that_has_no_room() {
    let long = "Six words are in this paragraph.\n\n".repeat(16);
    let text = format!("# A\n\n{long}# B\n\nShort.\n\n# C\n\n{long}# D\n\n{long}");
    for size in [100, 120] {
        let document = cut_by(&text, &of(ChunkMethod::Section, size, 0, 20), &BIG);
        let short = sections(&document).into_iter().find(|text| text.contains("Short.")).unwrap();
        assert!(Words.count(short) >= 20, "{short}");
    }
}

#[test]
fn a_part_is_under_the_headings_that_all_of_it_has_in_common() {
    let text =
        format!("# A\n\n## Tiny\n\nShort.\n\n## River\n\n{}\n", "One sentence has five words. ".repeat(60));
    let document = cut_by(&text, &of(ChunkMethod::Section, 100, 0, 20), &BIG);
    let found = paths(&document);
    assert_eq!(found[0], "A");
    assert!(found.len() >= 3 && found[1..].iter().all(|path| path == "A/River"), "{found:?}");
}

#[test]
fn a_long_section_is_split_at_paragraphs_with_overlap() {
    let paragraphs: Vec<String> =
        (0..12).map(|n| format!("P{n}a {}end. P{n}b {}end.", "x ".repeat(17), "y ".repeat(17))).collect();
    let text = format!("# Long\n\n{}\n", paragraphs.join("\n\n"));
    let document = cut_by(&text, &of(ChunkMethod::Section, 100, 20, 0), &BIG);
    assert!(document.sections.len() >= 5, "{:?}", sections(&document));
    assert!(paths(&document).iter().all(|path| path == "Long"));
    for (before, after) in sections(&document).iter().zip(&sections(&document)[1..]) {
        assert!(before.ends_with("end."), "{before}");
        let shared = after.split_inclusive("end.").next().unwrap();
        assert!(before.ends_with(shared), "{after:?} does not begin with the end of {before:?}");
        assert!(shared.starts_with('P') && shared.contains("b "), "{shared}");
    }
}

#[test]
fn a_section_larger_than_the_model_has_several_chunks_and_none_is_over_it() {
    let text = format!("# Long\n\n{}", "One sentence has five words. ".repeat(300));
    let small = TokenBudget { max_tokens: 130, special_tokens: 2, passage_prefix_tokens: 0 };
    let document = cut_by(&text, &of(ChunkMethod::Section, 1000, 150, 50), &small);
    assert_eq!(document.sections.len(), 2);
    assert!(document.chunks.len() >= 14);
    for section in sections(&document) {
        assert!((500..=1000).contains(&Words.count(section)), "{}", Words.count(section));
    }
    assert!(document.chunks.iter().all(|chunk| chunk.context == "Long"), "room is kept for the context");
    // The same for the method that knows no sections of its own, where it asks for more than the model takes.
    let document = cut_by(&text, &options(1000, 64), &small);
    assert_eq!(document.sections.len(), 2);
    let document = cut_by(&text, &options(120, 16), &small);
    assert_eq!(document.sections.len(), 1);
}

#[test]
fn paragraphs_are_the_children_of_sections() {
    let text = "# A\n\nOne two three four five.\n\nSix seven eight nine ten.\n\n## B\n\nEleven twelve \
                thirteen fourteen.\n";
    let document = cut_by(text, &of(ChunkMethod::ParentChild, 50, 0, 3), &BIG);
    assert_eq!(
        texts(&document),
        [
            "# A\n\nOne two three four five.",
            "Six seven eight nine ten.",
            "## B\n\nEleven twelve thirteen fourteen."
        ]
    );
    assert_eq!(paths(&document), ["A", "A/B"]);
    assert_eq!(document.chunks.iter().map(|chunk| chunk.section).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn what_belongs_together_is_one_child_where_it_fits() {
    let text = "Intro of five words here.\n\nThe list is this:\n\n- one of it\n\n- two of it\n\n1. three\n\nTiny.\n\n\
                ```\ncode a\n\ncode b\n```\n\n| a | b |\n|---|---|\n| c | d |\n\nEnd.\n";
    let document = cut_by(text, &of(ChunkMethod::ParentChild, 50, 0, 2), &BIG);
    assert_eq!(
        texts(&document),
        [
            "Intro of five words here.",
            "The list is this:\n\n- one of it\n\n- two of it\n\n1. three",
            "Tiny.\n\n```\ncode a\n\ncode b\n```",
            "| a | b |\n|---|---|\n| c | d |\n\nEnd.",
        ]
    );
}

#[test]
fn a_paragraph_over_the_size_is_cut_at_sentences() {
    let text = format!("Short one.\n\n{}\n\nLast one.", "A sentence of five words. ".repeat(20));
    let document = cut_by(&text, &of(ChunkMethod::ParentChild, 40, 0, 2), &BIG);
    let found = texts(&document);
    assert_eq!((found[0], found[found.len() - 1]), ("Short one.", "Last one."));
    assert!(found[1..found.len() - 1].iter().all(|text| text.ends_with("words.") && Words.count(text) >= 20));
}

#[test]
fn sizes_in_characters_are_kept() {
    let text = "Ünïcödé wörds thät äre löng ënöugh. ".repeat(100);
    let options = ChunkOptions {
        size: 500,
        overlap: 100,
        ..ChunkOptions::of(ChunkMethod::Recursive, SizeUnit::Characters)
    };
    let document = cut_by(&text, &options, &BIG);
    let lengths: Vec<usize> = texts(&document).iter().map(|text| text.chars().count()).collect();
    assert!(lengths.iter().rev().skip(1).all(|length| (333..=500).contains(length)), "{lengths:?}");
    for (before, after) in document.chunks.iter().zip(&document.chunks[1..]) {
        let repeated = i64::from(before.chars.to) - i64::from(after.chars.from);
        assert!((30..=100).contains(&repeated), "{repeated}");
    }
}

#[test]
fn a_text_of_dense_characters_still_fits_the_model() {
    // A token for each character, more than the model takes.
    struct Characters;
    impl Tokenizer for Characters {
        fn token_spans(&self, text: &str) -> Vec<std::ops::Range<usize>> {
            text.char_indices().map(|(at, c)| at..at + c.len_utf8()).collect()
        }
    }
    let text = "漢字仮名交じり文。".repeat(300);
    for size in [500, 1_500, 8_000] {
        let options = ChunkOptions {
            size,
            overlap: 0,
            ..ChunkOptions::of(ChunkMethod::Recursive, SizeUnit::Characters)
        };
        let parsed = parse(DocumentContent::Text(&text), Some("text/plain")).unwrap();
        let document = chunk(parsed, None, &options, &BIG, &Characters);
        check_invariants(&document, &options, &BIG, &Characters);
        assert!(document.chunks.len() >= 6);
        assert!(texts(&document).iter().all(|text| text.ends_with('。')));
    }
}

#[test]
fn the_context_can_be_left_out() {
    let options = ChunkOptions { context: false, ..ChunkOptions::default() };
    let document = cut_by("# A\n\nText.", &options, &BIG);
    assert_eq!(document.chunks[0].context, "");
    assert_eq!(document.sections[0].header_path, ["A"], "it is known all the same");
}
