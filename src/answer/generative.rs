//! Answers written by a chat model from numbered passages, each sentence checked against what it cites.

use super::{AnswerRequest, Citation, Refusal, extractive, join};
use crate::engine;
use crate::error::Result;
use crate::pg::principal;
use crate::search::SearchHit;
use crate::search::rerank::{logits, sigmoid};
use crate::storage::chunk;
use rag_core::answer::{Passage, cite, extract, prompt};
use rag_wire::{Chat, ChatMessage};
use std::ops::Range;

/// Most passages of a prompt.
const PASSAGES: usize = 8;

/// Most characters of one passage: a section, or the part of it around the chunk that was found.
const PASSAGE_CHARS: i32 = 3_000;

/// Most characters of passages and history together.
const PROMPT_CHARS: usize = 12_000;

/// Share of a sentence's words in its quote from which the cross-encoder's score counts in full: a paraphrase has
/// words of its own.
const FULL_SHARE: f64 = 0.6;

/// Most tokens of an answer.
const ANSWER_TOKENS: u32 = 512;

/// What a model's answer came to.
pub(super) enum Generated {
    /// Text and citations, each supported.
    Answered(String, Vec<Citation>),
    /// The model says that the passages do not carry an answer.
    Refused(Refusal),
    /// Nothing of what it wrote is supported by what it cites.
    Unsupported,
}

/// A section around a hit, as the model reads it.
struct Source<'a> {
    hit: &'a SearchHit,
    /// The hit's headings, and the header row of a table that the text begins within.
    headings: Vec<String>,
    text: String,
    /// Characters of the document's text before it.
    char_from: i32,
}

/// One sentence of the answer with one place that it cites.
struct Claim {
    sentence: usize,
    source: usize,
    quote: Range<usize>,
}

/// Asks the model, and checks what it says.
pub(super) fn answer(request: &AnswerRequest<'_>, hits: &[SearchHit]) -> Result<Generated> {
    let sources = sources(hits)?;
    let passages: Vec<Passage<'_>> = sources
        .iter()
        .map(|s| Passage { text: &s.text, header_path: &s.headings, ..extractive::passage_of(s.hit) })
        .collect();
    let history: Vec<(String, String)> = request
        .history
        .iter()
        .map(|turn| (if turn.is_user { "user" } else { "assistant" }.to_owned(), turn.content.clone()))
        .collect();
    let messages = prompt::build_prompt(request.question, &history, &passages, PROMPT_CHARS)
        .into_iter()
        .map(|(role, content)| ChatMessage { role: role.to_owned(), content })
        .collect();
    let completion = engine::chat(
        Chat {
            messages,
            max_tokens: ANSWER_TOKENS,
            temperature: 0.0,
            json_schema: Some(prompt::ANSWER_SCHEMA.to_owned()),
        },
        &principal::current_principals()?,
    )?;
    let parsed = cite::parse_completion(&completion.text, sources.len());
    if !parsed.found {
        return Ok(Generated::Refused(Refusal::BelowThreshold));
    }
    check(request, &sources, &parsed.answer)
}

/// Sections of the hits, each once, in the order of the hits.
fn sources(hits: &[SearchHit]) -> Result<Vec<Source<'_>>> {
    let mut sources: Vec<Source<'_>> = Vec::new();
    for hit in hits {
        if sources.len() == PASSAGES {
            break;
        }
        if sources.iter().any(|s| s.hit.chunk.section == hit.chunk.section && s.covers(hit)) {
            continue;
        }
        let (text, char_from) = chunk::section_text(&hit.chunk, PASSAGE_CHARS)?
            .unwrap_or_else(|| (hit.chunk.content.clone(), hit.chunk.char_from));
        let header = hit.chunk.table_header.as_deref().filter(|header| !text.contains(*header));
        let columns = header.and_then(|header| header.lines().next()).map(str::to_owned);
        let headings = hit.chunk.header_path.iter().cloned().chain(columns).collect();
        sources.push(Source { hit, headings, text, char_from });
    }
    Ok(sources)
}

