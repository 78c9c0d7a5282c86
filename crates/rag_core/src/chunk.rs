//! Cutting a parsed document into sections (parents) and chunks (children).
//!
//! Reading the document is `rag_parse`'s work; the model's tokenizer comes in as a [`Tokenizer`].

mod merge;
mod section;

mod border;
mod cut;
mod grapheme;
mod measure;
mod paragraph;
mod semantic;

mod context;
mod identity;

use crate::chunking::{ChunkMethod, ChunkOptions, SizeUnit};
use crate::document::{Chunk, ParsedDocument, PreparedDocument, Section};
use crate::position::{CharOffsets, pages};
use crate::sentence::SentenceLanguage;
use cut::{Piece, Reading, Stretch};
use grapheme::visible;
use measure::{Limits, Ruler};
use section::Unit;
use std::ops::Range;

pub use identity::{Identities, identities};
pub use semantic::{MAX_SENTENCES, SentenceGroup, breaks, sentence_groups};

/// The embedding model's tokenizer.
pub trait Tokenizer {
    /// Byte spans of the tokens of a text, in order, without special tokens.
    ///
    /// Tokens may share a span or end inside a character; spans that do not rise are sorted by their start.
    fn token_spans(&self, text: &str) -> Vec<Range<usize>>;

    /// Number of tokens of a text, without special tokens.
    fn count(&self, text: &str) -> usize {
        self.token_spans(text).len()
    }
}

/// What one input of the embedding model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    /// The model's limit, special tokens included.
    pub max_tokens: usize,
    /// Special tokens that the model puts around every input.
    pub special_tokens: usize,
    /// Tokens of the prefix that the model wants before a passage.
    pub passage_prefix_tokens: usize,
}

/// How to cut a document.
#[derive(Debug, Clone, Copy)]
pub struct ChunkRequest<'a> {
    /// The document's title, if the user gave one.
    pub title: Option<&'a str>,
    /// Its language, for the ends of sentences.
    pub language: SentenceLanguage,
    /// Method and sizes.
    pub options: &'a ChunkOptions,
    /// What the embedding model takes.
    pub budget: TokenBudget,
    /// Where chunks begin with the method `semantic`, in order: see [`breaks`]. Without them it cuts as `recursive` does.
    pub breaks: Option<&'a [usize]>,
}

/// Most tokens of a chunk's context.
pub const MAX_CONTEXT_TOKENS: usize = 64;

/// Cuts a document.
///
/// A heading section is a heading with the text up to the next heading; headings without text of their own belong
/// to the section that follows (the last ones to the section before), so each has text. What becomes of them is
/// the method's business ([`ChunkMethod`]):
///
/// - `recursive`: each is a section (parent). If it fits `size` it is one chunk (child), else it is cut.
/// - `section`: those shorter than `min_size` are merged with a neighbour, those longer than `size` are cut, and
///   what comes out are the sections, each under the headings that all of it has in common.
/// - `parent_child`: each is a section; its paragraphs, tables, lists and code blocks are the chunks, where those
///   shorter than `min_size` are joined and those longer than `size` are cut.
/// - `semantic`: each is a section; the stretches between [`ChunkRequest::breaks`] are the chunks, where those shorter
///   than `min_size` are joined and those longer than `size` are cut.
///
/// No chunk is over the model's limit. Where `size` is, as it mostly is with `section`, a piece of `size` is a
/// section, and the chunks are what it is cut into to fit the model, without overlap.
///
/// Text is cut at the coarsest border that fits: block (paragraph, table, code block), list item or table row or
/// code line, sentence, line, word, grapheme. A code point, and a grapheme or a table row unless it alone is over
/// the limit, is never cut. Of several borders in the last third of a piece the text itself chooses, so that
/// pieces after a changed paragraph stay as they were; but a page that begins with a sentence, in the second half of a
/// piece, ends the piece, and the next one repeats nothing, so that most name one page. Each piece but a section's first repeats up to `overlap`
/// units of its predecessor, from a sentence's or word's start. A chunk that begins within a table has the
/// table's header row and delimiter row in its context. Every visible character (neither white space nor control
/// character) is in a chunk.
///
/// A chunk's text, and the table header in its context, have at most `size` units together; context, line break,
/// text, prefix and special tokens have at most `budget.max_tokens`, both counted on the final strings. The
/// exception is a model so small that one code point is over its limit. Where a text is cut for the model's sake,
/// an eighth of the model's room is kept for the context; else the context gets what the text leaves.
///
/// The request's title goes into the context; without one, the document's own does. The tokenizer is called a
/// bounded number of times per section and per chunk, so the cost is linear in the text.
pub fn chunk(
    parsed: ParsedDocument,
    request: &ChunkRequest<'_>,
    tokenizer: &dyn Tokenizer,
) -> PreparedDocument {
    let text = parsed.text.as_str();
    let mut cutting = Cutting::new(&parsed, request, tokenizer);
    for unit in cutting.units() {
        cutting.cut(unit);
    }
    let Cutting { mut sections, mut chunks, .. } = cutting;
    let chars = CharOffsets::of(
        text,
        sections.iter().map(|section| &section.bytes).chain(chunks.iter().map(|chunk| &chunk.bytes)),
    );
    for section in &mut sections {
        section.chars = chars.span(&section.bytes);
    }
    for chunk in &mut chunks {
        chunk.chars = chars.span(&chunk.bytes);
    }
    PreparedDocument { parsed, sections, chunks, fallback: None }
}

