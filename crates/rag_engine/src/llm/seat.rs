//! One model's place: who is served, the child that serves, and what is remembered of those that failed.

use super::child::{Child, Counter};
use super::turns::Turns;
use super::{Launch, LocalModel};
use crate::backend::Conditions;
use crate::failure::{Explain, failure};
use crate::log;
use rag_llm::{Ask, Outcome, Question, Told, WholeCharacters, grammar_of_schema};
use rag_wire::{Chat, Completion, Failure, FailureCode, LOCAL_MODEL};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked whether somebody still waits.
const GLANCE: Duration = Duration::from_millis(20);

/// A model that was not loaded, or whose children died one after the other, is tried again after this long.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// A child that has not stopped this long after it was asked to is killed.
const STOPPING: Duration = Duration::from_secs(10);

/// One that has not loaded its file by then, too.
const LOADING: Duration = Duration::from_secs(600);

/// How long it is waited for a count of tokens, which takes some milliseconds.
const COUNTING: Duration = Duration::from_secs(2);

/// A model's place.
#[derive(Default)]
pub(super) struct Seat {
    turns: Turns,
    state: Mutex<State>,
    /// Of the model in this file, once it is loaded.
    counter: Mutex<Option<(PathBuf, Counter)>>,
}

#[derive(Default)]
struct State {
    serving: Option<Serving>,
    /// The last failure of a child, how many there were without an answer between, and when.
    failed: Option<(Failure, u32, Instant)>,
}

/// A child, and what is known of it.
struct Serving {
    child: Child,
    file: PathBuf,
    started: Instant,
    used: Instant,
    is_loaded: bool,
    /// The number of the last question.
    number: u64,
    /// Since when an answer that nobody waits for is to be stopped.
    stopping: Option<Instant>,
}

/// What ended a child's part in an answer.
enum Broken {
    /// The answer; the child goes on.
    Answer(Failure),
    /// The child, too.
    Child(Failure),
}

impl Seat {
    /// The next message of a conversation, by this model.
    pub(super) fn generate(
        &self,
        launch: &Launch,
        model: &LocalModel,
        request: &Chat,
        conditions: &Conditions<'_>,
        deliver: &mut dyn FnMut(&str),
    ) -> Result<Completion, Failure> {
        let completion = self.serve(launch, model, conditions, |serving| {
            serving.ask(request);
            serving.follow(conditions, deliver)
        })?;
        self.lock().failed = None;
        Ok(Completion { model: format!("{LOCAL_MODEL}{}", model.name), ..completion })
    }

    /// How many tokens each text has for this model, also while it writes an answer.
    pub(super) fn count_tokens(
        &self,
        launch: &Launch,
        model: &LocalModel,
        texts: &[String],
        conditions: &Conditions<'_>,
    ) -> Result<Vec<u32>, Failure> {
        if let Some(counted) = self.counter_of(&model.file).and_then(|counter| counter.count(texts, COUNTING))
        {
            return Ok(counted);
        }
        let counter = self.serve(launch, model, conditions, |serving| serving.counter())?;
        *self.lock_counter() = Some((model.file.clone(), counter.clone()));
        counter.count(texts, COUNTING).ok_or_else(|| {
            failure(FailureCode::Provider, "the local chat model does not say how many tokens a text has")
        })
    }

    /// Has a child that is loaded and free do something, in one's turn.
    fn serve<T>(
        &self,
        launch: &Launch,
        model: &LocalModel,
        conditions: &Conditions<'_>,
        ask: impl FnOnce(&mut Serving) -> Result<T, Broken>,
    ) -> Result<T, Failure> {
        let _turn = self.turns.take(conditions)?;
        let mut state = self.lock();
        if state.serving.as_ref().is_some_and(|serving| serving.file != model.file) {
            state.serving = None;
        }
        if state.serving.is_none() {
            state.expect_rested()?;
            let child = Child::start(launch, model)?;
            state.serving = Some(Serving::new(child, &model.file));
        }
        let Some(serving) = state.serving.as_mut() else {
            return Err(failure(FailureCode::Internal, "no child"));
        };
        let answer = serving.wait_until_free(&model.name, conditions).and_then(|()| ask(serving));
        serving.used = Instant::now();
        answer.map_err(|broken| match broken {
            Broken::Answer(failure) => failure,
            Broken::Child(failure) => {
                log::failure(&failure);
                state.serving = None;
                let before = state.failed.as_ref().map_or(0, |(_, times, _)| *times);
                state.failed = Some((failure.clone(), before + 1, Instant::now()));
                failure
            }
        })
    }

    /// What counts tokens for the model in this file, if it was loaded.
    fn counter_of(&self, file: &Path) -> Option<Counter> {
        let counter = self.lock_counter();
        counter.as_ref().filter(|(of, _)| of == file).map(|(_, counter)| counter.clone())
    }

