//! Tests of extractive answers.
#![allow(clippy::unwrap_used)]

use super::*;
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
    let found = candidates("How many workers does autovacuum launch by default?", &passages, 3);
    assert_eq!(found[0].text, "Autovacuum launches three workers by default.");
    assert_eq!((found[0].source, found.len()), (1, 3));
}

#[test]
fn equal_sentences_of_overlapping_passages_come_once() {
    let passages =
        [passage("The cat sat on warm mats."), passage("The cat sat on warm mats. The dog slept outside.")];
    assert_eq!(
        texts(&candidates("cat", &passages, 10)),
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
    let found = candidates("default of logical replication workers", &passages, 1);
    assert_eq!(texts(&found), ["The default setting is four workers."]);
}

#[test]
fn a_question_of_stop_words_keeps_the_order_of_passages() {
    let passages = [passage("One sentence stands here."), passage("Another sentence stands there.")];
    assert_eq!(candidates("what is it?", &passages, 1)[0].source, 0);
    assert!(candidates("what", &[], 5).is_empty());
}

fn evidence(texts: &[&str]) -> Vec<Evidence> {
    texts.iter().map(|text| Evidence { source: 0, bytes: 0..text.len(), text: (*text).to_owned() }).collect()
}

#[test]
fn selection_follows_support_and_drops_what_is_said_twice() {
    let found = evidence(&[
        "The limit is three workers.",
        "The limit is three workers!",
        "Vacuum reclaims storage.",
        "Unrelated words stand here.",
        "Broken score.",
    ]);
    let support = [0.9, 0.95, 0.6, 0.2, f32::NAN];
    assert_eq!(select(&found, &support, &SelectOptions::default()), [1, 2]);
    let strict = SelectOptions { relative: 0.7, ..SelectOptions::default() };
    assert_eq!(select(&found, &support, &strict), [1]);
    let one = SelectOptions { max_sentences: 1, ..SelectOptions::default() };
    assert_eq!(select(&found, &support, &one), [1]);
    let unsure = SelectOptions { min_support: 0.99, ..SelectOptions::default() };
    assert!(select(&found, &support, &unsure).is_empty());
    assert!(select(&[], &[], &SelectOptions::default()).is_empty());
}

#[test]
fn a_sentence_far_below_the_best_is_not_added() {
    let found =
        evidence(&["The cable is long.", "The launch takes a while.", "Gliders land straight ahead."]);
    let picked =
        |support: &[f32], odds| select(&found, support, &SelectOptions { odds, ..SelectOptions::default() });
    assert_eq!(picked(&[0.9997, 0.976, 0.9591], MAX_ODDS), [0]);
    assert_eq!(picked(&[0.9997, 0.997, 0.9591], MAX_ODDS), [0, 1]);
    assert_eq!(picked(&[0.95, 0.9, 0.6], MAX_ODDS), [0, 1, 2]);
    // Shares of words are no probabilities.
    assert_eq!(picked(&[1.0, 0.75, 0.5], f32::INFINITY), [0, 1, 2]);
}

#[test]
fn an_answer_cites_each_sentence() {
    assert_eq!(compose(&[("One\n  thing.", 1), ("Another.", 2)]), "One thing. [1] Another. [2]");
    assert_eq!(compose(&[]), "");
}

proptest! {
    #[test]
    fn candidates_lie_in_their_passages(
        question in "\\PC{0,40}",
        texts in proptest::collection::vec("([a-z]{1,8} |[A-Z.!?|#>`~*-]|\n|\\PC|1\\. ){0,60}", 0..4),
        limit in 0usize..10,
    ) {
        let passages: Vec<Passage<'_>> = texts.iter().map(|text| passage(text)).collect();
        let found = candidates(&question, &passages, limit);
        prop_assert!(found.len() <= limit);
        for one in &found {
            let slice = texts[one.source].get(one.bytes.clone()).unwrap();
            prop_assert!(one_line(slice) == one.text || slice.starts_with('|'), "{slice:?} {:?}", one.text);
            prop_assert!(!one.text.is_empty());
        }
    }
}

#[test]
fn a_sentence_of_a_definition_knows_its_term() {
    let text = "# Settings\n\n- `work_mem` (`integer`): Sets the memory. The default is 4 MB.\n\n- `other`: Sets it.\n\n# Next\n\nProse here.";
    let at = |needle: &str| text.find(needle).unwrap();
    assert_eq!(defined_term(text, at("The default")), Some("`work_mem` (`integer`)"));
    assert_eq!(defined_term(text, at("Sets it")), Some("`other`"));
    assert_eq!(defined_term(text, at("Prose")), None);
    assert_eq!(defined_term(text, 0), None);
}

#[test]
fn lexical_support_is_the_share_of_the_questions_words() {
    assert_eq!(lexical_support("cat food", "", "Cats like food."), 1.0);
    assert_eq!(lexical_support("cat food", "Cats", "They eat."), 0.25);
    assert_eq!(lexical_support("cat food", "", "Dogs bark."), 0.0);
    assert_eq!(lexical_support("", "", "Dogs bark."), 0.0);
}
