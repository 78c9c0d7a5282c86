//! Extractive answers: the sentences of passages that carry the answer.
//!
//! [`candidates`] narrows the passages down to sentences worth a cross-encoder's time, [`select`] picks by
//! the support that it measured, [`compose`] writes the answer.

use super::Passage;
use super::cite::without_own_markers;
use super::statement::{Statement, one_line, statements};
use crate::terms::{Terms, jaccard};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A sentence of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Index of the passage.
    pub source: usize,
    /// Place in the passage's text.
    pub bytes: Range<usize>,
    /// The sentence on one line, as it is scored and quoted.
    pub text: String,
}

/// How [`select`] picks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectOptions {
    /// Most sentences.
    pub max_sentences: usize,
    /// Least support, 0 to 1.
    pub min_support: f32,
    /// Least support as a share of the best sentence's, 0 to 1.
    pub relative: f32,
    /// Most by which the best sentence's odds (support against 1 − support) may exceed a sentence's; infinite where
    /// supports are no probabilities.
    pub odds: f32,
}

impl Default for SelectOptions {
    fn default() -> Self {
        Self { max_sentences: 3, min_support: 0.5, relative: 0.5, odds: MAX_ODDS }
    }
}

/// How many times better than a sentence's the best one's odds may be for the sentence to be added.
///
/// Supports of a cross-encoder crowd below 1, so their share tells little: where 0.9999 is the answer, 0.97 is a sentence
/// about the same thing that does not answer. Four units of its logit are odds of 55.
pub const MAX_ODDS: f32 = 50.0;

/// Most characters of a term: more is a sentence that happens to have a colon.
const MAX_TERM_CHARS: usize = 80;

/// Share of common words from which two sentences say the same.
pub const DUPLICATE_JACCARD: f32 = 0.8;

/// Weight of words found only in title and headings, against 1 for the sentence's own.
const HEADER_WEIGHT: f32 = 0.3;

/// Most that the passage's rank adds, for the first passage; halved for the second, and so on.
const RANK_PRIOR: f32 = 0.2;

