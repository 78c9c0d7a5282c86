//! What a chat model wrote, part by part: what supports it, and what becomes of what nothing supports.

use super::generative::{ContextSection, Generated};
use super::options::Policy;
use super::support::{self, Cited, Quote};
use super::{Citation, Refusal, Unsupported};
use crate::error::{Error, Result};
use crate::search::SearchHit;
use crate::search::diagnostics::is_engine_trouble;
use pgrx::PgSqlErrorCode;
use rag_core::answer::extract::Evidence;
use rag_core::answer::gap::is_gap;
use rag_core::answer::unit::{Gap, Unit, UnitKind, code_in, units};
use rag_core::answer::{cite, neutralise, plain};
use std::collections::HashSet;
use std::time::Instant;

/// Most places that a sentence without a marker is compared with.
const NEAREST: usize = 3;

/// What stands behind a sentence that nothing supports, under the policy `cited`.
const UNSUPPORTED_MARK: &str = "[unsupported]";

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

/// Finds what supports each sentence, does with the others as the policy says, and numbers the places anew.
pub(super) fn check(terms: &Terms<'_>, sources: &[ContextSection], answer: &str) -> Result<Generated> {
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
    let mut parts = Parts::default();
    let mut said: HashSet<String> = HashSet::new();
    for unit in units(answer) {
        let Unit { bytes, numbers, kind, gap } = unit;
        let sentence = &answer[bytes];
        let text = plain::visible(&cite::without_markers(sentence)).trim().to_owned();
        // Small models say the same again until they may say no more.
        if kind == UnitKind::Sentence && !said.insert(text.trim_end_matches('.').to_lowercase()) {
            parts.leave_out(gap);
            continue;
        }
        if kind == UnitKind::Sentence && is_gap(question, sentence) {
            parts.push(gap, kind, &text, "");
            continue;
        }
        let places = if numbers.is_empty() {
            cite::nearest(sentence, &texts, NEAREST)
        } else {
            // A sentence by itself may have markers that were code in the whole answer.
            let places = numbers.iter().filter_map(|number| number.checked_sub(1));
            places.filter(|place| *place < sources.len()).collect()
        };
        let cited: Vec<Cited<'_>> = places.iter().map(|place| sources[*place].cited(*place, hits)).collect();
        let verbatim = if kind == UnitKind::Code { code_quotes(sentence, &cited) } else { Vec::new() };
        let quotes = match &checked.trouble {
            _ if !verbatim.is_empty() => verbatim,
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
                parts.leave_out(gap);
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
        parts.push(gap, kind, &text, &behind);
    }
    if checked.citations.is_empty() && checked.unsupported.is_empty() {
        return Ok(Generated::Refused(Refusal::BelowThreshold));
    }
    if parts.text.is_empty() || (policy == Policy::Strict && checked.citations.is_empty()) {
        return Ok(Generated::Unsupported);
    }
    checked.text = parts.text;
    Ok(Generated::Answered(checked))
}

/// A text that is put together from the parts of an answer that stay.
#[derive(Default)]
struct Parts {
    text: String,
    /// The widest gap since the last part, if some were left out.
    skipped: Option<Gap>,
}

impl Parts {
    /// Adds a part with its markers. They stand below code and tables, whose last line would be another with them.
    fn push(&mut self, gap: Gap, kind: UnitKind, text: &str, markers: &str) {
        if !self.text.is_empty() {
            self.text.push_str(self.skipped.map_or(gap, |skipped| skipped.max(gap)).text());
        }
        self.skipped = None;
        self.text.push_str(text);
        if !markers.is_empty() {
            self.text.push_str(if kind == UnitKind::Sentence { " " } else { "\n\n" });
            self.text.push_str(markers);
        }
    }

    fn leave_out(&mut self, gap: Gap) {
        self.skipped = self.skipped.max(Some(gap));
    }
}

/// Where the cited places have a block of code as it is written.
fn code_quotes(block: &str, cited: &[Cited<'_>]) -> Vec<Quote> {
    let quote = |place: &Cited<'_>| {
        let text = place.passage.text;
        let bytes = code_in(block, text)?;
        let is_sound = !neutralise::touches(&neutralise::misleading(text), &bytes);
        let statement = Evidence { source: 0, text: text[bytes.clone()].to_owned(), bytes, about: None };
        is_sound.then_some(Quote { source: place.source, statement, support: Some(1.0) })
    };
    cited.iter().filter_map(quote).collect()
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
        hits,
        source.hit,
        &source.text[bytes],
        source.char_from + before,
        quote.support,
    );
    let found = found.stands_in(&source.places);
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
