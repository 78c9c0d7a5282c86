//! Answers made of the best-supported sentences: no language model needed, nothing invented.

use super::{AnswerOptions, Citation, Method, supports};
use crate::error::Result;
use crate::search::SearchHit;
use crate::search::diagnostics::Stages;
use rag_core::answer::Passage;
use rag_core::answer::extract::{self, SelectOptions};
use rag_core::answer::neutralise;

/// A sentence of a hit, with how well it answers the question.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    sentence: extract::Evidence,
    /// From 0 to 1, as the cross-encoder measured it or as words are shared.
    pub(super) support: f64,
}

/// The sentences of the hits that are worth scoring, with their support and how it was found.
pub(super) fn evidence(
    question: &str,
    hits: &[SearchHit],
    options: &AnswerOptions,
    stages: &mut Stages,
) -> Result<(Vec<Evidence>, Method)> {
    let passages: Vec<Passage<'_>> = hits.iter().map(passage_of).collect();
    let mut sentences = extract::candidates(question, &passages, options.sentence_limit);
    let misleading: Vec<_> = passages.iter().map(|passage| neutralise::misleading(passage.text)).collect();
    sentences.retain(|s| !neutralise::touches(&misleading[s.source], &s.bytes));
    let pairs: Vec<(String, String)> = sentences
        .iter()
        .map(|s| {
            let hit = &hits[s.source];
            let text = match extract::defined_term(&hit.chunk.content, s.bytes.start) {
                Some(term) => format!("{term}: {}", s.text),
                None => s.text.clone(),
            };
            (context_of(hit), text)
        })
        .collect();
    let (support, method) = supports(question, &pairs, stages)?;
    let evidence = sentences.into_iter().zip(support);
    Ok((evidence.map(|(sentence, support)| Evidence { sentence, support }).collect(), method))
}

/// The answer's text and its citations.
pub(super) fn compose(
    evidence: &[Evidence],
    hits: &[SearchHit],
    method: Method,
    max_sentences: usize,
    min_support: f64,
) -> (String, Vec<Citation>) {
    let sentences: Vec<extract::Evidence> = evidence.iter().map(|e| e.sentence.clone()).collect();
    let support: Vec<f32> = evidence.iter().map(|e| e.support as f32).collect();
    let is_measured = method != Method::Degraded;
    let picked = extract::select(
        &sentences,
        &support,
        &SelectOptions {
            max_sentences,
            min_support: min_support as f32,
            // Shares of words are no probabilities, so they have no odds.
            odds: if is_measured { extract::MAX_ODDS } else { f32::INFINITY },
            ..SelectOptions::default()
        },
    );
    let citations: Vec<Citation> = picked
        .iter()
        .enumerate()
        .map(|(i, index)| {
            let chosen = &evidence[*index];
            let chunk = &hits[chosen.sentence.source].chunk;
            let bytes = chosen.sentence.bytes.clone();
            let before = chunk.content[..bytes.start].chars().count() as i32;
            let support = is_measured.then_some(chosen.support);
            Citation::new(i + 1, chunk, &chunk.content[bytes], chunk.char_from + before, support)
        })
        .collect();
    let parts: Vec<(&str, usize)> =
        picked.iter().enumerate().map(|(i, index)| (sentences[*index].text.as_str(), i + 1)).collect();
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
