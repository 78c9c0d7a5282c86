//! Words that none of the segments has, and the terms that they may have been meant to be.
//!
//! Only the dictionaries of the segments that are passed in are looked at. What was deleted since they were last merged is
//! still in them, as it is in their statistics.

use std::cmp::Reverse;
use std::collections::HashMap;

use tantivy::Term;
use tantivy::query::FuzzyTermQuery;

use crate::analyser::{Analyser, TermKind};
use crate::index::{self, TEXT, TITLE};
use crate::interrupt::{GoesOn, check};
use crate::{Error, Language, Segment};

/// Fewest letters of a term that is corrected: of shorter ones too many are near to each other.
const MIN_CHARS: usize = 4;

/// Letters from which on two of them may be wrong.
const LONG_CHARS: usize = 8;

/// Most terms of one dictionary that are weighed.
const MAX_CANDIDATES: usize = 2_000;

/// A term that is searched for in place of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The language of both.
    pub language: Language,
    /// The query's term: a stem, in lower case.
    pub from: String,
    /// A term of the segments.
    pub to: String,
}

/// Whether segments of one language have a word. A word that they do not index, such as a stop word, counts as known, and
/// so does what is no word but a name, a number or a code of several parts.
///
/// # Errors
/// Those of reading a dictionary.
pub fn is_known(segments: &[Segment], word: &str) -> Result<bool, Error> {
    let Some(language) = segments.first().map(Segment::language) else { return Ok(true) };
    let Some(term) = sole_term(word, language) else { return Ok(true) };
    for segment in segments {
        for field in [TEXT, TITLE] {
            if segment.field(field).index.terms().get(&term)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The term of the segments, which are of one language, that a word may have been meant to be: within one insertion,
/// deletion, substitution or transposition of letters, or within two from eight letters on. Of several the nearest;
/// then one with the same first letter; then that which most entries have.
///
/// # Errors
/// Those of reading a dictionary, and [`Error::Interrupted`] once `goes_on` says no.
pub fn correction(segments: &[Segment], word: &str, goes_on: GoesOn) -> Result<Option<Correction>, Error> {
    let Some(language) = segments.first().map(Segment::language) else { return Ok(None) };
    let Some(from) = sole_term(word, language) else { return Ok(None) };
    let most = if from.chars().count() < LONG_CHARS { 1 } else { 2 };
    for distance in 1..=most {
        let near = near(segments, &from, distance, goes_on)?;
        let first = from.chars().next();
        let best = near
            .into_iter()
            .min_by_key(|(term, entries)| (term.chars().next() != first, Reverse(*entries), term.clone()));
        if let Some((to, _)) = best {
            return Ok(Some(Correction { language, from, to }));
        }
    }
    Ok(None)
}

/// Terms within a distance, with how many entries have each.
fn near(
    segments: &[Segment],
    term: &str,
    distance: u8,
    goes_on: GoesOn,
) -> Result<HashMap<String, u64>, Error> {
    let automaton =
        FuzzyTermQuery::new(Term::from_field_text(index::field(TEXT), term), distance, true).automaton()?;
    let mut found: HashMap<String, u64> = HashMap::new();
    for segment in segments {
        for field in [TEXT, TITLE] {
            check(goes_on)?;
            let mut stream = segment.field(field).index.terms().search(&automaton).into_stream()?;
            let mut left = MAX_CANDIDATES;
            while left > 0 && stream.advance() {
                left -= 1;
                let entries = u64::from(stream.value().doc_freq);
                if let Ok(near) = std::str::from_utf8(stream.key())
                    && near.chars().all(char::is_alphabetic)
                {
                    *found.entry(near.to_owned()).or_default() += entries;
                }
            }
        }
    }
    Ok(found)
}

/// The term of a word, if it is one word of letters, and long enough.
fn sole_term(word: &str, language: Language) -> Option<String> {
    let mut terms = Vec::new();
    Analyser::of(language).analyse(word, |term| terms.push((term.kind, term.text.to_owned())));
    match <[_; 1]>::try_from(terms) {
        Ok([(TermKind::Word, term)])
            if term.chars().count() >= MIN_CHARS && term.chars().all(char::is_alphabetic) =>
        {
            Some(term)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Entry, Query, build, search};

    fn segments(texts: &[&str]) -> Vec<Segment> {
        let entry = |(id, body): (usize, &&str)| {
            let entries = [Entry { id: id as u128, title: "", body }];
            Segment::open(build(Language::English, entries).unwrap()).unwrap()
        };
        texts.iter().enumerate().map(entry).collect()
    }

    #[track_caller]
    fn check(texts: &[&str], word: &str, expected: Option<&str>) {
        let segments = segments(texts);
        let found = correction(&segments, word, || true).unwrap();
        assert_eq!(found.map(|correction| correction.to).as_deref(), expected, "{word}");
    }

    #[test]
    fn one_letter_may_be_wrong_and_two_of_long_words() {
        check(&["a glacier moves"], "glaceir", Some("glacier"));
        check(&["a glacier moves"], "glacer", Some("glacier"));
        check(&["a glacier moves"], "glcr", None);
        check(&["the lighthouse"], "lihgthuose", Some("lighthous"));
        check(&["a boat"], "baot", Some("boat"));
        check(&["a boat"], "bat", None);
    }

    #[test]
    fn nearer_terms_and_the_same_beginning_and_common_terms_come_first() {
        check(&["contract", "contrast contrast", "contrast"], "contrasst", Some("contrast"));
        check(&["mouse", "house", "house"], "mousee", Some("mous"));
        check(&["port", "fort", "fort", "fort"], "pfort", Some("port"));
        check(&["boat", "boast", "boast"], "boaxt", Some("boast"));
    }

    #[test]
    fn known_words_stop_words_and_codes_are_left_alone() {
        let segments = segments(&["glaciers move", "FC-001-234"]);
        for word in ["glacier", "Glaciers", "the", "x9z", "FC-002-234", "the", "日本", "ab"] {
            assert!(is_known(&segments, word).unwrap(), "{word}");
        }
        assert!(!is_known(&segments, "glaceir").unwrap());
        assert!(is_known(&[], "glaceir").unwrap());
    }

    #[test]
    fn a_corrected_query_finds_what_was_meant() {
        let segments = segments(&["a glacier moves", "a river flows"]);
        let query = Query::parse("glaceir", Language::English);
        assert!(search(&segments, &query, 5, None).unwrap().is_empty());
        let correction = correction(&segments, "glaceir", || true).unwrap().unwrap();
        let corrected = query.corrected(&[correction]);
        assert_eq!(search(&segments, &corrected, 5, None).unwrap().len(), 1);
    }

    #[test]
    fn somebody_may_end_it() {
        let ended = correction(&segments(&["glacier"]), "glaceir", || false);
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    }
}
