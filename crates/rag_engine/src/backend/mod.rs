//! What computes a model, behind one trait: ONNX Runtime or llama.cpp on this machine, or an endpoint elsewhere.
//!
//! The registry, the scheduler and the calls know the trait alone. Which implementation a folder asks for is decided
//! here, in [`open`].

mod chat;
mod embeddings;
mod local_chat;
mod onnx;
mod pairwise;
mod remote;
mod rerank;
mod stream;

pub use chat::ChatBackend;
pub(crate) use chat::{summary as chat_summary, target as chat_target};
pub(crate) use local_chat::LocalChatBackend;
pub use onnx::OnnxBackend;

use crate::device::Device;
use crate::failure::{Explain, deadline_passed, failure};
use crate::model::Row;
use crate::model::endpoint::Endpoint;
use crate::model::folder::{BackendConfig, ModelFolder};
use crate::model::scoring::Scoring;
use embeddings::EmbeddingsBackend;
use pairwise::{LateScorer, PairwiseBackend, YesNoScorer};
use rag_wire::{Chat, Completion, Failure, FailureCode, ModelKind};
use rerank::RerankBackend;
use std::sync::Arc;
use std::time::Instant;

/// The computation of one model.
///
/// What each implementation promises, and `tests/engine/conformance.rs` checks:
/// - There are as many results as inputs, in the order of the inputs. No inputs give no results and cost nothing.
/// - The result of an input does not depend on the inputs beside it.
/// - A vector has length 1 and the dimension of the model; a score is a finite logit.
/// - An input of more tokens than [`Limits::max_tokens`] is refused with `LimitExceeded`. It is never cut.
/// - A call that is late or withdrawn fails with `Deadline`, and starts no further work.
/// - What the model does not do fails with `Unsupported`.
pub trait Backend: Send + Sync {
    /// What a caller must know before it asks. Costs nothing.
    fn limits(&self) -> Limits;

    /// Whether it can be asked, in words. Does no work and asks no other machine.
    fn health(&self, allow_remote: bool) -> Result<(), String>;

    /// Prepares for so many calls at once, so that the first ones need not wait.
    fn warm_up(&self, _calls: usize) -> Result<(), Failure> {
        Ok(())
    }

    /// A vector per text.
    fn embed(&self, _texts: &[&Input], _conditions: &Conditions<'_>) -> Result<Vec<Vec<f32>>, Failure> {
        Err(unsupported("does not embed texts"))
    }

    /// A logit per pair of query and passage.
    fn score(&self, _pairs: &[&Input], _conditions: &Conditions<'_>) -> Result<Vec<f32>, Failure> {
        Err(unsupported("does not score pairs"))
    }

    /// The answer to a conversation.
    fn generate(&self, _request: &Chat, _conditions: &Conditions<'_>) -> Result<Completion, Failure> {
        Err(unsupported("does not generate text"))
    }

    /// The same, and what is written is given to `deliver` as it is written, or at once where that is all there is.
    fn generate_by_parts(
        &self,
        request: &Chat,
        conditions: &Conditions<'_>,
        deliver: &mut dyn FnMut(&str),
    ) -> Result<Completion, Failure> {
        let completion = self.generate(request, conditions)?;
        deliver(&completion.text);
        Ok(completion)
    }
}

/// What a caller must know of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most tokens of one input, special tokens and prefix included.
    pub max_tokens: usize,
    /// The device of this machine that computes: then it waits for a worker and reads tokens. One elsewhere reads text.
    pub device: Option<Device>,
    /// Most batches that it computes at once.
    pub places: usize,
    /// Whether inputs are best asked for one by one: it would not compute them together anyway.
    pub one_by_one: bool,
    /// Whether what must be reproducible is computed with others in batches of fixed shapes; else alone.
    pub has_fixed_shapes: bool,
}

impl Limits {
    /// Those of a backend that computes any inputs together, and any number of batches at once.
    pub fn new(device: Option<Device>, max_tokens: usize) -> Self {
        Self { max_tokens, device, places: usize::MAX, one_by_one: false, has_fixed_shapes: false }
    }

    /// Whether it computes on this machine.
    pub fn is_local(&self) -> bool {
        self.device.is_some()
    }
}

/// One input: a text to embed, or a query and a passage to score.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// The query of a pair.
    pub query: Option<Arc<str>>,
    /// The text with its prefix, or the passage of a pair: for a backend that sends text.
    pub text: String,
    /// The tokens: for a backend that computes.
    pub row: Row,
}

