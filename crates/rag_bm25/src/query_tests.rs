//! Tables of what users type and what is made of it.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use proptest::string::string_regex;

use super::*;

/// Scored terms and phrases with their counts, then conditions.
fn shown(text: &str, language: Language) -> String {
    let query = Query::parse(text, language);
    let name = |term: usize| query.terms[term].text.clone();
    let phrase = |phrase: usize| {
        let places = query.phrases[phrase].places.iter().map(|(term, at)| format!("{}@{at}", name(*term)));
        format!("\"{}\"", places.collect::<Vec<_>>().join(" "))
    };
    let times = |text: String, count: u32| if count == 1 { text } else { format!("{text}×{count}") };
    let operand = |operand: &Operand| match *operand {
        Operand::Term(term) => name(term),
        Operand::Phrase(index) => phrase(index),
    };
    let terms = (0..query.terms.len()).filter(|term| query.terms[*term].count > 0);
    let phrases = (0..query.phrases.len()).filter(|index| query.phrases[*index].count > 0);
    let mut parts: Vec<String> = terms.map(|term| times(name(term), query.terms[term].count)).collect();
    parts.extend(phrases.map(|index| times(phrase(index), query.phrases[index].count)));
    parts.extend(query.required.iter().map(|required| format!("+{}", operand(required))));
    parts.extend(query.excluded.iter().map(|excluded| format!("-{}", operand(excluded))));
    assert_eq!(query.is_empty(), !parts.iter().any(|part| !part.starts_with(['+', '-'])));
    parts.join(" ")
}

fn check(text: &str, expected: &str) {
    assert_eq!(shown(text, Language::Simple), expected, "{text}");
}

#[test]
fn words_are_alternatives_and_repeated_ones_count_more() {
    check("alpha Beta", "alpha beta");
    check("alpha beta ALPHA", "alpha×2 beta");
    check("", "");
    check(" \t\n ", "");
}

#[test]
fn a_code_is_sought_by_its_parts_and_as_a_whole() {
    check("FC-001", "fc-001 fc 001");
    check("use pg_dump now", "use pg_dump pg dump now");
}

#[test]
fn quotes_make_phrases_without_the_whole_codes() {
    check("\"alpha beta\"", "\"alpha@0 beta@1\"");
    check("x \"alpha pg_dump beta\" y", "x y \"alpha@0 pg@1 dump@2 beta@3\"");
    check("“alpha beta” «gamma delta»", "\"alpha@0 beta@1\" \"gamma@0 delta@1\"");
    check("\"alpha\"", "alpha");
    check("\"\" \"  \" \"--\"", "");
    check("\"alpha beta\" \"alpha beta\"", "\"alpha@0 beta@1\"×2");
    check("foo\"alpha beta\"bar", "foo bar \"alpha@0 beta@1\"");
}

#[test]
fn a_quote_left_open_runs_to_the_end() {
    check("x \"alpha beta", "x \"alpha@0 beta@1\"");
    check("\"", "");
    check("alpha\"", "alpha");
    check("+\"", "");
}

#[test]
fn signs_directly_before_a_word_make_conditions() {
    check("+alpha beta", "alpha beta +alpha");
    check("alpha -beta", "alpha -beta");
    check("-\"alpha beta\" x", "x -\"alpha@0 beta@1\"");
    check("+\"alpha beta\"", "\"alpha@0 beta@1\" +\"alpha@0 beta@1\"");
    check("+pg_dump", "pg_dump pg dump +\"pg@0 dump@1\"");
    check("x -pg_dump", "x -\"pg@0 dump@1\"");
    check("+alpha +alpha", "alpha×2 +alpha");
    check("alpha -alpha", "alpha -alpha");
}

#[test]
fn signs_elsewhere_mean_nothing() {
    check("alpha - beta + gamma", "alpha beta gamma");
    check("--force", "force");
    check("well-known", "well known");
    check("+ - +- -+ ++", "");
    check("C++", "c++ c");
    check("+C++", "c++ c +c");
}