impl Source<'_> {
    fn covers(&self, hit: &SearchHit) -> bool {
        let char_to = self.char_from + self.text.chars().count() as i32;
        self.char_from <= hit.chunk.char_from && hit.chunk.char_to <= char_to
    }
}

/// Keeps the sentences that a place they cite supports, and numbers the places anew.
fn check(request: &AnswerRequest<'_>, sources: &[Source<'_>], answer: &str) -> Result<Generated> {
    let sentences = cite::marked_sentences(answer);
    let mut claims: Vec<Claim> = Vec::new();
    for (index, (range, numbers)) in sentences.iter().enumerate() {
        for number in numbers {
            let source = number - 1;
            if let Some(quote) = cite::best_quote(&answer[range.clone()], &sources[source].text) {
                claims.push(Claim { sentence: index, source, quote });
            }
        }
    }
    let support = support(sources, &sentences, answer, &claims)?;

    let mut citations: Vec<Citation> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for (index, (range, _)) in sentences.iter().enumerate() {
        let mut markers: Vec<usize> = Vec::new();
        for (claim, support) in claims.iter().zip(&support).filter(|(claim, _)| claim.sentence == index) {
            if *support < request.options.min_support {
                continue;
            }
            let source = &sources[claim.source];
            let before = source.text[..claim.quote.start].chars().count() as i32;
            let found = Citation::new(
                citations.len() + 1,
                &source.hit.chunk,
                &source.text[claim.quote.clone()],
                source.char_from + before,
                *support,
            );
            let same = citations.iter().position(|c| {
                c.document == found.document && c.char_from == found.char_from && c.char_to == found.char_to
            });
            let n = match same {
                Some(known) => known + 1,
                None => {
                    citations.push(found);
                    citations.len()
                }
            };
            if !markers.contains(&n) {
                markers.push(n);
            }
        }
        if !markers.is_empty() {
            let sentence = printable(&cite::without_markers(&answer[range.clone()]));
            let markers: String = markers.iter().map(|n| format!("[{n}]")).collect();
            parts.push(format!("{} {markers}", sentence.trim()));
        }
    }
    if citations.is_empty() {
        return Ok(Generated::Unsupported);
    }
    Ok(Generated::Answered(parts.join(" "), citations))
}

/// How well each quote supports its sentence: the cross-encoder's view of the quote under the sentence, as far as
/// the sentence is made of the quote's words. A number or code that the cited passage does not have is invented:
/// such a sentence has no support.
fn support(
    sources: &[Source<'_>],
    sentences: &[(Range<usize>, Vec<usize>)],
    answer: &str,
    claims: &[Claim],
) -> Result<Vec<f64>> {
    let mut support = vec![0.0; claims.len()];
    for (index, (range, _)) in sentences.iter().enumerate() {
        let sentence = cite::without_markers(&answer[range.clone()]);
        let own: Vec<usize> = (0..claims.len()).filter(|c| claims[*c].sentence == index).collect();
        let quotes: Vec<(String, &str)> = own
            .iter()
            .map(|c| {
                let source = &sources[claims[*c].source];
                (extractive::context_of(source.hit), &source.text[claims[*c].quote.clone()])
            })
            .collect();
        let scores =
            logits(None, &sentence, quotes.iter().map(|(context, quote)| join(context, quote)).collect())?;
        for ((claim, logit), (context, quote)) in own.into_iter().zip(scores).zip(&quotes) {
            if cite::invents_numbers(&sentence, &sources[claims[claim].source].text) {
                continue;
            }
            let shared = f64::from(extract::lexical_support(&sentence, context, quote));
            support[claim] = sigmoid(logit) * (shared / FULL_SHARE).min(1.0);
        }
    }
    Ok(support)
}

/// Without control characters, which a terminal would obey.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
