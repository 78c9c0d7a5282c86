//! Names that a question is about and that nothing found mentions: then the documents speak of something else,
//! however well a sentence matches the rest of the question.

use super::extractive;
use crate::search::SearchHit;
use crate::search::keyword::Highlighter;
use rag_core::answer::names::{mentions, names};

/// What is left of a sentence's support where the question names what nothing found mentions.
pub(super) const UNKNOWN_NAME_FACTOR: f64 = 0.25;

/// Whether the question has a name that occurs in none of the hits, their titles or their headings.
///
/// `languages` are the hits' own.
pub(super) fn has_unknown_name(question: &str, hits: &[SearchHit], languages: &[&str]) -> bool {
    let is_english = languages.iter().all(|language| *language == "english");
    names(question, is_english).into_iter().any(|name| {
        let mut highlighter = Highlighter::new(name);
        !hits.iter().zip(languages).any(|(hit, language)| {
            [&hit.chunk.content, &extractive::context_of(hit)]
                .into_iter()
                .any(|text| mentions(text, name) || !highlighter.matches(text, language).is_empty())
        })
    })
}
