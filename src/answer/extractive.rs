//! Answers made of the best-supported statements: no language model needed, nothing invented.

use super::{AnswerOptions, Citation, Method, join};
use crate::config;
use crate::engine;
use crate::error::Result;
use crate::search::SearchHit;
use crate::search::diagnostics::{Stages, is_engine_trouble};
use crate::search::rerank::{logits, sigmoid};
use rag_core::answer::Passage;
use rag_core::answer::answerable::{self, Signals};
use rag_core::answer::extract::{self, Evidence, Prior, SelectOptions};
use rag_core::answer::neutralise;
use std::ops::Range;

/// Statements that are scored at first. The others are, unless one of these has the score of an answer.
const FIRST_ROUND: usize = 8;

/// A logit, with what else speaks for the statement, of which a better one is not looked for.
const ENOUGH: f32 = 5.0;

/// Statements of the hits, with how well each answers the question.
pub(super) struct Scored {
    statements: Vec<Evidence>,
    /// Of each hit what nothing may be made of: orders to a model, hidden text.
    misleading: Vec<Vec<Range<usize>>>,
    /// What they are chosen by: logits with what else speaks for a statement, or shares of words.
    scores: Vec<f32>,
    /// From 0 to 1, as the cross-encoder measured it or as words are shared.
    support: Vec<f64>,
    pub(super) method: Method,
    /// From 0 to 1: how likely it is that the hits answer the question.
    pub(super) confidence: f64,
    /// What that was told from, where the cross-encoder has weights for it.
    pub(super) signals: Option<Signals>,
}

impl Scored {
    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }
}

/// Scores the statements that are worth it.
pub(super) fn score(
    question: &str,
    hits: &[SearchHit],
    options: &AnswerOptions,
    stages: &mut Stages,
) -> Result<Scored> {
    let passages: Vec<Passage<'_>> = hits.iter().map(passage_of).collect();
    let misleading: Vec<_> = passages.iter().map(|passage| neutralise::misleading(passage.text)).collect();
    let statements = extract::candidates(question, &passages, &misleading, options.sentence_limit);
    let watch = stages.start("support");
    let offered = statements.len();
    let scored = match measured(question, hits, statements.clone()) {
        Ok(scored) => {
            stages.done_as(watch, offered, scored.statements.len(), "cross-encoder");
            scored
        }
        Err(error) if is_engine_trouble(&error) => {
            stages.fell_back(watch, "shared words", &error);
            shared(question, hits, statements)
        }
        Err(error) => return Err(error),
    };
    Ok(Scored { misleading, ..scored })
}

/// By the cross-encoder, and by the weights that go with it.
fn measured(question: &str, hits: &[SearchHit], mut statements: Vec<Evidence>) -> Result<Scored> {
    let prior = Prior::of(question);
    let mut measured: Vec<f64> = Vec::new();
    let mut scores: Vec<f32> = Vec::new();
    for round in [FIRST_ROUND, usize::MAX] {
        let next = &statements[measured.len()..statements.len().min(round)];
        let texts = next.iter().map(|s| join(&context_of(&hits[s.source]), &s.told())).collect();
        let more = logits(None, question, texts)?;
        scores.extend(next.iter().zip(&more).map(|(s, logit)| *logit as f32 + prior.for_statement(s)));
        measured.extend(more);
        if scores.iter().any(|score| *score >= ENOUGH) {
            break;
        }
    }
    statements.truncate(measured.len());
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let (mut confidence, mut signals) = (0.0, None);
    if let Some(&best) = order.first() {
        confidence = sigmoid(measured[best]);
        if let Some(weights) = engine::answer_weights(&config::rerank_model()) {
            let statement = &statements[best];
            let hit = &hits[statement.source];
            let window = answerable::window(&hit.chunk.content, statement.bytes.clone());
            let context = context_of(hit);
            let mut texts = vec![join(&context, &statement.about_it(window))];
            texts.extend((!context.is_empty()).then_some(context));
            let around = logits(None, question, texts)?;
            let next = order.get(1).map_or(answerable::NOTHING, |next| measured[*next]);
            let heading = around.get(1).copied().unwrap_or(answerable::NOTHING);
            let found = Signals { best: measured[best], window: around[0], next, heading };
            confidence = weights.probability(&found);
            signals = Some(found);
        }
    }
    let support = measured.into_iter().map(sigmoid).collect();
    let method = Method::Extractive;
    Ok(Scored { statements, misleading: Vec::new(), scores, support, method, confidence, signals })
}

/// By the words that they share with the question, which is no measure of support.
fn shared(question: &str, hits: &[SearchHit], statements: Vec<Evidence>) -> Scored {
    let share = |s: &Evidence| extract::lexical_support(question, &context_of(&hits[s.source]), &s.told());
    let scores: Vec<f32> = statements.iter().map(share).collect();
    let support: Vec<f64> = scores.iter().map(|score| f64::from(*score)).collect();
    let confidence = support.iter().copied().fold(0.0, f64::max);
    let method = Method::Degraded;
    Scored { statements, misleading: Vec::new(), scores, support, method, confidence, signals: None }
}

/// The answer's text and its citations: at most so many statements.
pub(super) fn compose(
    question: &str,
    scored: &Scored,
    hits: &[SearchHit],
    max_sentences: usize,
    min_support: f64,
) -> (String, Vec<Citation>) {
    let passages: Vec<Passage<'_>> = hits.iter().map(passage_of).collect();
    let is_measured = scored.method != Method::Degraded;
    let options = if is_measured {
        SelectOptions::of_logits(question, max_sentences)
    } else {
        let best = scored.scores.iter().copied().fold(0.0, f32::max);
        SelectOptions::of_shares(question, max_sentences, min_support as f32, best)
    };
    let quotes = extract::select(&passages, &scored.misleading, &scored.statements, &scored.scores, &options);
    let citations: Vec<Citation> = quotes
        .iter()
        .enumerate()
        .map(|(i, quote)| {
            let chunk = &hits[quote.source].chunk;
            let before = chunk.content[..quote.bytes.start].chars().count() as i32;
            let support = quote.evidence.iter().map(|index| scored.support[*index]).reduce(f64::max);
            let support = support.filter(|_| is_measured);
            let text = &chunk.content[quote.bytes.clone()];
            Citation::new(i + 1, hits, quote.source, text, chunk.char_from + before, support)
        })
        .collect();
    let parts: Vec<(&str, usize)> =
        quotes.iter().enumerate().map(|(i, quote)| (&quote.text[..], i + 1)).collect();
    (extract::compose(&parts), citations)
}

pub(super) fn passage_of(hit: &SearchHit) -> Passage<'_> {
    Passage {
        title: hit.chunk.title.as_deref().unwrap_or_default(),
        header_path: &hit.chunk.header_path,
        table_header: hit.chunk.table_header.as_deref(),
        text: &hit.chunk.content,
    }
}

/// Title and innermost headings, which say what a sentence is about.
pub(super) fn context_of(hit: &SearchHit) -> String {
    let title = hit.chunk.title.as_deref().unwrap_or_default();
    let headings = &hit.chunk.header_path;
    let mut parts: Vec<&str> = Vec::new();
    if !title.is_empty() && headings.first().map(String::as_str) != Some(title) {
        parts.push(title);
    }
    parts.extend(headings.iter().map(String::as_str));
    parts.join(" > ")
}
