//! A `rag-llm` that runs: what is said to it, what it says, and how it ended.
//!
//! A thread of its own starts it, reads what it says and collects it: that it dies with the engine is tied to the thread that
//! started it.

use super::{Launch, LocalModel};
use crate::failure::{Explain, failure, internal};
use rag_llm::{Ask, Load, MAX_CONTEXT, PROTOCOL, Told};
use rag_wire::{Failure, FailureCode, read_frame, write_frame};
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{self, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A child that is killed when dropped.
pub(super) struct Child {
    counter: Counter,
    told: Receiver<Told>,
    process: Arc<Mutex<Process>>,
}

/// What counts tokens, by a child that may be busy with something else.
#[derive(Clone)]
pub(super) struct Counter {
    stdin: Arc<Mutex<ChildStdin>>,
    counts: Arc<Mutex<Counts>>,
}

/// Counts that are waited for, by their numbers; `None` where the child has ended.
struct Counts {
    last: u64,
    waiting: Option<HashMap<u64, Sender<Vec<u32>>>>,
}

struct Process {
    child: process::Child,
    ended: Option<ExitStatus>,
}

impl Child {
    /// Starts a child, which begins to load.
    pub(super) fn start(launch: &Launch, model: &LocalModel) -> Result<Self, Failure> {
        let (send, started) = channel();
        let program = launch.program.clone();
        let run = move || match spawn(&program) {
            Ok((process, stdin, mut stdout)) => {
                let (tell, told) = channel();
                let process = Arc::new(Mutex::new(Process { child: process, ended: None }));
                let counter = Counter::new(stdin);
                let child = Self { counter: counter.clone(), told, process: process.clone() };
                if send.send(Ok(child)).is_ok() {
                    pass_on(&mut stdout, &tell, &counter);
                }
                lock(&counter.counts).waiting = None;
                // Before `tell` is dropped: who learns of the end may ask for its reason.
                lock(&process).collect();
            }
            Err(error) => {
                let _ = send.send(Err(error));
            }
        };
        std::thread::Builder::new()
            .name("rag-llm".into())
            .spawn(run)
            .map_err(|e| internal(format!("cannot start a thread: {e}")))?;
        let cannot_start = |e: String| {
            let program = launch.program.display();
            failure(FailureCode::Provider, "the program of local chat models cannot be started")
                .detail(format!("{program}: {e}"))
                .hint("rag-llm is installed beside rag-engine.")
        };
        let started = started.recv().map_err(|e| cannot_start(e.to_string()))?;
        let child = started.map_err(|e| cannot_start(e.to_string()))?;
        child.counter.write(&Load {
            protocol: PROTOCOL,
            file: model.file.to_string_lossy().into_owned(),
            max_context: model.max_context.min(MAX_CONTEXT),
            threads: launch.threads,
        });
        Ok(child)
    }

    /// Asks it something. If it has ended, that is learned by [`Self::wait`].
    pub(super) fn ask(&self, ask: &Ask) {
        self.counter.write(ask);
    }

    /// What counts its tokens.
    pub(super) fn counter(&self) -> &Counter {
        &self.counter
    }

    /// What it says next, if it does so in time; how it ended, if it has.
    pub(super) fn wait(&self, time: Duration) -> Result<Option<Told>, Failure> {
        match self.told.recv_timeout(time) {
            Ok(told) => Ok(Some(told)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(explain(lock(&self.process).ended)),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Its thread collects it.
        let _ = lock(&self.process).child.kill();
    }
}

impl Counter {
    fn new(stdin: ChildStdin) -> Self {
        let counts = Counts { last: 0, waiting: Some(HashMap::new()) };
        Self { stdin: Arc::new(Mutex::new(stdin)), counts: Arc::new(Mutex::new(counts)) }
    }

    fn write(&self, message: &impl serde::Serialize) {
        let _ = write_frame(&mut *lock(&self.stdin), message);
    }

    /// Tokens of each text, for a child that has loaded its model; `None` if it has ended, or does not say so in time.
    pub(super) fn count(&self, texts: &[String], time: Duration) -> Option<Vec<u32>> {
        let (send, counted) = channel();
        let number = {
            let mut counts = lock(&self.counts);
            counts.last += 1;
            let number = counts.last;
            counts.waiting.as_mut()?.insert(number, send);
            number
        };
        self.write(&Ask::Count(number, texts.to_vec()));
        let found = counted.recv_timeout(time).ok().filter(|found| found.len() == texts.len());
        if let Some(waiting) = &mut lock(&self.counts).waiting {
            waiting.remove(&number);
        }
        found
    }

    /// Whether the child has ended, or is about to.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.counts).waiting.is_none()
    }

    fn counted(&self, number: u64, found: Vec<u32>) {
        let asked = lock(&self.counts).waiting.as_mut().and_then(|waiting| waiting.remove(&number));
        // Who asked may have given up.
        asked.map(|asked| asked.send(found));
    }
}

impl Process {
    /// Collects it, once it has closed its output: it ends by itself soon, or is killed.
    fn collect(&mut self) {
        let by_itself = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            self.child.try_wait().ok().flatten()
        });
        self.ended = by_itself.or_else(|| {
            let _ = self.child.kill();
            self.child.wait().ok()
        });
    }
}

fn lock<T>(held: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on what it says until it ends, or says something that is no message.
fn pass_on(stdout: &mut ChildStdout, tell: &Sender<Told>, counter: &Counter) {
    while let Ok(told) = read_frame::<Told>(stdout) {
        match told {
            Told::Counted(number, found) => counter.counted(number, found),
            told => {
                if tell.send(told).is_err() {
                    return;
                }
            }
        }
    }
}

fn spawn(program: &Path) -> std::io::Result<(process::Child, ChildStdin, ChildStdout)> {
    let mut child = Command::new(program)
        .env_clear()
        // What a library would ask the system for, were it missing.
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        // A crash is told by its signal. llama.cpp would start a debugger otherwise.
        .env("GGML_NO_BACKTRACE", "1")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What a library writes there may quote a document.
        .stderr(Stdio::null())
        .spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok((child, stdin, stdout)),
        _ => Err(std::io::Error::other("it has no pipes")),
    }
}

/// Why a child ended without being told to.
fn explain(status: Option<ExitStatus>) -> Failure {
    match status.and_then(|status| status.signal()) {
        Some(libc::SIGKILL) => failure(
            FailureCode::Provider,
            "the local chat model was killed (signal 9), by somebody or for want of memory on this machine",
        )
        .hint("The memory of a model is that of its file and of 8192 tokens of context at most."),
        Some(signal) => {
            failure(FailureCode::Provider, format!("the local chat model crashed (signal {signal})"))
        }
        None => failure(FailureCode::Provider, "the local chat model ended by itself"),
    }
}
