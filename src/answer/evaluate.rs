//! What answers are worth on the caller's own questions.

use super::{Answer, AnswerOptions, AnswerRequest, answer};
use crate::error::{Error, Result, excerpt};
use crate::pg::interrupts;
use crate::search::options::checked_query;
use crate::search::scope::Scope;
use crate::storage::judgement::JudgedQuestion;
use crate::storage::{document, text_of_id};
use rag_core::evaluate::answers::{AnswerMeasures, Cited, Given, mean, measures};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one question came to.
pub(crate) struct QuestionOutcome {
    pub(crate) id: String,
    pub(crate) measures: AnswerMeasures,
    pub(crate) answer: Answer,
    pub(crate) time: Duration,
}

/// What all came to.
pub(crate) struct Outcome {
    /// In the order of the questions.
    pub(crate) questions: Vec<QuestionOutcome>,
    pub(crate) mean: AnswerMeasures,
    pub(crate) mean_time: Duration,
    /// How often a stage fell back on what.
    pub(crate) fallbacks: BTreeMap<String, usize>,
}

/// Asks every question. 22023: there is none, or one cannot be asked.
pub(crate) fn evaluate(
    questions: &[JudgedQuestion],
    collection: Option<&str>,
    options: &AnswerOptions,
) -> Result<Outcome> {
    if questions.is_empty() {
        return Err(Error::invalid("there are no questions").hint("Name a table or view that has some."));
    }
    for question in questions {
        checked_query(&question.text, "question").map_err(|error| of_question(error, &question.id))?;
    }
    let scope = Scope::to_read(collection)?;
    let mut outcomes = Vec::with_capacity(questions.len());
    let mut fallbacks = BTreeMap::new();
    for question in questions {
        interrupts::check();
        let since = Instant::now();
        let request =
            AnswerRequest { question: &question.text, scope: &scope, filter: None, history: &[], options };
        let answer = answer(&request).map_err(|error| of_question(error, &question.id))?;
        let time = since.elapsed();
        for (stage, to) in answer.stages.fallbacks() {
            *fallbacks.entry(format!("{stage}: {to}")).or_default() += 1;
        }
        let measures = measures(&question.expected, &given(&answer)?);
        outcomes.push(QuestionOutcome { id: question.id.clone(), measures, answer, time });
    }
    let of_questions: Vec<AnswerMeasures> = outcomes.iter().map(|outcome| outcome.measures).collect();
    let time: Duration = outcomes.iter().map(|outcome| outcome.time).sum();
    Ok(Outcome {
        mean: mean(&of_questions),
        mean_time: time / outcomes.len() as u32,
        questions: outcomes,
        fallbacks,
    })
}

/// An answer as it is measured: each citation is looked up in its document's text.
fn given(answer: &Answer) -> Result<Given> {
    let cited = |c: &super::Citation| {
        let place = document::place(c.document, c.char_from, c.char_to)?;
        // A citation's own uri leaves out what a program might run.
        let uri = place.as_ref().map_or_else(|| c.uri.clone(), |place| place.uri.clone());
        Ok(Cited {
            names: uri.into_iter().chain([text_of_id(c.document)]).collect(),
            quote: c.quote.clone(),
            is_exact: place.and_then(|place| place.text).map(|text| text == c.quote),
        })
    };
    Ok(Given {
        text: answer.refusal.is_none().then(|| answer.text.clone()),
        citations: answer.citations.iter().map(cited).collect::<Result<_>>()?,
        unsupported: answer.unsupported.len(),
    })
}

/// An error that says which of the questions it is about, by its id: the text is nobody else's to read.
fn of_question(error: Error, id: &str) -> Error {
    error.about(&format!("question \"{}\"", excerpt(id)))
}
