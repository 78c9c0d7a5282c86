//! Acronyms in a query: which forms to look up, and the query with what was found.

use super::{Acronym, has_capitals, is_plural, long_key, push_words, short_key, singular};
use crate::query::plain_words;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most words of a query that are looked up: the first ones.
const MAX_WORDS: usize = 24;

/// Most words of a long form that is looked up.
const MAX_LONG_WORDS: usize = 6;

/// Fewest letters of a long form of one word.
const MIN_LETTERS: usize = 5;

/// Most meanings of one short form, and most short forms of one meaning, that a query gets.
const MAX_MEANINGS: usize = 3;

/// What of a query may be an acronym or stand for one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// Of its words.
    pub short_keys: BTreeSet<String>,
    /// Those of words that are written as a mined short form is.
    pub capital_keys: BTreeSet<String>,
    /// Of its runs of words.
    pub long_keys: BTreeSet<String>,
}

/// A query with the other forms of its acronyms.
#[derive(Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The other forms, for the keyword retriever.
    pub more: String,
    /// For the vector retriever: the query, with the first long form in brackets behind each short form that was given. What
    /// documents define is not put there: models know what is in use, and SciFact lost 0.005 by it.
    pub vector: String,
    /// What was added for what.
    pub added: Vec<(String, String)>,
}

impl Lookup {
    /// The forms to look up for a query. What stands in quotes or is excluded is meant as it is written.
    pub fn of(query: &str) -> Self {
        let words = words(query);
        let shorts = || words.iter().map(|range| singular(&query[range.clone()]));
        let long_keys = runs(query, &words)
            .filter(|(run, _)| query[run.clone()].chars().count() >= MIN_LETTERS)
            .map(|(_, key)| key)
            .collect();
        Self {
            short_keys: shorts().map(short_key).collect(),
            capital_keys: shorts().filter(|word| has_capitals(word)).map(short_key).collect(),
            long_keys,
        }
    }
}

/// A query with the other forms of what it names. Of several meanings the first ones in `known` are taken. None where there
/// is nothing to add.
pub fn expand(query: &str, known: &[Acronym]) -> Option<Expanded> {
    if known.is_empty() {
        return None;
    }
    let words = words(query);
    let runs: Vec<(Range<usize>, String)> = runs(query, &words).collect();
    let named: BTreeSet<&str> = runs.iter().map(|(_, key)| key.as_str()).collect();
    let known: Vec<(&Acronym, String)> = known.iter().map(|a| (a, long_key(&a.long))).collect();
    let is_named = |short: &str| words.iter().any(|word| is_meant(&query[word.clone()], short));
    // Where it stands ends there; in the order of the query.
    let mut additions: Vec<(Range<usize>, Vec<&str>, Option<&str>)> = Vec::new();
    for word in &words {
        let shorts = known.iter().filter(|(a, _)| is_meant(&query[word.clone()], &a.short));
        let meanings: Vec<&Acronym> = shorts
            .filter(|(_, key)| !named.contains(key.as_str()))
            .map(|(acronym, _)| *acronym)
            .take(MAX_MEANINGS)
            .collect();
        let given = meanings.iter().find(|meaning| meaning.is_given).map(|meaning| meaning.long.as_str());
        let longs = meanings.iter().map(|meaning| meaning.long.as_str()).collect();
        additions.push((word.clone(), longs, given));
    }
    for (run, key) in &runs {
        let shorts = known.iter().filter(|(_, long)| long == key).map(|(a, _)| a.short.as_str());
        let shorts = shorts.filter(|short| !is_named(short)).take(MAX_MEANINGS).collect();
        additions.push((run.clone(), shorts, None));
    }
    additions.retain(|(_, forms, _)| !forms.is_empty());
    additions.sort_by_key(|(place, _, _)| place.end);
    if additions.is_empty() {
        return None;
    }
    let mut expanded = Expanded { more: String::new(), vector: String::new(), added: Vec::new() };
    let mut told = BTreeSet::new();
    let mut copied = 0;
    for (place, forms, given) in additions {
        if !told.insert(query[place.clone()].to_owned()) {
            continue;
        }
        if let Some(long) = given {
            expanded.vector.push_str(&format!("{} ({long})", &query[copied..place.end]));
            copied = place.end;
        }
        for form in forms {
            expanded.more.push_str(if expanded.more.is_empty() { "" } else { " " });
            expanded.more.push_str(form);
            expanded.added.push((query[place.clone()].to_owned(), form.to_owned()));
        }
    }
    expanded.vector.push_str(&query[copied..]);
    Some(expanded)
}

/// Whether a word of a query is a short form: written the same, or in capitals of at least three letters.
fn is_meant(word: &str, short: &str) -> bool {
    let word = singular(word);
    let is_in_capitals =
        word.chars().count() >= 3 && word.contains(char::is_uppercase) && !word.contains(char::is_lowercase);
    word == short || (is_in_capitals && short_key(short) == word)
}

