//! A query and a passage as the tokens of one row, in the way of each kind of reranker.

use super::folder::ModelFolder;
use super::scoring::{LateInteraction, Scoring, YesNo, token, vocabulary};
use super::session::Row;
use super::tokenizer::Tokenizer;
use std::sync::Arc;
use tokenizers::{TruncationDirection, TruncationParams, TruncationStrategy};

/// Fewest tokens that the frame of a prompt must leave to query and passage.
const LEAST_ROOM: usize = 16;

/// Makes rows of pairs for one model.
pub enum PairEncoder {
    /// For a cross-encoder.
    Together(Arc<Tokenizer>),
    /// For a decoder.
    Prompted(Box<Prompted>),
    /// For late interaction.
    Apart(Box<Apart>),
}

impl PairEncoder {
    /// For the model of a folder, whose tokenizer this is.
    pub fn open(folder: &ModelFolder, tokenizer: &Arc<Tokenizer>) -> Result<Self, String> {
        match &folder.scoring {
            Scoring::CrossEncoder => Ok(Self::Together(tokenizer.clone())),
            Scoring::YesNo(yes_no) => Ok(Self::Prompted(Box::new(Prompted::open(folder, yes_no)?))),
            Scoring::LateInteraction(late) => Ok(Self::Apart(Box::new(Apart::open(folder, late)?))),
        }
    }

    /// The tokens of a pair. What is beyond the model's limit is cut off at the passage's end, and at the query's where
    /// that is long itself.
    pub fn encode(&self, query: &str, passage: &str) -> Result<Row, String> {
        match self {
            Self::Together(tokenizer) => tokenizer.encode_pair(query, passage),
            Self::Prompted(prompted) => prompted.encode(query, passage),
            Self::Apart(apart) => apart.encode(query, passage),
        }
    }
}

/// The prompt of a decoder. What stands in query and passage is data: text that reads like a special token is none.
pub struct Prompted {
    /// Reads special tokens as plain text.
    plain: tokenizers::Tokenizer,
    yes_no: YesNo,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// Tokens of the body at most.
    room: usize,
}

impl Prompted {
    fn open(folder: &ModelFolder, yes_no: &YesNo) -> Result<Self, String> {
        let mut tokenizer = vocabulary(folder)?;
        let (prefix, suffix) = (ids(&tokenizer, &yes_no.prefix)?, ids(&tokenizer, &yes_no.suffix)?);
        let room = folder.max_tokens.saturating_sub(prefix.len() + suffix.len());
        if room < LEAST_ROOM {
            return Err(format!("yes_no: prefix and suffix leave {room} of {} tokens", folder.max_tokens));
        }
        tokenizer.set_encode_special_tokens(true);
        Ok(Self { plain: tokenizer, yes_no: yes_no.clone(), prefix, suffix, room })
    }

    fn encode(&self, query: &str, passage: &str) -> Result<Row, String> {
        let whole = ids(&self.plain, &self.body(query, passage))?;
        let body = if whole.len() <= self.room { whole } else { self.cut(query, passage)? };
        let ids = [&self.prefix, &body, &self.suffix].map(Vec::as_slice).concat();
        Ok(Row { types: vec![0; ids.len()], ids })
    }

    /// The body with no more than half of the room for the query, and what that leaves for the passage.
    fn cut(&self, query: &str, passage: &str) -> Result<Vec<u32>, String> {
        let query = self.beginning(query, self.room / 2)?;
        let mut left = self.room;
        loop {
            let body = ids(&self.plain, &self.body(query, self.beginning(passage, left)?))?;
            if body.len() <= self.room {
                return Ok(body);
            }
            if left == 0 {
                return Err(format!("yes_no: the instruction leaves no room in {} tokens", self.room));
            }
            left = left.saturating_sub(body.len() - self.room);
        }
    }

    /// The first so many tokens of a text.
    fn beginning<'a>(&self, text: &'a str, tokens: usize) -> Result<&'a str, String> {
        let encoding = self.plain.encode(text, false).map_err(|e| e.to_string())?;
        let end = match tokens {
            0 => 0,
            _ if encoding.len() <= tokens => text.len(),
            _ => encoding.get_offsets()[tokens - 1].1,
        };
        Ok(&text[..text.floor_char_boundary(end)])
    }

    fn body(&self, query: &str, passage: &str) -> String {
        let parts = [
            ("{instruction}", self.yes_no.instruction.as_str()),
            ("{query}", query),
            ("{document}", passage),
        ];
        let mut body = String::new();
        let mut rest = self.yes_no.body.as_str();
        // From left to right, so that a placeholder in what was put in stays text.
        while let Some(start) = rest.find('{') {
            let (before, at) = rest.split_at(start);
            body.push_str(before);
            match parts.iter().find(|(name, _)| at.starts_with(name)) {
                Some((name, text)) => {
                    body.push_str(text);
                    rest = &at[name.len()..];
                }
                None => {
                    body.push('{');
                    rest = &at[1..];
                }
            }
        }
        body + rest
    }
}

fn ids(tokenizer: &tokenizers::Tokenizer, text: &str) -> Result<Vec<u32>, String> {
    let encoding = tokenizer.encode_fast(text, false).map_err(|e| e.to_string())?;
    Ok(encoding.get_ids().to_vec())
}

/// Query and passage one behind the other, told apart by their types 0 and 1; each with its marker.
pub struct Apart {
    query: Marked,
    passage: Marked,
}

/// One side of a pair.
struct Marked {
    /// Cuts at the limit, which leaves room for the marker.
    tokenizer: tokenizers::Tokenizer,
    marker: Option<u32>,
}

impl Apart {
    fn open(folder: &ModelFolder, late: &LateInteraction) -> Result<Self, String> {
        Ok(Self {
            query: Marked::open(folder, &late.query_marker, late.query_length)?,
            passage: Marked::open(folder, &late.document_marker, folder.max_tokens)?,
        })
    }

    fn encode(&self, query: &str, passage: &str) -> Result<Row, String> {
        let (query, passage) = (self.query.encode(query)?, self.passage.encode(passage)?);
        let types = [vec![0; query.len()], vec![1; passage.len()]].concat();
        Ok(Row { ids: [query, passage].concat(), types })
    }
}

impl Marked {
    fn open(folder: &ModelFolder, marker: &str, limit: usize) -> Result<Self, String> {
        let mut tokenizer = vocabulary(folder)?;
        let marker = (!marker.is_empty()).then(|| token(&tokenizer, marker)).transpose()?;
        let truncation = TruncationParams {
            direction: TruncationDirection::Right,
            max_length: limit - usize::from(marker.is_some()),
            strategy: TruncationStrategy::LongestFirst,
            stride: 0,
        };
        tokenizer.with_truncation(Some(truncation)).map_err(|e| e.to_string())?;
        Ok(Self { tokenizer, marker })
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(|e| e.to_string())?;
        let mut ids = encoding.get_ids().to_vec();
        if let Some(marker) = self.marker {
            // Behind the token that begins every text.
            ids.insert(ids.len().min(1), marker);
        }
        Ok(ids)
    }
}
