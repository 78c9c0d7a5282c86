//! A model's tokenizer: `tokenizer.json` with its baked-in padding and truncation taken off.

use super::session::Row;
use rag_core::chunk::Tokenizer as ChunkTokenizer;
use std::ops::Range;
use std::path::Path;
use tokenizers::{TruncationDirection, TruncationParams, TruncationStrategy};

/// Counts and encodes for one model. Shared between threads; encoding takes no lock.
pub struct Tokenizer {
    whole: tokenizers::Tokenizer,
    /// The same tokenizer, cutting pairs to the model's limit.
    cutting: tokenizers::Tokenizer,
    special: usize,
}

impl Tokenizer {
    /// Reads `tokenizer.json` for a model that takes `max_tokens`.
    pub fn open(path: &Path, max_tokens: usize) -> Result<Self, String> {
        // The tokenizers would start a thread pool of their own for batches.
        tokenizers::utils::parallelism::set_parallelism(false);
        let mut whole = tokenizers::Tokenizer::from_file(path).map_err(|e| format!("tokenizer.json: {e}"))?;
        whole.with_padding(None);
        whole.with_truncation(None).map_err(|e| e.to_string())?;
        let mut cutting = whole.clone();
        let truncation = TruncationParams {
            direction: TruncationDirection::Right,
            max_length: max_tokens,
            strategy: TruncationStrategy::LongestFirst,
            stride: 0,
        };
        cutting.with_truncation(Some(truncation)).map_err(|e| e.to_string())?;
        let special = whole.encode_fast("", true).map_err(|e| e.to_string())?.len();
        Ok(Self { whole, cutting, special })
    }

    /// Tokens that surround every single text, such as `[CLS]` and `[SEP]`.
    pub fn special_tokens(&self) -> usize {
        self.special
    }

    /// Tokens of a text alone, without special tokens.
    pub fn count(&self, text: &str) -> Result<usize, String> {
        Ok(self.whole.encode_fast(text, false).map_err(|e| e.to_string())?.len())
    }

    /// A text as the model wants it, special tokens included, never cut.
    pub fn encode(&self, text: &str) -> Result<Row, String> {
        self.whole.encode_fast(text, true).map(row).map_err(|e| e.to_string())
    }

    /// A query and a passage as a cross-encoder wants them. Beyond the model's limit the longer of the two is
    /// cut at its end, token by token, until they fit: in practice the passage.
    pub fn encode_pair(&self, query: &str, passage: &str) -> Result<Row, String> {
        self.cutting.encode_fast((query, passage), true).map(row).map_err(|e| e.to_string())
    }
}

fn row(encoding: tokenizers::Encoding) -> Row {
    Row { ids: encoding.get_ids().to_vec(), types: encoding.get_type_ids().to_vec() }
}

impl ChunkTokenizer for Tokenizer {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        // Encoding plain text fails for no tokenizer that could be opened; bytes are the safe over-count if one does.
        match self.whole.encode(text, false) {
            Ok(encoding) => encoding.get_offsets().iter().map(|(from, to)| *from..*to).collect(),
            Err(_) => text.char_indices().map(|(at, c)| at..at + c.len_utf8()).collect(),
        }
    }

    fn count(&self, text: &str) -> usize {
        self.whole.encode_fast(text, false).map_or_else(|_| text.chars().count(), |encoding| encoding.len())
    }
}