/// The first words that may be meant otherwise.
fn words(query: &str) -> Vec<Range<usize>> {
    let mut words = plain_words(query);
    words.truncate(MAX_WORDS);
    words
}

/// Each run of words that a long form may be, with its key. What is quoted or excluded ends a run.
fn runs(query: &str, words: &[Range<usize>]) -> impl Iterator<Item = (Range<usize>, String)> {
    (0..words.len()).flat_map(move |first| {
        let (mut end, mut words_of_run) = (words[first].start, String::new());
        let is_next = move |word: &&Range<usize>| {
            let follows = !query[end..word.start].contains(char::is_alphanumeric);
            end = word.end;
            follows
        };
        words[first..].iter().take(MAX_LONG_WORDS).take_while(is_next).map(move |last| {
            push_words(&query[last.clone()], &mut words_of_run);
            let key = words_of_run.len() - usize::from(is_plural(&words_of_run));
            (words[first].start..last.end, words_of_run[..key].to_owned())
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn known(pairs: &[(&str, &str)]) -> Vec<Acronym> {
        let given = |(short, long): &(&str, &str)| Acronym {
            short: (*short).into(),
            long: (*long).into(),
            is_given: true,
        };
        pairs.iter().map(given).collect()
    }

    #[track_caller]
    fn check(query: &str, pairs: &[(&str, &str)], more: &str, vector: &str) {
        let expanded = expand(query, &known(pairs)).unwrap();
        assert_eq!((expanded.more.as_str(), expanded.vector.as_str()), (more, vector));
    }

    const SLA: (&str, &str) = ("SLA", "service level agreement");

    #[test]
    fn a_short_form_gets_its_long_form_and_the_other_way_round() {
        check(
            "What is our SLA?",
            &[SLA],
            "service level agreement",
            "What is our SLA (service level agreement)?",
        );
        check("fines in service-level agreements", &[SLA], "SLA", "fines in service-level agreements");
        check("TB rates", &[("TB", "tuberculosis")], "tuberculosis", "TB (tuberculosis) rates");
        check("SLAs", &[SLA], "service level agreement", "SLAs (service level agreement)");
        check("MRNA", &[("mRNA", "messenger RNA")], "messenger RNA", "MRNA (messenger RNA)");
        check(
            "an SLA and an SLA",
            &[SLA],
            "service level agreement",
            "an SLA (service level agreement) and an SLA",
        );
    }

    #[test]
    fn what_is_not_meant_is_not_expanded() {
        for query in
            ["who is it", "\"SLA\"", "-SLA x", "sla", "SLA: service level agreement", "“the SLA” x", "It"]
        {
            let pairs = known(&[SLA, ("WHO", "World Health Organization"), ("IT", "information technology")]);
            assert_eq!(expand(query, &pairs), None, "{query}");
        }
    }

    #[test]
    fn three_meanings_at_most_and_the_vector_has_the_first() {
        let pairs =
            [("FA", "first aid"), ("FA", "fine art"), ("FA", "flight attendant"), ("FA", "field artillery")];
        check("FA", &pairs, "first aid fine art flight attendant", "FA (first aid)");
    }

    #[test]
    fn what_documents_define_is_added_to_words_alone() {
        let mut mined = known(&[SLA]);
        mined[0].is_given = false;
        let expanded = expand("What is our SLA?", &mined).unwrap();
        assert_eq!(expanded.more, "service level agreement");
        assert_eq!(expanded.vector, "What is our SLA?");
    }

    #[test]
    fn forms_are_looked_up_once_each() {
        let lookup = Lookup::of("Our SLAs at end-of-life, \"quoted words\"");
        let short: Vec<&str> = lookup.short_keys.iter().map(String::as_str).collect();
        assert_eq!(short, ["AT", "END-OF-LIFE", "OUR", "SLA"]);
        assert!(
            lookup.long_keys.contains("end of life") && lookup.long_keys.contains("our slas at end of life")
        );
        assert!(!lookup.long_keys.iter().any(|key| key.contains("quoted")));
        let capital: Vec<&str> = lookup.capital_keys.iter().map(String::as_str).collect();
        assert_eq!(capital, ["SLA"]);
        let around = Lookup::of("land \"quoted\" management");
        assert_eq!(around.long_keys.into_iter().collect::<Vec<_>>(), ["management"]);
    }

    proptest! {
        #[test]
        fn any_query_is_survived(query in "([A-Z\" ß-]|SLA|\\PC){0,40}") {
            let lookup = Lookup::of(&query);
            prop_assert!(lookup.short_keys.len() <= MAX_WORDS);
            if let Some(expanded) = expand(&query, &known(&[SLA])) {
                prop_assert!(expanded.vector.len() >= query.len() && !expanded.more.is_empty());
            }
        }
    }
}
