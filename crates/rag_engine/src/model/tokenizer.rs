//! A model's tokenizer: `tokenizer.json` with its baked-in padding and truncation taken off.

use super::plain_words::{Part, PlainWords};
use super::session::Row;
use rag_core::chunk::Tokenizer as ChunkTokenizer;
use serde_json::Value;
use std::ops::Range;
use std::path::Path;
use tokenizers::{TruncationDirection, TruncationParams, TruncationStrategy};

/// Most bytes that are tokenised at a time: what the tokenizers keep meanwhile is several hundred times as much.
pub(crate) const PIECE_BYTES: usize = 32 * 1024;

/// Counts and encodes for one model. Shared between threads; encoding takes no lock.
pub struct Tokenizer {
    whole: tokenizers::Tokenizer,
    /// The same tokenizer, cutting pairs to the model's limit.
    cutting: tokenizers::Tokenizer,
    plain: Option<PlainWords>,
    special: usize,
    max_tokens: usize,
}

impl Tokenizer {
    /// Reads `tokenizer.json` for a model that takes `max_tokens`.
    pub fn open(path: &Path, max_tokens: usize) -> Result<Self, String> {
        // The tokenizers would start a thread pool of their own for batches.
        tokenizers::utils::parallelism::set_parallelism(false);
        let unreadable = |problem: &dyn std::fmt::Display| format!("tokenizer.json: {problem}");
        let bytes = std::fs::read(path).map_err(|e| unreadable(&e))?;
        let mut whole = tokenizers::Tokenizer::from_bytes(&bytes).map_err(|e| unreadable(&e))?;
        let definition: Value = serde_json::from_slice(&bytes).map_err(|e| unreadable(&e))?;
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
        let plain = PlainWords::of(&definition, &whole);
        Ok(Self { whole, cutting, plain, special, max_tokens })
    }

    /// Tokens that surround every single text, such as `[CLS]` and `[SEP]`.
    pub fn special_tokens(&self) -> usize {
        self.special
    }

    /// How plain words are read, if a text may be read so.
    fn plain(&self, text: &str) -> Option<&PlainWords> {
        self.plain.as_ref().filter(|plain| plain.reads(text))
    }

    /// Tokens of a text alone, without special tokens. Taken in pieces, so a word longer than a piece counts for more.
    pub fn count(&self, text: &str) -> Result<usize, String> {
        let count = |piece| Ok(self.whole.encode_fast(piece, false).map_err(|e| e.to_string())?.len());
        let count = |text| pieces(text).map(count).sum::<Result<usize, String>>();
        let Some(plain) = self.plain(text) else { return count(text) };
        let part = |part| match part {
            Part::Token(..) => Ok(1),
            Part::Other(range) => count(&text[range]),
        };
        plain.parts(&self.whole, text).map(part).sum()
    }

    /// A beginning of a text that has at least so many tokens, special ones not counted; all of it where it has fewer, or
    /// is short.
    pub fn beginning<'a>(&self, text: &'a str, tokens: usize) -> Result<&'a str, String> {
        if text.len() <= PIECE_BYTES {
            return Ok(text);
        }
        let (mut bytes, mut found) = (0, 0);
        for piece in pieces(text) {
            bytes += piece.len();
            found += self.count(piece)?;
            if found >= tokens {
                break;
            }
        }
        Ok(&text[..bytes])
    }

    /// A text as the model wants it, special tokens included, never cut.
    pub fn encode(&self, text: &str) -> Result<Row, String> {
        let Some(plain) = self.plain(text) else {
            return self.whole.encode_fast(text, true).map(row).map_err(|e| e.to_string());
        };
        let mut ids = Vec::new();
        for part in plain.parts(&self.whole, text) {
            match part {
                Part::Token(id, _) => ids.push(id),
                Part::Other(range) => {
                    let encoding = self.whole.encode_fast(&text[range], false);
                    ids.extend_from_slice(encoding.map_err(|e| e.to_string())?.get_ids());
                }
            }
        }
        let ids = plain.surrounded(ids);
        Ok(Row { types: vec![0; ids.len()], ids })
    }

    /// A query and a passage as a cross-encoder wants them. Beyond the model's limit the longer of the two is
    /// cut at its end, token by token, until they fit: in practice the passage.
    pub fn encode_pair(&self, query: &str, passage: &str) -> Result<Row, String> {
        self.cutting.encode_fast((query, passage), true).map(row).map_err(|e| e.to_string())
    }

    /// Like [`Self::encode_pair`], with the texts as they are after cutting: for a model that is sent text.
    pub fn cut_pair<'a>(&self, query: &'a str, passage: &'a str) -> Result<CutPair<'a>, String> {
        let row = self.encode_pair(query, passage)?;
        if row.ids.len() < self.max_tokens {
            return Ok(CutPair { query, passage, row });
        }
        let encoding = self.cutting.encode((query, passage), true).map_err(|e| e.to_string())?;
        let kept = |text: &'a str, sequence: usize| {
            let tokens = encoding.get_sequence_ids().into_iter().zip(encoding.get_offsets());
            let ends = tokens.filter(|(id, _)| *id == Some(sequence)).map(|(_, (_, end))| *end);
            &text[..text.floor_char_boundary(ends.max().unwrap_or(0))]
        };
        Ok(CutPair { query: kept(query, 0), passage: kept(passage, 1), row })
    }

    /// Where the tokens of a part of a text stand, which begins there.
    fn add_spans(&self, part: &str, mut start: usize, spans: &mut Vec<Range<usize>>) {
        for piece in pieces(part) {
            // Encoding plain text fails for no tokenizer that could be opened; bytes are the safe over-count if one does.
            match self.whole.encode(piece, false) {
                Ok(encoding) => {
                    spans.extend(encoding.get_offsets().iter().map(|(from, to)| start + *from..start + *to))
                }
                Err(_) => {
                    spans.extend(piece.char_indices().map(|(at, c)| start + at..start + at + c.len_utf8()))
                }
            }
            start += piece.len();
        }
    }
}

