//! Answers written by a chat model from numbered passages, each sentence checked against what it cites.

use super::options::Policy;
use super::route::Route;
use super::support::{self, Cited, Quote};
use super::{AnswerRequest, Citation, Refusal, Unsupported, extractive};
use crate::engine;
use crate::error::{Error, Result};
use crate::pg::elevation::elevated;
use crate::pg::principal;
use crate::search::SearchHit;
use crate::search::diagnostics::is_engine_trouble;
use crate::storage::{Id, chunk, prompt_template};
use pgrx::PgSqlErrorCode;
use rag_core::answer::gap::is_gap;
use rag_core::answer::prompt::{self, Block, Question};
use rag_core::answer::{Passage, cite, leak, plain};
use rag_wire::{Chat, ChatMessage, Completion};
use std::collections::HashMap;
use std::time::Instant;

/// Most characters of one passage: a section, or the part of it around the chunk that was found.
const PASSAGE_CHARS: i32 = 3_000;

/// Most places that a sentence without a marker is compared with.
const NEAREST: usize = 3;

/// Documents, and chunks found in each, from which on an answer is asked for by topics.
const BY_TOPIC: (usize, usize) = (2, 2);

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
    /// Sentences that cited nothing, and are cited now.
    pub(super) matched: usize,
    /// Why support could not be measured.
    pub(super) trouble: Option<Error>,
}

/// A section around a hit, as the model reads it.
pub(super) struct ContextSection {
    /// Which of the hits.
    hit: usize,
    /// The hit's headings, and the header row of a table that the text begins within.
    headings: Vec<String>,
    text: String,
    /// Characters of the document's text before it.
    char_from: i32,
}

/// What the model is asked, and by what its reply is read.
pub(super) struct Asked {
    pub(super) chat: Chat,
    pub(super) shown: Shown,
}

/// What the model was shown.
pub(super) struct Shown {
    /// Passages that it may cite.
    sources: Vec<ContextSection>,
    /// What no reply repeats.
    instructions: String,
}

impl Shown {
    /// Whether a text tells what the model was told.
    pub(super) fn is_repeated_in(&self, text: &str) -> bool {
        leak::repeats(text, &self.instructions)
    }
}

/// What a completion is checked by.
pub(super) struct Terms<'a> {
    pub(super) policy: Policy,
    pub(super) min_support: f64,
    /// What was searched for.
    pub(super) question: &'a str,
    /// What was found: the sources are sections of these.
    pub(super) hits: &'a [SearchHit],
    pub(super) deadline: Instant,
}

/// Asks the model, and checks what it says, all before the deadline.
pub(super) fn answer(request: &AnswerRequest<'_>, route: &mut Route, terms: &Terms<'_>) -> Result<Generated> {
    let Asked { chat, shown } = asked(request, route, terms.hits)?;
    let left = terms.deadline.saturating_duration_since(Instant::now());
    let completion = engine::chat(chat, left, &principal::current_principals()?)?;
    route.answered_by(&completion);
    read(terms, &shown, &completion)
}

/// The prompt for a question. What was neutralised in it is noted in the route.
pub(super) fn asked(request: &AnswerRequest<'_>, route: &mut Route, hits: &[SearchHit]) -> Result<Asked> {
    let sources = sources(hits, request.options.prompt_limit())?;
    let blocks: Vec<Block<'_>> = sources.iter().map(|source| source.block(hits)).collect();
    let history: Vec<(String, String)> =
        request.history.iter().map(|turn| (turn.role().to_owned(), turn.content.clone())).collect();
    let question = Question {
        text: request.question,
        history: &history,
        blocks: &blocks,
        is_by_topic: is_by_topic(hits),
    };
    let collection = request.scope.sole_collection();
    let template = elevated(|| prompt_template::of(collection))?;
    let prompt = prompt::build_prompt(&question, &template, request.options.context_budget);
    route.neutralised = prompt.neutralised;
    let messages = prompt
        .messages
        .into_iter()
        .map(|(role, content)| ChatMessage { role: role.to_owned(), content })
        .collect();
    let chat = route.chat(messages, prompt::ANSWER_SCHEMA);
    Ok(Asked { chat, shown: Shown { sources, instructions: prompt.instructions } })
}

/// Reads and checks what the model wrote.
pub(super) fn read(terms: &Terms<'_>, shown: &Shown, completion: &Completion) -> Result<Generated> {
    let parsed = cite::parse_completion(&completion.text, shown.sources.len());
    if !parsed.found {
        return Ok(Generated::Refused(Refusal::BelowThreshold));
    }
    if shown.is_repeated_in(&parsed.answer) {
        return Ok(Generated::RepeatsPrompt);
    }
    check(terms, &shown.sources, &parsed.answer)
}

/// Whether several documents have several of the hits each.
fn is_by_topic(hits: &[SearchHit]) -> bool {
    let mut of_documents: HashMap<Id, usize> = HashMap::new();
    hits.iter().for_each(|hit| *of_documents.entry(hit.chunk.document).or_default() += 1);
    let (documents, chunks) = BY_TOPIC;
    of_documents.values().filter(|count| **count >= chunks).count() >= documents
}

