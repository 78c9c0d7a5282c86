//! Extractive answers: the sentences of passages that carry the answer.
//!
//! [`candidates`] narrows the passages down to sentences worth a cross-encoder's time, [`select`] picks by
//! the support that it measured, [`compose`] writes the answer.

use super::Passage;
use super::beside::{Wanted, beside};
use super::cite::without_own_markers;
use super::neutralise::touches;
use super::plain::readable;
use super::statement::{Statement, defined_term, is_row, statements, term_of};
use crate::terms::{Terms, jaccard};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A statement of a passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Index of the passage.
    pub source: usize,
    /// Place in the passage's text.
    pub bytes: Range<usize>,
    /// The statement as it is scored and shown: on one line, but for lists and code behind their lead-in.
    pub text: String,
    /// What it is about without saying so: the term whose definition it belongs to, or the lead-in of its list.
    pub about: Option<String>,
}

impl Evidence {
    /// The text with what it is about before it, as a cross-encoder should read it.
    pub fn told(&self) -> String {
        self.about_it(&self.text)
    }

    /// A text with what the statement is about before it.
    pub fn about_it(&self, text: &str) -> String {
        match &self.about {
            Some(about) => format!("{}: {text}", about.trim_end_matches(':')),
            None => text.to_owned(),
        }
    }
}

/// How [`select`] picks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectOptions {
    /// Most statements.
    pub max_sentences: usize,
    /// Least score of the best statement.
    pub least: f32,
    /// Most by which the best statement's score may exceed that of another one of its passage.
    pub same_passage: f32,
    /// The same for one of another passage.
    pub other_passage: f32,
    /// What is asked for that the best statement may leave to one behind it.
    pub wanted: Wanted,
}

impl SelectOptions {
    /// For logits of a cross-encoder. Supports crowd below 1, so their share tells little: where 0.9999 is the answer, 0.97
    /// is a sentence about the same thing that does not answer. Four units of the logit are odds of 55.
    pub fn of_logits(question: &str, max_sentences: usize) -> Self {
        let wanted = Wanted::by(question);
        Self { max_sentences, least: f32::NEG_INFINITY, same_passage: 4.0, other_passage: 2.5, wanted }
    }

    /// For shares of words: others must have half of what the best has.
    pub fn of_shares(question: &str, max_sentences: usize, least: f32, best: f32) -> Self {
        let (half, wanted) = (best / 2.0, Wanted::by(question));
        Self { max_sentences, least, same_passage: half, other_passage: half, wanted }
    }
}

/// What [`select`] picked: statements that stand together in a passage, as one quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    /// Index of the passage.
    pub source: usize,
    /// Place in the passage's text, from the first statement to the last.
    pub bytes: Range<usize>,
    /// What the answer says.
    pub text: String,
    /// Indices into the evidence, best first; none of what stands there only to be understood.
    pub evidence: Vec<usize>,
}

/// Share of common words from which two sentences say the same.
pub const DUPLICATE_JACCARD: f32 = 0.8;

/// Weight of words found only in title and headings, against 1 for the sentence's own.
const HEADER_WEIGHT: f32 = 0.3;

/// What [`Prior`] adds for the definition of a term that is asked for, for what else is said of it, and takes off for what is
/// said of another term; and what it takes off per logarithm of the passage's rank. Set by hand on questions about a manual.
const DEFINITION: f32 = 2.0;
const OF_TERM: f32 = 1.0;
const OTHER_TERM: f32 = 1.0;
const RANK_STEP: f32 = 0.5;

/// Most that the passage's rank adds, for the first passage; halved for the second, and so on.
const RANK_PRIOR: f32 = 0.2;

