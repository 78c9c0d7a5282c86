//! The subcommand `parse`: confine, read one request, answer, end.

use super::child_message::{ChildReply, ChildRequest, Confinement};
use super::sandbox;
use crate::failure::{Explain, failure};
use crate::process;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use rag_parse::{DocumentContent, ParseError, ParseErrorKind};
use rag_wire::{
    Content, Failure, FailureCode, FrameError, MAX_FRAME_BYTES, ParseLimits, read_frame, write_frame,
};
use std::io;
use std::process::ExitCode;

/// Runs as a parse child. Only its parent calls it.
///
/// Nothing of the document is read before the confinement is in force. Every outcome that can be put in words is
/// an answer with status 0; a parser that panics, too. The parent deals with the rest.
pub fn parse() -> ExitCode {
    process::close_inherited();
    process::end_on_signals();
    let parent = nix::unistd::getppid();
    let tied = prctl::set_pdeathsig(Signal::SIGTERM).is_ok() && prctl::set_dumpable(false).is_ok();
    if !tied || nix::unistd::getppid() != parent {
        return ExitCode::FAILURE;
    }
    let mut input = io::stdin().lock();
    let Ok(Confinement { limits }) = read_frame::<Confinement>(&mut input) else { return ExitCode::FAILURE };
    // Panics would be written to standard error with words of the document in them.
    std::panic::set_hook(Box::new(|_| {}));
    let answer = match sandbox::confine(&limits) {
        Ok(in_force) => match read_frame::<ChildRequest>(&mut input) {
            Ok(ChildRequest::Parse { content, media_type }) => {
                parse_document(&content, media_type.as_deref())
            }
            Ok(ChildRequest::SelfTest) => {
                ChildReply::Tested { in_force, possible: sandbox::try_forbidden_acts() }
            }
            Err(FrameError::Io(e)) if e.kind() == io::ErrorKind::OutOfMemory => {
                ChildReply::Failed(out_of_memory(&limits))
            }
            Err(_) => return ExitCode::FAILURE,
        },
        Err(failure) => ChildReply::Failed(failure),
    };
    let mut output = io::stdout().lock();
    let written = match write_frame(&mut output, &answer) {
        Err(FrameError::TooLong(bytes)) => {
            let message = format!("the parser's result has {bytes} bytes, more than {MAX_FRAME_BYTES}");
            write_frame(&mut output, &ChildReply::Failed(failure(FailureCode::LimitExceeded, message)))
        }
        written => written,
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn parse_document(content: &Content, media_type: Option<&str>) -> ChildReply {
    let content = match content {
        Content::Text(text) => DocumentContent::Text(text),
        Content::Bytes(bytes) => DocumentContent::Bytes(bytes),
    };
    match std::panic::catch_unwind(|| rag_parse::parse(content, media_type)) {
        Ok(Ok(parsed)) => ChildReply::Parsed(parsed),
        Ok(Err(error)) => ChildReply::Failed(failed(error)),
        Err(_) => ChildReply::Failed(failure(
            FailureCode::NotParsable,
            "the parser failed on this document with a panic",
        )),
    }
}

/// The failure of a document that needs more memory than it may have.
pub(super) fn out_of_memory(limits: &ParseLimits) -> Failure {
    let message = format!("parsing needed more than {} MiB of memory", limits.memory_mb);
    failure(FailureCode::LimitExceeded, message)
        .hint("Raise rag_ext.parse_memory_limit, or split the document.")
}

/// A parser's refusal as a reply.
pub(super) fn failed(error: ParseError) -> Failure {
    let code = match error.kind {
        ParseErrorKind::Unsupported => FailureCode::Unsupported,
        ParseErrorKind::NotParsable => FailureCode::NotParsable,
        ParseErrorKind::LimitExceeded => FailureCode::LimitExceeded,
    };
    Failure { code, message: error.message, detail: None, hint: error.hint }
}
