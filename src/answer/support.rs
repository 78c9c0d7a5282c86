//! How well what a sentence of an answer cites supports it.
//!
//! The cross-encoder tells how near two texts are, not whether one follows from the other, and its default knows
//! English best. So a sentence is judged in several ways, and the best counts:
//!
//! - by its words: the score of each statement under the sentence, as far as the sentence is made of its words, those that the
//!   question does not have among them; the statements of several cited places count together too;
//! - by its facts: where its numbers, codes or names are those of statements (or their sum), by how well these answer the
//!   question, whatever words or language the sentence uses;
//! - a yes or no: by how well a statement answers the question. Which of the two is right is not measured.
//!
//! A number that the cited texts neither have nor add up to is invented: such a sentence has no support.

use super::{extractive, join};
use crate::error::Result;
use crate::search::SearchHit;
use crate::search::rerank::{logits, sigmoid};
use rag_core::answer::claim::{Facts, facts, share_beyond, statements_for};
use rag_core::answer::extract::{self, Evidence};
use rag_core::answer::neutralise::without_misleading;
use rag_core::answer::{Passage, cite};

/// Share of a sentence's words in a statement from which the cross-encoder's score counts in full: a paraphrase has
/// words of its own.
const FULL_SHARE: f64 = 0.6;

/// The same of the words that the question does not have. Less, for the others show already that the two treat of one thing.
const FULL_SHARE_BEYOND: f64 = 0.3;

/// What the answer to the question counts for where a sentence shares its facts and not its words. Below 1, for nobody
/// measured what the other words say.
const FACTS_WEIGHT: f64 = 0.8;

/// A place that a sentence cites.
pub(super) struct Cited<'a> {
    /// Which of the answer's sources.
    pub(super) source: usize,
    pub(super) hit: &'a SearchHit,
    pub(super) passage: Passage<'a>,
}

/// A statement of a cited place.
pub(super) struct Quote {
    pub(super) source: usize,
    pub(super) statement: Evidence,
    /// How well it supports the sentence, from 0 to 1; `None` if no model measured it.
    pub(super) support: Option<f64>,
}

/// The statement of each cited place that supports a sentence best, and all that hold parts of it; best first.
pub(super) fn quotes(question: &str, sentence: &str, cited: &[Cited<'_>]) -> Result<Vec<Quote>> {
    let passages: Vec<Passage<'_>> = cited.iter().map(|c| c.passage).collect();
    let statements = statements_for(question, sentence, &passages);
    let sentence = cite::without_markers(sentence);
    let texts: Vec<&str> = statements.iter().map(|s| s.text.as_str()).collect();
    // A heading may give orders, too.
    let of_place: Vec<String> =
        cited.iter().map(|c| without_misleading(&extractive::context_of(c.hit))).collect();
    let contexts: Vec<&String> = statements.iter().map(|s| &of_place[s.source]).collect();
    let whole: Vec<String> = cited
        .iter()
        .zip(&of_place)
        .map(|(c, context)| format!("{context}\n{}", without_misleading(c.passage.text)))
        .collect();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let found = facts(question, &sentence, &texts, &whole);
    let joined: Vec<String> =
        contexts.iter().zip(&texts).map(|(context, text)| join(context, text)).collect();

    let mut support = vec![0.0_f64; statements.len()];
    let by_words = |context: &str, text: &str, logit: f64| {
        let shared = f64::from(extract::lexical_support(&sentence, context, text));
        let beyond = share_beyond(question, &sentence, &join(context, text)).unwrap_or(1.0);
        sigmoid(logit) * (shared / FULL_SHARE).min(1.0) * (beyond / FULL_SHARE_BEYOND).min(1.0)
    };
    if found.facts != Facts::Invented && !statements.is_empty() {
        let scores = logits(None, &sentence, joined.clone())?;
        for (index, logit) in scores.iter().enumerate() {
            support[index] = by_words(contexts[index], texts[index], *logit);
        }
        // The nearest of each place, taken together.
        let nearest: Vec<usize> = (0..cited.len())
            .filter_map(|place| {
                let own = (0..statements.len()).filter(|index| statements[*index].source == place);
                own.reduce(|best, other| if scores[other] > scores[best] { other } else { best })
            })
            .filter(|index| extract::lexical_support(&sentence, "", texts[*index]) > 0.0)
            .collect();
        if nearest.len() > 1 {
            let together = together(&texts, &nearest);
            let logit = logits(None, &sentence, vec![together.clone()])?[0];
            raise(&mut support, &nearest, by_words("", &together, logit));
        }
        match found.facts {
            Facts::Verdict => {
                for (index, logit) in logits(None, question, joined)?.into_iter().enumerate() {
                    support[index] = support[index].max(sigmoid(logit));
                }
            }
            Facts::Summed => {
                let logit = logits(None, question, vec![together(&texts, &found.held_by)])?[0];
                raise(&mut support, &found.held_by, FACTS_WEIGHT * sigmoid(logit));
            }
            Facts::Stated => {
                let held = found.held_by.iter().map(|index| joined[*index].clone()).collect();
                for (index, logit) in found.held_by.iter().zip(logits(None, question, held)?) {
                    raise(&mut support, &[*index], FACTS_WEIGHT * sigmoid(logit));
                }
            }
            Facts::Words | Facts::Invented => {}
        }
    }
    let mut order = best_first(&support);
    let mut needed = if found.facts == Facts::Summed { found.held_by.clone() } else { Vec::new() };
    if let Some(&best) = order.first().filter(|best| support[**best] > 0.0) {
        let mut parts = found.beside(best, &order);
        if !parts.is_empty() {
            parts.push(best);
            parts.sort_unstable();
            let together = together(&texts, &parts);
            let logit = logits(None, &sentence, vec![together.clone()])?[0];
            raise(&mut support, &parts, by_words("", &together, logit));
            needed.extend(parts);
            order = best_first(&support);
        }
    }
    let mut quotes: Vec<Quote> = Vec::new();
    for index in order {
        let source = cited[statements[index].source].source;
        if needed.contains(&index) || !quotes.iter().any(|quote| quote.source == source) {
            quotes.push(Quote {
                source,
                statement: statements[index].clone(),
                support: Some(support[index]),
            });
        }
    }
    Ok(quotes)
}

/// Statements by their support, equal ones in their order.
fn best_first(support: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..support.len()).collect();
    order.sort_by(|a, b| support[*b].total_cmp(&support[*a]));
    order
}

/// Statements as one text.
fn together(texts: &[&str], statements: &[usize]) -> String {
    statements.iter().map(|index| texts[*index]).collect::<Vec<_>>().join(" ")
}

/// The nearest statement of each cited place, where nothing can be measured.
pub(super) fn unmeasured_quotes(question: &str, sentence: &str, cited: &[Cited<'_>]) -> Vec<Quote> {
    let passages: Vec<Passage<'_>> = cited.iter().map(|c| c.passage).collect();
    let mut quotes: Vec<Quote> = Vec::new();
    for statement in statements_for(question, sentence, &passages) {
        let source = cited[statement.source].source;
        if !quotes.iter().any(|quote| quote.source == source) {
            quotes.push(Quote { source, statement, support: None });
        }
    }
    quotes
}

fn raise(support: &mut [f64], indices: &[usize], least: f64) {
    for index in indices {
        support[*index] = support[*index].max(least);
    }
}