/// Which beginnings of a query and a passage are left where they are cut, and their tokens together.
#[derive(Debug, PartialEq, Eq)]
pub struct CutPair<'a> {
    /// The query.
    pub query: &'a str,
    /// The passage.
    pub passage: &'a str,
    /// Their tokens.
    pub row: Row,
}

/// A text in pieces of at most [`PIECE_BYTES`], which together are the text.
///
/// A piece begins with white space that parts two words, where tokens part in all that we know; else with any white
/// space; and within a word where there is none, which no tokenizer reads as one token at such a length.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(end_of_piece(rest));
        rest = after;
        Some(piece)
    })
}

fn end_of_piece(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let most = text.floor_char_boundary(PIECE_BYTES);
    let mut any = None;
    // What follows a place, and the character there, from the end; the first half of a piece is not looked at.
    let mut after = text[most..].chars().next();
    for (at, character) in text[..most].char_indices().rev().take_while(|(at, _)| *at >= most / 2) {
        if character.is_whitespace() {
            let parts_words = |before: Option<char>| {
                before.is_some_and(|c| !c.is_whitespace()) && after.is_some_and(|c| !c.is_whitespace())
            };
            if parts_words(text[..at].chars().next_back()) {
                return at;
            }
            any = any.or(Some(at));
        }
        after = Some(character);
    }
    any.unwrap_or(most)
}

fn row(encoding: tokenizers::Encoding) -> Row {
    Row { ids: encoding.get_ids().to_vec(), types: encoding.get_type_ids().to_vec() }
}

