//! A document from content to chunks: limits, a parse child, checks on what it says, and the cutting.
//!
//! A child is never trusted: its answer is bounded, its positions are checked, and whatever it does instead of
//! answering ends as a failure of this one document.

use super::ChildLock;
use super::child::{failed, out_of_memory};
use super::child_message::{ChildReply, ChildRequest, Confinement};
use super::ocr;
use super::semantic::{self, Asked};
use crate::calls::NoReply;
use crate::failure::{Explain, deadline_passed, failure, internal};
use crate::model::Registry;
use crate::ticket::{Ticket, Waited};
use rag_core::chunk::{ChunkRequest, TokenBudget, chunk};
use rag_core::chunking::ChunkMethod;
use rag_core::document::{ParsedDocument, PreparedDocument};
use rag_core::sentence::SentenceLanguage;
use rag_parse::DocumentContent;
use rag_wire::{Content, Failure, FailureCode, FrameError, ParseLimits, Prepare, encode, read_frame};
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Media types that need no parser worth confining.
const PLAIN_TYPES: [&str; 2] = ["text/plain", "text/markdown"];

/// Longest text, in bytes, whose media type is told from its content here: for a short one a child takes longer than all else.
const SHORT_TEXT: usize = 64 << 10;

/// Who waits for a document.
pub(crate) struct Waiter<'a> {
    /// Their socket.
    pub(crate) client: BorrowedFd<'a>,
    /// Until when.
    pub(crate) deadline: Option<Instant>,
}

/// Parses and cuts a document. Where the method asks for them, `embed` gives the vectors of its sentences by the model that
/// is named.
pub(crate) fn prepare(
    models: &Arc<Registry>,
    limits: &ParseLimits,
    child_lock: &ChildLock,
    request: Prepare,
    waiter: &Waiter<'_>,
    embed: impl FnOnce(&str, Vec<String>) -> Result<Asked<Vec<Vec<f32>>>, NoReply>,
) -> Result<PreparedDocument, NoReply> {
    let Prepare { content, media_type, title, model, language, chunking } = request;
    check_size(limits, &content)?;
    let known = models.tokenizer(model.as_deref(), waiter.deadline)?;
    let (folder, tokenizer) = known.as_ref();
    let prefix = tokenizer.count(&folder.passage_prefix).map_err(internal)?;
    let budget = TokenBudget {
        max_tokens: folder.max_tokens,
        special_tokens: tokenizer.special_tokens(),
        passage_prefix_tokens: prefix,
    };
    let parsed = parse_document(limits, child_lock, content, media_type, waiter)?;
    let request = ChunkRequest {
        title: title.as_deref(),
        language: SentenceLanguage::from_name(language.as_deref().unwrap_or_default()),
        options: &chunking,
        budget,
        breaks: None,
    };
    let (breaks, fallback) = match chunking.method {
        ChunkMethod::Semantic => {
            let embed = |texts| embed(&folder.name, texts);
            match semantic::breaks(&parsed, &request, tokenizer.as_ref(), embed)? {
                Ok(breaks) => (Some(breaks), None),
                Err(reason) => (None, Some(reason)),
            }
        }
        _ => (None, None),
    };
    let request = ChunkRequest { breaks: breaks.as_deref(), ..request };
    let prepared = guarded(|| chunk(parsed, &request, tokenizer.as_ref()))?;
    Ok(PreparedDocument { fallback, ..prepared })
}

/// What is done here with a document, which may be of any kind; a panic of it fails this document alone.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| failure(FailureCode::NotParsable, "preparing the document failed with a panic"))
}

/// Parses a document.
pub(crate) fn parse_document(
    limits: &ParseLimits,
    child_lock: &ChildLock,
    content: Content,
    media_type: Option<String>,
    waiter: &Waiter<'_>,
) -> Result<ParsedDocument, NoReply> {
    check_size(limits, &content)?;
    match &content {
        Content::Text(text) if guarded(|| is_plain(text, media_type.as_deref()))? => {
            let parse = || rag_parse::parse(DocumentContent::Text(text), media_type.as_deref());
            Ok(guarded(parse)?.map_err(failed)?)
        }
        _ => parse_in_child(limits, child_lock, content, media_type, waiter),
    }
}

