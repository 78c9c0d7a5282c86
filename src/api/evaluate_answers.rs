//! `rag_evaluate_answers`.

use super::{call, options_of, required};
use crate::answer::{AnswerOptions, evaluate};
use crate::error::Result;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, Oid};
use crate::storage::judgement;
use pgrx::JsonB;
use pgrx::prelude::*;
use rag_core::evaluate::answers::AnswerMeasures;
use rag_core::option::OptionReader;
use serde_json::{Value, json};
use std::time::Duration;

/// A row: what all questions, or one of them, came to.
struct EvaluatedRow {
    question: Option<String>,
    questions: usize,
    measures: AnswerMeasures,
    confidence: Option<f64>,
    time: Duration,
    details: Value,
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn rag_evaluate_answers(
    collection: Option<&str>,
    questions: Option<Oid>,
    options: Option<GivenJsonb>,
) -> std::result::Result<
    TableIterator<
        'static,
        (
            name!(question_id, Option<String>),
            name!(questions, i32),
            name!(answered, Option<f64>),
            name!(refused, Option<f64>),
            name!(correct, Option<f64>),
            name!(quoted, Option<f64>),
            name!(first_citation, Option<f64>),
            name!(citation_precision, Option<f64>),
            name!(citation_recall, Option<f64>),
            name!(faithfulness, Option<f64>),
            name!(exact, Option<f64>),
            name!(confidence, Option<f64>),
            name!(milliseconds, f64),
            name!(details, JsonB),
        ),
    >,
    ErrorReport,
> {
    let rows = call(|| {
        let questions = required(questions, "questions")?;
        let (options, per_question) = read(&options_of(options)?)?;
        let outcome = evaluate::evaluate(&judgement::questions(questions)?, collection, &options)?;
        Ok(rows_of(outcome, per_question))
    })?;
    Ok(TableIterator::new(rows.into_iter().map(|row| {
        let m = row.measures;
        (
            row.question,
            row.questions as i32,
            m.answered,
            m.refused,
            m.correct,
            m.quoted,
            m.first_citation,
            m.citation_precision,
            m.citation_recall,
            m.faithfulness,
            m.exact,
            row.confidence,
            row.time.as_secs_f64() * 1000.0,
            JsonB(row.details),
        )
    })))
}

/// The row of all questions, and behind it those of each, if they are asked for.
fn rows_of(outcome: evaluate::Outcome, per_question: bool) -> Vec<EvaluatedRow> {
    let confidences: Vec<f64> = outcome
        .questions
        .iter()
        .filter(|question| question.answer.refusal.is_none())
        .filter_map(|question| question.answer.confidence)
        .collect();
    let unsupported: usize = outcome.questions.iter().map(|question| question.answer.unsupported.len()).sum();
    let citations: usize = outcome.questions.iter().map(|question| question.answer.citations.len()).sum();
    let mut details = json!({ "citations": citations, "unsupported": unsupported });
    if !outcome.fallbacks.is_empty() {
        details["fallbacks"] = json!(outcome.fallbacks);
    }
    let mut rows = vec![EvaluatedRow {
        question: None,
        questions: outcome.questions.len(),
        measures: outcome.mean,
        confidence: (!confidences.is_empty())
            .then(|| confidences.iter().sum::<f64>() / confidences.len() as f64),
        time: outcome.mean_time,
        details,
    }];
    if per_question {
        rows.extend(outcome.questions.into_iter().map(|question| EvaluatedRow {
            question: Some(question.id),
            questions: 1,
            measures: question.measures,
            confidence: question.answer.confidence,
            time: question.time,
            details: json!({
                "answer": question.answer.text,
                "reason": question.answer.refusal.map(|reason| reason.name()),
                "method": question.answer.method.name(),
            }),
        }));
    }
    rows
}

/// Options of an evaluation: those of an answer, and whether each question has a row.
fn read(options: &Value) -> Result<(AnswerOptions, bool)> {
    let mut reader = OptionReader::new(options, "rag_evaluate_answers")?;
    let per_question = reader.boolean("per_question")?.unwrap_or(false);
    let options = AnswerOptions::take(&mut reader)?;
    reader.finish()?;
    Ok((options, per_question))
}