impl ChunkTokenizer for Tokenizer {
    fn token_spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let Some(plain) = self.plain(text) else {
            self.add_spans(text, 0, &mut spans);
            return spans;
        };
        for part in plain.parts(&self.whole, text) {
            match part {
                Part::Token(_, range) => spans.push(range),
                Part::Other(range) => self.add_spans(&text[range.clone()], range.start, &mut spans),
            }
        }
        spans
    }

    fn count(&self, text: &str) -> usize {
        Self::count(self, text).unwrap_or_else(|_| text.chars().count())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::sync::OnceLock;

    /// Words, numbers, signs, runs of blanks and scripts without any, as long as several pieces.
    fn mixture(mut seed: u64) -> String {
        let parts = [
            "ferry ",
            "x_1",
            "naïve",
            "東京都",
            "\n",
            "  ",
            "\t",
            "12.5",
            "—",
            "🚢",
            "antidisestablishment ",
            "ß, ",
        ];
        let mut text = String::new();
        while text.len() < 4 * PIECE_BYTES {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text += parts[(seed >> 33) as usize % parts.len()];
        }
        text
    }

    fn installed() -> &'static [Tokenizer] {
        static INSTALLED: OnceLock<Vec<Tokenizer>> = OnceLock::new();
        INSTALLED.get_or_init(|| {
            let models =
                std::env::var("RAG_TEST_MODELS").expect("RAG_TEST_MODELS is not set: run `make test`");
            let file = |model: &str| Path::new(&models).join(model).join("tokenizer.json");
            let names = ["bge-small-en-v1.5", "all-MiniLM-L6-v2", "ms-marco-MiniLM-L-12-v2"];
            names.map(|model| Tokenizer::open(&file(model), 512).unwrap()).into()
        })
    }

    #[test]
    fn tokens_of_pieces_are_the_tokens_of_the_text() {
        for tokenizer in installed() {
            for seed in [1, 2, 3] {
                let text = mixture(seed);
                let whole = tokenizer.whole.encode(text.as_str(), false).unwrap();
                let offsets: Vec<Range<usize>> =
                    whole.get_offsets().iter().map(|(from, to)| *from..*to).collect();
                assert_eq!(tokenizer.token_spans(&text), offsets, "seed {seed}");
                assert_eq!(tokenizer.count(&text).unwrap(), offsets.len());
            }
        }
    }

    /// A text of words, signs, blanks and control characters, beyond ASCII too, and of what means something to a tokenizer.
    fn odd_text() -> impl Strategy<Value = String> {
        let parts = prop_oneof![
            "[a-zA-Z]{1,12}",
            "[ -~]{0,9}",
            "[ \\t\\n\\r]{1,3}",
            "\\PC{0,4}",
            any::<char>().prop_map(String::from),
            prop::sample::select(vec![
                "[SEP]", "[MASK]", "[CLS", "##ing", "[UNK]", "\u{b}", "é", "e\u{301}", "İ", "a\u{ad}b"
            ])
            .prop_map(String::from),
            "[a-z]{60,130}",
        ];
        prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn words_that_are_looked_up_are_the_tokenizers_own(text in odd_text()) {
            for tokenizer in installed() {
                let whole = tokenizer.whole.encode(text.as_str(), true).unwrap();
                prop_assert_eq!(&tokenizer.encode(&text).unwrap(), &row(whole));
                let alone = tokenizer.whole.encode(text.as_str(), false).unwrap();
                prop_assert_eq!(tokenizer.count(&text).unwrap(), alone.len());
                let offsets: Vec<Range<usize>> =
                    alone.get_offsets().iter().map(|(from, to)| *from..*to).collect();
                prop_assert_eq!(tokenizer.token_spans(&text), offsets);
            }
        }
    }

    #[test]
    fn the_small_models_words_are_looked_up() {
        for tokenizer in installed() {
            let plain = tokenizer.plain("The ferry.").unwrap();
            let text = format!(" The  ferry, naïve antidisestablishment {}", "a".repeat(65));
            let parts: Vec<Part> = plain.parts(&tokenizer.whole, &text).collect();
            let [Part::Token(..), Part::Token(..), Part::Token(..), Part::Other(naive), word @ .., long] =
                &parts[..]
            else {
                panic!("{parts:?}");
            };
            assert_eq!((naive, long), (&(13..19), &Part::Other(41..106)), "{parts:?}");
            // Its tokens follow one another.
            let end = word.iter().fold(20, |at, part| match part {
                Part::Token(_, range) if range.start == at => range.end,
                _ => panic!("{parts:?}"),
            });
            assert!(word.len() > 1 && end == 40, "{parts:?}");
            assert!(tokenizer.plain("what [SEP] does").is_none());
            assert_eq!(tokenizer.special_tokens(), 2);
        }
    }

    #[test]
    fn a_pair_is_cut_in_the_text_where_its_tokens_are_cut() {
        let models = std::env::var("RAG_TEST_MODELS").expect("RAG_TEST_MODELS is not set: run `make test`");
        let file = Path::new(&models).join("ms-marco-MiniLM-L-12-v2/tokenizer.json");
        let tokenizer = Tokenizer::open(&file, 64).unwrap();
        let long = "Größe und 東京都 naïve ferry. ".repeat(40);
        let (short, blank) = ("which port?", "  two words \n");
        for (query, passage) in [(short, long.as_str()), (&long, short), (&long, &long), (short, blank)] {
            let cut = tokenizer.cut_pair(query, passage).unwrap();
            assert_eq!(cut.row, tokenizer.encode_pair(query, passage).unwrap());
            assert!(query.starts_with(cut.query) && passage.starts_with(cut.passage));
            // What is left makes the same tokens, so the other side has nothing to cut.
            assert_eq!(tokenizer.encode_pair(cut.query, cut.passage).unwrap(), cut.row);
            let whole = tokenizer.whole.encode((cut.query, cut.passage), true).unwrap();
            assert!(whole.len() <= 64, "{}", whole.len());
        }
        let whole = tokenizer.cut_pair(short, blank).unwrap();
        assert_eq!((whole.query, whole.passage), (short, blank));
        assert_eq!(tokenizer.cut_pair(short, &long).unwrap().query, short);
    }

    #[test]
    fn pieces_are_the_text_and_part_words_where_there_are_any() {
        let words = "word ".repeat(PIECE_BYTES);
        let wide = "two  spaces\n\n".repeat(PIECE_BYTES / 4);
        let blank = " ".repeat(PIECE_BYTES * 3);
        let solid = "語".repeat(PIECE_BYTES);
        for text in ["", "short", &words, &wide, &blank, &solid] {
            let found: Vec<&str> = pieces(text).collect();
            assert_eq!(found.concat(), text);
            assert!(found.iter().all(|piece| (1..=PIECE_BYTES).contains(&piece.len())));
            assert!(found.len() <= text.len() / (PIECE_BYTES / 2) + 1, "{}", found.len());
        }
        assert!(pieces(&words).skip(1).all(|piece| piece.starts_with(" word")));
        assert!(pieces(&wide).skip(1).all(|piece| piece.starts_with(char::is_whitespace)));
    }
}