fn check_size(limits: &ParseLimits, content: &Content) -> Result<(), NoReply> {
    let bytes = content.bytes();
    if bytes <= limits.max_document_bytes {
        return Ok(());
    }
    let message = format!("document has {bytes} bytes, the limit is {}", limits.max_document_bytes);
    Err(failure(FailureCode::LimitExceeded, message).hint("Raise rag_ext.max_document_size.").into())
}

/// Whether a text is of [`PLAIN_TYPES`]: a user said so, or nothing is said and it is short and looks like that.
fn is_plain(text: &str, media_type: Option<&str>) -> bool {
    let Some(given) = media_type else { return text.len() <= SHORT_TEXT && rag_parse::is_plain(text) };
    let name = given.split(';').next().unwrap_or_default().trim();
    PLAIN_TYPES.iter().any(|plain| name.eq_ignore_ascii_case(plain))
}

fn parse_in_child(
    limits: &ParseLimits,
    child_lock: &ChildLock,
    content: Content,
    media_type: Option<String>,
    waiter: &Waiter<'_>,
) -> Result<ParsedDocument, NoReply> {
    let confinement = Confinement { limits: limits.clone() };
    let request = ChildRequest::Parse { content, media_type };
    let ask = || ask_child(&confinement, &request, Some(waiter.client), waiter.deadline);
    let shared = child_lock.shared(waiter)?;
    let mut answer = ask();
    drop(shared);
    if matches!(answer, Err(NoAnswer::Killed(_))) {
        // The kernel kills whoever is large when memory runs out: that may have been the others' doing.
        let _exclusive = child_lock.exclusive(waiter)?;
        answer = ask();
    }
    match answer {
        Ok(ChildReply::Parsed(parsed)) => match contradiction(&parsed) {
            None => Ok(parsed),
            Some(what) => Err(failure(FailureCode::NotParsable, "the parser gave an impossible result")
                .detail(what)
                .into()),
        },
        Ok(ChildReply::Failed(failure)) => match (&limits.ocr, &request) {
            (Some(program), ChildRequest::Parse { content: Content::Bytes(pdf), .. })
                if ocr::could_help(&failure) =>
            {
                ocr::read_scan(program, pdf, limits.max_document_bytes, waiter)
            }
            _ => Err(failure.into()),
        },
        Ok(ChildReply::Tested { .. }) => Err(internal("the parser answered another question").into()),
        Err(NoAnswer::Gone) => Err(NoReply::Gone),
        Err(no_answer) => Err(no_answer.into_failure().into()),
    }
}

/// What is impossible about a parsed document, if something is.
fn contradiction(parsed: &ParsedDocument) -> Option<&'static str> {
    let text = &parsed.text;
    let mut last = 0;
    for heading in &parsed.headings {
        let place = &heading.bytes;
        if place.start < last || text.get(place.clone()).is_none() || !(1..=6).contains(&heading.level) {
            return Some("a heading is not where it should be");
        }
        last = place.start;
    }
    let mut last = 0;
    for page in &parsed.pages {
        if page.offset < last || !text.is_char_boundary(page.offset) {
            return Some("a page is not where it should be");
        }
        last = page.offset;
    }
    let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&parsed.metadata_json);
    if object.is_err() {
        return Some("the metadata is no object");
    }
    text.contains('\0').then_some("the text contains a NUL character")
}

/// Why a child did not answer.
pub(super) enum NoAnswer {
    /// The client hung up.
    Gone,
    /// The child was killed from outside, which may have nothing to do with the document.
    Killed(Failure),
    /// Something to be told.
    Failed(Failure),
}

