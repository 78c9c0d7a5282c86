//! Answers written by a chat model from numbered passages, each sentence checked against what it cites.

use super::options::Policy;
use super::route::Route;
use super::support::{self, Cited, Quote};
use super::{AnswerRequest, Citation, Refusal, Unsupported, extractive};
use crate::config;
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::principal;
use crate::search::SearchHit;
use crate::search::diagnostics::is_engine_trouble;
use crate::storage::chunk;
use pgrx::PgSqlErrorCode;
use rag_core::answer::{Passage, cite, leak, plain, prompt};
use rag_wire::{Chat, ChatMessage, Completion};
use std::time::Instant;

/// Most characters of one passage: a section, or the part of it around the chunk that was found.
const PASSAGE_CHARS: i32 = 3_000;

/// Most characters of passages and history together, and of each passage where there are more than ten.
const PROMPT_CHARS: usize = 12_000;
const SHARE_CHARS: usize = 1_200;

/// What stands behind a sentence that nothing supports, under the policy `cited`.
const UNSUPPORTED_MARK: &str = "[unsupported]";

/// What a model's answer came to.
pub(super) enum Generated {
    /// Text that the policy lets stand.
    Answered(Checked),
    /// The model says that the passages do not carry an answer.
    Refused(Refusal),
    /// Nothing of what it wrote is supported by what it cites.
    Unsupported,
    /// It repeats what it was told to do.
    RepeatsPrompt,
}

/// A model's text, checked.
pub(super) struct Checked {
    pub(super) text: String,
    pub(super) citations: Vec<Citation>,
    pub(super) unsupported: Vec<Unsupported>,
    /// Passages that the model was given.
    pub(super) sources: usize,
    /// Why support could not be measured.
    pub(super) trouble: Option<Error>,
}

/// A section around a hit, as the model reads it.
pub(super) struct ContextSection<'a> {
    hit: &'a SearchHit,
    /// The hit's headings, and the header row of a table that the text begins within.
    headings: Vec<String>,
    text: String,
    /// Characters of the document's text before it.
    char_from: i32,
}

/// What the model is asked, and the passages that it may cite.
pub(super) struct Asked<'a> {
    pub(super) chat: Chat,
    pub(super) sources: Vec<ContextSection<'a>>,
}

/// Asks the model, and checks what it says, all before one deadline. `question` is what was searched for.
pub(super) fn answer(
    request: &AnswerRequest<'_>,
    route: &mut Route,
    question: &str,
    hits: &[SearchHit],
    min_support: f64,
) -> Result<Generated> {
    let deadline = Instant::now() + config::llm_deadline();
    let Asked { chat, sources } = asked(request, route, hits)?;
    let left = deadline.saturating_duration_since(Instant::now());
    let completion = engine::chat(chat, left, &principal::current_principals()?)?;
    route.answered_by(&completion);
    read((request.options.policy, min_support), question, &sources, &completion, deadline)
}

/// The prompt for a question. What was neutralised in it is noted in the route.
pub(super) fn asked<'a>(
    request: &AnswerRequest<'_>,
    route: &mut Route,
    hits: &'a [SearchHit],
) -> Result<Asked<'a>> {
    let limit = request.options.prompt_limit();
    let sources = sources(hits, limit)?;
    let passages: Vec<Passage<'_>> = sources.iter().map(ContextSection::passage).collect();
    let history: Vec<(String, String)> = request
        .history
        .iter()
        .map(|turn| (if turn.is_user { "user" } else { "assistant" }.to_owned(), turn.content.clone()))
        .collect();
    let prompt =
        prompt::build_prompt(request.question, &history, &passages, PROMPT_CHARS.max(limit * SHARE_CHARS));
    route.neutralised = prompt.neutralised;
    let messages = prompt
        .messages
        .into_iter()
        .map(|(role, content)| ChatMessage { role: role.to_owned(), content })
        .collect();
    Ok(Asked { chat: route.chat(messages, prompt::ANSWER_SCHEMA), sources })
}

/// Reads and checks what the model wrote.
fn read(
    (policy, min_support): (Policy, f64),
    question: &str,
    sources: &[ContextSection<'_>],
    completion: &Completion,
    deadline: Instant,
) -> Result<Generated> {
    let parsed = cite::parse_completion(&completion.text, sources.len());
    if !parsed.found {
        return Ok(Generated::Refused(Refusal::BelowThreshold));
    }
    if leak::repeats(&parsed.answer, prompt::INSTRUCTIONS) {
        return Ok(Generated::RepeatsPrompt);
    }
    check((policy, min_support), question, sources, &parsed.answer, deadline)
}

/// The passages of a prompt, apart from the hits that they stand around: for an answer that is read later.
pub(super) struct KeptSources(Vec<KeptSection>);

struct KeptSection {
    hit: usize,
    headings: Vec<String>,
    text: String,
    char_from: i32,
}

impl KeptSources {
    pub(super) fn of(sources: Vec<ContextSection<'_>>, hits: &[SearchHit]) -> Self {
        let kept = |source: ContextSection<'_>| {
            let hit = hits.iter().position(|hit| std::ptr::eq(hit, source.hit)).unwrap_or_default();
            KeptSection { hit, headings: source.headings, text: source.text, char_from: source.char_from }
        };
        Self(sources.into_iter().map(kept).collect())
    }

    /// Reads and checks what the model wrote; the hits are those of before.
    pub(super) fn read(
        self,
        (policy, min_support): (Policy, f64),
        question: &str,
        hits: &[SearchHit],
        completion: &Completion,
        deadline: Instant,
    ) -> Result<Generated> {
        let section = |kept: KeptSection| ContextSection {
            hit: &hits[kept.hit],
            headings: kept.headings,
            text: kept.text,
            char_from: kept.char_from,
        };
        let sources: Vec<ContextSection<'_>> = self.0.into_iter().map(section).collect();
        read((policy, min_support), question, &sources, completion, deadline)
    }
}

