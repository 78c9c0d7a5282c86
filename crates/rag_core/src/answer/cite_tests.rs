//! Tests of reading and checking completions.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, passages: usize, answer: &str, cited: &[usize]) {
    let parsed = parse_completion(text, passages);
    assert_eq!(
        parsed,
        ParsedAnswer { found: true, answer: answer.to_owned(), cited: cited.to_vec() },
        "{text}"
    );
}

#[track_caller]
fn check_not_found(text: &str) {
    let nothing = ParsedAnswer { found: false, answer: String::new(), cited: vec![] };
    assert_eq!(parse_completion(text, 3), nothing, "{text}");
}

#[test]
fn the_object_is_found_in_whatever_surrounds_it() {
    let object = r#"{"found": true, "answer": "Three. [1] And \"so\". [2]"}"#;
    for text in [
        object.to_owned(),
        format!("```json\n{object}\n```"),
        format!("Sure! {{here}} it is:\n{object}\nHope it helps."),
        format!("{object}{object}"),
    ] {
        check(&text, 3, "Three. [1] And \"so\". [2]", &[1, 2]);
    }
}

#[test]
fn an_object_that_breaks_off_gives_what_it_has() {
    check(r#"{"found": true, "answer": "Three. [1] And th"#, 3, "Three. [1] And th", &[1]);
    check("{\"found\": true, \"answer\": \"Two\nlines. [2]\\u00", 3, "Two\nlines. [2]", &[2]);
    check_not_found(r#"{"found": false, "answer": "May be. [1]"#);
}

#[test]
fn an_object_with_what_json_does_not_know_is_read_all_the_same() {
    check(
        r#"{"found": true, "answer": "Set work\_mem to \"4 MB\" in\nthe file\u002e [1]"}"#,
        3,
        "Set work\\_mem to \"4 MB\" in\nthe file. [1]",
        &[1],
    );
    check(
        r#"{"answer": "It is in C:\users\kim, \ud83d\ude00 or \ud83d. [2]"}"#,
        3,
        "It is in C:\\users\\kim, 😀 or . [2]",
        &[2],
    );
    check("{\"answer\": \"One\ttab,\r\ntwo lines. [1]\"}", 3, "One\ttab,\ntwo lines. [1]", &[1]);
    check(
        r#"{"answer": "Set work\_mem to a little more. [1]\"#,
        3,
        r"Set work\_mem to a little more. [1]",
        &[1],
    );
    check_not_found(r#"{"found": false, "answer": "Set work\_mem to a little more. [1]"}"#);
}

#[test]
fn plain_text_is_the_answer_unless_it_refuses() {
    check("The limit is three [2].", 3, "The limit is three [2].", &[2]);
    check("```\nFenced answer [1]\n```", 3, "Fenced answer [1]", &[1]);
    check_not_found("The passages do not mention it. [1]");
    check_not_found("I don’t know.");
    check_not_found("");
    check_not_found("[1]");
}

#[test]
fn what_the_model_did_not_find_has_no_answer() {
    check_not_found(r#"{"found": false, "answer": "Perhaps three. [1]"}"#);
    check_not_found(r#"{"found": true, "answer": ""}"#);
    check_not_found(r#"{"found": true, "answer": null}"#);
    check_not_found(r#"{"found": false}"#);
}

#[test]
fn markers_of_passages_that_do_not_exist_are_dropped() {
    check("One [4]. Two [0]. Three [2].", 3, "One. Two. Three [2].", &[2]);
    check("One [1, 9]. Two [99999999999].", 3, "One [1]. Two [99999999999].", &[1]);
    check("All [1-9] of it", 3, "All [1][2][3] of it", &[1, 2, 3]);
}

#[test]
fn what_is_left_of_a_text_makes_no_marker() {
    check("The boat fee is 60 euros [98 [99]].", 3, "The boat fee is 60 euros.", &[]);
    check("The boat fee is 60 euros [1[99], 98].", 3, "The boat fee is 60 euros [1].", &[1]);
    check("The boat fee is 60 euros [0 [99]].", 3, "The boat fee is 60 euros.", &[]);
    check("Of [98 [97 [96]]] it [2].", 3, "Of it [2].", &[2]);
    // Neither what a backtick in a marker made code of, nor what backticks that move together set free.
    check("A [1: `x] b [98] `c", 3, "A [1] b `c", &[1]);
    check("`a`[99]``[98]``", 3, "`a`````", &[]);
    assert_eq!(without_markers("A [98 [99]] `b [1]`"), "A `b [1]`");
    assert_eq!(without_own_markers("A [7: [98: x]]"), "A (7: (98: x)]");
}

#[test]
fn markers_without_end_in_markers_are_text() {
    let nested = |depth: usize| format!("A {}[2]{}", "[98 ".repeat(depth), "]".repeat(depth));
    check(&nested(8), 1, "A [98 [98 [98 [98 (98)]]]]", &[]);
    for text in [nested(20_000), "`a`[98]".repeat(20_000), "[98: ".repeat(20_000) + &"]".repeat(20_000)] {
        let parsed = parse_completion(&text, 1);
        assert!(marked_sentences(&parsed.answer).iter().all(|(_, numbers)| numbers.is_empty()));
        assert!(marked_sentences(&without_markers(&text)).iter().all(|(_, numbers)| numbers.is_empty()));
    }
}

#[test]
fn markers_are_read_in_all_their_forms() {
    check(
        "A [^1]. B 【2】. C [Passage 3]. D [1; 2]. E [source: 2].",
        3,
        "A [1]. B [2]. C [3]. D [1][2]. E [2].",
        &[1, 2, 3],
    );
    check("A 【1†source】 b", 3, "A [1] b", &[1]);
    check("A [2: guide.pdf, p.3-4] b [9: x].", 3, "A [2] b.", &[2]);
    check("A [2][2][1]", 3, "A [2][2][1]", &[2, 1]);
}

#[test]
fn brackets_in_code_are_no_markers() {
    check("Use `a[1]` or\n```\nx[2]\n``` here [3].", 3, "Use `a[1]` or\n```\nx[2]\n``` here [3].", &[3]);
}

#[test]
fn sentences_own_the_markers_inside_and_after_them() {
    let answer = "One thing [1]. Another. [2] [3] Last one.[1][2] No source.";
    let found: Vec<(&str, Vec<usize>)> =
        marked_sentences(answer).into_iter().map(|(range, cited)| (&answer[range], cited)).collect();
    let expected = [
        ("One thing [1].", vec![1]),
        ("Another.", vec![2, 3]),
        ("Last one.", vec![1, 2]),
        ("No source.", vec![]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_sentence_without_a_marker_is_nearest_to_what_shares_its_words() {
    let passages =
        ["The fee is 60 euros.", "A locker costs money.", "The yearly fee of the club is 60 euros."];
    assert_eq!(nearest("The yearly fee is 60 euros.", &passages, 2), [2, 0]);
    assert_eq!(nearest("The yearly fee is 60 euros.", &passages, 1), [2]);
    assert!(nearest("60", &passages, 3).is_empty() && nearest("", &passages, 3).is_empty());
    assert!(nearest("Sourdough rises over night.", &passages, 3).is_empty());
}

#[test]
fn the_quote_is_the_sentence_that_says_it() {
    let passage =
        "# Autovacuum\n\nVacuum is important. The default is three workers. Many workers need memory.";
    let quote = best_quote("By default there are three workers. [1]", passage).unwrap();
    assert_eq!(&passage[quote], "The default is three workers.");
    assert_eq!(best_quote("Elephants are grey.", passage), None);
    assert_eq!(best_quote("It is. [1]", passage), None);
    let list = "- first entry here\n- second entry there";
    assert_eq!(&list[best_quote("the second entry", list).unwrap()], "second entry there");
}

proptest! {
    #[test]
    fn no_completion_panics_or_cites_what_does_not_exist(
        text in "(\\{|\\}|\"found\": ?(true|false)|\"answer\": ?\"|\\\\|\"|`{1,3}|\\[[0-9, ^-]{1,5}\\]|\\[[0-9]{1,2}[ ,:]{0,2}|\\]|【|】|json|\\PC|\n|[a-z .]){0,40}",
        passages in 0usize..4,
    ) {
        let parsed = parse_completion(&text, passages);
        prop_assert!(parsed.cited.iter().all(|number| (1..=passages).contains(number)));
        prop_assert!(parsed.found || parsed.answer.is_empty());
        for (range, cited) in marked_sentences(&parsed.answer) {
            prop_assert!(parsed.answer.get(range).is_some());
            prop_assert!(cited.iter().all(|number| parsed.cited.contains(number)), "{:?}", parsed.answer);
        }
        let unmarked = without_markers(&text);
        prop_assert!(marked_sentences(&unmarked).iter().all(|(_, cited)| cited.is_empty()), "{unmarked:?}");
        // Every number that is cited was in the text.
        for number in parsed.cited {
            prop_assert!(text.contains(&number.to_string()) || text.contains('-') || text.contains('–') || text.contains("\\u"));
        }
    }

    #[test]
    fn quotes_lie_in_their_passage(sentence in "\\PC{0,30}", passage in "([a-z ]{1,6}|\\PC|[.\n|#-]){0,60}") {
        if let Some(quote) = best_quote(&sentence, &passage) {
            let text = passage.get(quote).unwrap();
            prop_assert!(!text.trim().is_empty());
        }
    }
}

#[test]
fn numbers_of_a_document_are_no_citations() {
    assert_eq!(
        without_own_markers("So it was [12]. Also [1, 2] a[3] `b [4]`"),
        "So it was (12). Also (1, 2) a[3] `b [4]`"
    );
}

#[test]
fn markers_are_read_as_they_will_be_seen() {
    check(
        "The limit is three [9\u{200b}8], or four [\u{200b}2].",
        3,
        "The limit is three, or four [2].",
        &[2],
    );
    check("The limit is three [&#57;8], or four &lsqb;2&rsqb;.", 3, "The limit is three, or four [2].", &[2]);
    check("The limit is three [&\u{200b}#57;8].", 3, "The limit is three.", &[]);
    let shown = super::super::plain::defused("It is three [1], or [1[](https://b.example/)2].");
    assert!(shown.contains("[12]"), "{shown}");
    assert_eq!(with_citations_alone(&shown, 1), "It is three [1], or.");
}