/// The `limit` sentences that share most with the question, best first.
///
/// A list item and a line of code count as a sentence, and so does a table row, with its columns' names before its
/// cells. A row whose header is not known, a sentence with a part of a link, headings, rules, and sentences without a
/// word are none; one with fewer than three meaningful words is joined with the neighbour before it in its
/// paragraph, else the one after. A sentence found in two overlapping passages comes once, from the better
/// one. Shared words weigh by their rarity among the sentences; words of title and headings count a little,
/// and so does the passage's rank. Sentences that share nothing come last rather than not at all: a
/// cross-encoder knows more words than these. Ties keep reading order.
pub fn candidates(question: &str, passages: &[Passage<'_>], limit: usize) -> Vec<Evidence> {
    let terms = Terms::new();
    let wanted = terms.of(question);
    let mut found: Vec<(Evidence, BTreeSet<String>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (source, passage) in passages.iter().enumerate() {
        for Statement { bytes, text } in statements(passage, &terms) {
            if seen.insert(text.clone()) {
                let own = terms.of(&text);
                found.push((Evidence { source, bytes, text }, own));
            }
        }
    }
    let mut frequency: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, own) in &found {
        for term in own.intersection(&wanted) {
            *frequency.entry(term).or_default() += 1;
        }
    }
    let count = found.len() as f32;
    let weight = |term: &str| {
        let frequency = frequency.get(term).copied().unwrap_or_default() as f32;
        (1.0 + (count + 1.0) / (frequency + 0.5)).ln()
    };
    let total: f32 = wanted.iter().map(|term| weight(term)).sum::<f32>().max(f32::MIN_POSITIVE);
    let headers: Vec<BTreeSet<String>> = passages
        .iter()
        .map(|passage| terms.of(&format!("{} {}", passage.title, passage.header_path.join(" "))))
        .collect();
    let mut scored: Vec<(f32, usize)> = found
        .iter()
        .enumerate()
        .map(|(index, (evidence, own))| {
            let header = &headers[evidence.source];
            let overlap: f32 = wanted
                .iter()
                .map(|term| match (own.contains(term), header.contains(term)) {
                    (true, _) => weight(term),
                    (false, true) => HEADER_WEIGHT * weight(term),
                    (false, false) => 0.0,
                })
                .sum();
            (overlap / total + RANK_PRIOR / (1.0 + evidence.source as f32), index)
        })
        .collect();
    // A stable sort, so that equal scores stay in reading order.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.truncate(limit);
    let mut found: Vec<Option<Evidence>> = found.into_iter().map(|(evidence, _)| Some(evidence)).collect();
    scored.into_iter().filter_map(|(_, index)| found[index].take()).collect()
}

/// What a sentence within a definition is about: manuals say "The default is 5 min" under the name of a setting
/// that the sentence does not repeat. The term is what stands in code before the colon of the list item.
pub fn defined_term(text: &str, at: usize) -> Option<&str> {
    let before = &text[..at];
    let item = before
        .rfind("\n- `")
        .map(|newline| newline + 1)
        .or_else(|| before.starts_with("- `").then_some(0))?;
    if before[item..].contains("\n#") {
        return None;
    }
    let (term, _) = before[item + 2..].split_once(": ")?;
    (term.chars().count() <= MAX_TERM_CHARS && !term.contains('\n')).then_some(term)
}

/// Share of the question's meaningful words that a sentence holds, 0 to 1; words found only in its title and
/// headings count half. Stands in for a cross-encoder where there is none.
pub fn lexical_support(question: &str, headers: &str, text: &str) -> f32 {
    let terms = Terms::new();
    let wanted = terms.of(question);
    let (own, headers) = (terms.of(text), terms.of(headers));
    let held: f32 = wanted
        .iter()
        .map(|term| match (own.contains(term), headers.contains(term)) {
            (true, _) => 1.0,
            (false, true) => 0.5,
            (false, false) => 0.0,
        })
        .sum();
    held / (wanted.len().max(1) as f32)
}

/// Picks the evidence to answer with: indices into `evidence`, by falling support.
///
/// `support` is how well each sentence answers the question, 0 to 1; a missing or NaN one counts as none. A
/// sentence is left out if its support is below `min_support`, or far below the best one's (`relative`, `odds`), or if
/// it says nearly the same ([`DUPLICATE_JACCARD`]) as one already picked. Ties keep the order of `evidence`.
pub fn select(evidence: &[Evidence], support: &[f32], options: &SelectOptions) -> Vec<usize> {
    let terms = Terms::new();
    let mut order: Vec<usize> =
        (0..evidence.len().min(support.len())).filter(|i| !support[*i].is_nan()).collect();
    order.sort_by(|a, b| support[*b].total_cmp(&support[*a]));
    let Some(&best) = order.first() else { return Vec::new() };
    let least = options.min_support.max(options.relative * support[best]);
    let odds = |index: usize| f64::from(support[index]) / (1.0 - f64::from(support[index]));
    let is_far_below = |index: usize| odds(best) > f64::from(options.odds) * odds(index);
    let mut picked: Vec<(usize, BTreeSet<String>)> = Vec::new();
    for index in order {
        if picked.len() >= options.max_sentences || support[index] < least || is_far_below(index) {
            break;
        }
        let own = terms.of(&evidence[index].text);
        let is_duplicate = picked.iter().any(|(other, words)| {
            evidence[*other].text == evidence[index].text
                || (!own.is_empty() && jaccard(words, &own) >= DUPLICATE_JACCARD)
        });
        if !is_duplicate {
            picked.push((index, own));
        }
    }
    picked.into_iter().map(|(index, _)| index).collect()
}

/// The answer's text: each sentence followed by its citation, as in `A sentence. [1] Another. [2]`.
///
/// Each part is a sentence and the number of its citation.
pub fn compose(parts: &[(&str, usize)]) -> String {
    let written: Vec<String> = parts
        .iter()
        .map(|(text, number)| format!("{} [{number}]", one_line(&without_own_markers(text))))
        .collect();
    written.join(" ")
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