#[test]
fn stop_words_are_left_out_of_everything() {
    let check = |text, expected| assert_eq!(shown(text, Language::English), expected, "{text}");
    check("to be or not to be", "");
    check("+the dogs", "dog");
    check("\"state of the art\"", "\"state@0 art@3\"");
    check("\"the art\"", "art");
    check("the -the", "");
}

#[test]
fn words_without_content_are_told_from_names_and_codes() {
    use Language as L;
    for text in
        ["the", "The", "what is", "WHAT IS", "How is it?", "to be or not to be", "a", "?", "", "\"\" the"]
    {
        assert!(!Query::has_content(text, L::English), "{text:?}");
    }
    for text in [
        "C",
        "IT",
        "IT?",
        "c",
        "7",
        "is it 7",
        "FC-001",
        "x",
        "the cat",
        "war",
        "水",
        "ที่",
        "\"the\"",
        "-Xmx",
        "C++",
    ] {
        assert!(Query::has_content(text, L::English), "{text:?}");
    }
    assert!(!Query::has_content("was ist das", L::German));
    assert!(Query::has_content("war", L::English) && !Query::has_content("war", L::German));
    assert!(Query::has_content("the", L::Simple));
}

#[test]
fn only_exclusions_make_an_empty_query() {
    assert!(Query::parse("-alpha -beta", Language::Simple).is_empty());
    assert!(Query::parse("", Language::Simple).is_empty());
    assert!(!Query::parse("+alpha -beta", Language::Simple).is_empty());
}

#[test]
fn pairs_of_characters_are_sought_without_the_single_ones() {
    check("東京都", "東京 京都");
    check("水", "水");
    check("+東京都", "東京 京都 +\"東京@0 京都@1\"");
}

#[test]
fn the_first_terms_are_kept_of_a_query_that_is_too_long() {
    let words: Vec<String> = (0..5000).map(|n| format!("w{n}")).collect();
    let query = Query::parse(&words.join(" "), Language::Simple);
    assert_eq!(query.terms.len(), MAX_TERMS);
    assert_eq!(query.terms[MAX_TERMS - 1].text, "w1023");
    let query = Query::parse(&format!("\"{}\"", "a b ".repeat(5000)), Language::Simple);
    assert_eq!(query.phrases[0].places.len(), MAX_TERMS);
    let query = Query::parse(&"a ".repeat(5000), Language::Simple);
    assert_eq!(query.terms[0].count, MAX_COUNT);
}

