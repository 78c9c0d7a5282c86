//! Where a model's inputs are computed: in the scheduler's queue for a backend on this machine, in a thread of their
//! own, which mostly waits, for one elsewhere. The calling thread watches its client meanwhile.

use crate::backend::{Conditions, Input};
use crate::calls::{Caller, NoReply};
use crate::endpoint::RequestPermit;
use crate::engine::Engine;
use crate::failure::{Explain, deadline_passed, failure, internal};
use crate::model::Model;
use crate::scheduler::Job;
use crate::ticket::{Ticket, Waited};
use rag_wire::{Failure, FailureCode, Lane};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A vector or a vector of one logit per input, in their order. Where `reproducible`, each is the same whatever else runs.
pub(crate) fn compute(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    model: &Arc<Model>,
    reproducible: bool,
    inputs: Vec<Input>,
) -> Result<Vec<Vec<f32>>, NoReply> {
    if model.backend.limits().is_local() {
        return compute_in_queue(engine, caller, model, reproducible, inputs);
    }
    let rows = inputs.len() as u64;
    let tokens = inputs.iter().map(|input| u64::from(input.row.tokens())).sum();
    let asked = model.clone();
    let results = ask_elsewhere(engine, caller, move |conditions| {
        asked.compute(&inputs.iter().collect::<Vec<_>>(), conditions)
    })?;
    engine.counters.count(model.folder.kind, rows, tokens);
    Ok(results)
}

fn compute_in_queue(
    engine: &Engine,
    caller: &Caller<'_>,
    model: &Arc<Model>,
    reproducible: bool,
    inputs: Vec<Input>,
) -> Result<Vec<Vec<f32>>, NoReply> {
    refuse_bulk_when_short(engine, caller)?;
    let ticket = Arc::new(Ticket::new().map_err(|e| internal(format!("cannot wait for the model: {e}")))?);
    engine.scheduler.submit(Job {
        lane: caller.lane,
        principal: caller.principal,
        model: model.clone(),
        reproducible,
        deadline: caller.deadline,
        // Only the tokens are read there, and a job may wait for long.
        inputs: inputs.into_iter().map(|input| Input { row: input.row, ..Input::default() }).collect(),
        ticket: ticket.clone(),
    })?;
    wait(&ticket, caller)
}

/// Has a thread of its own ask a backend elsewhere.
pub(crate) fn ask_elsewhere<T: Send + 'static>(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    ask: impl FnOnce(&Conditions<'_>) -> Result<T, Failure> + Send + 'static,
) -> Result<T, NoReply> {
    let ticket = in_a_thread(engine, caller, move |conditions, _| ask(conditions), |answer| answer)?;
    wait(&ticket, caller)
}

/// Has a thread of its own ask a backend elsewhere, and put parts of the answer and the whole of it onto the ticket.
fn in_a_thread<T: Send + 'static, P: Send + 'static>(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    ask: impl FnOnce(&Conditions<'_>, &Ticket<P>) -> Result<T, Failure> + Send + 'static,
    last_part: fn(Result<T, Failure>) -> P,
) -> Result<Arc<Ticket<P>>, NoReply> {
    let ticket = Arc::new(Ticket::new().map_err(|e| internal(format!("cannot wait for the endpoint: {e}")))?);
    let permit = RequestPermit::take(engine)?;
    let allow_remote = engine.settings().allow_remote && !caller.local_only;
    let (asked, deadline) = (ticket.clone(), caller.deadline);
    let run = move || {
        let _permit = permit;
        let is_withdrawn = || asked.is_withdrawn();
        let conditions =
            Conditions { deadline, is_withdrawn: &is_withdrawn, allow_remote, ..Conditions::unlimited() };
        let answer = catch_unwind(AssertUnwindSafe(|| ask(&conditions, &asked)));
        let answer = answer.unwrap_or_else(|_| Err(internal("asking the endpoint failed with a panic")));
        asked.answer(last_part(answer));
    };
    std::thread::Builder::new()
        .name("rag-endpoint".into())
        .spawn(run)
        .map_err(|e| internal(format!("cannot start a thread: {e}")))?;
    Ok(ticket)
}

/// What a backend elsewhere gives.
enum Part<T> {
    Delta(String),
    End(Result<T, Failure>),
}

/// As [`ask_elsewhere`], for an answer that is delivered as it is written. `deliver` is false where the client has gone.
pub(crate) fn follow_elsewhere<T: Send + 'static>(
    engine: &Arc<Engine>,
    caller: &Caller<'_>,
    ask: impl FnOnce(&Conditions<'_>, &mut dyn FnMut(&str)) -> Result<T, Failure> + Send + 'static,
    deliver: &mut dyn FnMut(String) -> bool,
) -> Result<T, NoReply> {
    let follow = move |conditions: &Conditions<'_>, ticket: &Ticket<Part<T>>| {
        ask(conditions, &mut |delta| ticket.part(Part::Delta(delta.to_owned())))
    };
    let ticket = in_a_thread(engine, caller, follow, Part::End)?;
    loop {
        match ticket.wait(Some(caller.client), caller.deadline) {
            Waited::Answered(Part::Delta(delta)) => {
                if !deliver(delta) {
                    ticket.withdraw();
                    return Err(NoReply::Gone);
                }
            }
            Waited::Answered(Part::End(answer)) => return Ok(answer?),
            Waited::Late => return Err(deadline_passed().into()),
            Waited::Gone => return Err(NoReply::Gone),
        }
    }
}

fn wait<T>(ticket: &Ticket<Result<T, Failure>>, caller: &Caller<'_>) -> Result<T, NoReply> {
    match ticket.wait(Some(caller.client), caller.deadline) {
        Waited::Answered(answer) => Ok(answer?),
        Waited::Late => Err(deadline_passed().into()),
        Waited::Gone => Err(NoReply::Gone),
    }
}

/// Refuses bulk work on this machine while memory is short.
pub(crate) fn refuse_bulk_when_short(engine: &Engine, caller: &Caller<'_>) -> Result<(), Failure> {
    if caller.lane == Lane::Interactive || !engine.is_short_of_memory() {
        return Ok(());
    }
    let message = "the engine is short of memory and takes no bulk work now";
    Err(failure(FailureCode::QueueFull, message).hint("Raise rag_ext.engine_memory_limit."))
}
