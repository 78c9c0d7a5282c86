//! `rag.answer_parts`, the rows of `rag_answer_stream`: an answer, each part sent as soon as there is something to show.

use super::answer::{Call, object};
use super::call;
use crate::answer::{AnswerPart, AnswerStream};
use crate::error::Result;
use crate::pg::given_jsonb::GivenJsonb;
use crate::pg::{ErrorReport, client};
use pgrx::prelude::*;
use pgrx::{JsonB, PgLogLevel};
use serde_json::json;
use std::time::Instant;

/// The rows. Dropped with the memory of the query, however that ends.
struct Rows {
    stream: AnswerStream,
    asked: Call,
    since: Instant,
}

#[pg_extern(sql = false)]
fn answer_parts(
    question: Option<&str>,
    collection: Option<&str>,
    filter: Option<GivenJsonb>,
    history: Option<GivenJsonb>,
    options: Option<GivenJsonb>,
) -> std::result::Result<SetOfIterator<'static, JsonB>, ErrorReport> {
    call(|| {
        let mut asked = Call::read(question, collection, filter, history, options)?;
        let since = Instant::now();
        let stream = AnswerStream::open(&asked.request())?;
        // A cursor stays open while other statements run.
        asked.suspend();
        Ok(SetOfIterator::new(Rows { stream, asked, since }))
    })
}

impl Rows {
    fn advance(&mut self) -> Result<Option<JsonB>> {
        let _in_force = self.asked.in_force()?;
        Ok(match self.stream.next(client::flush)? {
            None => None,
            Some(AnswerPart::Delta(text)) => Some(JsonB(json!({ "delta": text }))),
            Some(AnswerPart::Done(answer)) => {
                self.asked.note(&answer, self.since)?;
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
