//! Promises that hold for any text, by any method.

use super::{BIG, ChunkMethod, ChunkOptions, Nasty, SizeUnit, Words, check_invariants, chunk, options};
use proptest::prelude::*;
use rag_core::chunk::{TokenBudget, Tokenizer};
use rag_parse::{DocumentContent, parse};
use std::collections::HashSet;

fn nasty_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,9} ",
        2 => "[A-Z][a-z]{1,5}\\. ",
        1 => Just("\n\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => Just("\n# Heading line\n".to_owned()),
        1 => Just("\n## \n".to_owned()),
        1 => Just("\n| cell a | cell b |\n".to_owned()),
        1 => Just("\n| head a | head b |\n|---|:-:|\n| one | two three |\n| four | five |\n".to_owned()),
        1 => Just("\n```\ncode line\n".to_owned()),
        1 => Just("\n- item one ".to_owned()),
        1 => Just("e\u{301}\u{302}🇩🇪👩‍👩‍👧‍👦".to_owned()),
        1 => Just(" \u{301}".to_owned()),
        1 => "\\PC{1,12}",
        1 => "[一-龠]{1,30}",
        1 => "[x]{20,60}",
        1 => Just("\u{1}\u{200d}\u{a0}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn any_options() -> impl Strategy<Value = ChunkOptions> {
    let method = proptest::sample::select(vec![
        ChunkMethod::Recursive,
        ChunkMethod::Section,
        ChunkMethod::ParentChild,
        ChunkMethod::Semantic,
    ]);
    let unit = prop_oneof![3 => Just(SizeUnit::Tokens), 1 => Just(SizeUnit::Characters)];
    (method, unit, 4u32..80, 0u32..20, 0u32..20, any::<bool>()).prop_map(
        |(method, unit, size, overlap, min_size, context)| ChunkOptions {
            method,
            unit,
            size,
            overlap: overlap.min(size / 2),
            min_size: min_size.min(size / 2),
            context,
            breakpoint_percentile: 80,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(250) })]

    #[test]
    fn any_text_keeps_the_promises(
        text in nasty_text(),
        options in any_options(),
        prefix in 0usize..4,
        room in 8usize..64,
        nasty in any::<bool>(),
        title in proptest::option::of("[A-Z][a-z ]{0,40}"),
    ) {
        let tokenizer: &dyn Tokenizer = if nasty { &Nasty } else { &Words };
        let budget = TokenBudget { max_tokens: room + prefix + 2, special_tokens: 2, passage_prefix_tokens: prefix };
        let parsed = parse(DocumentContent::Text(&text), Some("text/markdown")).unwrap();
        let document = chunk(parsed, title.as_deref(), &options, &budget, tokenizer);
        check_invariants(&document, &options, &budget, tokenizer);
    }

    #[test]
    fn the_same_text_gives_the_same_chunks(text in nasty_text(), given in any_options()) {
        let parsed = parse(DocumentContent::Text(&text), None).unwrap();
        let once = chunk(parsed.clone(), None, &given, &BIG, &Nasty);
        prop_assert_eq!(once, chunk(parsed, None, &given, &BIG, &Nasty));
    }
}

/// About 3,800 words in sentences of different lengths, of which one in `paragraph` ends a paragraph.
fn varied_text(seed: u64, paragraph: u64) -> String {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |most: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % most
    };
    let mut text = String::new();
    for _ in 0..400 {
        for word in 0..4 + next(12) {
            text += &format!("{}{:x}", if word == 0 { "W" } else { " w" }, next(1 << 20));
        }
        text += if next(paragraph) == 0 { ".\n\n" } else { ". " };
    }
    text
}

#[test]
fn text_put_in_front_changes_the_chunks_at_the_front_only() {
    let cut = |text: &str| -> Vec<String> {
        let parsed = parse(DocumentContent::Text(text), Some("text/plain")).unwrap();
        let document = chunk(parsed, None, &options(120, 16), &BIG, &Words);
        document.chunks.iter().map(|c| document.chunk_text(c).to_owned()).collect()
    };
    for (paragraph, most) in [(4, 3), (u64::MAX, 6)] {
        let (mut new, mut all) = (0, 0);
        for seed in 1..=40 {
            let text = varied_text(seed, paragraph);
            let before: HashSet<String> = cut(&text).into_iter().collect();
            let front = "A new word. ".repeat(1 + seed as usize % 12);
            let after = cut(&format!("{front}{text}"));
            new += after.iter().filter(|chunk| !before.contains(*chunk)).count();
            all += after.len();
        }
        assert!(all > 40 * 40 && new < 40 * most, "{new} of {all} chunks are new");
    }
}
