//! Answers written by a chat model from numbered passages, each sentence checked against what it cites.

use super::check::{Checked, Terms, check};
use super::route::Route;
use super::support::Cited;
use super::{AnswerRequest, Refusal, extractive};
use crate::engine;
use crate::error::Result;
use crate::pg::elevation::elevated;
use crate::pg::principal;
use crate::search::SearchHit;
use crate::storage::chunk::{self, ChunkPlace};
use crate::storage::{Id, prompt_template};
use rag_core::answer::prompt::{self, Block, Budget, Question};
use rag_core::answer::{Passage, cite, leak};
use rag_wire::{Chat, ChatMessage, Completion};
use std::collections::HashMap;
use std::time::Instant;

/// Most characters of one passage: a section, or the part of it around the chunk that was found.
const PASSAGE_CHARS: i32 = 3_000;

/// Documents, and chunks found in each, from which on an answer is asked for by topics.
const BY_TOPIC: (usize, usize) = (2, 2);

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

/// A section around a hit, as the model reads it.
pub(super) struct ContextSection {
    /// Which of the hits.
    pub(super) hit: usize,
    /// The hit's headings, and the header row of a table that the text begins within.
    headings: Vec<String>,
    pub(super) text: String,
    /// Characters of the document's text before it.
    pub(super) char_from: i32,
    /// The chunks that it is made of.
    pub(super) places: Vec<ChunkPlace>,
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

/// Asks the model, and checks what it says, all before the deadline.
pub(super) fn answer(request: &AnswerRequest<'_>, route: &mut Route, terms: &Terms<'_>) -> Result<Generated> {
    let Asked { chat, shown } = asked(request, route, terms.hits, terms.deadline)?;
    let left = terms.deadline.saturating_duration_since(Instant::now());
    let completion = engine::chat(chat, left, &principal::current_principals()?)?;
    route.answered_by(&completion);
    read(terms, &shown, &completion)
}

/// The prompt for a question, to be answered before the deadline. What was neutralised in it is noted in the route.
pub(super) fn asked(
    request: &AnswerRequest<'_>,
    route: &mut Route,
    hits: &[SearchHit],
    deadline: Instant,
) -> Result<Asked> {
    let sources = sources(hits, request.options.prompt_limit(), request.scope.may_hide_rows())?;
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
    let tokens = request.options.context_budget.unwrap_or_else(|| route.context_budget());
    let principals = principal::current_principals()?;
    let count = |texts: &[&str]| route.count_tokens(texts, deadline, &principals);
    let prompt = prompt::build_prompt(&question, &template, Budget { tokens, count: &count });
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

/// Sections of the hits, each once, in the order of the hits: at most so many. Of a section of which policies that were added may
/// hide a part, the hit alone.
fn sources(hits: &[SearchHit], limit: usize, may_hide_rows: bool) -> Result<Vec<ContextSection>> {
    let mut sources: Vec<ContextSection> = Vec::new();
    for (at, hit) in hits.iter().enumerate() {
        if sources.len() == limit {
            break;
        }
        if sources.iter().any(|s| hits[s.hit].chunk.section == hit.chunk.section && s.covers(hit)) {
            continue;
        }
        let around = if may_hide_rows { None } else { chunk::section_text(&hit.chunk, PASSAGE_CHARS)? };
        let (text, char_from) = around.unwrap_or_else(|| (hit.chunk.content.clone(), hit.chunk.char_from));
        let char_to = char_from + text.chars().count() as i32;
        let places = chunk::places_around(&hit.chunk, char_from, char_to)?;
        let header = hit.chunk.table_header.as_deref().filter(|header| !text.contains(*header));
        let columns = header.and_then(|header| header.lines().next()).map(str::to_owned);
        let headings = hit.chunk.header_path.iter().cloned().chain(columns).collect();
        sources.push(ContextSection { hit: at, headings, text, char_from, places });
    }
    Ok(sources)
}

impl ContextSection {
    fn passage<'a>(&'a self, hits: &'a [SearchHit]) -> Passage<'a> {
        let hit = &hits[self.hit];
        Passage { text: &self.text, header_path: &self.headings, ..extractive::passage_of(hit) }
    }

    fn block<'a>(&'a self, hits: &'a [SearchHit]) -> Block<'a> {
        let uri = hits[self.hit].chunk.uri.as_deref();
        Block {
            passage: self.passage(hits),
            file: uri.map(file_name).unwrap_or_default(),
            pages: self.pages(),
        }
    }

    pub(super) fn cited<'a>(&'a self, source: usize, hits: &'a [SearchHit]) -> Cited<'a> {
        Cited { source, hit: &hits[self.hit], passage: self.passage(hits) }
    }

    /// First and last page of what the text is made of.
    fn pages(&self) -> Option<(i32, i32)> {
        let from = self.places.iter().filter_map(|place| place.page_from).min()?;
        Some((from, self.places.iter().filter_map(|place| place.page_to).max().unwrap_or(from)))
    }

    fn covers(&self, hit: &SearchHit) -> bool {
        let char_to = self.char_from + self.text.chars().count() as i32;
        self.char_from <= hit.chunk.char_from && hit.chunk.char_to <= char_to
    }
}

/// The last part of a uri, which names the file.
fn file_name(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
