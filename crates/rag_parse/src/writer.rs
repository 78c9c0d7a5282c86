//! Writes Markdown block by block.
//!
//! Knows paragraphs, lists, quotes, code and headings; which HTML element is what, is left to
//! [`super::html`].

mod compose;

use crate::MAX_DOCUMENT_BYTES;
use rag_core::document::{Heading, PageStart};

/// Deepest indentation of lists and quotes; what is nested deeper stays at this one.
const MAX_PREFIXES: usize = 8;

/// What is owed before the next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    None,
    Line,
    Block,
}

/// Markdown in the making.
pub(crate) struct Writer {
    out: String,
    headings: Vec<Heading>,
    pages: Vec<PageStart>,
    /// A page that begins with the next text.
    owed_page: Option<u32>,
    owed: Break,
    owed_space: bool,
    /// Ends a term or a label ("Note") whose explanation follows on the same line.
    owed_colon: bool,
    /// Written instead of the innermost prefix on the next line.
    marker: Option<String>,
    prefixes: Vec<&'static str>,
    skipped_prefixes: usize,
    /// A heading or table cell: text without blocks.
    flat: Option<String>,
    flat_is_heading: bool,
    /// What was owed when that began.
    before_flat: Break,
    overflowed: bool,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {
            out: String::new(),
            headings: Vec::new(),
            pages: Vec::new(),
            owed_page: None,
            owed: Break::None,
            owed_space: false,
            owed_colon: false,
            marker: None,
            prefixes: Vec::new(),
            skipped_prefixes: 0,
            flat: None,
            flat_is_heading: false,
            before_flat: Break::None,
            overflowed: false,
        }
    }

    /// The text with its headings; `None` if it is longer than a document may be.
    pub(crate) fn finish(self) -> Option<(String, Vec<Heading>)> {
        self.finish_with_pages().map(|(text, headings, _)| (text, headings))
    }

    /// The text with its headings and pages; `None` if it is longer than a document may be.
    pub(crate) fn finish_with_pages(mut self) -> Option<(String, Vec<Heading>, Vec<PageStart>)> {
        self.out.truncate(self.out.trim_end().len());
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        (!self.overflowed).then_some((self.out, self.headings, self.pages))
    }

    /// Whether the limit is reached, so that writing on is in vain.
    pub(crate) fn is_full(&self) -> bool {
        self.overflowed
    }

    /// What is written from here on stands on this page (counted from 1). Pages without text leave no trace; a page
    /// that begins inside a heading or cell begins with it.
    pub(crate) fn page(&mut self, number: u32) {
        self.owed_page = Some(number);
    }

    /// The page that begins with the next text, which then does not begin there.
    pub(crate) fn take_page(&mut self) -> Option<u32> {
        self.owed_page.take()
    }

    /// Running text; white space is collapsed.
    pub(crate) fn text(&mut self, text: &str) {
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            if index > 0 {
                self.owed_space = true;
            }
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    /// Text without white space to collapse, such as inline code.
    pub(crate) fn word(&mut self, word: &str) {
        let at_line_start = self.before_text();
        if at_line_start && self.flat.is_none() && poses_as_block(word) {
            self.push("\\");
        }
        self.push(word);
    }

    /// White space between words.
    pub(crate) fn space(&mut self) {
        self.owed_space = true;
    }

    /// The last character of the current line; `None` at its start.
    pub(crate) fn last_char(&self) -> Option<char> {
        if self.owed > Break::None || self.owed_space {
            return None;
        }
        self.flat.as_ref().unwrap_or(&self.out).chars().next_back()
    }

    /// Ends a paragraph.
    pub(crate) fn block(&mut self) {
        // The first paragraph of a list item stands on the marker's line.
        if self.marker.is_none() {
            self.owed = Break::Block;
        }
    }

    /// Ends a line.
    pub(crate) fn line(&mut self) {
        self.owed = self.owed.max(Break::Line);
    }

    /// Ends a paragraph ahead of a list, table or code block, which do not join the line of a term.
    pub(crate) fn structure(&mut self) {
        if std::mem::take(&mut self.owed_colon) && !self.ends_in_punctuation() {
            self.push(":");
        }
        self.block();
    }

    /// Ends a line ahead of a list inside a list.
    pub(crate) fn structure_line(&mut self) {
        if std::mem::take(&mut self.owed_colon) && !self.ends_in_punctuation() {
            self.push(":");
        }
        self.owed = Break::Line;
    }

    /// Goes on with another term on the line of the last one.
    pub(crate) fn next_term(&mut self) {
        self.owed = Break::None;
        self.push(",");
        self.owed_space = true;
    }

    /// What follows explains what stands on this line.
    pub(crate) fn explain(&mut self) {
        self.owed_colon = true;
    }

    /// Nothing explained it.
    pub(crate) fn explained(&mut self) {
        self.owed_colon = false;
    }

    /// Begins a list item. `is_first` keeps what is owed before the list; between items a line is enough.
    pub(crate) fn item(&mut self, marker: String, is_first: bool) {
        if !is_first {
            self.owed = Break::Line;
        }
        self.owed_colon = false;
        self.owed_space = false;
        let indent = if marker.len() > 2 { "   " } else { "  " };
        self.push_prefix(indent);
        if self.flat.is_some() {
            self.block();
        } else {
            self.marker = Some(marker);
        }
    }

    /// Ends a list item.
    pub(crate) fn end_item(&mut self) {
        self.marker = None;
        self.owed_colon = false;
        self.pop_prefix();
        self.owed = self.owed.max(Break::Line);
    }

    /// Indents what follows.
    pub(crate) fn push_prefix(&mut self, prefix: &'static str) {
        if self.prefixes.len() < MAX_PREFIXES {
            self.prefixes.push(prefix);
        } else {
            self.skipped_prefixes += 1;
        }
    }

    /// Ends an indentation.
    pub(crate) fn pop_prefix(&mut self) {
        match self.skipped_prefixes.checked_sub(1) {
            Some(fewer) => self.skipped_prefixes = fewer,
            None => {
                self.prefixes.pop();
            }
        }
    }

    /// Lines as they are, as a block of their own.
    pub(crate) fn lines<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        self.lines_on_pages(lines.map(|line| (line, None)));
    }

    /// [`Self::lines`], some of which begin a page.
    pub(crate) fn lines_on_pages<'a>(&mut self, lines: impl Iterator<Item = (&'a str, Option<u32>)>) {
        self.structure();
        for (index, (line, page)) in lines.enumerate() {
            self.owed_page = page.or(self.owed_page);
            if index == 0 {
                self.before_text();
            } else {
                self.push("\n");
                self.begin_page();
                if !line.is_empty() {
                    self.push_line_start();
                }
            }
            self.push(line);
        }
        self.block();
    }

    /// From here to [`Self::end_flat`], text goes into one line apart: a heading or a table cell. Not nested.
    pub(crate) fn begin_flat(&mut self, is_heading: bool) {
        self.flat = Some(String::new());
        self.flat_is_heading = is_heading;
        self.before_flat = self.owed;
        self.owed = Break::None;
        self.owed_space = false;
    }

    /// Whether text goes into a heading, where code has no markup.
    pub(crate) fn is_heading(&self) -> bool {
        self.flat_is_heading && self.flat.is_some()
    }

    /// Whether text goes into a heading or cell.
    pub(crate) fn is_flat(&self) -> bool {
        self.flat.is_some()
    }

    /// The line since [`Self::begin_flat`].
    pub(crate) fn end_flat(&mut self) -> String {
        self.owed_space = false;
        self.owed_colon = false;
        self.owed = self.before_flat;
        self.flat.take().unwrap_or_default()
    }

    /// A heading, unless its title is empty.
    pub(crate) fn heading(&mut self, level: u8, title: String) {
        self.block();
        if title.is_empty() {
            return;
        }
        self.before_text();
        let start = self.out.len();
        self.push(&"######"[..usize::from(level.clamp(1, 6))]);
        self.push(" ");
        self.push(&title);
        if !self.overflowed {
            self.headings.push(Heading { level, title, bytes: start..self.out.len() });
        }
        self.block();
    }

    /// Pays what is owed. Whether the text that comes begins a line.
    fn before_text(&mut self) -> bool {
        let explains = std::mem::take(&mut self.owed_colon);
        let space = std::mem::take(&mut self.owed_space);
        let owed = std::mem::replace(&mut self.owed, Break::None);
        if explains {
            let punctuated = self.ends_in_punctuation();
            self.push(if punctuated { " " } else { ": " });
            return false;
        }
        if let Some(flat) = &self.flat {
            let (is_empty, ended) = (flat.is_empty(), flat.ends_with(['.', ':', ';', '!', '?', ',']));
            match owed {
                _ if is_empty => {}
                Break::Block if !ended => self.push("; "),
                Break::None if !space => {}
                _ => self.push(" "),
            }
            return is_empty;
        }
        if self.out.is_empty() || owed > Break::None || self.marker.is_some() {
            if !self.out.is_empty() {
                self.push(if owed == Break::Block { "\n\n" } else { "\n" });
            }
            self.begin_page();
            self.push_line_start();
            return true;
        }
        if space {
            self.push(" ");
        }
        self.begin_page();
        false
    }

    fn begin_page(&mut self) {
        if let Some(page) = self.owed_page.take()
            && !self.overflowed
        {
            self.pages.push(PageStart { page, offset: self.out.len() });
        }
    }

    fn push_line_start(&mut self) {
        let marker = self.marker.take();
        // Beyond the deepest indentation the marker has no prefix of its own to stand for.
        let own = usize::from(marker.is_some() && self.skipped_prefixes == 0);
        for index in 0..self.prefixes.len().saturating_sub(own) {
            self.push(self.prefixes[index]);
        }
        if let Some(marker) = marker {
            self.push(&marker);
        }
    }

    fn ends_in_punctuation(&self) -> bool {
        self.flat.as_ref().unwrap_or(&self.out).ends_with(['.', ':', ';', '!', '?'])
    }

    fn push(&mut self, text: &str) {
        let target = self.flat.as_mut().unwrap_or(&mut self.out);
        if target.len() + text.len() > MAX_DOCUMENT_BYTES {
            self.overflowed = true;
        } else {
            target.push_str(text);
        }
    }
}

/// Whether text at the start of a line would be read as a heading, code block or table row.
fn poses_as_block(word: &str) -> bool {
    let hashes = word.bytes().take_while(|b| *b == b'#').count();
    (1..=6).contains(&hashes) && hashes == word.len()
        || (word.starts_with("```") && !word[3..].contains('`'))
        || word.starts_with("~~~")
        || word.starts_with('|')
        || (word.len() >= 2 && (word.bytes().all(|b| b == b'=') || word.bytes().all(|b| b == b'-')))
}
