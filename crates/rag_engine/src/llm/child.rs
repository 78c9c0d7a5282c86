//! A `rag-llm` that runs: what is said to it, what it says, and how it ended.
//!
//! A thread of its own starts it, reads what it says and collects it: that it dies with the engine is tied to the thread that
//! started it.

use super::{Launch, LocalModel};
use crate::failure::{Explain, failure, internal};
use rag_llm::{Ask, Load, MAX_CONTEXT, PROTOCOL, Told};
use rag_wire::{Failure, FailureCode, read_frame, write_frame};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{self, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A child that is killed when dropped.
pub(super) struct Child {
    stdin: ChildStdin,
    told: Receiver<Told>,
    process: Arc<Mutex<Process>>,
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
                if send.send(Ok(Self { stdin, told, process: process.clone() })).is_ok() {
                    pass_on(&mut stdout, &tell);
                }
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
        let mut child = started.map_err(|e| cannot_start(e.to_string()))?;
        child.write(&Load {
            protocol: PROTOCOL,
            file: model.file.to_string_lossy().into_owned(),
            max_context: model.max_context.min(MAX_CONTEXT),
            threads: launch.threads,
        });
        Ok(child)
    }

    /// Asks it something. If it has ended, that is learned by [`Self::wait`].
    pub(super) fn ask(&mut self, ask: &Ask) {
        self.write(ask);
    }

    fn write(&mut self, message: &impl serde::Serialize) {
        let _ = write_frame(&mut self.stdin, message);
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

fn lock(process: &Mutex<Process>) -> std::sync::MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes on what it says until it ends, or says something that is no message.
fn pass_on(stdout: &mut ChildStdout, tell: &Sender<Told>) {
    while let Ok(told) = read_frame::<Told>(stdout) {
        if tell.send(told).is_err() {
            return;
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
