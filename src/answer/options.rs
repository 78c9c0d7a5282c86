//! Options of answering.

use super::Method;
use super::route::OnFailure;
use crate::error::Result;
use crate::search::options::{MAX_K, Mode, SearchOptions};
use crate::{config, engine};
use rag_core::choices;
use rag_core::option::{Choice, OptionReader};

choices! {
    /// What becomes of sentences of a chat model that what they cite does not support.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Policy {
        /// They are left out; where none is left, the answer is extracted.
        Strict = "strict",
        /// They are kept and marked.
        Cited = "cited",
        /// They are kept as they are, and listed.
        Kept = "kept",
        /// The same, and the model is asked also where the documents support nothing.
        Free = "free",
    }
}

choices! {
    /// The same as `rag_ext.unsupported` says it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Unsupported {
        Drop = "drop",
        Flag = "flag",
        Keep = "keep",
    }
}

impl Policy {
    /// That of the setting.
    fn configured() -> Result<Self> {
        Ok(match Unsupported::parse(&config::unsupported(), "rag_ext.unsupported")? {
            Unsupported::Drop => Self::Strict,
            Unsupported::Flag => Self::Cited,
            Unsupported::Keep => Self::Kept,
        })
    }
}

/// Options of one answer.
#[derive(Debug, Clone)]
pub(crate) struct AnswerOptions {
    /// Chunks that are searched for.
    pub(crate) k: usize,
    /// Most of them that the answer is made of; `None`: all, of which a chat model reads as many as the setting says.
    context_limit: Option<usize>,
    pub(crate) mode: Mode,
    /// Least support of a citation, 0 to 1, if the caller says so.
    min_support: Option<f64>,
    /// Most sentences of an extractive answer, and most citations.
    pub(crate) max_sentences: usize,
    /// Sentences that the cross-encoder scores.
    pub(crate) sentence_limit: usize,
    /// Whether a chat model may write the answer.
    pub(crate) generate: bool,
    pub(crate) policy: Policy,
    /// Of a chat model.
    pub(crate) temperature: f32,
    pub(crate) top_p: Option<f32>,
    /// Most tokens that a chat model writes; `None`: by the question.
    pub(crate) max_tokens: Option<u32>,
    /// Most tokens of passages and conversation that it reads; `None`: by the model.
    pub(crate) context_budget: Option<usize>,
    pub(crate) on_failure: OnFailure,
    pub(crate) search: SearchOptions,
}

impl AnswerOptions {
    /// Chunks that are searched for by default.
    const K: usize = 10;
    /// Least support where nobody says otherwise.
    const MIN_SUPPORT: f64 = 0.5;
    const MAX_SENTENCES: usize = 3;
    const SENTENCE_LIMIT: usize = 16;

    /// Reads the options of an answer, those of searching among them.
    pub(crate) fn read(options: &serde_json::Value) -> Result<Self> {
        let mut reader = OptionReader::new(options, "rag_answer")?;
        let read = Self::take(&mut reader)?;
        reader.finish()?;
        Ok(read)
    }

    /// Takes them out of a reader, which then may hold other options.
    pub(crate) fn take(reader: &mut OptionReader<'_>) -> Result<Self> {
        Ok(Self {
            k: reader.integer("k", 1..=i64::from(MAX_K))?.map_or(Self::K, |k| k as usize),
            context_limit: reader.integer("context_limit", 1..=100)?.map(|n| n as usize),
            mode: reader.choice("mode")?.unwrap_or(Mode::Hybrid),
            min_support: reader.number("min_support", 0.0..=1.0)?,
            max_sentences: reader
                .integer("max_sentences", 1..=10)?
                .map_or(Self::MAX_SENTENCES, |n| n as usize),
            sentence_limit: reader
                .integer("sentence_limit", 1..=200)?
                .map_or(Self::SENTENCE_LIMIT, |n| n as usize),
            generate: reader.boolean("generate")?.unwrap_or(true),
            policy: reader.choice("policy")?.map_or_else(Policy::configured, Ok)?,
            temperature: reader.number("temperature", 0.0..=2.0)?.unwrap_or(0.0) as f32,
            top_p: reader.number("top_p", 0.0..=1.0)?.map(|share| share as f32),
            max_tokens: reader.integer("max_tokens", 1..=32_768)?.map(|n| n as u32),
            context_budget: reader
                .integer("context_budget", 100..=1_000_000)?
                .map_or_else(config::context_budget, |n| Some(n as usize)),
            on_failure: reader.choice("on_failure")?.unwrap_or(OnFailure::Extractive),
            search: SearchOptions::read(reader)?,
        })
    }

    /// Most chunks that an answer is made of.
    pub(super) fn context_limit(&self) -> usize {
        self.context_limit.unwrap_or(self.k)
    }

    /// Most chunks that a chat model reads.
    pub(super) fn prompt_limit(&self) -> usize {
        self.context_limit.unwrap_or_else(config::context_limit)
    }

    /// Least support of a citation, and who says so: the caller, the setting, or the model that measures it. What is not
    /// measured is on no model's scale.
    pub(super) fn min_support(&self, method: Method) -> (f64, &'static str) {
        if let Some(least) = self.min_support {
            return (least, "option");
        }
        if let Some(least) = config::min_support() {
            return (least, "setting");
        }
        let of_model = match method {
            Method::Degraded => None,
            Method::Chat | Method::Extractive => engine::answer_threshold(&config::rerank_model()),
        };
        of_model.map_or((Self::MIN_SUPPORT, "default"), |least| (least, "model"))
    }
}
