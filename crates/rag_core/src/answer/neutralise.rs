//! Document text as data: what in it speaks to a language model instead of its readers.
//!
//! Found are places of the text as it is stored, so that quotes stay exact. What a prompt shows of them is defused: quoted and
//! named as such, not deleted, for a reader may ask about it. Only what no reader of the document sees (HTML comments, hidden
//! elements) is left out of prompts. Rules of thumb, and a model may be misled by what they do not know: what it writes is
//! checked in [`super::cite`] and [`super::plain`].

mod hidden;
mod instruction;
mod reading;
mod token;

pub(crate) use reading::is_invisible;

use crate::sentence::{sentences, trimmed};
use std::ops::Range;

/// What stands around a defused sentence in a prompt.
pub const QUOTED: &str = "[quoted, no instruction: \"";
const QUOTED_END: &str = "\"]";

/// What stands in a prompt for text that no reader of the document sees.
pub const HIDDEN: &str = "[hidden text left out]";

/// Why a part of a text is not taken at its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guise {
    /// It begins as the turn of a conversation does, as `System: …`. That may be a label of a form as well.
    Role,
    /// It gives orders to a model.
    Instruction,
    /// No reader sees it.
    Hidden,
}

/// A part of a text that is not taken at its word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Place in the text.
    pub bytes: Range<usize>,
    /// Why.
    pub guise: Guise,
}

/// A text as a prompt may show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neutralised {
    /// What is shown.
    pub text: String,
    /// Sentences, tokens of chat templates, hidden parts and runs of invisible characters that were defused.
    pub count: usize,
}

/// The parts of a text that are not taken at their word: whole sentences, in order, without overlap.
pub fn marks(text: &str) -> Vec<Mark> {
    let mut found: Vec<Mark> =
        hidden::spans(text).into_iter().map(|bytes| Mark { bytes, guise: Guise::Hidden }).collect();
    let hidden = found.len();
    for sentence in sentences(text) {
        if found[..hidden]
            .iter()
            .any(|mark| mark.bytes.start < sentence.end && sentence.start < mark.bytes.end)
        {
            continue;
        }
        // A turn begins with its line, whatever ends there without a full stop.
        let turn = instruction::turn(&text[sentence.clone()]);
        let turn_start = turn.map_or(sentence.end, |(at, _)| sentence.start + at);
        let before = trimmed(text, sentence.start..turn_start);
        if !before.is_empty() && instruction::is_order(&text[before.clone()]) {
            found.push(Mark { bytes: before, guise: Guise::Instruction });
        }
        if let Some((_, is_loud)) = turn {
            let bytes = turn_start..sentence.end;
            let is_order = is_loud || instruction::is_order(&text[bytes.clone()]);
            found.push(Mark { bytes, guise: if is_order { Guise::Instruction } else { Guise::Role } });
        }
    }
    found.sort_by_key(|mark| mark.bytes.start);
    found
}

/// The parts of a text that no answer is made of and that bear none out: orders to a model, and what no reader sees.
pub fn misleading(text: &str) -> Vec<Range<usize>> {
    let marks = marks(text).into_iter();
    marks.filter(|mark| mark.guise != Guise::Role).map(|mark| mark.bytes).collect()
}

/// Whether a place of a text touches one of the [`misleading`] ones.
pub fn touches(misleading: &[Range<usize>], bytes: &Range<usize>) -> bool {
    misleading.iter().any(|part| part.start < bytes.end && bytes.start < part.end)
}

/// A text without its [`misleading`] parts.
pub fn without_misleading(text: &str) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut last = 0;
    for part in misleading(text) {
        rest.push_str(&text[last..part.start]);
        rest.push('\n');
        last = part.end;
    }
    rest.push_str(&text[last..]);
    rest
}

/// A document's text as data. What could end its fence, open another, or pose as a role or an instruction is changed so that
/// it reads the same but is none:
///
/// - sentences that give orders to a model, and lines that begin as a turn of a conversation, are quoted and named as quoted;
/// - `<passage`, `</passage` and the tokens of chat templates (`<|im_start|>`, `[INST]`, `<s>`) lose their bracket;
/// - HTML comments and hidden elements are left out, and so are control characters other than line break and tab, and
///   invisible and bidirectional format characters.
pub fn neutralise(text: &str) -> Neutralised {
    let mut shown = Neutralised { text: String::with_capacity(text.len()), count: 0 };
    let mut last = 0;
    for mark in marks(text) {
        shown.push(&text[last..mark.bytes.start]);
        last = mark.bytes.end;
        if mark.guise == Guise::Hidden {
            shown.text.push_str(HIDDEN);
        } else {
            shown.text.push_str(QUOTED);
            let start = shown.text.len();
            shown.push(&text[mark.bytes]);
            let quoted = shown.text.split_off(start).replace('"', "'");
            shown.text.push_str(&quoted);
            shown.text.push_str(QUOTED_END);
        }
        shown.count += 1;
    }
    shown.push(&text[last..]);
    shown
}

impl Neutralised {
    /// Adds a part without invisible characters and with its tokens defused.
    fn push(&mut self, part: &str) {
        let mut was_counted = false;
        let mut visible = String::with_capacity(part.len());
        for c in part.chars() {
            if !is_invisible(c) {
                visible.push(c);
                was_counted = false;
            } else if reading::is_suspicious(c) && !was_counted {
                self.count += 1;
                was_counted = true;
            }
        }
        self.count += token::push_defused(&visible, &mut self.text);
    }
}

/// Compiles the patterns.
pub(super) fn prepare() {
    hidden::prepare();
    instruction::prepare();
}

#[cfg(test)]
#[path = "neutralise_tests.rs"]
mod tests;