/// Sections of the hits, each once, in the order of the hits: at most so many.
fn sources(hits: &[SearchHit], limit: usize) -> Result<Vec<ContextSection<'_>>> {
    let mut sources: Vec<ContextSection<'_>> = Vec::new();
    for hit in hits {
        if sources.len() == limit {
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
        sources.push(ContextSection { hit, headings, text, char_from });
    }
    Ok(sources)
}

impl ContextSection<'_> {
    fn passage(&self) -> Passage<'_> {
        Passage { text: &self.text, header_path: &self.headings, ..extractive::passage_of(self.hit) }
    }

    fn cited(&self, source: usize) -> Cited<'_> {
        Cited { source, hit: self.hit, passage: self.passage() }
    }

    fn covers(&self, hit: &SearchHit) -> bool {
        let char_to = self.char_from + self.text.chars().count() as i32;
        self.char_from <= hit.chunk.char_from && hit.chunk.char_to <= char_to
    }
}

/// Finds what supports each sentence, does with the others as the policy says, and numbers the places anew.
fn check(
    (policy, min_support): (Policy, f64),
    question: &str,
    sources: &[ContextSection<'_>],
    answer: &str,
    deadline: Instant,
) -> Result<Generated> {
    let mut checked = Checked {
        text: String::new(),
        citations: Vec::new(),
        unsupported: Vec::new(),
        sources: sources.len(),
        trouble: None,
    };
    let mut parts: Vec<String> = Vec::new();
    for (range, numbers) in cite::marked_sentences(answer) {
        let sentence = &answer[range];
        let cited: Vec<Cited<'_>> =
            numbers.iter().map(|number| sources[number - 1].cited(number - 1)).collect();
        let quotes = match &checked.trouble {
            Some(_) => support::unmeasured_quotes(question, sentence, &cited),
            None if Instant::now() >= deadline => return Err(late()),
            None => match support::quotes(question, sentence, &cited) {
                Err(error) if policy != Policy::Strict && is_engine_trouble(&error) => {
                    checked.trouble = Some(error);
                    support::unmeasured_quotes(question, sentence, &cited)
                }
                quotes => quotes?,
            },
        };
        let best = quotes.iter().filter_map(|quote| quote.support).reduce(f64::max);
        let supports = |quote: &Quote| quote.support.is_some_and(|support| support >= min_support);
        let is_supported = quotes.iter().any(supports);
        let text = plain::visible(&cite::without_markers(sentence)).trim().to_owned();
        if !is_supported {
            checked.unsupported.push(Unsupported { sentence: plain::defused(&text), support: best });
            if policy == Policy::Strict {
                continue;
            }
        }
        let mut behind = String::new();
        for quote in quotes.iter().filter(|quote| policy == Policy::Free || supports(quote)) {
            let marker = format!("[{}]", number_of(&mut checked.citations, &sources[quote.source], quote));
            if !behind.contains(&marker) {
                behind.push_str(&marker);
            }
        }
        if !is_supported && policy == Policy::Cited {
            behind.push_str(UNSUPPORTED_MARK);
        }
        parts.push(format!("{text} {behind}").trim_end().to_owned());
    }
    if parts.is_empty() || (policy == Policy::Strict && checked.citations.is_empty()) {
        return Ok(Generated::Unsupported);
    }
    checked.text = parts.join(" ");
    Ok(Generated::Answered(checked))
}

fn late() -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
        "the answer was not written and checked before rag_ext.llm_deadline",
    )
}

/// The number of a quote among the citations, to which it is added unless it is there.
fn number_of(citations: &mut Vec<Citation>, source: &ContextSection<'_>, quote: &Quote) -> usize {
    let bytes = quote.statement.bytes.clone();
    let before = source.text[..bytes.start].chars().count() as i32;
    let found = Citation::new(
        citations.len() + 1,
        &source.hit.chunk,
        &source.text[bytes],
        source.char_from + before,
        quote.support,
    );
    let same = citations.iter_mut().find(|c| {
        c.document == found.document && c.char_from == found.char_from && c.char_to == found.char_to
    });
    match same {
        Some(known) => {
            known.support = [known.support, found.support].into_iter().flatten().reduce(f64::max);
            known.n
        }
        None => {
            citations.push(found);
            citations.len()
        }
    }
}