#[test]
fn words_found_in_a_text_are_marked() {
    let marked = |query: &str, text: &str| {
        let spans = Query::parse(query, Language::English).highlight(text, Language::English);
        spans.into_iter().map(|span| text[span].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(marked("running dog", "The dogs ran; a dog runs."), ["dogs", "dog", "runs"]);
    assert_eq!(marked("pg_dump", "Use pg_dump or dump."), ["pg_dump", "dump"]);
    assert_eq!(marked("\"big house\" -dog", "big dog, house"), ["big", "house"]);
    assert_eq!(marked("京都", "東京都は"), ["京都"]);
    assert!(marked("the", "the dog").is_empty());
    assert!(marked("", "the dog").is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_a_user_types_fails(
        text in prop_oneof![any::<String>(), "[-+\"“a-c _.@/水東\u{301}]{0,60}"],
        other in any::<String>(),
        language in 0..31u16,
    ) {
        let language = Language::from_code(language).unwrap();
        let query = Query::parse(&text, language);
        let last = query.highlight(&other, language).into_iter().fold(0, |end, span| {
            assert!(span.start >= end && other.get(span.clone()).is_some());
            span.end
        });
        prop_assert!(last <= other.len());
        for phrase in &query.phrases {
            prop_assert!(phrase.places.len() > 1 && phrase.places.is_sorted_by_key(|(_, at)| *at));
        }
    }
}

/// Words with endings that stemmers know, and those that they treat by name.
fn inflected() -> impl Strategy<Value = String> {
    let ending = "(s|es|ies|ied|y|ly|ed|eed|ing|ingly|edly|'s|'|’s|ational|fulness|ement|ives|ological)?";
    prop_oneof![
        4 => string_regex(&format!("[a-z]{{1,3}}{ending}")).unwrap(),
        2 => string_regex(&format!("[aeiy'bs]{{1,4}}{ending}")).unwrap(),
        1 => prop::sample::select(vec![
            "skis", "skies", "dying", "lying", "tying", "idly", "gently", "ugly", "early", "only", "singly", "news",
            "atlas", "bias", "inning", "proceed", "Yes", "by", "Ödön", "éclair", "résumés", "a\u{ad}b", "C++", "F#",
            "FC-001-234", "pg_dump", "don't", "U.S.", "水", "x水y",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]

    #[test]
    fn words_passed_over_by_their_beginning_are_none_that_would_be_marked(
        query in prop::collection::vec(inflected(), 1..3),
        others in prop::collection::vec((inflected(), "[ ,.:;)/'-]{1,2}|\n"), 0..6),
        is_english in any::<bool>(),
    ) {
        let language = if is_english { Language::English } else { Language::Simple };
        let mut text = query.join(", ").to_uppercase() + " ";
        for (word, gap) in &others {
            text += word;
            text += gap;
        }
        let marker = Query::parse(&query.join(" "), language).marker(language);
        let mut whole = Query::parse(&query.join(" "), language).marker(language);
        whole.beginnings = Beginnings::all();
        prop_assert_eq!(marker.mark(&text), whole.mark(&text), "{}", text);
    }
}

#[test]
fn a_hundred_kilobytes_of_anything_take_little_time() {
    let begin = std::time::Instant::now();
    for piece in
        ["\"", "+", "-", "a", "a-", "+a ", "\"a\" ", "é", "水", "+\"a b\" -\"b c\" ", "_", "'a", "\u{301}"]
    {
        let text = piece.repeat(100_000 / piece.len());
        Query::parse(&text, Language::English);
        Query::parse("a b", Language::English).highlight(&text, Language::English);
    }
    // Milliseconds each in practice; quadratic work would take minutes.
    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
}

#[test]
fn added_words_find_what_has_none_of_the_query_and_come_last() {
    let entry = |(id, body)| crate::Entry { id, title: "", body };
    let texts = [
        (1, "a service level agreement"),
        (2, "the sla"),
        (3, "pumps of the sla"),
        (4, "agreement on pumps"),
    ];
    let segments =
        [crate::Segment::open(crate::build(Language::English, texts.map(entry)).unwrap()).unwrap()];
    let found = |query: &Query| -> Vec<u128> {
        crate::search(&segments, query, 10, None).unwrap().iter().map(|hit| hit.id).collect()
    };
    let query = Query::parse("sla -pumps", Language::English);
    assert_eq!(found(&query), [2]);
    assert_eq!(found(&query.with_more("service level agreement, pumps sla")), [2, 1]);
}

#[test]
fn neighbours_outside_of_quotes_are_pairs() {
    let check = |text: &str, expected: &[(&str, &str, u32)]| {
        let query = Query::parse(text, Language::English);
        let name = |term: usize| query.terms[term].text.as_str();
        let pairs: Vec<_> = query
            .pairs
            .iter()
            .map(|pair| (name(pair.terms[0]), name(pair.terms[1]), pair.distance))
            .collect();
        assert_eq!(pairs, expected, "{text}");
    };
    check("red fox", &[("red", "fox", 1)]);
    check("red and the fox", &[("red", "fox", 3)]);
    check("red and then the fox", &[]);
    check("red fox red fox", &[("red", "fox", 1), ("fox", "red", 1)]);
    check("red red", &[]);
    check("FC-001", &[("fc", "001", 1)]);
    check("red \"blue fox\" den", &[]);
    check("red -blue fox", &[]);
    check("red +blue", &[("red", "blue", 1)]);
    check("東京都", &[("東京", "京都", 1)]);
}
