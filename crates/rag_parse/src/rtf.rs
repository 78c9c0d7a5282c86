//! Rich Text Format: its text, with headings, lists and tables as far as paragraphs say that they are such.
//!
//! Reads what text there is and passes over all that is not known, as the format demands (RTF 1.9.1). What the
//! controls are is told in [`token`].

mod charset;
mod token;

use crate::properties::{AUTHOR, CREATED, ENCODING, KEYWORDS, MODIFIED, Properties, SUBJECT, TITLE};
use crate::table::{Lines, one_line};
use crate::writer::Writer;
use crate::{ParseError, ParseErrorKind, too_long};
use charset::Charsets;
use rag_core::document::ParsedDocument;
use token::{Token, Tokens};

/// Deepest nesting of groups. Word's own documents stay below 100.
const MAX_DEPTH: usize = 4_096;

/// Longest heading in characters; what is longer is a paragraph that only looks like one.
const MAX_HEADING_CHARS: usize = 300;

/// Groups that hold no text of the document, besides those that say so themselves.
const PASSED_OVER: &[&str] = &[
    "colortbl",
    "stylesheet",
    "pict",
    "object",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footer",
    "footerl",
    "footerr",
    "footerf",
    "ftnsep",
    "ftnsepc",
    "aftnsep",
    "aftnsepc",
    "tc",
    "tcn",
    "xe",
    "shprslt",
    "nonshppict",
    "filetbl",
    "listtable",
    "listoverridetable",
    "revtbl",
    "rsidtbl",
    "themedata",
    "private",
    "falt",
    "panose",
];

/// Groups of the document's properties, and the key of each.
const INFO: &[(&str, &str)] =
    &[("title", TITLE), ("author", AUTHOR), ("subject", SUBJECT), ("keywords", KEYWORDS)];

/// Reads a document.
///
/// Errors: [`ParseErrorKind::LimitExceeded`] beyond [`MAX_DEPTH`] and for too long a text.
pub(crate) fn parse(bytes: &[u8], media_type: String) -> Result<ParsedDocument, ParseError> {
    let mut reader = RtfReader::new();
    for token in Tokens::of(bytes) {
        reader.take(token)?;
        if reader.page.writer.is_full() {
            return Err(too_long());
        }
    }
    reader.flush_bytes();
    reader.page.end_paragraph(None);
    reader.page.end_table();
    reader.page.end_items();
    let mut properties = reader.properties;
    properties.set(ENCODING, reader.charsets.name());
    let title = properties.text(TITLE).map(str::to_owned);
    let (text, headings) = reader.page.writer.finish().ok_or_else(too_long)?;
    let metadata_json = properties.into_json();
    Ok(ParsedDocument { media_type, title, text, headings, pages: Vec::new(), metadata_json })
}

/// What holds within a group, and is forgotten at its end.
#[derive(Debug, Clone, Copy)]
struct State {
    destination: Destination,
    /// Bytes that stand for a character beside its number.
    fallback: usize,
    font: i32,
    is_in_table: bool,
    is_hidden: bool,
    /// Level of a heading, from 0.
    outline: Option<u8>,
}

