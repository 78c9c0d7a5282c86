//! From a document as it came to Markdown with headings.
//!
//! One module per format; [`detect`] tells them apart by content. Formats without a parser are recognised so that
//! they can be refused by name.

mod asciidoc;
mod book;
mod csv;
mod decode;
mod detect;
mod dom;
mod format;
mod front_matter;
mod head;
mod html;
mod mail;
mod markdown;
mod office;
mod pdf;
mod plain;
mod properties;
mod rtf;
mod table;
mod writer;
mod xml;
mod zip;

pub use detect::detect;

use format::{FileFormat, Format, GivenType, TextFormat, refused};
use properties::Properties;
use rag_core::document::ParsedDocument;

/// Most bytes of a document, as it came and as Markdown.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// Most bytes of text that a parser makes of one byte of a file. Of the files that people write it makes less than one;
/// office files that repeat themselves reach ten.
const MOST_TEXT_PER_BYTE: usize = 100;

/// Text that a file may have, however small it is.
const FREE_TEXT_BYTES: usize = 4 << 20;

/// Deepest nesting of HTML elements. Browsers stop at 512; broken pages are a little deeper.
pub const MAX_HTML_DEPTH: usize = 2_048;

/// A document as it came.
#[derive(Debug, Clone, Copy)]
pub enum DocumentContent<'a> {
    /// Text that Postgres has already decoded.
    Text(&'a str),
    /// A file.
    Bytes(&'a [u8]),
}

impl DocumentContent<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Why a document was not parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// Maps to one SQLSTATE.
    pub kind: ParseErrorKind,
    /// Lower-case sentence with value and limit.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Kinds of [`ParseError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// 0A000: no parser for this media type.
    Unsupported,
    /// 22000: the content is not what it should be.
    NotParsable,
    /// 54000: too big or too deep.
    LimitExceeded,
}

impl ParseError {
    fn new(kind: ParseErrorKind, message: impl Into<String>, hint: Option<&str>) -> Self {
        Self { kind, message: message.into(), hint: hint.map(str::to_owned) }
    }
}

/// Parses a document.
///
/// `media_type` is what the user says it is (parameters such as `charset` are heeded); without it, or with
/// `application/octet-stream`, content decides. Plain text, markup without parser and Markdown are kept as they
/// came, without a byte order mark; other formats become Markdown. The text of bytes is UTF-8, UTF-16 or UTF-32,
/// what the media type or the page declares, or else what it looks like most; the metadata names it.
///
/// Errors: [`ParseErrorKind::Unsupported`] for a media type without parser,
/// [`ParseErrorKind::NotParsable`] for a NUL character in a text file, for content that is not what `media_type` says,
/// and for damaged files; [`ParseErrorKind::LimitExceeded`] beyond [`MAX_DOCUMENT_BYTES`], [`MAX_HTML_DEPTH`] and
/// the like, and for more than 4 MiB of text that are more than a hundred times the file.
pub fn parse(content: DocumentContent<'_>, media_type: Option<&str>) -> Result<ParsedDocument, ParseError> {
    let parsed = read(content, media_type)?;
    check_proportion(content.bytes(), parsed.text.len())?;
    Ok(without_nul(parsed))
}

/// A file that says the same thing a thousand times over is parsed in no time, but cut and embedded for hours.
fn check_proportion(file_bytes: usize, text_bytes: usize) -> Result<(), ParseError> {
    if text_bytes <= FREE_TEXT_BYTES.max(file_bytes.saturating_mul(MOST_TEXT_PER_BYTE)) {
        return Ok(());
    }
    Err(ParseError::new(
        ParseErrorKind::LimitExceeded,
        format!(
            "document of {file_bytes} bytes has {text_bytes} bytes of text, more than {MOST_TEXT_PER_BYTE} times as much"
        ),
        Some("Take out what the file repeats, or send its text."),
    ))
}

/// The media type of a file that no parser reads, by its content alone; `None` for one that has a parser, which may find it
/// damaged.
pub fn unsupported(bytes: &[u8]) -> Option<&'static str> {
    if mail::is_message(bytes) {
        return None;
    }
    detect::file_type(bytes).filter(|found| Format::of(found).is_none())
}

/// Whether a text that nobody has said the media type of is plain text or Markdown, which are kept as they come.
pub fn is_plain(text: &str) -> bool {
    [detect::PLAIN, detect::MARKDOWN].contains(&detect::detect_text(text))
}

/// Formats whose text is encoded once more, such as mail, can hide a NUL, which no text in Postgres may hold. A space
/// in its place leaves all positions as they are.
fn without_nul(mut parsed: ParsedDocument) -> ParsedDocument {
    let clean = |text: &mut String| {
        if text.contains('\0') {
            *text = text.replace('\0', " ");
        }
    };
    clean(&mut parsed.text);
    parsed.headings.iter_mut().for_each(|heading| clean(&mut heading.title));
    parsed.title.iter_mut().for_each(clean);
    parsed
}

