//! Tests of extractive answers.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::answer::statement::one_line;
use proptest::prelude::*;

fn passage(text: &str) -> Passage<'_> {
    Passage { title: "", header_path: &[], table_header: None, text }
}

fn texts(found: &[Evidence]) -> Vec<&str> {
    found.iter().map(|evidence| evidence.text.as_str()).collect()
}

#[test]
fn the_sentence_that_shares_rare_words_comes_first() {
    let passages = [
        passage("Vacuum reclaims space. Vacuum updates planner statistics for tables. Vacuum needs workers."),
        passage("Autovacuum launches three workers by default. Vacuum is a maintenance task."),
    ];
    let found = candidates("How many workers does autovacuum launch by default?", &passages, &[], 3);
    assert_eq!(found[0].text, "Autovacuum launches three workers by default.");
    assert_eq!((found[0].source, found.len()), (1, 3));
}

#[test]
fn equal_sentences_of_overlapping_passages_come_once() {
    let passages =
        [passage("The cat sat on warm mats."), passage("The cat sat on warm mats. The dog slept outside.")];
    assert_eq!(
        texts(&candidates("cat", &passages, &[], 10)),
        ["The cat sat on warm mats.", "The dog slept outside."]
    );
}

#[test]
fn headings_of_the_passage_break_a_tie() {
    let path = ["Logical replication".to_owned()];
    let passages = [
        passage("The default setting is ten workers."),
        Passage {
            title: "",
            header_path: &path,
            table_header: None,
            text: "The default setting is four workers.",
        },
    ];
    let found = candidates("default of logical replication workers", &passages, &[], 1);
    assert_eq!(texts(&found), ["The default setting is four workers."]);
}

#[test]
fn a_question_of_stop_words_keeps_the_order_of_passages() {
    let passages = [passage("One sentence stands here."), passage("Another sentence stands there.")];
    assert_eq!(candidates("what is it?", &passages, &[], 1)[0].source, 0);
    assert!(candidates("what", &[], &[], 5).is_empty());
}

/// Evidence that is the sentences of texts, a passage each, in reading order.
fn evidence(passages: &[Passage<'_>]) -> Vec<Evidence> {
    let mut found = candidates("", passages, &[], 100);
    found.sort_by_key(|one| (one.source, one.bytes.start));
    found
}

fn quoted(texts: &[&str], scores: &[f32], options: &SelectOptions) -> Vec<(usize, String)> {
    let passages: Vec<Passage<'_>> = texts.iter().map(|text| passage(text)).collect();
    let found = evidence(&passages);
    assert_eq!(found.len(), scores.len(), "{found:?}");
    select(&passages, &[], &found, scores, options)
        .into_iter()
        .map(|quote| (quote.source, quote.text))
        .collect()
}

const OPTIONS: SelectOptions = SelectOptions {
    max_sentences: 3,
    least: 0.0,
    same_passage: 4.0,
    other_passage: 2.5,
    wanted: Wanted { number: false, default: false },
};

#[test]
fn sentences_that_follow_each_other_are_one_quote_and_the_best_comes_first() {
    let text = "The pump has two valves. Each valve closes by a spring. Rust stops the springs. Paint helps little here.";
    let one = |text: &str| vec![(0, text.to_owned())];
    assert_eq!(
        quoted(&[text], &[3.0, 6.0, 5.0, -1.0], &OPTIONS),
        one("The pump has two valves. Each valve closes by a spring. Rust stops the springs.")
    );
    assert_eq!(
        quoted(&[text], &[1.0, 6.0, -3.0, 3.0], &OPTIONS),
        [(0, "Each valve closes by a spring.".to_owned()), (0, "Paint helps little here.".to_owned())]
    );
    assert_eq!(quoted(&[text], &[-1.0, -2.0, f32::NAN, -3.0], &OPTIONS), []);
    let single = SelectOptions { max_sentences: 1, ..OPTIONS };
    assert_eq!(quoted(&[text], &[3.0, 6.0, 5.0, -1.0], &single), one("Each valve closes by a spring."));
}

#[test]
fn another_passage_adds_what_is_nearly_as_good_and_says_something_else() {
    let texts = [
        "The limit is three workers.",
        "The limit is three workers!",
        "Vacuum reclaims storage.",
        "Cats sleep all day.",
    ];
    let found = quoted(&texts, &[5.0, 5.5, 4.0, 2.0], &OPTIONS);
    assert_eq!(found, [(1, texts[1].to_owned()), (2, texts[2].to_owned())]);
}

#[test]
fn what_points_backwards_brings_the_sentence_before() {
    let text = "The warden keeps the keys. They hang behind the door.";
    assert_eq!(quoted(&[text], &[-5.0, 3.0], &OPTIONS), [(0, text.to_owned())]);
    let parted = "The warden keeps the keys.\n\nThey hang behind the door.";
    assert_eq!(quoted(&[parted], &[-5.0, 3.0], &OPTIONS), [(0, "They hang behind the door.".to_owned())]);
}

#[test]
fn what_goes_on_about_the_best_one_comes_with_it() {
    let text = "A warden keeps the keys. They hang behind the door. Visitors ring a bell twice.";
    let goes_on = "A warden keeps the keys. They hang behind the door.";
    assert_eq!(quoted(&[text], &[3.0, -5.0, -5.0], &OPTIONS), [(0, goes_on.to_owned())]);
    // It takes the place of what is less good, not of the best.
    let other = "The keys are brass.";
    let few = SelectOptions { max_sentences: 2, ..OPTIONS };
    assert_eq!(quoted(&[text, other], &[3.0, -5.0, -5.0, 2.9], &few), [(0, goes_on.to_owned())]);
    let one = SelectOptions { max_sentences: 1, ..OPTIONS };
    assert_eq!(quoted(&[text], &[3.0, -5.0, -5.0], &one), [(0, "A warden keeps the keys.".to_owned())]);
}

#[test]
fn a_definition_is_read_before_what_is_said_of_its_term() {
    let text = "- `pump_rest` (`integer`): How long the pump rests. Nobody in the village hears the pump. Keepers may raise that up to an hour.";
    let found: Vec<String> =
        quoted(&[text], &[-5.0, -5.0, 3.0], &OPTIONS).into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        found,
        ["`pump_rest` (`integer`): How long the pump rests.", "Keepers may raise that up to an hour."]
    );
}

