//! Words that carry meaning, as stems: what question, sentence and quote are compared by.
//!
//! Not the index's analyser (that is `rag_bm25`'s): this one only ranks candidates and measures overlap.

use crate::words::{Algorithm, Stemmer, stop_words};
use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;
use unicode_segmentation::UnicodeSegmentation;

/// Words of questions that the lists of function words lack.
const QUESTION_WORDS: &[&str] = &["could", "many", "may", "much", "must", "us", "whose", "would"];

/// Function words of German that mean something in English: a folder of programs, a listing, a weight.
const ALSO_ENGLISH: &[&str] = &["bin", "dies", "dir", "weg"];

/// Function words of English that mean something in a question: what is down, who won, `now()`.
const MEANT: &[&str] = &["down", "further", "now", "won"];

/// Words that say nothing about a topic: English and German function words, and the words of questions.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let german = stop_words("de").iter().filter(|word| !ALSO_ENGLISH.contains(word));
    let english = stop_words("en").iter().filter(|word| !MEANT.contains(word));
    english.chain(german).chain(QUESTION_WORDS).copied().collect()
});

/// Stemming and stop words for a call.
pub(crate) struct Terms {
    stemmer: Stemmer,
}

impl Terms {
    pub(crate) fn new() -> Self {
        Self { stemmer: Stemmer::new(Algorithm::English) }
    }

    /// The distinct stems of a text's meaningful words. An identifier such as `max_wal_size` gives itself and
    /// its parts, so that a question in plain words finds it.
    pub(crate) fn of(&self, text: &str) -> BTreeSet<String> {
        let mut terms = BTreeSet::new();
        for word in text.unicode_words() {
            let word = word.to_lowercase().replace('’', "'");
            if word.contains('_') {
                terms.extend(word.split('_').filter_map(|part| self.term(part)));
                terms.insert(word);
            } else {
                terms.extend(self.term(&word));
            }
        }
        terms
    }

    fn term(&self, word: &str) -> Option<String> {
        let word = word.strip_suffix("'s").unwrap_or(word);
        if word.is_empty() || STOP_WORDS.contains(word) {
            return None;
        }
        Some(self.stemmer.stem(word).into_owned())
    }
}

/// Share of common elements: 1 for equal sets, 0 for disjoint ones, 1 for two empty ones.
pub(crate) fn jaccard(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f32 {
    let common = a.intersection(b).count();
    let all = a.len() + b.len() - common;
    if all == 0 { 1.0 } else { common as f32 / all as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(Terms::new().of(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn words_are_stemmed_and_function_words_left_out() {
        check(
            "What are the running processes of PostgreSQL's server?",
            &["postgresql", "process", "run", "server"],
        );
        check("How is it? Whose could it be?", &[]);
        check("Welches Haus haben sie gegen uns gebaut?", &["gebaut", "haus"]);
        check("a bin dir", &["bin", "dir"]);
        check("Is it down now? It dies.", &["die", "down", "now"]);
    }

    #[test]
    fn identifiers_give_themselves_and_their_parts() {
        check("max_wal_size", &["max", "max_wal_size", "size", "wal"]);
        check("15.2 MB", &["15.2", "mb"]);
    }

    #[test]
    fn jaccard_is_the_share_of_common_words() {
        let terms = Terms::new();
        assert_eq!(jaccard(&terms.of("red fox"), &terms.of("red dog")), 1.0 / 3.0);
        assert_eq!(jaccard(&terms.of(""), &terms.of("")), 1.0);
    }
}
