//! Regular expressions with word boundaries, for texts with letters beyond ASCII.
//!
//! The quick engines of the `regex` crate know `\b` among ASCII alone, and what takes their place is slower by ten times. Most
//! texts have nothing that a pattern finds, and the same pattern without its boundaries, which is quick in any text, says so.

use regex::{CaptureMatches, Captures, Regex};
use std::sync::OnceLock;

/// Bytes below which a text is not worth a second pattern.
const SHORT: usize = 256;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct WordPattern {
    exact: Regex,
    /// Finds something in each text in which the exact one does; made at its first use.
    loose: OnceLock<Option<Regex>>,
}

impl WordPattern {
    /// `None` for what is no regular expression. Each `\b` of the pattern must be a boundary: it has no escaped backslash.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        Some(Self { exact: Regex::new(pattern).ok()?, loose: OnceLock::new() })
    }

    /// [`Regex::captures_iter`].
    pub(crate) fn captures_iter<'p, 't>(
        &'p self,
        text: &'t str,
    ) -> impl Iterator<Item = Captures<'t>> + use<'p, 't> {
        let all = |exact: &'p Regex| -> CaptureMatches<'p, 't> { exact.captures_iter(text) };
        self.may_match(text).then(|| all(&self.exact)).into_iter().flatten()
    }

    /// False only if nothing in the text matches.
    fn may_match(&self, text: &str) -> bool {
        if text.len() < SHORT || text.is_ascii() {
            return true;
        }
        // Without a condition a pattern matches no less.
        let without_boundaries = || Regex::new(&self.exact.as_str().replace(r"\b", "")).ok();
        self.loose.get_or_init(without_boundaries).as_ref().is_none_or(|loose| loose.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const PATTERNS: [&str; 5] = [
        r"\b[A-Z]{2,8}(?:-[0-9]{2,8}){1,4}\b",
        r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b",
        r"(?i)\b(?<d>\d{1,2}) (?<month>may|mai|août)\b (?<y>\d{4})\b",
        r"\b(?<y>\d{4})-(?<m>\d{2})(?:\b|T)",
        r"\b(?:\p{Lu}[\p{L}0-9+-]*[ ]){1,3}(?:Server|Bank)\b",
    ];

    const PIECES: [&str; 16] = [
        "ä",
        "É",
        " ",
        "-",
        "_",
        "AB-12",
        "ÄB-12",
        "max_size",
        "3 août 2020",
        "2020-01",
        "T",
        "Große ",
        "Bank",
        "bank",
        "9",
        ". ",
    ];

    #[test]
    fn nothing_is_expected_of_a_text_only_if_nothing_is_there() {
        let filler = "für ".repeat(SHORT / 4);
        let pattern = WordPattern::new(PATTERNS[0]).unwrap();
        assert!(!pattern.may_match(&filler));
        assert_eq!(pattern.captures_iter(&format!("{filler}AB-12.")).count(), 1);
        assert_eq!(pattern.captures_iter(&format!("{filler}éAB-12.")).count(), 0);
    }

    proptest! {
        #[test]
        fn the_same_is_found_as_by_the_pattern_alone(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
            let filler = "für ".repeat(SHORT / 4);
            let text: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
            for text in [text.clone(), format!("{filler}{text}{filler}")] {
                for pattern in PATTERNS {
                    let exact = Regex::new(pattern).unwrap();
                    let expected: Vec<_> = exact.captures_iter(&text).map(|c| c.get_match().range()).collect();
                    let words = WordPattern::new(pattern).unwrap();
                    let found: Vec<_> = words.captures_iter(&text).map(|c| c.get_match().range()).collect();
                    prop_assert_eq!(found, expected, "{} in {}", pattern, text);
                }
            }
        }
    }
}