/// What text in a group is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Body,
    /// The mark of a list item.
    Mark,
    Fonts,
    Info(&'static str),
    /// A date of the properties.
    Date(&'static str),
    Nowhere,
}

struct RtfReader {
    state: State,
    open: Vec<State>,
    charsets: Charsets,
    /// Bytes that are not decoded yet: a character may take several.
    bytes: Vec<u8>,
    /// Bytes to pass over, because they stand for a character that was read.
    passing: usize,
    /// The last token began a group, or marked it as one that may be passed over.
    begins: bool,
    may_pass: bool,
    value: String,
    date: [i32; 3],
    properties: Properties,
    page: Page,
}

impl RtfReader {
    fn new() -> Self {
        let state = State {
            destination: Destination::Body,
            fallback: 1,
            font: -1,
            is_in_table: false,
            is_hidden: false,
            outline: None,
        };
        Self {
            state,
            open: Vec::new(),
            charsets: Charsets::default(),
            bytes: Vec::new(),
            passing: 0,
            begins: false,
            may_pass: false,
            value: String::new(),
            date: [0; 3],
            properties: Properties::default(),
            page: Page::new(),
        }
    }

    fn take(&mut self, token: Token<'_>) -> Result<(), ParseError> {
        let begins = std::mem::take(&mut self.begins);
        match token {
            Token::Open => {
                self.flush_bytes();
                self.passing = 0;
                if self.open.len() >= MAX_DEPTH {
                    return Err(ParseError::new(
                        ParseErrorKind::LimitExceeded,
                        format!("groups are nested deeper than {MAX_DEPTH}"),
                        Some("Is it a document at all?"),
                    ));
                }
                self.open.push(self.state);
                self.begins = true;
                self.may_pass = false;
            }
            Token::Close => {
                self.flush_bytes();
                self.passing = 0;
                self.close();
            }
            Token::Optional => {
                self.begins = begins;
                self.may_pass = begins;
            }
            Token::Byte(_) if self.passing > 0 => self.passing -= 1,
            Token::Byte(byte) => self.bytes.push(byte),
            Token::Text(text) => {
                let passed = self.passing.min(text.len());
                self.passing -= passed;
                self.bytes.extend_from_slice(&text[passed..]);
            }
            Token::Character(number) => {
                self.flush_bytes();
                self.character(number);
                self.passing = self.state.fallback;
            }
            Token::Word(word, number) => {
                self.flush_bytes();
                self.word(word, number, begins);
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        let ended = self.state;
        if let Some(state) = self.open.pop() {
            self.state = state;
        }
        if ended.destination == self.state.destination {
            return;
        }
        match ended.destination {
            Destination::Info(key) => {
                let value = std::mem::take(&mut self.value);
                self.properties.set(key, &value);
            }
            Destination::Date(key) => {
                let [year, month, day] = std::mem::take(&mut self.date);
                if year > 0 {
                    self.properties.set(key, &format!("{year:04}-{month:02}-{day:02}"));
                }
            }
            Destination::Mark => {
                let mark = std::mem::take(&mut self.value);
                self.page.begin_item(&mark);
            }
            Destination::Body | Destination::Fonts | Destination::Nowhere => {}
        }
    }

    /// Decodes the bytes that wait.
    fn flush_bytes(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let text = self.charsets.decode(&bytes, self.state.font);
        self.text(&text);
        self.bytes = bytes;
        self.bytes.clear();
    }

    fn text(&mut self, text: &str) {
        match self.state.destination {
            Destination::Body if !self.state.is_hidden => self.page.text(text),
            Destination::Info(_) | Destination::Mark => self.value.push_str(text),
            _ => {}
        }
    }

    /// A character by its number; those beyond 16 bits come as two, and negative ones are large.
    fn character(&mut self, number: i32) {
        let unit = number.rem_euclid(65_536) as u16;
        if let Some(c) = self.charsets.utf16(unit) {
            self.text(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn word(&mut self, word: &str, number: Option<i32>, begins: bool) {
        if begins && self.begin_group(word) {
            return;
        }
        let is_on = number != Some(0);
        match word {
            "ansicpg" => self.charsets.set_default(number.unwrap_or_default()),
            "mac" => self.charsets.set_default(10_000),
            "uc" => self.state.fallback = number.unwrap_or(1).clamp(0, 16) as usize,
            "f" | "af" if self.state.destination == Destination::Fonts || word == "f" => {
                self.state.font = number.unwrap_or(-1);
            }
            "fcharset" if self.state.destination == Destination::Fonts => {
                self.charsets.set_font(self.state.font, number.unwrap_or_default());
            }
            "plain" => {
                self.state.font = -1;
                self.state.is_hidden = false;
            }
            "v" => self.state.is_hidden = is_on,
            "yr" => self.date[0] = number.unwrap_or_default(),
            "mo" => self.date[1] = number.unwrap_or_default(),
            "dy" => self.date[2] = number.unwrap_or_default(),
            "tab" | "nestcell" => self.text(" "),
            "line" | "lbr" | "softline" if self.state.destination == Destination::Body => self.page.line(),
            "emdash" => self.text("—"),
            "endash" => self.text("–"),
            "lquote" => self.text("‘"),
            "rquote" => self.text("’"),
            "ldblquote" => self.text("“"),
            "rdblquote" => self.text("”"),
            "bullet" => self.text("•"),
            "emspace" | "enspace" | "qmspace" => self.text(" "),
            _ if self.state.destination == Destination::Body => self.paragraph_word(word, number),
            _ => {}
        }
    }

    fn paragraph_word(&mut self, word: &str, number: Option<i32>) {
        match word {
            "par" | "sect" | "page" if self.state.is_in_table => self.page.text(" "),
            "par" | "sect" | "page" => self.page.end_paragraph(self.state.outline),
            "pard" => {
                self.state.is_in_table = false;
                self.state.outline = None;
            }
            "intbl" => self.state.is_in_table = true,
            "outlinelevel" => self.state.outline = number.and_then(|own| u8::try_from(own).ok()),
            "cell" => self.page.end_cell(),
            "row" => self.page.end_row(),
            _ => {}
        }
    }

    /// Whether a word says what a group that it begins is.
    fn begin_group(&mut self, word: &str) -> bool {
        let may_pass = std::mem::take(&mut self.may_pass);
        let destination = match word {
            "fonttbl" => Destination::Fonts,
            "listtext" | "pntext" => Destination::Mark,
            "info" => Destination::Nowhere,
            // A box whose text is all that is known of it.
            "shptxt" => Destination::Body,
            "creatim" => Destination::Date(CREATED),
            "revtim" => Destination::Date(MODIFIED),
            _ if PASSED_OVER.contains(&word) => Destination::Nowhere,
            _ => match INFO.iter().find(|(name, _)| *name == word) {
                Some((_, key)) => Destination::Info(key),
                None if may_pass => Destination::Nowhere,
                None => return false,
            },
        };
        self.state.destination = destination;
        self.value.clear();
        true
    }
}

/// The document in the making.
struct Page {
    writer: Writer,
    /// Lines of the paragraph that is open.
    lines: Vec<String>,
    line: String,
    /// The mark of the list item that the paragraph is.
    mark: Option<String>,
    items: Vec<String>,
    row: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn new() -> Self {
        Self {
            writer: Writer::new(),
            lines: Vec::new(),
            line: String::new(),
            mark: None,
            items: Vec::new(),
            row: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn text(&mut self, text: &str) {
        self.line.push_str(text);
    }

    fn line(&mut self) {
        let line = one_line(&std::mem::take(&mut self.line));
        if !line.is_empty() {
            self.lines.push(line);
        }
    }

    fn begin_item(&mut self, mark: &str) {
        let mark = one_line(mark);
        let is_number = mark.ends_with(['.', ')']) && mark.chars().any(char::is_alphanumeric);
        self.mark = Some(if is_number { mark } else { "-".to_owned() });
    }

    fn end_paragraph(&mut self, outline: Option<u8>) {
        self.line();
        let lines = std::mem::take(&mut self.lines);
        let mark = self.mark.take();
        if lines.is_empty() {
            return;
        }
        self.end_table();
        let is_heading = |level: &u8| {
            *level < 6 && lines.iter().map(|l| l.chars().count()).sum::<usize>() <= MAX_HEADING_CHARS
        };
        match (outline.filter(is_heading), mark) {
            (Some(level), mark) => {
                self.end_items();
                let number =
                    mark.filter(|mark| mark != "-").map(|mark| format!("{mark} ")).unwrap_or_default();
                self.writer.heading(level + 1, format!("{number}{}", lines.join(" ")));
            }
            (None, Some(mark)) => self.items.push(format!("{mark} {}", lines.join(" "))),
            (None, None) => {
                self.end_items();
                self.writer.paragraph(&lines);
            }
        }
    }

    fn end_items(&mut self) {
        if !self.items.is_empty() {
            let items = std::mem::take(&mut self.items);
            self.writer.lines(items.iter().map(String::as_str));
        }
    }

    fn end_cell(&mut self) {
        self.line();
        let mark = self.mark.take().map(|mark| format!("{mark} ")).unwrap_or_default();
        let cell = std::mem::take(&mut self.lines).join(" ");
        self.row.push(if cell.is_empty() { cell } else { format!("{mark}{cell}") });
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.rows.push(row);
        }
    }

    fn end_table(&mut self) {
        // Cells without the end of their row.
        self.end_row();
        let rows = std::mem::take(&mut self.rows);
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        if columns == 0 {
            return;
        }
        self.end_items();
        let mut lines = Lines::new(rows.len(), columns);
        let mut text = String::new();
        for row in &rows {
            lines.row(row.iter().map(String::as_str), &mut text);
        }
        self.writer.lines(text.lines());
    }
}

#[cfg(test)]
#[path = "rtf_tests.rs"]
mod tests;
