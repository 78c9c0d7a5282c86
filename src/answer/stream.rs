//! An answer that is read while it is written: deltas, then the checked answer.
//!
//! What the search found is kept between two calls, and nothing of the caller's transaction is: the end of a query may come
//! at any time. Deltas are not checked; the answer at the end is the one that `rag_answer` gives.

use super::generative::{self, Asked, Shown};
use super::{Answer, AnswerRequest, Found, Ready, find};
use crate::config;
use crate::engine::{ChatPart, ChatStream};
use crate::error::Result;
use crate::pg::principal;
use crate::search::diagnostics::Watch;
use rag_core::answer::delta::Deltas;
use rag_core::sentence::sentences;
use std::collections::VecDeque;
use std::time::Instant;

/// What comes next.
pub(crate) enum AnswerPart {
    /// Text that is not checked.
    Delta(String),
    /// The checked answer. Nothing follows.
    Done(Box<Answer>),
}

/// An answer on its way.
pub(crate) struct AnswerStream(State);

enum State {
    Writing(Box<Writing>),
    /// The sentences of an answer that is there.
    Known(VecDeque<String>, Box<Answer>),
    Ended,
}

/// A chat model writes.
struct Writing {
    ready: Box<Ready>,
    shown: Shown,
    stream: ChatStream,
    deltas: Deltas,
    watch: Watch,
    deadline: Instant,
}

impl AnswerStream {
    /// Searches, and has the model begin.
    pub(crate) fn open(request: &AnswerRequest<'_>) -> Result<Self> {
        Ok(Self(match find(request)? {
            Found::Ended(answer) => known(*answer),
            Found::Ready(mut ready) if ready.may_generate => {
                let watch = ready.stages.start("generate");
                let deadline = Instant::now() + config::llm_deadline();
                let Ready { route, hits, .. } = ready.as_mut();
                let asking =
                    generative::asked(request, route, hits, deadline).and_then(|Asked { chat, shown }| {
                        let left = deadline.saturating_duration_since(Instant::now());
                        let stream = ChatStream::open(chat, left, &principal::current_principals()?)?;
                        Ok((shown, stream))
                    });
                match asking {
                    Ok((shown, stream)) => State::Writing(Box::new(Writing {
                        ready,
                        shown,
                        stream,
                        deltas: Deltas::default(),
                        watch,
                        deadline,
                    })),
                    Err(error) => known(ready.generated(watch, Err(error))?),
                }
            }
            Found::Ready(ready) => known(ready.extracted()?),
        }))
    }

    /// Waits for what comes next; `None` behind the end. `before_waiting` is called before each wait for the model.
    pub(crate) fn next(&mut self, before_waiting: impl Fn()) -> Result<Option<AnswerPart>> {
        loop {
            // What fails here has ended.
            let (state, part) = match std::mem::replace(&mut self.0, State::Ended) {
                State::Ended => return Ok(None),
                State::Known(mut sentences, answer) => match sentences.pop_front() {
                    Some(sentence) => (State::Known(sentences, answer), AnswerPart::Delta(sentence)),
                    None => (State::Ended, AnswerPart::Done(answer)),
                },
                State::Writing(writing) => {
                    before_waiting();
                    match writing.next()? {
                        (state, Some(part)) => (state, part),
                        (state, None) => {
                            self.0 = state;
                            continue;
                        }
                    }
                }
            };
            self.0 = state;
            return Ok(Some(part));
        }
    }
}

impl Writing {
    fn next(self) -> Result<(State, Option<AnswerPart>)> {
        let Self { mut ready, shown, stream, mut deltas, watch, deadline } = self;
        let completion = match stream.next() {
            Ok(ChatPart::Delta(delta, stream)) => {
                let text = deltas.push(&delta);
                // The checked answer will not repeat what the model was told, either.
                let is_fit = !text.is_empty() && !shown.is_repeated_in(deltas.shown());
                let part = is_fit.then_some(AnswerPart::Delta(text));
                let writing = Self { ready, shown, stream, deltas, watch, deadline };
                return Ok((State::Writing(Box::new(writing)), part));
            }
            Ok(ChatPart::End(completion)) => completion,
            Err(error) => return Ok(ended(ready.generated(watch, Err(error))?, &deltas)),
        };
        let (terms, route) = ready.terms(deadline);
        route.answered_by(&completion);
        let outcome = generative::read(&terms, &shown, &completion);
        let answer = ready.generated(watch, outcome)?;
        let rest = deltas.finish();
        if rest.is_empty() || shown.is_repeated_in(deltas.shown()) {
            return Ok(ended(answer, &deltas));
        }
        Ok((State::Known(VecDeque::new(), Box::new(answer)), Some(AnswerPart::Delta(rest))))
    }
}

/// The end: in sentences, where nothing was shown before.
fn ended(answer: Answer, deltas: &Deltas) -> (State, Option<AnswerPart>) {
    match !deltas.shown().is_empty() {
        true => (State::Ended, Some(AnswerPart::Done(Box::new(answer)))),
        false => (known(answer), None),
    }
}

/// An answer that is there, in sentences with what stands behind them.
fn known(answer: Answer) -> State {
    let text = &answer.text;
    let mut starts: Vec<usize> = sentences(text).into_iter().map(|range| range.start).skip(1).collect();
    starts.push(text.len());
    let mut from = 0;
    let mut parts = VecDeque::new();
    for start in starts {
        parts.push_back(text[from..start].to_owned());
        from = start;
    }
    State::Known(parts, Box::new(answer))
}
