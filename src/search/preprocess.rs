//! Before the search: what a caller asks becomes the queries that are run.
//!
//! Each step is an option: `off`, `on`, or `auto`, which is on where the step's gate lets the query through. A step that
//! fails says so in the diagnostics and leaves the query as it is. Where no step changes anything, the query is run as
//! without them.

mod acronyms;
mod chat;
mod spelling;

pub(crate) use chat::ask;
pub(super) use chat::next_question;

use super::diagnostics::Stages;
use super::options::{Fusion, Mode, SearchOptions};
use super::scope::Scope;
use super::{RankedHits, SearchRequest, keyword, scored};
use crate::config;
use crate::error::Result;
use rag_bm25::Correction;
use rag_core::acronym::{Acronym, expand};
use rag_core::choices;
use rag_core::decompose::{Tongue, decompose};
use rag_core::fuse::{self, Ranked};
use rag_core::option::{Choice, OptionError, OptionReader};
use rag_core::rewrite::{Task, is_vague, wants_rewriting};
use rag_wire::TextRole;
use std::collections::HashSet;

choices! {
    /// Whether a step is taken.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Step {
        Off = "off",
        On = "on",
        /// Where its gate lets the query through.
        Auto = "auto",
    }
}

/// What is done with a query before the search.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    acronyms: Step,
    spelling: Step,
    rewrite: Step,
    decompose: Step,
    hyde: Step,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            acronyms: Step::On,
            spelling: Step::Off,
            rewrite: Step::Off,
            decompose: Step::Off,
            hyde: Step::Off,
        }
    }
}

impl Steps {
    /// Takes the steps out of a reader, which then may hold other options.
    pub(crate) fn read(reader: &mut OptionReader<'_>) -> std::result::Result<Self, OptionError> {
        let default = Self::default();
        Ok(Self {
            acronyms: reader.choice("acronyms")?.unwrap_or(default.acronyms),
            spelling: reader.choice("spelling")?.unwrap_or(default.spelling),
            rewrite: reader.choice("rewrite")?.unwrap_or(default.rewrite),
            decompose: reader.choice("decompose")?.unwrap_or(default.decompose),
            hyde: reader.choice("hyde")?.unwrap_or(default.hyde),
        })
    }
}

/// What takes the place of a step that failed.
const PLAIN: &str = "plain query";

/// Why a step is not taken.
const NOT_WANTED: &str = "not wanted: the gate of auto is closed";

/// Most characters that a stage tells of what a step did.
const MAX_TOLD_CHARS: usize = 300;

/// Weights in the fusion of several queries: what the caller has asked comes first, then what was made of it.
const WHOLE: f32 = 1.0;
const REWRITTEN: f32 = 0.5;
const PART: f32 = 0.5;
const PASSAGE: f32 = 0.4;

/// A query that is run.
pub(super) struct RunQuery {
    /// None: the keyword retriever is not asked.
    pub(super) keyword: Option<String>,
    /// More words for the keyword retriever.
    pub(super) more: String,
    /// Words that the keyword retriever takes others for.
    pub(super) corrections: Vec<Correction>,
    pub(super) vector: String,
    pub(super) role: TextRole,
    weight: f32,
}

impl RunQuery {
    fn new(text: &str, weight: f32, known: &[Acronym]) -> Self {
        let (more, vector) = match expand(text, known) {
            Some(expanded) => (expanded.more, expanded.vector),
            None => (String::new(), text.to_owned()),
        };
        let (keyword, corrections) = (Some(text.to_owned()), Vec::new());
        Self { keyword, more, corrections, vector, role: TextRole::Query, weight }
    }

    /// Words as they are.
    pub(super) fn plain(text: &str) -> Self {
        Self::new(text, WHOLE, &[])
    }

    fn passage(text: String) -> Self {
        let (keyword, more, corrections) = (None, String::new(), Vec::new());
        Self { keyword, more, corrections, vector: text, role: TextRole::Passage, weight: PASSAGE }
    }
}

impl RunQuery {
    /// What the keyword retriever looks for, if that is more than the query says.
    pub(super) fn words(&self) -> Option<String> {
        let keyword = self.keyword.as_ref().filter(|_| !self.more.is_empty())?;
        Some(format!("{keyword} {}", self.more))
    }
}

/// The queries that are run for one search.
pub(super) struct Queries {
    /// What the caller has asked.
    pub(super) whole: RunQuery,
    others: Vec<RunQuery>,
}