/// Under which conditions a call is made.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// When it is given up.
    pub deadline: Option<Instant>,
    /// When an answer by parts is given up of which nothing has come, if that is earlier.
    pub first_part_by: Option<Instant>,
    /// Says that nobody waits any more.
    pub is_withdrawn: &'a dyn Fn() -> bool,
    /// Whether anything beyond loopback may be asked.
    pub allow_remote: bool,
    /// Whether each result must be the same, to the last bit, whatever is computed beside it.
    pub is_reproducible: bool,
}

impl Conditions<'_> {
    /// No deadline, never withdrawn, and nothing beyond this machine.
    pub fn unlimited() -> Self {
        Self {
            deadline: None,
            first_part_by: None,
            is_withdrawn: &|| false,
            allow_remote: false,
            is_reproducible: false,
        }
    }

    /// Fails if the call is late or nobody waits for it.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_late() {
            return Err(deadline_passed());
        }
        if (self.is_withdrawn)() {
            return Err(failure(FailureCode::Deadline, "nobody waits for the answer any more"));
        }
        Ok(())
    }

    /// Fails as [`Self::check`] does, and where the first part of an answer is late.
    pub(crate) fn check_first_part(&self) -> Result<(), Failure> {
        match self.first_part_by {
            Some(first_part_by) if first_part_by <= Instant::now() => Err(deadline_passed()),
            _ => self.check(),
        }
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }
}

/// Opens what a folder asks for. A model on this machine is loaded, which may take seconds; an endpoint is not asked.
/// `threads` is the most calls at once.
pub fn open(folder: &ModelFolder, device: Device, threads: usize) -> Result<Box<dyn Backend>, Failure> {
    match &folder.backend {
        BackendConfig::Onnx { .. } => Ok(match &folder.scoring {
            Scoring::CrossEncoder => Box::new(OnnxBackend::open(folder, device, threads)?),
            Scoring::YesNo(yes_no) => {
                let scorer = YesNoScorer::new(folder, yes_no);
                Box::new(PairwiseBackend::open(folder, device, threads, scorer)?)
            }
            Scoring::LateInteraction(late) => {
                let scorer = LateScorer::new(folder, late);
                Box::new(PairwiseBackend::open(folder, device, threads, scorer)?)
            }
        }),
        BackendConfig::Endpoint(endpoint) => remote_backend(folder, endpoint),
        BackendConfig::Gguf { .. } => Err(unsupported("is a chat model")),
    }
}

/// What keeps a model that is not open from being asked, as far as can be said without opening it.
pub(crate) fn check_unopened(folder: &ModelFolder, allow_remote: bool) -> Result<(), String> {
    match &folder.backend {
        BackendConfig::Onnx { .. } | BackendConfig::Gguf { .. } => Ok(()),
        BackendConfig::Endpoint(endpoint) => remote_backend(folder, endpoint)
            .map_err(|failure| failure.message)
            .and_then(|backend| backend.health(allow_remote)),
    }
}

fn remote_backend(folder: &ModelFolder, endpoint: &Endpoint) -> Result<Box<dyn Backend>, Failure> {
    match folder.kind {
        ModelKind::Embedding => Ok(Box::new(EmbeddingsBackend::new(folder, endpoint))),
        ModelKind::Reranker => Ok(Box::new(RerankBackend::new(folder, endpoint))),
        ModelKind::Chat => Err(unsupported("is a chat model, whose endpoint is rag_ext.llm_url")),
    }
}

/// Refuses inputs that the model would have to cut.
pub fn refuse_too_long(model: &str, max_tokens: usize, inputs: &[&Input]) -> Result<(), Failure> {
    match inputs.iter().position(|input| input.row.ids.len() > max_tokens) {
        Some(index) => Err(too_long(model, max_tokens, index, &inputs[index].row.tokens().to_string())),
        None => Ok(()),
    }
}

/// The failure of a text with more tokens than its model takes. `tokens` says how many, in words.
pub(crate) fn too_long(model: &str, max_tokens: usize, index: usize, tokens: &str) -> Failure {
    let message = format!("text {} has {tokens} tokens, model \"{model}\" takes {max_tokens}", index + 1);
    failure(FailureCode::LimitExceeded, message)
        .detail("Special tokens and the model's prefix are included.")
        .hint("Split the text.")
}

fn unsupported(what: &str) -> Failure {
    failure(FailureCode::Unsupported, format!("the model {what}"))
}
