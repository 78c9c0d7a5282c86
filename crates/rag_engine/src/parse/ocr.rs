//! Scans, read by a program that the administrator names: the one thing that a document is given to outside of the
//! parse child's confinement.
//!
//! The program gets the PDF on its standard input and writes plain text, with a form feed between pages, to its standard
//! output. It runs by way of this program's subcommand `ocr`, which limits its memory and time; it may open files and
//! start other programs, which all end with it.

use super::prepare::Waiter;
use crate::calls::NoReply;
use crate::failure::{Explain, failure, internal};
use crate::process;
use crate::ticket::{Ticket, Waited};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rag_core::document::{PageStart, ParsedDocument};
use rag_wire::{Failure, FailureCode, OcrProgram};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Most bytes of a temporary file that the program writes: the pages as images.
const FILE_BYTES: u64 = 4 << 30;

/// Whether a parser gave up because the words are in images: it then names the setting.
pub(super) fn could_help(failure: &Failure) -> bool {
    failure.hint.as_ref().is_some_and(|hint| hint.contains("rag_ext.ocr_program"))
}

/// What the program may take, and its path.
#[derive(Debug, clap::Args)]
pub struct OcrArguments {
    /// Address space, in MiB
    memory_mb: u64,
    /// CPU time, in seconds
    seconds: u64,
    /// The program
    #[arg(allow_hyphen_values = true)]
    program: std::ffi::OsString,
}

/// The subcommand `ocr`: limits itself and becomes the program.
pub fn ocr(arguments: &OcrArguments) -> ExitCode {
    process::close_inherited();
    let OcrArguments { memory_mb, seconds, program } = arguments;
    let limits = [
        (Resource::RLIMIT_AS, memory_mb.saturating_mul(1 << 20)),
        (Resource::RLIMIT_CPU, *seconds),
        (Resource::RLIMIT_FSIZE, FILE_BYTES),
        (Resource::RLIMIT_CORE, 0),
    ];
    let limited = limits.iter().all(|(resource, limit)| setrlimit(*resource, *limit, *limit).is_ok());
    // Kept by exec: the program does not outlive the engine.
    if !limited || prctl::set_pdeathsig(Signal::SIGKILL).is_err() {
        return ExitCode::FAILURE;
    }
    // It comes back only if there is no such program: 127, as of a shell.
    let _ = Command::new(program).exec();
    ExitCode::from(127)
}

/// Has the program read a PDF.
pub(super) fn read_scan(
    ocr: &OcrProgram,
    pdf: &[u8],
    most_bytes: u64,
    waiter: &Waiter<'_>,
) -> Result<ParsedDocument, NoReply> {
    let latest = Instant::now() + Duration::from_secs(ocr.seconds.into());
    let until = waiter.deadline.map_or(latest, |deadline| deadline.min(latest));
    let mut running =
        Running(start(ocr).map_err(|e| internal(format!("cannot start a program for OCR: {e}")))?);
    let (Some(mut stdin), Some(stdout)) = (running.0.stdin.take(), running.0.stdout.take()) else {
        return Err(internal("a program for OCR has no pipes").into());
    };
    let ticket = Ticket::new().map_err(|e| internal(format!("cannot wait for OCR: {e}")))?;
    std::thread::scope(|scope| {
        // A program that ends early breaks the pipe, which its status explains.
        scope.spawn(move || stdin.write_all(pdf).unwrap_or_default());
        let answer = &ticket;
        scope.spawn(move || {
            let mut text = Vec::new();
            let read = stdout.take(most_bytes + 1).read_to_end(&mut text);
            answer.answer(read.map(|_| text));
        });
        let waited = ticket.wait(Some(waiter.client), Some(until));
        // What it has started may hold the pipes open: it ends first, so that the threads do.
        let status = running.end(matches!(waited, Waited::Answered(_)));
        match waited {
            Waited::Gone => Err(NoReply::Gone),
            Waited::Late => {
                Err(failure(FailureCode::LimitExceeded, format!("OCR took longer than {} s", ocr.seconds))
                    .hint("Raise rag_ext.ocr_timeout, or split the document.")
                    .into())
            }
            Waited::Answered(Err(e)) => Err(internal(format!("OCR: {e}")).into()),
            Waited::Answered(Ok(text)) if text.len() as u64 > most_bytes => Err(failure(
                FailureCode::LimitExceeded,
                format!("OCR made more than {most_bytes} bytes of text"),
            )
            .into()),
            Waited::Answered(Ok(text)) => match status.and_then(|status| status.code()) {
                Some(0) => Ok(document(text)?),
                Some(127) => Err(failure(FailureCode::NotParsable, "the program for OCR cannot be run")
                    .hint("rag_ext.ocr_program is the path of a program that the server's user may execute.")
                    .into()),
                Some(code) => Err(failure(
                    FailureCode::NotParsable,
                    format!("the program for OCR failed with status {code}"),
                )
                .into()),
                None => Err(failure(FailureCode::NotParsable, "the program for OCR was killed")
                    .detail(format!("Its limits are {} MiB and {} s.", ocr.memory_mb, ocr.seconds))
                    .into()),
            },
        }
    })
}

/// Pages as they come, without anything but their words.
fn document(text: Vec<u8>) -> Result<ParsedDocument, Failure> {
    let read = String::from_utf8(text)
        .map_err(|_| failure(FailureCode::NotParsable, "the program for OCR did not write UTF-8"))?;
    let mut text = String::with_capacity(read.len());
    let mut pages = Vec::new();
    for (page, words) in (1..).zip(read.trim_end_matches('\u{c}').split('\u{c}')) {
        pages.push(PageStart { page, offset: text.len() });
        text.extend(words.trim().chars().filter(|c| *c != '\0'));
        text.push_str("\n\n");
    }
    text.truncate(text.trim_end().len());
    pages.retain(|page| page.offset < text.len());
    if text.is_empty() {
        return Err(failure(FailureCode::NotParsable, "the program for OCR found no text"));
    }
    Ok(ParsedDocument {
        media_type: "application/pdf".into(),
        title: None,
        text,
        headings: Vec::new(),
        pages,
        metadata_json: r#"{"ocr":true}"#.into(),
    })
}

fn start(ocr: &OcrProgram) -> std::io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg("ocr")
        .args([ocr.memory_mb.to_string(), ocr.seconds.to_string(), ocr.path.clone()])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// A program that is killed, with all that it has started, when dropped.
struct Running(Child);

impl Running {
    /// Ends what still runs, after a moment for the program itself if it is `ending`.
    fn end(&mut self, ending: bool) -> Option<std::process::ExitStatus> {
        let soon = Instant::now() + Duration::from_secs(1);
        while ending && Instant::now() < soon {
            if let Ok(Some(status)) = self.0.try_wait() {
                self.kill();
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill();
        self.0.wait().ok()
    }

    fn kill(&self) {
        if let Ok(group) = i32::try_from(self.0.id()) {
            // Gone already is fine.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn form_feeds_part_pages_and_empty_ones_at_the_end_are_dropped() {
        let parsed = document(b" one\n\x0c\x0cthree\0\n\x0c\n\x0c".to_vec()).unwrap();
        assert_eq!(parsed.text, "one\n\n\n\nthree");
        let starts: Vec<(u32, usize)> = parsed.pages.iter().map(|page| (page.page, page.offset)).collect();
        assert_eq!(starts, [(1, 0), (2, 5), (3, 7)]);
        assert!(document(b" \x0c ".to_vec()).unwrap_err().message.contains("no text"));
        assert!(document(b"\xff".to_vec()).unwrap_err().message.contains("UTF-8"));
    }
}
