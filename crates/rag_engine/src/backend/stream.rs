//! A chat completion that comes as server-sent events, as `"stream": true` asks for it.
//!
//! An endpoint that sends the whole completion instead is understood, too.

use super::chat::{MAX_ANSWER_BYTES, Usage, completion};
use crate::endpoint::{self, Receiver, Target};
use rag_wire::{Completion, Failure};
use serde::Deserialize;

/// Takes the events, and passes on what they say.
pub(super) struct Events<'a> {
    target: &'a Target,
    deliver: &'a mut dyn FnMut(&str),
    /// What came after the last whole line; all of what came, where it is no stream.
    rest: Vec<u8>,
    is_stream: Option<bool>,
    is_done: bool,
    written: Completion,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Delta,
}

#[derive(Deserialize, Default)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
}

const WHAT: &str = "no stream of a chat completion";

impl<'a> Events<'a> {
    pub(super) fn new(target: &'a Target, deliver: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            target,
            deliver,
            rest: Vec::new(),
            is_stream: None,
            is_done: false,
            written: Completion::default(),
        }
    }

    /// The whole completion, once the answer has ended.
    pub(super) fn finish(self) -> Result<Completion, Failure> {
        if self.is_stream == Some(false) {
            let completion = completion(self.target, &self.rest)?;
            (self.deliver)(&completion.text);
            return Ok(completion);
        }
        if !self.is_done {
            return Err(endpoint::unusable(self.target, WHAT, "It ended before it said so."));
        }
        Ok(self.written)
    }

    /// Takes one line. True ends the stream.
    fn line(&mut self, line: &[u8]) -> Result<bool, Failure> {
        let Some(data) = line.strip_prefix(b"data:") else { return Ok(false) };
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(true);
        }
        let event: Event = endpoint::json(self.target, WHAT, data)?;
        if event.error.is_some() {
            return Err(endpoint::unusable(self.target, WHAT, "It tells of an error."));
        }
        let written = &mut self.written;
        if let Some(model) = event.model {
            written.model = model;
        }
        if let Some(usage) = event.usage {
            written.prompt_tokens = usage.prompt_tokens;
            written.completion_tokens = usage.completion_tokens;
        }
        if let Some(content) = event.choices.into_iter().next().and_then(|choice| choice.delta.content) {
            written.text.push_str(&content);
            if written.text.len() as u64 > MAX_ANSWER_BYTES {
                return Err(endpoint::unusable(self.target, WHAT, "It is too long."));
            }
            if !content.is_empty() {
                (self.deliver)(&content);
            }
        }
        Ok(false)
    }
}

impl Receiver for Events<'_> {
    fn take(&mut self, part: &[u8]) -> Result<bool, Failure> {
        self.rest.extend_from_slice(part);
        if self.is_stream.is_none() {
            self.is_stream = self.rest.trim_ascii_start().first().map(|first| *first != b'{');
        }
        if self.is_stream != Some(true) {
            return match self.rest.len() as u64 > MAX_ANSWER_BYTES {
                true => Err(endpoint::unusable(self.target, WHAT, "It is too long.")),
                false => Ok(false),
            };
        }
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if self.line(line.trim_ascii_end())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn forget(&mut self) -> bool {
        self.rest.clear();
        self.is_stream = None;
        self.written.text.is_empty()
    }

    fn is_by_parts(&self) -> bool {
        true
    }
}