impl Queries {
    /// Whether there is nothing to fuse.
    pub(super) fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    /// Runs one query after the other, and fuses what they find. Ranks and scores of the retrievers are those of the whole.
    pub(super) fn ranked(
        &self,
        options: &SearchOptions,
        stages: &mut Stages,
        mut rank: impl FnMut(&RunQuery, &mut Stages) -> Result<RankedHits>,
    ) -> Result<RankedHits> {
        let whole = rank(&self.whole, stages)?;
        if self.is_one() {
            return Ok(whole);
        }
        let mut orders: Vec<Vec<Ranked>> = Vec::new();
        for query in &self.others {
            orders.push(stages.beside(|stages| rank(query, stages))?.order);
        }
        let watch = stages.start("queries");
        let total: f32 = self.all().map(|query| query.weight).sum();
        let weights = self.all().map(|query| query.weight / total);
        let lists: Vec<(&[Ranked], f32)> = std::iter::once(whole.order.as_slice())
            .chain(orders.iter().map(Vec::as_slice))
            .zip(weights)
            .collect();
        let order = match options.fusion {
            Fusion::Weighted => fuse::weighted_min_max(&lists),
            Fusion::Rrf => fuse::rrf(&lists, options.rrf_k as f32),
        };
        let hits = lists.iter().map(|(list, _)| list.len()).sum();
        stages.done_as(
            watch,
            hits,
            order.len(),
            format!("{} of {} queries", options.fusion.name(), lists.len()),
        );
        stages.ranked("queries", scored(&order));
        Ok(RankedHits { order, ..whole })
    }

    fn all(&self) -> impl Iterator<Item = &RunQuery> {
        std::iter::once(&self.whole).chain(&self.others)
    }
}

/// Makes the queries that are run of what the caller asks.
pub(super) fn queries(scope: &Scope, request: &SearchRequest<'_>, stages: &mut Stages) -> Result<Queries> {
    let (steps, query) = (&request.options.steps, request.query);
    let known = acronyms::known(scope, query, steps.acronyms, stages)?;
    let mut queries = Queries { whole: RunQuery::new(query, WHOLE, &known), others: Vec::new() };
    if scope.ids().is_empty() {
        return Ok(queries);
    }
    let mut texts: Vec<(String, f32)> = Vec::new();
    let rewritten = chat::write(query, Task::Rewrite, steps.rewrite, wants_rewriting, stages)?;
    texts.extend(rewritten.into_iter().map(|text| (text, REWRITTEN)));
    let parts = parts(scope, query, steps.decompose, stages)?;
    texts.extend(parts.into_iter().map(|text| (text, PART)));
    let languages = scope.languages();
    let mut seen = HashSet::from([query.to_owned()]);
    texts.retain(|(text, _)| {
        seen.insert(text.clone()) && keyword::has_content(text, languages.iter().copied())
    });
    queries.others.extend(texts.iter().map(|(text, weight)| RunQuery::new(text, *weight, &known)));
    if request.mode != Mode::Keyword {
        let passage = chat::write(query, Task::Passage, steps.hyde, is_vague, stages)?;
        queries.others.extend(passage.into_iter().map(RunQuery::passage));
    }
    if request.mode != Mode::Vector && steps.spelling != Step::Off {
        let corrections = spelling::corrections(scope, query, steps.spelling, stages)?;
        queries.whole.corrections.clone_from(&corrections);
        for other in &mut queries.others {
            other.corrections.clone_from(&corrections);
        }
    }
    Ok(queries)
}

/// The questions that a compound one is made of: by rules, and where these know none and the step is on, by the chat model.
fn parts(scope: &Scope, query: &str, step: Step, stages: &mut Stages) -> Result<Vec<String>> {
    if step == Step::Off {
        return Ok(Vec::new());
    }
    let watch = stages.start("decompose");
    let parts = decompose(query, &tongues(scope));
    if !parts.is_empty() {
        stages.done_as(watch, 1, parts.len(), told("rules: ", parts.iter().map(String::as_str)));
        return Ok(parts);
    }
    if step == Step::Auto || !config::has_chat_model() {
        stages.done_as(watch, 1, 0, "rules: one question");
        return Ok(parts);
    }
    chat::write(query, Task::Decompose, step, |_| true, stages)
}

/// Languages with rules, among those of the scope. Text of any language may be indexed without one.
fn tongues(scope: &Scope) -> Vec<Tongue> {
    let languages = scope.languages();
    let has = |names: &[&str]| names.iter().any(|name| languages.contains(name));
    let english = has(&["english", "simple"]).then_some(Tongue::English);
    let german = has(&["german", "simple"]).then_some(Tongue::German);
    english.into_iter().chain(german).collect()
}

/// What a stage tells of some texts.
pub(crate) fn told<'a>(how: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let all = format!("{how}{}", texts.collect::<Vec<_>>().join("; "));
    match all.char_indices().nth(MAX_TOLD_CHARS) {
        Some((cut, _)) => format!("{}…", &all[..cut]),
        None => all,
    }
}
