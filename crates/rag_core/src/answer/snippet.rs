//! The part of a passage that shows why it was found.

use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

const ELLIPSIS: char = '…';

/// A window of a text with as many of the matched terms as fit, on one line, at most `max_chars` characters
/// including an ellipsis where text is left out.
///
/// `terms` are byte ranges of matches in any order; what does not lie on characters is passed over. Different
/// terms count more than repetitions of one; among equal windows the earliest wins. Without terms it is the
/// beginning. Cut at word borders, or between graphemes where a word alone is longer than the window.
pub fn snippet(text: &str, terms: &[Range<usize>], max_chars: usize) -> String {
    let words = Words::of(text);
    let whole = words.width(0..words.list.len());
    if whole <= max_chars {
        return words.joined(0..words.list.len());
    }
    if max_chars < 3 {
        return ELLIPSIS.to_string().repeat(max_chars.min(1));
    }
    let marks = words.marks(text, terms);
    // Room for the text, with an ellipsis at both ends.
    let room = max_chars - 2;
    let core = best_core(&words, &marks, room);
    let window = words.widened(core, room);
    if window.is_empty() {
        return words.cut_word(max_chars);
    }
    let mut line = String::new();
    if window.start > 0 {
        line.push(ELLIPSIS);
    }
    line.push_str(&words.joined(window.clone()));
    if window.end < words.list.len() {
        line.push(ELLIPSIS);
    }
    line
}

/// The words of a text between white space.
struct Words<'a> {
    list: Vec<&'a str>,
    /// Byte offset of each.
    starts: Vec<usize>,
    /// Characters before each, and in all, counting one space between two words.
    before: Vec<usize>,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        // This is done for every row: most words are longer.
        let most = text.len() / 4 + 1;
        let mut words =
            Self { list: Vec::with_capacity(most), starts: Vec::with_capacity(most), before: vec![0] };
        words.before.reserve(most);
        if text.is_ascii() {
            // A vertical tab is white space, too.
            let parts = text.split(|c: char| matches!(c, '\t'..='\r' | ' '));
            parts.filter(|word| !word.is_empty()).for_each(|word| words.push(text, word, word.len()));
        } else {
            text.split_whitespace().for_each(|word| words.push(text, word, word.chars().count()));
        }
        words
    }

    fn push(&mut self, text: &str, word: &'a str, chars: usize) {
        // The word is a slice of the text, so its address says where.
        self.starts.push(word.as_ptr() as usize - text.as_ptr() as usize);
        self.list.push(word);
        self.before.push(self.before[self.before.len() - 1] + chars + 1);
    }

    /// Characters of some words on a line.
    fn width(&self, range: Range<usize>) -> usize {
        (self.before[range.end] - self.before[range.start]).saturating_sub(1)
    }

    fn joined(&self, range: Range<usize>) -> String {
        self.list[range].join(" ")
    }

    /// The words that terms touch, by place, with the term in lower case.
    fn marks(&self, text: &str, terms: &[Range<usize>]) -> Vec<(usize, String)> {
        let mut marks: Vec<(usize, String)> = terms
            .iter()
            .filter_map(|range| {
                let term = text.get(range.clone()).filter(|term| !term.trim().is_empty())?;
                let word = self.starts.partition_point(|start| *start <= range.start).checked_sub(1)?;
                Some((word, term.to_lowercase()))
            })
            .collect();
        marks.sort();
        marks.dedup();
        marks
    }

    /// More words on both sides, as far as there is room; empty if the first word alone does not fit.
    fn widened(&self, core: Range<usize>, room: usize) -> Range<usize> {
        let mut window = core;
        loop {
            let left = window.start > 0 && self.width(window.start - 1..window.end) <= room;
            let right = window.end < self.list.len() && self.width(window.start..window.end + 1) <= room;
            match (left, right) {
                // What comes after a match says more than what comes before it.
                (_, true) if !left || !window.len().is_multiple_of(3) => window.end += 1,
                (true, _) => window.start -= 1,
                (false, true) => window.end += 1,
                (false, false) => return window,
            }
        }
    }

    /// The beginning of the first word, with an ellipsis.
    fn cut_word(&self, max_chars: usize) -> String {
        let mut line = String::new();
        let mut chars = 0;
        for grapheme in self.list.first().copied().unwrap_or_default().graphemes(true) {
            chars += grapheme.chars().count();
            if chars + 1 > max_chars {
                break;
            }
            line.push_str(grapheme);
        }
        line.push(ELLIPSIS);
        line
    }
}

/// The words from the first to the last mark of the best window.
fn best_core(words: &Words<'_>, marks: &[(usize, String)], room: usize) -> Range<usize> {
    let mut best = (0, 0..0);
    let mut first = 0;
    let mut counts: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for last in 0..marks.len() {
        *counts.entry(&marks[last].1).or_default() += 1;
        while first <= last && words.width(marks[first].0..marks[last].0 + 1) > room {
            if let Some(count) = counts.get_mut(marks[first].1.as_str()) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(marks[first].1.as_str());
                }
            }
            first += 1;
        }
        // Different terms before repeated ones.
        let score = counts.len() * 1_000 + (last + 1 - first).min(999);
        if first <= last && score > best.0 {
            best = (score, marks[first].0..marks[last].0 + 1);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, terms: &[&str]) -> Vec<Range<usize>> {
        terms.iter().flat_map(|term| text.match_indices(term).map(|(at, m)| at..at + m.len())).collect()
    }

    #[track_caller]
    fn check(text: &str, terms: &[&str], max_chars: usize, expected: &str) {
        assert_eq!(snippet(text, &found(text, terms), max_chars), expected);
    }

    #[test]
    fn a_short_text_comes_whole_and_on_one_line() {
        check("one\n\n two", &["two"], 10, "one two");
        check("", &[], 10, "");
    }

    #[test]
    fn the_window_holds_the_different_terms() {
        let text =
            "cat cat cat aaaa bbbb cccc dddd eeee ffff gggg cat then dog hhhh iiii jjjj kkkk llll mmmm";
        check(text, &["cat", "dog"], 24, "…gggg cat then dog hhhh…");
    }

    #[test]
    fn without_terms_it_is_the_beginning() {
        check("one two three four", &[], 10, "one two…");
    }

    #[test]
    fn the_end_has_no_ellipsis_after_it() {
        check("aaaa bbbb cccc dddd needle", &["needle"], 14, "…dddd needle");
    }

    #[test]
    fn an_endless_word_is_cut() {
        check(&"x".repeat(50), &[], 10, "xxxxxxxxx…");
    }

    proptest! {
        #[test]
        fn it_fits_and_ends_at_words(
            text in "([a-zé]{1,9}[ \n]{1,2}|👩‍👩‍👧‍👦|[x]{20,30} ){0,30}",
            terms in proptest::collection::vec((0usize..200, 0usize..9), 0..6),
            max_chars in 0usize..60,
        ) {
            let terms: Vec<Range<usize>> = terms.into_iter().map(|(at, length)| at..at + length).collect();
            let line = snippet(&text, &terms, max_chars);
            prop_assert!(line.chars().count() <= max_chars, "{line:?}");
            let all: Vec<&str> = text.split_whitespace().collect();
            let inner: Vec<&str> = line.trim_matches(ELLIPSIS).split(' ').filter(|word| !word.is_empty()).collect();
            let fits_a_word = all.first().is_some_and(|word| word.chars().count() + 2 <= max_chars);
            if fits_a_word && !inner.is_empty() {
                prop_assert!(all.windows(inner.len()).any(|window| window == inner), "{line:?}");
            }
        }
    }
}