/// Sections of the hits, each once, in the order of the hits: at most so many.
fn sources(hits: &[SearchHit], limit: usize) -> Result<Vec<ContextSection>> {
    let mut sources: Vec<ContextSection> = Vec::new();
    for (at, hit) in hits.iter().enumerate() {
        if sources.len() == limit {
            break;
        }
        if sources.iter().any(|s| hits[s.hit].chunk.section == hit.chunk.section && s.covers(hit)) {
            continue;
        }
        let (text, char_from) = chunk::section_text(&hit.chunk, PASSAGE_CHARS)?
            .unwrap_or_else(|| (hit.chunk.content.clone(), hit.chunk.char_from));
        let header = hit.chunk.table_header.as_deref().filter(|header| !text.contains(*header));
        let columns = header.and_then(|header| header.lines().next()).map(str::to_owned);
        let headings = hit.chunk.header_path.iter().cloned().chain(columns).collect();
        sources.push(ContextSection { hit: at, headings, text, char_from });
    }
    Ok(sources)
}

impl ContextSection {
    fn passage<'a>(&'a self, hits: &'a [SearchHit]) -> Passage<'a> {
        let hit = &hits[self.hit];
        Passage { text: &self.text, header_path: &self.headings, ..extractive::passage_of(hit) }
    }

    fn block<'a>(&'a self, hits: &'a [SearchHit]) -> Block<'a> {
        let chunk = &hits[self.hit].chunk;
        let file = chunk.uri.as_deref().map(file_name).unwrap_or_default();
        let pages = chunk.page_from.map(|from| (from, chunk.page_to.unwrap_or(from)));
        Block { passage: self.passage(hits), file, pages }
    }

    fn cited<'a>(&'a self, source: usize, hits: &'a [SearchHit]) -> Cited<'a> {
        Cited { source, hit: &hits[self.hit], passage: self.passage(hits) }
    }

    fn covers(&self, hit: &SearchHit) -> bool {
        let char_to = self.char_from + self.text.chars().count() as i32;
        self.char_from <= hit.chunk.char_from && hit.chunk.char_to <= char_to
    }
}

/// Finds what supports each sentence, does with the others as the policy says, and numbers the places anew.
fn check(terms: &Terms<'_>, sources: &[ContextSection], answer: &str) -> Result<Generated> {
    let Terms { policy, min_support, question, hits, deadline } = *terms;
    let mut checked = Checked {
        text: String::new(),
        citations: Vec::new(),
        unsupported: Vec::new(),
        sources: sources.len(),
        matched: 0,
        trouble: None,
    };
    let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
    let mut parts: Vec<String> = Vec::new();
    for (range, numbers) in cite::marked_sentences(answer) {
        let sentence = &answer[range];
        let text = plain::visible(&cite::without_markers(sentence)).trim().to_owned();
        if is_gap(question, sentence) {
            parts.push(text);
            continue;
        }
        let places = if numbers.is_empty() {
            cite::nearest(sentence, &texts, NEAREST)
        } else {
            numbers.iter().map(|number| number - 1).collect()
        };
        let cited: Vec<Cited<'_>> = places.iter().map(|place| sources[*place].cited(*place, hits)).collect();
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
        if !is_supported {
            checked.unsupported.push(Unsupported { sentence: plain::defused(&text), support: best });
            if policy == Policy::Strict {
                continue;
            }
        }
        checked.matched += usize::from(is_supported && numbers.is_empty());
        let keeps_markers = matches!(policy, Policy::Kept | Policy::Free) && !numbers.is_empty();
        let mut behind = String::new();
        for quote in quotes.iter().filter(|quote| keeps_markers || supports(quote)) {
            let number = number_of(&mut checked.citations, &sources[quote.source], hits, quote);
            let marker = format!("[{number}]");
            if !behind.contains(&marker) {
                behind.push_str(&marker);
            }
        }
        if !is_supported && policy == Policy::Cited {
            behind.push_str(UNSUPPORTED_MARK);
        }
        parts.push(format!("{text} {behind}").trim_end().to_owned());
    }
    if checked.citations.is_empty() && checked.unsupported.is_empty() {
        return Ok(Generated::Refused(Refusal::BelowThreshold));
    }
    if parts.is_empty() || (policy == Policy::Strict && checked.citations.is_empty()) {
        return Ok(Generated::Unsupported);
    }
    checked.text = parts.join(" ");
    Ok(Generated::Answered(checked))
}

/// The last part of a uri, which names the file.
fn file_name(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

fn late() -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
        "the answer was not written and checked before rag_ext.llm_deadline",
    )
}

/// The number of a quote among the citations, to which it is added unless it is there.
fn number_of(
    citations: &mut Vec<Citation>,
    source: &ContextSection,
    hits: &[SearchHit],
    quote: &Quote,
) -> usize {
    let bytes = quote.statement.bytes.clone();
    let before = source.text[..bytes.start].chars().count() as i32;
    let found = Citation::new(
        citations.len() + 1,
        &hits[source.hit].chunk,
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
