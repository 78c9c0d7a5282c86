//! Words of a query that no document of the scope has, taken for words that some have.
//!
//! Dictionaries are those of exactly the segments that the keyword retriever searches for the caller. Where an
//! administrator's policies may hide parts of documents, those are made anew for each search, of all that the caller sees;
//! that is not done a second time, so there nothing is corrected.

use super::{PLAIN, Step, told};
use crate::error::Result;
use crate::pg::interrupts;
use crate::search::diagnostics::Stages;
use crate::search::keyword::KeywordRetriever;
use crate::search::scope::Scope;
use rag_bm25::Correction;
use rag_core::query::plain_words;

/// Most words that are corrected: a query with more unknown ones is about something else.
const MAX_CORRECTED: usize = 8;

/// Most words that are looked at: the first ones.
const MAX_WORDS: usize = 64;

/// What unknown words may have been meant to be, in each language of the scope.
pub(super) fn corrections(
    scope: &Scope,
    query: &str,
    step: Step,
    stages: &mut Stages,
) -> Result<Vec<Correction>> {
    if scope.may_hide_rows() {
        let watch = stages.start("spelling");
        stages.done_as(watch, 0, 0, "left out: policies may hide parts of documents");
        return Ok(Vec::new());
    }
    let words: Vec<&str> = plain_words(query).into_iter().take(MAX_WORDS).map(|word| &query[word]).collect();
    let corrected = stages.attempt("spelling", PLAIN, |_| correct(scope, query, &words, step))?;
    let Some((watch, (unknown, found))) = corrected else { return Ok(Vec::new()) };
    let pairs: Vec<String> = found.iter().map(|c| format!("{} = {}", c.from, c.to)).collect();
    if pairs.is_empty() {
        stages.done(watch, unknown, 0);
    } else {
        stages.done_as(watch, unknown, pairs.len(), told("", pairs.iter().map(String::as_str)));
    }
    Ok(found)
}

/// The number of unknown words, and their corrections. With `auto`, words are corrected beside as many known ones at
/// least: where most are unknown, the query is about what the documents do not have.
fn correct(scope: &Scope, query: &str, words: &[&str], step: Step) -> Result<(usize, Vec<Correction>)> {
    let opened = KeywordRetriever::open(scope, query, None)?;
    let mut unknown = Vec::new();
    for word in words {
        let mut is_known = false;
        // A word of another language than the others' is none that is misspelt.
        for (_, segments) in opened.groups() {
            is_known = is_known || rag_bm25::is_known(segments, word)?;
        }
        if !is_known {
            unknown.push(*word);
        }
    }
    let mut corrections = Vec::new();
    if unknown.len() > MAX_CORRECTED || (step == Step::Auto && unknown.len() * 2 > words.len()) {
        return Ok((unknown.len(), corrections));
    }
    for word in &unknown {
        for (_, segments) in opened.groups() {
            corrections.extend(rag_bm25::correction(segments, word, interrupts::goes_on)?);
        }
    }
    Ok((unknown.len(), corrections))
}
