//! Which media types are read, and as what.

use super::detect;
use super::{ParseError, ParseErrorKind};
use rag_core::option::quoted;

/// How a media type is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text(TextFormat),
    File(FileFormat),
}

/// Formats that are read from decoded text. Which one a text is, the user may know better than content tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    Plain,
    Markdown,
    AsciiDoc,
    Html,
    /// Comma-, tab-, semicolon- or pipe-separated values.
    Separated,
}

/// Formats that are read from bytes. Content alone decides which one a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Book,
    Mail,
    Rtf,
    Word,
    Slides,
    Workbook,
    Pdf,
}

impl Format {
    /// The format of a media type. Other kinds of text, markup and source code are read as plain text.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        let format = match media_type {
            detect::HTML | "application/xhtml+xml" => Self::Text(TextFormat::Html),
            detect::MARKDOWN | "text/x-markdown" => Self::Text(TextFormat::Markdown),
            detect::ASCIIDOC | "text/x-asciidoc" => Self::Text(TextFormat::AsciiDoc),
            detect::CSV | detect::TSV | "application/csv" | "text/x-csv" => Self::Text(TextFormat::Separated),
            detect::BOOK => Self::File(FileFormat::Book),
            detect::MAIL | "application/mbox" => Self::File(FileFormat::Mail),
            "application/pdf" | "application/x-pdf" => Self::File(FileFormat::Pdf),
            detect::RTF | "text/rtf" => Self::File(FileFormat::Rtf),
            _ if detect::WORD.contains(&media_type) => Self::File(FileFormat::Word),
            _ if detect::SLIDES.contains(&media_type) => Self::File(FileFormat::Slides),
            _ if detect::WORKBOOK.contains(&media_type) => Self::File(FileFormat::Workbook),
            _ if is_other_text(media_type) => Self::Text(TextFormat::Plain),
            _ => return None,
        };
        Some(format)
    }
}

fn is_other_text(media_type: &str) -> bool {
    let Some(name) = media_type.strip_prefix("application/") else {
        return media_type.starts_with("text/") && media_type.len() > 5;
    };
    PLAIN_APPLICATIONS.contains(&name) || name.ends_with("+xml") || name.ends_with("+json")
}

/// Text that is not registered as such.
const PLAIN_APPLICATIONS: &[&str] =
    &["javascript", "json", "sql", "toml", "x-latex", "x-ndjson", "x-sh", "x-tex", "x-yaml", "xml", "yaml"];

/// What the user says a document is.
#[derive(Debug)]
pub(crate) struct GivenType {
    /// In lower case, without parameters.
    pub(crate) name: String,
    /// The `charset` parameter.
    pub(crate) charset: Option<String>,
    pub(crate) format: Format,
}

impl GivenType {
    /// Reads a media type with its parameters; `None` if it says nothing about the content.
    ///
    /// Errors: [`ParseErrorKind::Unsupported`] for a media type without parser.
    pub(crate) fn of(given: &str) -> Result<Option<Self>, ParseError> {
        let mut parts = given.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        if name.is_empty() || SAY_NOTHING.contains(&name.as_str()) {
            return Ok(None);
        }
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            key.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
        });
        match Format::of(&name) {
            Some(format) => Ok(Some(Self { name, charset, format })),
            None => Err(unsupported(&name)),
        }
    }
}

/// Media types that browsers and mail programs give to what they do not know.
const SAY_NOTHING: &[&str] = &[detect::BINARY, "binary/octet-stream", "application/zip"];

/// Why a file is refused that is not what the user says, or has no parser.
pub(crate) fn refused(bytes: &[u8], detected: &str, given: Option<&GivenType>) -> ParseError {
    if detect::is_protected_office_file(bytes) {
        return ParseError::new(
            ParseErrorKind::NotParsable,
            "document is protected by a password",
            Some("Remove the password and load it again."),
        );
    }
    match given {
        Some(given) => ParseError::new(
            ParseErrorKind::NotParsable,
            format!("content is {detected}, not {}", given.name),
            Some("Give the media type that the file has, or none."),
        ),
        None => unsupported(detected),
    }
}

fn unsupported(media_type: &str) -> ParseError {
    ParseError::new(
        ParseErrorKind::Unsupported,
        format!("media type {} is not supported", quoted(media_type)),
        Some(
            "Supported are text in any encoding, Markdown, HTML, CSV, RTF, mail, PDF, DOCX, PPTX, XLSX and EPUB.",
        ),
    )
}