fn read(content: DocumentContent<'_>, media_type: Option<&str>) -> Result<ParsedDocument, ParseError> {
    let length = content.bytes();
    if length > MAX_DOCUMENT_BYTES {
        return Err(ParseError::new(
            ParseErrorKind::LimitExceeded,
            format!("document has {length} bytes, more than {MAX_DOCUMENT_BYTES}"),
            Some("Split the document."),
        ));
    }
    let given = media_type.map(GivenType::of).transpose()?.flatten();
    if let Some(media_type) = mail_type(content, given.as_ref()) {
        let bytes = match content {
            DocumentContent::Text(text) => text.as_bytes(),
            DocumentContent::Bytes(bytes) => bytes,
        };
        return mail::parse(bytes, media_type, Properties::default());
    }
    let bytes = match content {
        DocumentContent::Text(text) => {
            return parse_text(text.strip_prefix('\u{feff}').unwrap_or(text), given, Properties::default());
        }
        DocumentContent::Bytes(bytes) => bytes,
    };
    if let Some(detected) = detect::file_type(bytes) {
        return match Format::of(detected) {
            Some(Format::File(format))
                if given.as_ref().is_none_or(|given| given.format == Format::File(format)) =>
            {
                parse_file(bytes, format, detected.to_owned())
            }
            _ => Err(refused(bytes, detected, given.as_ref())),
        };
    }
    let decoded = decode::decode(bytes, given.as_ref().and_then(|given| given.charset.as_deref()));
    let mut properties = Properties::default();
    properties.set(properties::ENCODING, decoded.encoding);
    if decoded.replaced > 0 {
        properties.set_number(properties::REPLACED, decoded.replaced as u64);
    }
    parse_text(&decoded.text, given, properties)
}

/// The media type of content that is mail: parts of it are text, each in an encoding of its own.
fn mail_type(content: DocumentContent<'_>, given: Option<&GivenType>) -> Option<String> {
    let bytes = match content {
        DocumentContent::Text(text) => text.as_bytes(),
        DocumentContent::Bytes(bytes) => bytes,
    };
    match given {
        Some(given) if given.format == Format::File(FileFormat::Mail) => {
            let is_text = detect::file_type(bytes).is_none_or(|found| found == detect::BINARY);
            is_text.then(|| given.name.clone())
        }
        Some(_) => None,
        None => mail::is_message(bytes).then(|| detect::MAIL.to_owned()),
    }
}

/// Parses a file whose format is not text.
fn parse_file(bytes: &[u8], format: FileFormat, media_type: String) -> Result<ParsedDocument, ParseError> {
    match format {
        FileFormat::Book => book::parse(bytes, media_type),
        FileFormat::Rtf => rtf::parse(bytes, media_type),
        FileFormat::Mail => mail::parse(bytes, media_type, Properties::default()),
        FileFormat::Word => office::parse_word(bytes, media_type),
        FileFormat::Slides => office::parse_slides(bytes, media_type),
        FileFormat::Workbook => office::parse_workbook(bytes, media_type),
        FileFormat::Pdf => pdf::parse(bytes, media_type),
    }
}

/// Parses decoded text; `properties` is what is known about it.
fn parse_text(
    text: &str,
    given: Option<GivenType>,
    properties: Properties,
) -> Result<ParsedDocument, ParseError> {
    let (media_type, format) = match given {
        Some(GivenType { name, format: Format::Text(format), .. }) => (name, format),
        Some(given) => return Err(refused(&[], detect::detect_text(text), Some(&given))),
        None => {
            let detected = detect::detect_text(text);
            let format = match Format::of(detected) {
                Some(Format::Text(format)) => format,
                _ => TextFormat::Plain,
            };
            (detected.to_owned(), format)
        }
    };
    if format != TextFormat::Html && text.contains('\0') {
        return Err(ParseError::new(
            ParseErrorKind::NotParsable,
            "document contains a NUL character",
            Some("A text in Postgres cannot hold one. Is it a binary file?"),
        ));
    }
    match format {
        TextFormat::Plain => Ok(plain::parse(text, media_type, properties)),
        TextFormat::Markdown => Ok(markdown::parse(text, media_type, properties)),
        TextFormat::AsciiDoc => Ok(asciidoc::parse(text, media_type, properties)),
        TextFormat::Html => html::parse(text, media_type, properties),
        TextFormat::Separated => csv::parse(text, media_type, properties),
    }
}

/// A document whose Markdown is longer than a document may be.
fn too_long() -> ParseError {
    ParseError::new(
        ParseErrorKind::LimitExceeded,
        format!("document has more than {MAX_DOCUMENT_BYTES} bytes as Markdown"),
        Some("Split the document."),
    )
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
