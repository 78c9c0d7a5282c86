//! Where the method `semantic` begins the chunks of a document, and what becomes of it where the model cannot say so.

use super::prepare::guarded;
use crate::calls::NoReply;
use rag_core::chunk::{self, ChunkRequest, MAX_SENTENCES, Tokenizer};
use rag_core::document::ParsedDocument;
use rag_wire::{FailureCode, Lane};

/// What a model said, or, in words, why it could not be asked.
pub(crate) type Asked<T> = Result<T, String>;

/// The starts of chunks; or, in words, why the document is cut as by `recursive` instead.
pub(super) fn breaks(
    parsed: &ParsedDocument,
    request: &ChunkRequest<'_>,
    tokenizer: &dyn Tokenizer,
    embed: impl FnOnce(Vec<String>) -> Result<Asked<Vec<Vec<f32>>>, NoReply>,
) -> Result<Asked<Vec<usize>>, NoReply> {
    let groups = guarded(|| chunk::sentence_groups(parsed, request, tokenizer))?;
    if groups.len() > MAX_SENTENCES {
        return Ok(Err(format!("the document has {} sentences, more than {MAX_SENTENCES}", groups.len())));
    }
    let texts = groups.iter().map(|group| parsed.text[group.bytes.clone()].to_owned()).collect();
    let starts =
        |vectors: Vec<Vec<f32>>| chunk::breaks(&groups, &vectors, request.options.breakpoint_percentile);
    Ok(embed(texts)?.map(starts))
}

/// Makes a model's failure a reason to go on without it, where somebody waits.
///
/// In the background it stays a failure, so that the work is tried again: how a document is cut does not depend on when
/// that was.
pub(crate) fn unless_background<T>(lane: Lane, asked: Result<T, NoReply>) -> Result<Asked<T>, NoReply> {
    match asked {
        Ok(said) => Ok(Ok(said)),
        Err(NoReply::Failed(failure)) if lane == Lane::Interactive && may_fall_back(failure.code) => {
            Ok(Err(failure.message))
        }
        Err(no_reply) => Err(no_reply),
    }
}

/// Whether a failure is the model's, and neither the caller's nor the end of their patience.
fn may_fall_back(code: FailureCode) -> bool {
    matches!(
        code,
        FailureCode::NotLoaded
            | FailureCode::QueueFull
            | FailureCode::NotAllowed
            | FailureCode::Provider
            | FailureCode::Internal
    )
}
