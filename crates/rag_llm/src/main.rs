//! `rag-llm`: reads what to load from its standard input, then answers questions until that ends. The engine starts it.

mod answer;
mod confine;
mod llama;
mod process;
mod sampler;
mod vocabulary;

use llama::Model;
use rag_llm::{Ask, Load, LoadedModel, Outcome, PROTOCOL, Question, Told};
use rag_wire::{Failure, FailureCode, read_frame, write_frame};
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The question that is being answered, and up to which one nobody waits any more.
static CURRENT: AtomicU64 = AtomicU64::new(1);
static STOPPED: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    if !process::tie_to_parent() {
        return ExitCode::FAILURE;
    }
    let Ok(load) = read_frame::<Load>(&mut io::stdin().lock()) else { return ExitCode::FAILURE };
    // Nothing of the model is read before the confinement is in force.
    let loaded = confine::confine(&load.file).and_then(|confined_by| {
        let questions = listen()?;
        let model = open(&load)?;
        Ok((model, questions, confined_by))
    });
    let (mut model, questions, confined_by) = match loaded {
        Ok(loaded) => loaded,
        Err(failure) => {
            let told = tell(&Told::NotLoaded(failure));
            return if told { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    let mut goes_on = tell(&Told::Loaded(LoadedModel { context: model.context(), confined_by }));
    while let (true, Ok(question)) = (goes_on, questions.recv()) {
        let number = question.number;
        CURRENT.store(number, Ordering::SeqCst);
        let outcome = match is_stopped() {
            true => Outcome::Stopped,
            false => answer::write(&mut model, &question, &mut |piece| {
                tell(&Told::Written(number, piece.to_vec()))
            }),
        };
        goes_on = tell(&Told::Ended(number, outcome));
    }
    // Not through main's end: llama.cpp's threads may still be there.
    process::exit_now(0)
}

/// Whether nobody waits for what is being written.
fn is_stopped() -> bool {
    STOPPED.load(Ordering::SeqCst) >= CURRENT.load(Ordering::SeqCst)
}

fn tell(told: &Told) -> bool {
    write_frame(&mut io::stdout().lock(), told).is_ok()
}

fn open(load: &Load) -> Result<Model, Failure> {
    if load.protocol != PROTOCOL {
        return Err(not_loaded("the engine has another version than rag-llm")
            .with_hint("Restart the engine: it runs on from before an upgrade."));
    }
    if !process::computes_avx2() {
        return Err(not_loaded("this machine's processor has no AVX2"));
    }
    Model::open(&load.file, load.max_context, load.threads).map_err(|reason| not_loaded(&reason))
}

/// Takes in questions while others are answered. The end of standard input ends the process, whatever it does.
fn listen() -> Result<Receiver<Question>, Failure> {
    let (send, questions) = channel();
    let texts = count()?;
    let read = move || {
        let mut input = io::stdin().lock();
        loop {
            match read_frame::<Ask>(&mut input) {
                Ok(Ask::Question(question)) => {
                    let _ = send.send(question);
                }
                Ok(Ask::Stop(number)) => {
                    STOPPED.fetch_max(number, Ordering::SeqCst);
                }
                Ok(Ask::Count(number, counted)) => {
                    let _ = texts.send((number, counted));
                }
                Err(_) => process::exit_now(0),
            }
        }
    };
    start("rag-listen", read)?;
    Ok(questions)
}

/// Counts tokens in a thread of its own, while others are read or written.
fn count() -> Result<Sender<(u64, Vec<String>)>, Failure> {
    let (send, asked) = channel::<(u64, Vec<String>)>();
    let count = move || {
        for (number, texts) in asked {
            tell(&Told::Counted(number, vocabulary::count(&texts).unwrap_or_default()));
        }
    };
    start("rag-count", count)?;
    Ok(send)
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let started = std::thread::Builder::new().name(name.into()).spawn(run);
    started.map(drop).map_err(|e| not_loaded(&format!("cannot start a thread: {e}")))
}

/// A failure of which the engine knows the model's name.
fn not_loaded(reason: &str) -> Failure {
    failure(FailureCode::NotLoaded, reason)
}

fn failure(code: FailureCode, message: impl Into<String>) -> Failure {
    Failure { code, message: message.into(), detail: None, hint: None }
}

trait WithHint {
    fn with_hint(self, hint: &str) -> Failure;
}

impl WithHint for Failure {
    fn with_hint(mut self, hint: &str) -> Failure {
        self.hint = Some(hint.to_owned());
        self
    }
}
