//! What parsing and chunking produce: a document's text with its headings and pages, its sections
//! (parents) and its chunks (children).
//!
//! Every position is a byte range into [`ParsedDocument::text`]; [`CharSpan`] is the same range counted in
//! characters, which is what SQL's `substr` understands.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A document turned into Markdown, with what is known about its structure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedDocument {
    /// Media type that was detected or given, such as `text/html`.
    pub media_type: String,
    /// The document's own title, if it has one.
    pub title: Option<String>,
    /// The text as Markdown. Plain text and Markdown are kept as they came.
    pub text: String,
    /// Headings in reading order.
    pub headings: Vec<Heading>,
    /// Where each page starts, in reading order; empty where the format has no pages.
    pub pages: Vec<PageStart>,
    /// Metadata found in the file: a JSON object, as text.
    pub metadata_json: String,
}

/// A heading and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// 1 for the outermost level, up to 6.
    pub level: u8,
    /// The heading's words without markup.
    pub title: String,
    /// Bytes of the heading's line in the text, markup included.
    pub bytes: Range<usize>,
}

/// The first byte of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageStart {
    /// Page number, from 1.
    pub page: u32,
    /// Byte offset of the page's first character.
    pub offset: usize,
}

/// Half-open range counted in characters (Unicode scalar values), from 0.
///
/// In SQL: `substr(text, char_from + 1, char_to - char_from)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharSpan {
    /// Characters before the span.
    pub from: u32,
    /// Characters before the span's end.
    pub to: u32,
}

/// A parent: a heading with the text that belongs to it, up to the next heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Titles from the outermost heading down to this one; empty for text before the first heading.
    pub header_path: Vec<String>,
    /// Place in the text.
    pub bytes: Range<usize>,
    /// The same place in characters.
    pub chars: CharSpan,
    /// First and last page, where the format has pages.
    pub pages: Option<(u32, u32)>,
}

/// A child: what is embedded and searched. Its text is the slice of the document that `bytes` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Index of its section in [`PreparedDocument::sections`].
    pub section: usize,
    /// Place in the text; begins and ends on a visible character.
    pub bytes: Range<usize>,
    /// The same place in characters.
    pub chars: CharSpan,
    /// First and last page, where the format has pages.
    pub pages: Option<(u32, u32)>,
    /// Tokens of the chunk's text alone, by the embedding model's tokenizer, without special tokens.
    pub tokens: u32,
    /// What is put before the text when it is embedded: title and headings, cut so that the whole fits the
    /// model. May be empty.
    pub context: String,
}

/// A document ready to be embedded and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedDocument {
    /// What was parsed.
    pub parsed: ParsedDocument,
    /// Parents, in reading order.
    pub sections: Vec<Section>,
    /// Children, in reading order.
    pub chunks: Vec<Chunk>,
    /// Why it was cut in another way than was asked for, if it was.
    pub fallback: Option<String>,
}

impl PreparedDocument {
    /// The text of a chunk.
    pub fn chunk_text(&self, chunk: &Chunk) -> &str {
        &self.parsed.text[chunk.bytes.clone()]
    }

    /// What is embedded for a chunk: its context, a line break, and its text.
    pub fn embedded_text(&self, chunk: &Chunk) -> String {
        let text = self.chunk_text(chunk);
        if chunk.context.is_empty() { text.to_owned() } else { format!("{}\n{text}", chunk.context) }
    }
}