/// The `limit` statements that share most with the question, best first.
///
/// A list item and a line of code count as a sentence, so does a table row, with its columns' names before its cells, and a
/// short list or code together with the sentence that leads to it. A row whose header is not known, a sentence with a part of a link, headings, rules, and sentences without a
/// word are none; one with fewer than three meaningful words is joined with the neighbour before it in its
/// paragraph, else the one after. A sentence found in two overlapping passages comes once, from the better
/// one. Shared words weigh by their rarity among the sentences; words of title and headings count a little,
/// and so does the passage's rank. Sentences that share nothing come last rather than not at all: a
/// cross-encoder knows more words than these. Ties keep reading order.
///
/// What touches a `misleading` place of its passage is none; a passage that the list is too short for has no such place.
pub fn candidates(
    question: &str,
    passages: &[Passage<'_>],
    misleading: &[Vec<Range<usize>>],
    limit: usize,
) -> Vec<Evidence> {
    let terms = Terms::new();
    let wanted = terms.of(question);
    let mut found: Vec<(Evidence, BTreeSet<String>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (source, passage) in passages.iter().enumerate() {
        for Statement { bytes, text, lead_in } in statements(passage, &terms) {
            if !is_misleading(misleading, source, &bytes) && seen.insert(text.clone()) {
                let about = lead_in.or_else(|| defined_term(passage.text, bytes.start).map(str::to_owned));
                let evidence = Evidence { source, bytes, text, about };
                let own = terms.of(&evidence.told());
                found.push((evidence, own));
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

fn is_misleading(misleading: &[Vec<Range<usize>>], source: usize, bytes: &Range<usize>) -> bool {
    misleading.get(source).is_some_and(|places| touches(places, bytes))
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

/// How much likelier than its score says a statement is to be what was asked for, in units of a cross-encoder's logit.
///
/// Where the question names a term that the passage defines, the definition is what it wants first, then what is said of that
/// term; what is said of another term is not, where the question names one. And earlier passages go before later ones: the
/// retrievers know more than one sentence tells.
pub struct Prior {
    terms: Terms,
    wanted: BTreeSet<String>,
    names_an_identifier: bool,
}

impl Prior {
    /// For the statements that may answer a question.
    pub fn of(question: &str) -> Self {
        let terms = Terms::new();
        let wanted = terms.of(question);
        let names_an_identifier = wanted.iter().any(|term| term.contains('_'));
        Self { terms, wanted, names_an_identifier }
    }

    /// What is added to a statement's logit.
    pub fn for_statement(&self, evidence: &Evidence) -> f32 {
        let of_term = match (term_of(&evidence.text), &evidence.about) {
            (Some(term), _) => self.for_term(term, DEFINITION),
            (None, Some(about)) if about.starts_with('`') => self.for_term(about, OF_TERM),
            _ => 0.0,
        };
        of_term - RANK_STEP * (1.0 + evidence.source as f32).ln()
    }

    fn for_term(&self, term: &str, asked: f32) -> f32 {
        // The code of `name` (type).
        let name = self.terms.of(term.trim_start_matches('`').split('`').next().unwrap_or_default());
        let is_identifier = name.iter().any(|term| term.contains('_'));
        match !name.is_empty() && name.is_subset(&self.wanted) {
            true => asked,
            false if self.names_an_identifier && is_identifier => -OTHER_TERM,
            false => 0.0,
        }
    }
}

/// Picks what to answer with, the best first: statements that follow each other in a passage are one quote.
///
/// `scores` say how well each statement answers the question; a missing or NaN one counts as none. A statement is left out if
/// it is too far below the best one, which must have the least score, or if it says nearly the same
/// ([`DUPLICATE_JACCARD`]) as one already picked. What the best one needs beside it comes along, as [`super::beside`] says, unless
/// it is at a `misleading` place of its passage. Quotes of the best one's passage stand first, in their order behind its own, but
/// for the definition of its term, which stands before it; ties keep the order of `evidence`.
pub fn select(
    passages: &[Passage<'_>],
    misleading: &[Vec<Range<usize>>],
    evidence: &[Evidence],
    scores: &[f32],
    options: &SelectOptions,
) -> Vec<Quoted> {
    let picked = pick(evidence, scores, options);
    let Some(&best) = picked.first() else { return Vec::new() };
    let terms = Terms::new();
    let mut parts: Vec<Part> = picked.iter().map(|index| Part::of(&evidence[*index], Some(*index))).collect();
    let mut needed = 1;
    for other in beside(&passages[evidence[best].source], &evidence[best], &terms, options.wanted) {
        let part = Part::beside(&evidence[best], other);
        if needed < options.max_sentences
            && !is_misleading(misleading, part.source, &part.bytes)
            && !parts.iter().any(|other| other.source == part.source && other.bytes == part.bytes)
        {
            parts.truncate(options.max_sentences - 1);
            parts.insert(needed, part);
            needed += 1;
        }
    }
    let mut quotes = joined(passages, parts);
    // A stable sort: the others of its passage stay in their order, behind them those of other passages.
    let rank =
        |quote: &Quoted| quote.evidence.iter().filter_map(|at| picked.iter().position(|p| p == at)).min();
    let order_of_passage: Vec<usize> = picked.iter().map(|index| evidence[*index].source).collect();
    let best = &evidence[best];
    // A definition is read before what is said of its term.
    let leads = |quote: &Quoted| {
        let is_before = quote.source == best.source && quote.bytes.start < best.bytes.start;
        is_before && best.about.is_some() && term_of(&quote.text) == best.about.as_deref()
    };
    quotes.sort_by_key(|quote| {
        let passage = order_of_passage.iter().position(|source| *source == quote.source);
        (!leads(quote) && rank(quote) != Some(0), passage, quote.bytes.start)
    });
    quotes
}

/// Indices of the statements to answer with, best first.
fn pick(evidence: &[Evidence], scores: &[f32], options: &SelectOptions) -> Vec<usize> {
    let terms = Terms::new();
    let mut order: Vec<usize> =
        (0..evidence.len().min(scores.len())).filter(|i| !scores[*i].is_nan()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let Some(&best) = order.first().filter(|best| scores[**best] >= options.least) else { return Vec::new() };
    let mut picked: Vec<(usize, BTreeSet<String>)> = Vec::new();
    for index in order {
        let is_beside = evidence[index].source == evidence[best].source;
        let most = if is_beside { options.same_passage } else { options.other_passage };
        if picked.len() >= options.max_sentences || scores[best] - scores[index] > most {
            continue;
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

/// A statement that is part of an answer.
struct Part {
    source: usize,
    bytes: Range<usize>,
    text: String,
    evidence: Option<usize>,
}

impl Part {
    fn of(evidence: &Evidence, index: Option<usize>) -> Self {
        let Evidence { source, bytes, text, .. } = evidence.clone();
        Self { source, bytes, text, evidence: index }
    }

    /// One that stands beside a statement to be understood with it.
    fn beside(statement: &Evidence, other: Statement) -> Self {
        let Statement { bytes, text, .. } = other;
        Self { source: statement.source, bytes, text, evidence: None }
    }
}

/// The parts of each passage in their order, those that follow each other as one.
fn joined(passages: &[Passage<'_>], mut parts: Vec<Part>) -> Vec<Quoted> {
    parts.sort_by_key(|part| (part.source, part.bytes.start));
    let mut quotes: Vec<Quoted> = Vec::new();
    for part in parts {
        let text = passages[part.source].text;
        if let Some(last) = quotes.last_mut().filter(|last| last.source == part.source) {
            let between = text.get(last.bytes.end..part.bytes.start).unwrap_or_default();
            let is_next = !between.is_empty() && between.chars().all(char::is_whitespace);
            if is_next && !is_row(&text[part.bytes.clone()]) {
                last.bytes.end = part.bytes.end;
                let gap = if last.text.contains('\n') || part.text.contains('\n') { "\n\n" } else { " " };
                last.text = format!("{}{gap}{}", last.text, part.text);
                last.evidence.extend(part.evidence);
                continue;
            }
        }
        let Part { source, bytes, text, evidence } = part;
        quotes.push(Quoted { source, bytes, text, evidence: evidence.into_iter().collect() });
    }
    quotes
}

/// The answer's text: each quote followed by its citation, as in `A sentence. [1] Another. [2]`. One that ends with a list
/// or code has its citation on a line of its own.
///
/// Each part is a text and the number of its citation.
pub fn compose(parts: &[(&str, usize)]) -> String {
    let mut written = String::new();
    let mut after_block = false;
    for (text, number) in parts {
        // As its reader will see it.
        let text = without_own_markers(&readable(text));
        let is_block = text.contains('\n');
        if !written.is_empty() {
            written.push_str(if is_block || after_block { "\n\n" } else { " " });
        }
        let gap = if is_block { "\n" } else { " " };
        written.push_str(&format!("{text}{gap}[{number}]"));
        after_block = is_block;
    }
    written
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
