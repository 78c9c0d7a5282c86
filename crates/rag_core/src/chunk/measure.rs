//! How long texts are, in the unit that a collection's sizes are given in.

use super::Tokenizer;
use crate::chunking::SizeUnit;

/// Where the units of a text begin.
pub(super) struct Ruler {
    starts: Starts,
}

enum Starts {
    /// Rising byte offsets, one per unit.
    Listed(Vec<u32>),
    /// So many bytes, each a unit: characters of a text in ASCII.
    EveryByte(usize),
}

impl Ruler {
    /// Measures a text, of at most 4 GB.
    pub(super) fn of(text: &str, unit: SizeUnit, tokenizer: &dyn Tokenizer) -> Self {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let starts = match unit {
            SizeUnit::Characters if text.is_ascii() => Starts::EveryByte(text.len()),
            SizeUnit::Characters => Starts::Listed(text.char_indices().map(|(at, _)| offset(at)).collect()),
            SizeUnit::Tokens => {
                let mut starts: Vec<u32> =
                    tokenizer.token_spans(text).into_iter().map(|span| offset(span.start)).collect();
                starts.sort_unstable();
                Starts::Listed(starts)
            }
        };
        Self { starts }
    }

    /// Units of the whole text.
    pub(super) fn len(&self) -> usize {
        match &self.starts {
            Starts::Listed(starts) => starts.len(),
            Starts::EveryByte(bytes) => *bytes,
        }
    }

    /// Units that begin before a byte.
    pub(super) fn before(&self, at: usize) -> usize {
        match &self.starts {
            Starts::Listed(starts) => starts.partition_point(|start| (*start as usize) < at),
            Starts::EveryByte(bytes) => at.min(*bytes),
        }
    }

    /// Units that begin from `from` up to `to`.
    pub(super) fn between(&self, from: usize, to: usize) -> usize {
        self.before(to).saturating_sub(self.before(from))
    }

    /// Where a unit begins, if there are so many.
    pub(super) fn start(&self, index: usize) -> Option<usize> {
        match &self.starts {
            Starts::Listed(starts) => starts.get(index).map(|start| *start as usize),
            Starts::EveryByte(bytes) => (index < *bytes).then_some(index),
        }
    }
}

/// What a piece of text may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// What `size` and `overlap` count.
    pub(super) unit: SizeUnit,
    /// Most units of a piece.
    pub(super) size: usize,
    /// Units that a piece repeats of the one before it.
    pub(super) overlap: usize,
    /// Most tokens of a piece, whatever the unit.
    pub(super) tokens: usize,
}
