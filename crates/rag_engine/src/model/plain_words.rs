//! Words that a BERT tokenizer has as tokens of their own: looked up, where the tokenizer itself would follow each character of
//! the text through normalisation.
//!
//! Only what is plain is read here: runs of printable ASCII between blanks, cut at signs, as `BertPreTokenizer` cuts them.
//! Words that are not in the vocabulary go to the tokenizer's model alone, which parts them, and anything beyond ASCII to all
//! of the tokenizer, run by run; between blanks neither sees more than that. Nothing is remembered, so how long a text takes
//! tells nothing of others.

use memchr::memmem::Finder;
use serde_json::Value;
use std::collections::VecDeque;
use std::ops::Range;
use tokenizers::Model;

/// The longest word that is read here, in bytes; no vocabulary has longer ones.
const LONGEST: usize = 64;

/// What must be known of a tokenizer that reads plain words as this file does.
pub(super) struct PlainWords {
    lowers: bool,
    /// Tokens that are found in the text before it is cut into words, such as `[SEP]`.
    added: Vec<Finder<'static>>,
    /// Tokens before every text, and behind it.
    around: (Vec<u32>, Vec<u32>),
}

/// A part of a text without blanks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// One token: its id, and where it stands.
    Token(u32, Range<usize>),
    /// What the tokenizer must read.
    Other(Range<usize>),
}

impl PlainWords {
    /// `None` where the tokenizer, of this `tokenizer.json`, reads words in another way.
    pub(super) fn of(definition: &Value, tokenizer: &tokenizers::Tokenizer) -> Option<Self> {
        let kind = |part: &str| definition[part]["type"].as_str();
        let is_bert = kind("normalizer") == Some("BertNormalizer")
            && kind("pre_tokenizer") == Some("BertPreTokenizer")
            && kind("model") == Some("WordPiece")
            && definition["normalizer"]["clean_text"] == true;
        let added = definition["added_tokens"].as_array()?;
        // Those that are looked for in the normalised text are found where they are not written so.
        let is_plain = |token: &Value| token["normalized"] == false && token["content"].as_str().is_some();
        if !is_bert || !added.iter().all(is_plain) {
            return None;
        }
        let added = added.iter().filter_map(|token| token["content"].as_str());
        Some(Self {
            lowers: definition["normalizer"]["lowercase"] == true,
            added: added.map(|token| Finder::new(token).into_owned()).collect(),
            around: around(tokenizer)?,
        })
    }

    /// A text's tokens with those that surround every text.
    pub(super) fn surrounded(&self, tokens: Vec<u32>) -> Vec<u32> {
        let (before, behind) = &self.around;
        [before.as_slice(), &tokens, behind].concat()
    }

    /// Whether a text holds none of the tokens that are found before it is cut.
    pub(super) fn reads(&self, text: &str) -> bool {
        self.added.iter().all(|token| token.find(text.as_bytes()).is_none())
    }

    /// All of a text but blanks, in order, with the tokens of this tokenizer.
    pub(super) fn parts<'a>(
        &'a self,
        tokenizer: &'a tokenizers::Tokenizer,
        text: &'a str,
    ) -> impl Iterator<Item = Part> + 'a {
        let mut at = 0;
        let bytes = text.as_bytes();
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        // Where the run at hand ends, if it is plain.
        let mut plain_until = 0;
        // What is left of a word of several tokens.
        let mut tokens = VecDeque::new();
        std::iter::from_fn(move || {
            if let Some(token) = tokens.pop_front() {
                return Some(token);
            }
            if at >= plain_until {
                at += bytes[at..].iter().take_while(|byte| is_blank(byte)).count();
                let run = bytes[at..].iter().position(&is_blank).map_or(bytes.len(), |end| at + end);
                if at == run {
                    return None;
                }
                if !bytes[at..run].iter().all(u8::is_ascii_graphic) {
                    return Some(Part::Other(std::mem::replace(&mut at, run)..run));
                }
                plain_until = run;
            }
            let letters =
                bytes[at..plain_until].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let word = at..at + letters.max(1);
            at = word.end;
            let mut buffer = [0; LONGEST];
            let Some(normal) = self.normalised(&text[word.clone()], &mut buffer) else {
                return Some(Part::Other(word));
            };
            if let Some(id) = tokenizer.token_to_id(normal) {
                return Some(Part::Token(id, word));
            }
            let place = |(from, to): (usize, usize)| word.start + from..word.start + to;
            let parted = tokenizer.get_model().tokenize(normal).unwrap_or_default();
            tokens.extend(parted.into_iter().map(|token| Part::Token(token.id, place(token.offsets))));
            // What the model fails at, the tokenizer says.
            tokens.pop_front().or(Some(Part::Other(word)))
        })
    }

    /// What normalisation leaves of a plain word, unless that is too long.
    fn normalised<'b>(&self, word: &str, buffer: &'b mut [u8; LONGEST]) -> Option<&'b str> {
        let normal = buffer.get_mut(..word.len())?;
        normal.copy_from_slice(word.as_bytes());
        if self.lowers {
            normal.make_ascii_lowercase();
        }
        std::str::from_utf8(normal).ok()
    }
}

/// What a tokenizer writes before a text and behind it, if all of it is of one segment.
fn around(tokenizer: &tokenizers::Tokenizer) -> Option<(Vec<u32>, Vec<u32>)> {
    let text = tokenizer.encode_fast("a", false).ok()?;
    let surrounded = tokenizer.encode_fast("a", true).ok()?;
    let (text, all) = (text.get_ids(), surrounded.get_ids());
    if text.is_empty() || surrounded.get_type_ids().iter().any(|segment| *segment != 0) {
        return None;
    }
    let at = all.windows(text.len()).position(|ids| ids == text)?;
    Some((all[..at].to_vec(), all[at + text.len()..].to_vec()))
}
