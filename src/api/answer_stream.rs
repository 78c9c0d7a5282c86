//! `rag_answer_stream`: an answer as rows, each sent as soon as there is something to show.

use super::answer::{note, object, turns};
use super::search::filter_of;
use super::{call, options_of, required};
use crate::answer::{AnswerOptions, AnswerPart, AnswerRequest, AnswerStream};
use crate::error::Result;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, client};
use crate::search::options::checked_query;
use crate::search::scope::Scope;
use pgrx::prelude::*;
use pgrx::{JsonB, PgLogLevel};
use serde_json::json;
use std::time::Instant;

/// The rows. Dropped with the memory of the query, however that ends.
struct Rows {
    stream: AnswerStream,
    question: String,
    collection: Option<String>,
    scope: Scope,
    options: AnswerOptions,
    since: Instant,
}

#[pg_extern(sql = false)]
fn rag_answer_stream(
    question: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    history: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<SetOfIterator<'static, JsonB>, ErrorReport> {
    call(|| {
        let question = checked_query(required(question, "question")?, "question")?;
        let filter = filter_of(filter)?;
        let history = history.map(|history| turns(&history.0)).transpose()?.unwrap_or_default();
        let options = AnswerOptions::read(&options_of(options)?)?;
        let scope = Scope::to_read(collection)?;
        let since = Instant::now();
        let stream = AnswerStream::open(&AnswerRequest {
            question,
            scope: &scope,
            filter: filter.as_ref(),
            history: &history,
            options: &options,
        })?;
        Ok(SetOfIterator::new(Rows {
            stream,
            question: question.to_owned(),
            collection: collection.map(str::to_owned),
            scope,
            options,
            since,
        }))
    })
}

impl Rows {
    fn advance(&mut self) -> Result<Option<JsonB>> {
        Ok(match self.stream.next(client::flush)? {
            None => None,
            Some(AnswerPart::Delta(text)) => Some(JsonB(json!({ "delta": text }))),
            Some(AnswerPart::Done(answer)) => {
                let request = AnswerRequest {
                    question: &self.question,
                    scope: &self.scope,
                    filter: None,
                    history: &[],
                    options: &self.options,
                };
                note(&request, &answer, self.collection.as_deref(), self.since)?;
                let mut row = object(&answer);
                row["done"] = true.into();
                Some(JsonB(row))
            }
        })
    }
}

impl Iterator for Rows {
    type Item = JsonB;

    fn next(&mut self) -> Option<JsonB> {
        call(|| self.advance()).unwrap_or_else(|report| {
            report.report(PgLogLevel::ERROR);
            None
        })
    }
}