    fn lock_counter(&self) -> MutexGuard<'_, Option<(PathBuf, Counter)>> {
        self.counter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self) -> bool {
        // While it answers, the state is locked.
        self.state.try_lock().map_or(true, |state| state.serving.is_some())
    }

    pub(super) fn problem(&self) -> Option<String> {
        let state = self.state.try_lock().ok()?;
        let (failure, ..) = state.failed.as_ref()?;
        Some(failure.detail.clone().unwrap_or_else(|| failure.message.clone()))
    }

    pub(super) fn end_if_idle(&self, now: Instant, idle: Duration) {
        let Ok(mut state) = self.state.try_lock() else { return };
        let is_idle = |serving: &Serving| now.saturating_duration_since(serving.used) >= idle;
        if state.serving.as_ref().is_some_and(is_idle) {
            state.serving = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Fails while it is too early to start another child. One that died once may have been killed for want of memory that
    /// others had taken, and is replaced at once; a file that cannot be loaded stays so for a while.
    fn expect_rested(&self) -> Result<(), Failure> {
        match &self.failed {
            Some((failure, times, since))
                if (*times > 1 || failure.code == FailureCode::NotLoaded)
                    && since.elapsed() < RETRY_AFTER =>
            {
                Err(failure.clone())
            }
            _ => Ok(()),
        }
    }
}

impl Serving {
    fn new(child: Child, file: &Path) -> Self {
        let now = Instant::now();
        Self {
            child,
            file: file.to_owned(),
            started: now,
            used: now,
            is_loaded: false,
            number: 0,
            stopping: None,
        }
    }

    /// Waits until the model is loaded, and the answer that nobody waited for has ended. A model goes on loading after one who
    /// waited for it has gone.
    fn wait_until_free(&mut self, name: &str, conditions: &Conditions<'_>) -> Result<(), Broken> {
        while !self.is_loaded || self.stopping.is_some() {
            conditions.check_first_part().map_err(Broken::Answer)?;
            match self.child.wait(GLANCE).map_err(Broken::Child)? {
                Some(Told::Loaded(model)) => {
                    self.is_loaded = true;
                    log::info(format_args!(
                        "chat model {name} loaded in {} ms, {} tokens of context, confined by {}",
                        self.started.elapsed().as_millis(),
                        model.context,
                        model.confined_by.join(", ")
                    ));
                }
                Some(Told::NotLoaded(reason)) => return Err(Broken::Child(not_loaded(name, reason))),
                Some(Told::Ended(number, _)) if number >= self.number => self.stopping = None,
                Some(Told::Ended(..) | Told::Written(..) | Told::Counted(..)) => {}
                None => {}
            }
            let is_stuck = match self.stopping {
                Some(since) => since.elapsed() > STOPPING,
                None => !self.is_loaded && self.started.elapsed() > LOADING,
            };
            if is_stuck {
                let message = format!("the local chat model \"{name}\" does not respond");
                return Err(Broken::Child(failure(FailureCode::Provider, message)));
            }
        }
        Ok(())
    }

    /// What counts the child's tokens, unless it has ended.
    fn counter(&self) -> Result<Counter, Broken> {
        let counter = self.child.counter();
        let began = Instant::now();
        while counter.has_ended() && began.elapsed() < STOPPING {
            self.child.wait(GLANCE).map_err(Broken::Child)?;
        }
        Ok(counter.clone())
    }

    fn ask(&mut self, request: &Chat) {
        self.number += 1;
        // A schema that has no grammar is left to the model: whoever asked reads the answer with care anyhow.
        let grammar = request.json_schema.as_deref().and_then(|schema| grammar_of_schema(schema).ok());
        self.child.ask(&Ask::Question(Question {
            number: self.number,
            messages: request.messages.clone(),
            max_tokens: request.max_tokens,
            temperature: request.temperature,
            top_p: request.top_p,
            grammar,
        }));
    }

    /// Delivers what is written until it ends, or nobody waits any more.
    fn follow(
        &mut self,
        conditions: &Conditions<'_>,
        deliver: &mut dyn FnMut(&str),
    ) -> Result<Completion, Broken> {
        let mut characters = WholeCharacters::default();
        let mut text = String::new();
        let mut write = |part: &str| {
            if !part.is_empty() {
                deliver(part);
                text.push_str(part);
            }
            !text.is_empty()
        };
        let mut is_begun = false;
        loop {
            let checked = if is_begun { conditions.check() } else { conditions.check_first_part() };
            if let Err(failure) = checked {
                self.stopping = Some(Instant::now());
                self.child.ask(&Ask::Stop(self.number));
                return Err(Broken::Answer(failure));
            }
            match self.child.wait(GLANCE).map_err(Broken::Child)? {
                Some(Told::Written(number, piece)) if number == self.number => {
                    is_begun |= write(&characters.take(&piece));
                }
                Some(Told::Ended(number, outcome)) if number == self.number => {
                    write(characters.finish());
                    return match outcome {
                        Outcome::Whole { prompt_tokens, completion_tokens } => Ok(Completion {
                            text,
                            prompt_tokens: Some(prompt_tokens),
                            completion_tokens: Some(completion_tokens),
                            ..Completion::default()
                        }),
                        Outcome::Failed(failure) => Err(Broken::Answer(failure)),
                        Outcome::Stopped => {
                            let message = "the local chat model stopped without being told to";
                            Err(Broken::Answer(failure(FailureCode::Provider, message)))
                        }
                    };
                }
                _ => {}
            }
        }
    }
}

fn not_loaded(name: &str, reason: Failure) -> Failure {
    let message = format!("the chat model \"{LOCAL_MODEL}{name}\" could not be loaded");
    let failure = failure(FailureCode::NotLoaded, message).detail(reason.message);
    match reason.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