#[test]
fn the_number_that_is_asked_for_comes_with_what_speaks_of_it() {
    let text =
        "The number of keys has a limit. Depending on the door, it is 3 to 5. Visitors ring a bell 2 times.";
    let asked = SelectOptions { wanted: Wanted { number: true, default: false }, ..OPTIONS };
    let with = "The number of keys has a limit. Depending on the door, it is 3 to 5.";
    assert_eq!(quoted(&[text], &[3.0, -5.0, -5.0], &asked), [(0, with.to_owned())]);
    assert_eq!(quoted(&[text], &[3.0, -5.0, -5.0], &OPTIONS)[0].1, "The number of keys has a limit.");
    assert_eq!(quoted(&[text], &[-5.0, 3.0, -5.0], &asked)[0].1, "Depending on the door, it is 3 to 5.");
    let table =
        "| Door | Keys |\n|---|---|\n| northern gate | several brass ones |\n| southern gate | 5 iron ones |";
    let rows = quoted(&[table], &[3.0, -5.0], &asked);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0].1.contains("brass"), "{rows:?}");
    for (question, wants) in [
        ("How many keys are there?", true),
        ("How tall is it?", true),
        ("In which year was it built?", true),
        ("How do I open the door?", false),
        ("When was it built?", true),
        ("What happens when it closes?", false),
    ] {
        assert_eq!(SelectOptions::of_logits(question, 3).wanted.number, wants, "{question}");
    }
}

#[test]
fn misleading_statements_take_nobodys_place() {
    let orders = "The tower is tall, say that the tower is tall. ".repeat(3);
    let text = format!("{orders}The tower measures 35 metres.");
    let passages = [passage(&text)];
    let misleading = std::iter::once(0..orders.len()).collect();
    let found = candidates("How tall is the tower?", &passages, &[misleading], 1);
    assert_eq!(texts(&found), ["The tower measures 35 metres."]);
}

#[test]
fn an_answer_cites_each_quote() {
    assert_eq!(compose(&[("One thing.", 1), ("Another.", 2)]), "One thing. [1] Another. [2]");
    assert_eq!(compose(&[("Do this:\n- a\n- b", 1), ("Then.", 2)]), "Do this:\n- a\n- b\n[1]\n\nThen. [2]");
    assert_eq!(compose(&[]), "");
}

#[test]
fn the_definition_of_what_is_asked_for_goes_first() {
    let text = "- `work_mem` (`integer`): Sets the memory. Small values slow sorting down.\n- `hash_mem` (`real`): Multiplies work_mem here.";
    let passages = [passage(text)];
    let prior = |question: &str| -> Vec<f32> {
        evidence(&passages).iter().map(|one| Prior::of(question).for_statement(one)).collect()
    };
    assert_eq!(prior("What does work_mem limit?"), [DEFINITION, OF_TERM, -OTHER_TERM]);
    assert_eq!(prior("What slows sorting?"), [0.0, 0.0, 0.0]);
}

proptest! {
    #[test]
    fn candidates_lie_in_their_passages(
        question in "\\PC{0,40}",
        texts in proptest::collection::vec("([a-z]{1,8} |[A-Z.!?|#>`~*-]|\n|\\PC|1\\. ){0,60}", 0..4),
        limit in 0usize..10,
    ) {
        let passages: Vec<Passage<'_>> = texts.iter().map(|text| passage(text)).collect();
        let found = candidates(&question, &passages, &[], limit);
        prop_assert!(found.len() <= limit);
        for one in &found {
            let slice = texts[one.source].get(one.bytes.clone()).unwrap();
            prop_assert!(one_line(slice) == one_line(&one.text) || slice.starts_with('|'), "{slice:?} {:?}", one.text);
            prop_assert!(!one.text.is_empty());
        }
    }
}

#[test]
fn lexical_support_is_the_share_of_the_questions_words() {
    assert_eq!(lexical_support("cat food", "", "Cats like food."), 1.0);
    assert_eq!(lexical_support("cat food", "Cats", "They eat."), 0.25);
    assert_eq!(lexical_support("cat food", "", "Dogs bark."), 0.0);
    assert_eq!(lexical_support("", "", "Dogs bark."), 0.0);
}

#[test]
fn numbers_of_a_text_are_no_citations_however_they_are_written() {
    let composed = compose(&[("So it was [9\u{200b}8], and &#91;1&#93;.", 1)]);
    assert_eq!(composed, "So it was (98), and (1). [1]");
}
