//! Tables of text and the terms that it gives.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// The terms with their positions, as `position:text`; whole codes in brackets, single characters in
/// parentheses.
fn terms(language: Language, text: &str) -> String {
    let mut shown = Vec::new();
    Analyser::of(language).analyse(text, |term| {
        let text = match term.kind {
            TermKind::Word => term.text.to_owned(),
            TermKind::Whole => format!("[{}]", term.text),
            TermKind::Character => format!("({})", term.text),
        };
        shown.push(format!("{}:{text}", term.position));
    });
    shown.join(" ")
}

fn check(text: &str, expected: &str) {
    assert_eq!(terms(Language::Simple, text), expected, "{text}");
}

fn check_in(language: Language, text: &str, expected: &str) {
    assert_eq!(terms(language, text), expected, "{text}");
}

#[test]
fn words_are_split_at_what_is_not_a_letter_or_digit() {
    check("", "");
    check("  ,.;  ", "");
    check("Hello, World!", "0:hello 1:world");
    check("(one)(two)—three…four", "0:one 1:two 2:three 3:four");
    check("p<0.05", "0:p 1:[0.05] 1:0 2:05");
    check("naïve Café", "0:naive 1:cafe");
    check("l'avion", "0:l 1:avion");
}

#[test]
fn codes_are_kept_whole_at_the_position_of_their_first_part() {
    check("FC-001-234", "0:[fc-001-234] 0:fc 1:001 2:234");
    check("see snake_case here", "0:see 1:[snake_case] 1:snake 2:case 3:here");
    check("pg_dump", "0:[pg_dump] 0:pg 1:dump");
    check("0x1234", "0:0x1234");
    check("10.0.0.1", "0:[10.0.0.1] 0:10 1:0 2:0 3:1");
    check("v1.2.3", "0:[v1.2.3] 0:v1 1:2 2:3");
    check("joe.doe@mail.org", "0:[joe.doe@mail.org] 0:joe 1:doe 2:mail 3:org");
    check("std::vec", "0:[std::vec] 0:std 1:vec");
    check("/usr/lib", "0:[usr/lib] 0:usr 1:lib");
    check("https://a.org/b", "0:[https://a.org/b] 0:https 1:a 2:org 3:b");
    check("C:\\temp\\x", "0:[c:\\temp\\x] 0:c 1:temp 2:x");
    check("COVID‑19", "0:[covid-19] 0:covid 1:19");
}

#[test]
fn short_names_keep_their_signs() {
    check("C++ and C# or F#", "0:[c++] 0:c 1:and 2:[c#] 2:c 3:or 4:[f#] 4:f");
    check("C++17", "0:[c++17] 0:c 1:17");
    check("CD4+", "0:cd4");
    check("answer++", "0:answer");
}

#[test]
fn ordinary_compounds_are_not_codes() {
    check("double-blind", "0:double 1:blind");
    check("and/or", "0:and 1:or");
    check("wait... what", "0:wait 1:what");
    check("dash -- dash", "0:dash 1:dash");
    check("trailing-", "0:trailing");
    check("a----b", "0:a 1:b");
}

#[test]
fn stop_words_leave_a_gap_and_words_are_stemmed() {
    use Language as L;
    check_in(L::English, "The state of the art", "1:state 4:art");
    check_in(L::English, "Running dogs, John's dog", "0:run 1:dog 2:john 3:dog");
    check_in(L::English, "I don't know", "2:know");
    check_in(L::English, "don’t", "");
    check_in(L::German, "Die Häuser und das Haus", "1:haus 4:haus");
    check_in(L::French, "l'hôtel et les hôtels", "1:hotel 4:hotel");
    check_in(L::Spanish, "las canciones", "1:cancion");
    check_in(L::Russian, "и книги", "1:книг");
}

#[test]
fn names_with_digits_are_not_stemmed() {
    check_in(Language::English, "ps2s pods", "0:ps2s 1:pod");
    check_in(Language::English, "my_pods", "0:[my_pods] 1:pod");
}

#[test]
fn scripts_without_spaces_give_pairs_and_characters() {
    check("東京都", "0:(東) 0:東京 1:(京) 1:京都 2:(都)");
    check("水", "0:水");
    check("日本 go 語", "0:(日) 0:日本 1:(本) 2:go 3:語");
    check("abc水", "0:abc 1:水");
    check("한국", "0:(한) 0:한국 1:(국)");
    check("カﾀ", "0:(カ) 0:カタ 1:(タ)");
}

#[test]
fn terms_that_are_too_long_are_dropped_and_keep_their_position() {
    let long = "x".repeat(MAX_TERM_BYTES + 1);
    check(&format!("a {long} b"), "0:a 2:b");
    let longest = "y".repeat(MAX_TERM_BYTES);
    check(&longest, &format!("0:{longest}"));
    let parts = "ab_".repeat(200) + "c";
    assert!(terms(Language::Simple, &parts).starts_with("0:ab 1:ab "));
}

#[test]
fn spans_point_at_what_the_term_was_made_of() {
    let text = "«Größe» of FC-1";
    let mut spans = Vec::new();
    Analyser::of(Language::English).analyse(text, |term| spans.push(&text[term.span]));
    assert_eq!(spans, ["Größe", "FC-1", "FC", "1"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_ordered_positions_and_spans_within_it(text in any::<String>(), language in 0..31u16) {
        let language = Language::from_code(language).unwrap();
        let mut last = 0;
        Analyser::of(language).analyse(&text, |term| {
            assert!(!term.text.is_empty() && term.text.len() <= MAX_TERM_BYTES);
            assert!(term.position >= last);
            assert!(text.get(term.span.clone()).is_some_and(|part| !part.is_empty()));
            last = term.position;
        });
    }
}