impl NoAnswer {
    /// The failure; a client that is gone never sees it.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Gone => internal("the client hung up"),
            Self::Killed(failure) | Self::Failed(failure) => failure,
        }
    }
}

/// Runs one child to its answer. It is killed when the client hangs up, at the deadline, or when it takes far
/// longer than its CPU time allows.
pub(super) fn ask_child(
    confinement: &Confinement,
    request: &ChildRequest,
    client: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> Result<ChildReply, NoAnswer> {
    let broken = |what: &str, e: &dyn std::fmt::Display| NoAnswer::Failed(internal(format!("{what}: {e}")));
    let limits = &confinement.limits;
    // Waiting for a core is not the document's fault, so the clock on the wall allows more than the CPU's.
    let patience = Duration::from_secs(30 + 3 * u64::from(limits.cpu_seconds));
    let slowest = Instant::now() + patience;
    let frames = [encode(confinement), encode(request)];
    let [Ok(first), Ok(second)] = frames else {
        return Err(NoAnswer::Failed(failure(
            FailureCode::LimitExceeded,
            "document is too large for one message",
        )));
    };
    let mut child = spawn().map_err(|e| broken("cannot start a parse child", &e))?;
    let streams = (child.0.stdin.take(), child.0.stdout.take(), child.0.stderr.take());
    let (Some(mut stdin), Some(mut stdout), Some(stderr)) = streams else {
        return Err(NoAnswer::Failed(internal("a parse child has no pipes")));
    };
    let ticket = Ticket::new().map_err(|e| broken("cannot wait for a parse child", &e))?;
    std::thread::scope(|scope| {
        // A child that ends early breaks the pipe, which its answer or its status explains.
        scope.spawn(move || {
            stdin.write_all(&first).and_then(|()| stdin.write_all(&second)).unwrap_or_default()
        });
        let complaint = scope.spawn(move || {
            let mut complaint = Vec::new();
            let _ = stderr.take(4096).read_to_end(&mut complaint);
            complaint
        });
        let answer = &ticket;
        scope.spawn(move || answer.answer(read_frame::<ChildReply>(&mut stdout)));
        let until = deadline.map_or(slowest, |deadline| deadline.min(slowest));
        let waited = ticket.wait(client, Some(until));
        let status = child.end(matches!(waited, Waited::Answered(Err(_))));
        match waited {
            Waited::Gone => Err(NoAnswer::Gone),
            Waited::Late if deadline.is_some_and(|deadline| deadline < slowest) => {
                Err(NoAnswer::Failed(deadline_passed()))
            }
            Waited::Late => Err(NoAnswer::Failed(
                failure(
                    FailureCode::LimitExceeded,
                    format!("parsing took longer than {} s", patience.as_secs()),
                )
                .hint("Raise rag_ext.parse_cpu_limit, or split the document."),
            )),
            Waited::Answered(Ok(answer)) => Ok(answer),
            Waited::Answered(Err(error)) => {
                let complaint = complaint.join().unwrap_or_default();
                let failure = explain(&error, status, &complaint, limits);
                match failure.code {
                    FailureCode::Killed => Err(NoAnswer::Killed(failure)),
                    _ => Err(NoAnswer::Failed(failure)),
                }
            }
        }
    })
}

/// A child that is killed and reaped when dropped.
struct Running(Child);

impl Running {
    /// Ends the child: lets it finish dying by itself if it is `ending`, else kills it.
    fn end(&mut self, ending: bool) -> Option<ExitStatus> {
        if !ending {
            let _ = self.0.kill();
        }
        let soon = Instant::now() + Duration::from_secs(1);
        while ending && Instant::now() < soon {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.0.kill();
        self.0.wait().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn() -> std::io::Result<Running> {
    // The running program itself, also after an upgrade has put another one in its place.
    Command::new("/proc/self/exe")
        .arg("parse")
        .env_clear()
        // What a library would ask the system for, were it missing.
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map(Running)
}

/// Why a child ended without an answer, as far as its end shows.
fn explain(
    error: &FrameError,
    status: Option<ExitStatus>,
    complaint: &[u8],
    limits: &ParseLimits,
) -> Failure {
    let said = String::from_utf8_lossy(complaint);
    let cpu_seconds = limits.cpu_seconds;
    if said.starts_with("memory allocation of") {
        return out_of_memory(limits);
    }
    if said.contains("has overflowed its stack") {
        return failure(
            FailureCode::LimitExceeded,
            "document is nested too deeply: the parser ran out of stack",
        );
    }
    let limits = format!(
        "Its limits are {} MiB of memory and {} s of CPU time.",
        limits.memory_mb, limits.cpu_seconds
    );
    match status.and_then(|status| status.signal()) {
        Some(libc::SIGXCPU) => {
            failure(FailureCode::LimitExceeded, format!("parsing took more than {cpu_seconds} s of CPU time"))
                .hint("Raise rag_ext.parse_cpu_limit, or split the document.")
        }
        Some(libc::SIGKILL) => failure(
            FailureCode::Killed,
            "the parser was killed (signal 9), by somebody or for want of memory on this machine",
        )
        .detail(limits),
        Some(libc::SIGSYS) => failure(
            FailureCode::NotParsable,
            "the parser tried something that its confinement forbids (signal 31)",
        ),
        Some(signal) => {
            failure(FailureCode::NotParsable, format!("the parser crashed (signal {signal})")).detail(limits)
        }
        None => failure(FailureCode::NotParsable, "the parser gave no result").detail(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rag_core::document::{Heading, PageStart};

    fn parsed() -> ParsedDocument {
        ParsedDocument {
            media_type: "text/html".into(),
            title: None,
            text: "# Größe\n\ntext".into(),
            headings: vec![Heading { level: 1, title: "Größe".into(), bytes: 0..9 }],
            pages: vec![PageStart { page: 1, offset: 0 }],
            metadata_json: "{}".into(),
        }
    }

    #[test]
    fn a_possible_document_is_believed() {
        assert_eq!(contradiction(&parsed()), None);
    }

    #[test]
    fn a_child_that_lies_is_not_believed() {
        let lies: [fn(&mut ParsedDocument); 9] = [
            |d| d.headings[0].bytes = 0..1000,
            |d| d.headings[0].bytes = 0..5,
            |d| d.headings[0].bytes = std::ops::Range { start: 9, end: 2 },
            |d| d.headings[0].level = 7,
            |d| d.headings.push(Heading { level: 1, title: String::new(), bytes: 0..0 }),
            |d| d.pages[0].offset = 1000,
            |d| d.pages.push(PageStart { page: 2, offset: 5 }),
            |d| d.metadata_json = "[]".into(),
            |d| d.text.push('\0'),
        ];
        // The fifth only repeats a start, which is allowed; it must come after something later to be a lie.
        for (number, lie) in lies.iter().enumerate() {
            let mut document = parsed();
            if number == 4 {
                document.headings[0].bytes = 2..9;
            }
            lie(&mut document);
            assert!(contradiction(&document).is_some(), "lie {number}");
        }
    }

    #[test]
    fn plain_types_are_recognised_with_parameters_and_short_texts_without_any() {
        let cases = [
            ("word", Some("text/plain"), true),
            ("word", Some("Text/Markdown; charset=utf-8"), true),
            ("word", Some("text/html"), false),
            ("word", None, true),
            ("# Heading", None, true),
            ("<!doctype html><p>word", None, false),
            ("a,b\n1,2\n3,4\n5,6\n", None, false),
            ("= Document\n\nword", None, false),
            (&"word ".repeat(SHORT_TEXT / 5 + 1), None, false),
        ];
        for (text, media_type, expected) in cases {
            assert_eq!(is_plain(text, media_type), expected, "{media_type:?} {:?}", text.get(..20));
        }
    }
}
