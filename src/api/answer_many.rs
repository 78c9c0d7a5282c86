//! `rag_answer_many`: questions that are asked one after the other, about the same documents.

use super::answer::{answer_and_note, asked, object, rounded};
use super::search::filter_of;
use super::{call, options_of, required};
use crate::answer::{Answer, AnswerOptions, AnswerRequest};
use crate::error::{Error, Result, sqlstate_text};
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, interrupts, transaction};
use crate::search::scope::Scope;
use pgrx::JsonB;
use pgrx::prelude::*;

/// Most questions of one call.
const MAX_QUESTIONS: usize = 1000;

/// A question, and what it came to.
struct AnsweredRow {
    question: Option<String>,
    outcome: Result<Answer>,
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_answer_many(
    questions: Option<Vec<Option<String>>>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(n, i32),
            name!(question, Option<String>),
            name!(answer, Option<String>),
            name!(found, Option<bool>),
            name!(reason, Option<&'static str>),
            name!(method, Option<&'static str>),
            name!(confidence, Option<f64>),
            name!(citations, Option<i32>),
            name!(result, Option<JsonB>),
            name!(sqlstate, Option<String>),
            name!(error, Option<String>),
        ),
    >,
    ErrorReport,
> {
    let rows = call(|| {
        let questions = required(questions, "questions")?;
        if questions.len() > MAX_QUESTIONS {
            return Err(Error::limit(format!(
                "{} questions, but the limit is {MAX_QUESTIONS}",
                questions.len()
            )));
        }
        let filter = filter_of(filter)?;
        let options = AnswerOptions::read(&options_of(options)?)?;
        let scope = Scope::to_read(collection)?;
        let answered = |question: Option<String>| {
            interrupts::check();
            let outcome = transaction::attempt(|| {
                let question = asked(question.as_deref())?;
                let filter = filter.as_ref();
                let request =
                    AnswerRequest { question, scope: &scope, filter, history: &[], options: &options };
                answer_and_note(&request, collection)
            });
            match outcome {
                Err(error) if !is_about_one_question(&error) => Err(error),
                outcome => Ok(AnsweredRow { question, outcome }),
            }
        };
        questions.into_iter().map(answered).collect::<Result<Vec<_>>>()
    })?;
    Ok(TableIterator::new(rows.into_iter().zip(1..).map(
        |(AnsweredRow { question, outcome }, n)| match outcome {
            Ok(answer) => (
                n,
                question,
                Some(answer.text.clone()),
                Some(answer.refusal.is_none()),
                answer.refusal.map(|refusal| refusal.name()),
                Some(answer.method.name()),
                answer.confidence.map(rounded),
                Some(answer.citations.len() as i32),
                Some(JsonB(object(&answer))),
                None,
                None,
            ),
            Err(error) => {
                let sqlstate = Some(sqlstate_text(error.code));
                (n, question, None, None, None, None, None, None, None, sqlstate, Some(error.message))
            }
        },
    )))
}

/// Whether an error says something of one question, so that the others go on: classes 22, 54 and 58, which are bad
/// values, limits, and a provider that cannot be reached. All else ends the call, cancellation above all.
fn is_about_one_question(error: &Error) -> bool {
    let sqlstate = sqlstate_text(error.code);
    ["22", "54", "58"].iter().any(|class| sqlstate.starts_with(class))
}