/// A document being cut.
struct Cutting<'a> {
    parsed: &'a ParsedDocument,
    title: Option<&'a str>,
    options: &'a ChunkOptions,
    breaks: Option<&'a [usize]>,
    reading: Reading<'a>,
    /// Tokens that the model takes besides prefix and special tokens.
    room: usize,
    sections: Vec<Section>,
    chunks: Vec<Chunk>,
}

impl<'a> Cutting<'a> {
    fn new(parsed: &'a ParsedDocument, request: &ChunkRequest<'a>, tokenizer: &'a dyn Tokenizer) -> Self {
        let TokenBudget { max_tokens, special_tokens, passage_prefix_tokens } = request.budget;
        let room = max_tokens.saturating_sub(special_tokens).saturating_sub(passage_prefix_tokens);
        Self {
            parsed,
            title: request.title.or(parsed.title.as_deref()),
            options: request.options,
            breaks: request.breaks,
            reading: Reading {
                text: &parsed.text,
                language: request.language,
                tokenizer,
                pages: &parsed.pages,
            },
            room: room.max(1),
            sections: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// The sections before any is cut.
    fn units(&self) -> Vec<Unit> {
        let units = section::units(&self.parsed.text, &self.parsed.headings);
        match self.options.method {
            ChunkMethod::Section => {
                let length = |unit: &Unit| {
                    let text = &self.parsed.text[visible(&self.parsed.text, unit.bytes.clone())];
                    Ruler::of(text, self.options.unit, self.reading.tokenizer).len()
                };
                let (least, most) = (self.options.min_size as usize, self.options.size as usize);
                merge::short_sections(units, least, most, length)
            }
            _ => units,
        }
    }

    /// Makes sections and chunks of one.
    fn cut(&mut self, unit: Unit) {
        let stretch = Stretch { bytes: unit.bytes.clone(), body: unit.body, header: None };
        let method = self.options.method;
        if method == ChunkMethod::ParentChild {
            let least = self.options.min_size as usize;
            let children =
                paragraph::children(&self.reading, &unit.bytes, unit.body, least, self.chunk_limits());
            return self.add(&unit, unit.bytes.clone(), children);
        }
        if let (ChunkMethod::Semantic, Some(breaks)) = (method, self.breaks) {
            let least = self.options.min_size as usize;
            let children = semantic::children(&self.reading, &unit, breaks, least, self.chunk_limits());
            return self.add(&unit, unit.bytes.clone(), children);
        }
        if method != ChunkMethod::Section && self.size_fits_model() {
            let children = cut::pieces(&self.reading, &stretch, self.chunk_limits());
            return self.add(&unit, unit.bytes.clone(), children);
        }
        let pieces = cut::pieces(&self.reading, &stretch, self.section_limits());
        let is_whole = pieces.len() == 1;
        for piece in pieces {
            let bytes = if is_whole { unit.bytes.clone() } else { piece.bytes.clone() };
            let header = piece.header.as_deref().map_or(0, |rows| self.reading.tokenizer.count(rows) + 1);
            let children = if piece.tokens + header <= self.share_of_room() {
                vec![piece]
            } else {
                let body = unit.body.clamp(piece.bytes.start, piece.bytes.end);
                let stretch = Stretch { bytes: piece.bytes, body, header: piece.header };
                cut::pieces(&self.reading, &stretch, self.model_limits())
            };
            self.add(&unit, bytes, children);
        }
    }

    /// Whether a chunk can be as long as `size` asks. Characters are taken for a quarter of a token.
    fn size_fits_model(&self) -> bool {
        let tokens = match self.options.unit {
            SizeUnit::Tokens => self.options.size as usize,
            SizeUnit::Characters => self.options.size as usize / 4,
        };
        tokens <= self.room
    }

    /// Most tokens of a text that is cut for the model's sake: an eighth is left to the context.
    fn share_of_room(&self) -> usize {
        (self.room - (self.room / 8).min(MAX_CONTEXT_TOKENS)).max(1)
    }

    /// Limits of what is a section and may be over the model's limit.
    fn section_limits(&self) -> Limits {
        let size = (self.options.size as usize).max(1);
        let overlap = (self.options.overlap as usize).min(size / 2);
        let tokens = if self.options.unit == SizeUnit::Tokens { size } else { usize::MAX };
        Limits { unit: self.options.unit, size, overlap, tokens }
    }

    /// Limits of chunks that are cut by `size`.
    fn chunk_limits(&self) -> Limits {
        let limits = self.section_limits();
        match limits.unit {
            SizeUnit::Tokens if limits.size <= self.room => limits,
            SizeUnit::Tokens => {
                let size = self.share_of_room();
                Limits { size, overlap: limits.overlap.min(size / 2), tokens: size, ..limits }
            }
            SizeUnit::Characters => Limits { tokens: self.share_of_room(), ..limits },
        }
    }

    /// Limits of chunks that a section is cut into because the model does not take it whole.
    fn model_limits(&self) -> Limits {
        let size = self.share_of_room();
        Limits { unit: SizeUnit::Tokens, size, overlap: 0, tokens: size }
    }

    /// Adds a section with its chunks.
    fn add(&mut self, unit: &Unit, bytes: Range<usize>, children: Vec<Piece>) {
        let header_path = unit.header_path(&bytes);
        let tokenizer = self.reading.tokenizer;
        let contexts = match self.options.context {
            true => context::Contexts::of(self.title, &header_path, tokenizer),
            false => context::Contexts::none(),
        };
        for piece in children {
            let text = &self.parsed.text[piece.bytes.clone()];
            let header = piece.header.as_deref();
            self.chunks.push(Chunk {
                section: self.sections.len(),
                pages: pages(&self.parsed.pages, &piece.bytes),
                chars: Default::default(),
                tokens: piece.tokens.try_into().unwrap_or(u32::MAX),
                context: contexts.fitting(header, text, piece.tokens, self.room, tokenizer),
                bytes: piece.bytes,
            });
        }
        self.sections.push(Section {
            header_path,
            pages: pages(&self.parsed.pages, &bytes),
            chars: Default::default(),
            bytes,
        });
    }
}

/// What the keyword index has as a chunk's title: title and headings, for a chunk deep in a section is still
/// about its subject, and the header row of a table that began before the chunk.
pub fn indexed_title(title: &str, headings: &[String], context: &str) -> String {
    let repeats = headings.first().map(String::as_str) == Some(title);
    let header = table_header(context).and_then(|header| header.lines().next());
    let parts = std::iter::once(title)
        .filter(|t| !t.is_empty() && !repeats)
        .chain(headings.iter().map(String::as_str))
        .chain(header);
    parts.collect::<Vec<_>>().join(" ")
}

/// Header row and delimiter row that a chunk's context repeats, for a chunk that begins within a table.
pub fn table_header(context: &str) -> Option<&str> {
    // Title and headings are one line, and come first.
    let last = context.rfind('\n')?;
    let header = context[..last].rfind('\n').map_or(0, |at| at + 1);
    is_delimiter_row(&context[last + 1..]).then_some(&context[header..])
}

/// Whether a line is the row of dashes below a table's header.
fn is_delimiter_row(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// Whether a character counts as text that must not be lost.
fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !c.is_control()
}
