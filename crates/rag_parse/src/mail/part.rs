//! The parts of a message, told by their headers and boundaries (RFC 5322, RFC 2045 to 2047).
//!
//! Headers are read by `mail-parser`; bodies are split here, because depth and number of parts need limits. What
//! is done with a part is left to [`super`].

use crate::properties::one_line;
use crate::{ParseError, ParseErrorKind, decode};
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Address, HeaderValue, Message, MessageParser, MimeHeaders};
use std::borrow::Cow;

/// Deepest nesting of parts and forwarded messages.
pub(crate) const MAX_MAIL_DEPTH: usize = 64;

/// Most parts of a file, forwarded messages and their parts included.
pub(crate) const MAX_MAIL_PARTS: usize = 10_000;

/// Bytes of a header that are read; a header of more is cut.
const MAX_HEADER_BYTES: usize = 1 << 18;

/// Most addresses of a header that are shown.
const MAX_ADDRESSES: usize = 64;

/// A message or a part of one.
pub(crate) struct Part<'a> {
    pub(crate) head: Head,
    pub(crate) content: Content<'a>,
}

pub(crate) enum Content<'a> {
    /// Encoded as the head says.
    Single(&'a [u8]),
    Several(Vec<Part<'a>>),
    Message(Box<Part<'a>>),
}

/// What the header of a message or part says.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// Such as `text/plain`, in lower case.
    pub(crate) media_type: String,
    pub(crate) charset: Option<String>,
    boundary: Option<String>,
    transfer: Transfer,
    /// Name of the file that the part is.
    pub(crate) file_name: Option<String>,
    pub(crate) is_attachment: bool,
    /// Lines that end in a space go on in the next one (RFC 3676).
    pub(crate) is_flowed: bool,
    pub(crate) from: Vec<String>,
    pub(crate) to: Vec<String>,
    pub(crate) cc: Vec<String>,
    pub(crate) subject: Option<String>,
    /// By RFC 3339.
    pub(crate) date: Option<String>,
    pub(crate) message_id: Option<String>,
    pub(crate) in_reply_to: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) keywords: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Transfer {
    #[default]
    Plain,
    Base64,
    QuotedPrintable,
}

/// Reads a message with all its parts. `count` is the number of parts read so far.
///
/// Errors: [`ParseErrorKind::LimitExceeded`] beyond [`MAX_MAIL_DEPTH`] and [`MAX_MAIL_PARTS`].
pub(crate) fn read<'a>(bytes: &'a [u8], count: &mut usize) -> Result<Part<'a>, ParseError> {
    read_part(bytes, "text/plain", 0, count)
}

fn read_part<'a>(
    bytes: &'a [u8],
    usual_type: &str,
    depth: usize,
    count: &mut usize,
) -> Result<Part<'a>, ParseError> {
    *count += 1;
    let limit = |message: String| {
        ParseError::new(ParseErrorKind::LimitExceeded, message, Some("Is it a message at all?"))
    };
    if depth > MAX_MAIL_DEPTH {
        return Err(limit(format!("message is nested deeper than {MAX_MAIL_DEPTH}")));
    }
    if *count > MAX_MAIL_PARTS {
        return Err(limit(format!("message has more than {MAX_MAIL_PARTS} parts")));
    }
    let (header, body) = bytes.split_at(header_end(bytes));
    let head = Head::read(header, usual_type);
    let content = match &head.boundary {
        Some(boundary) if head.media_type.starts_with("multipart/") => {
            let usual_type =
                if head.media_type == "multipart/digest" { "message/rfc822" } else { "text/plain" };
            let mut parts = Vec::new();
            for bytes in Pieces::of(body, boundary) {
                parts.push(read_part(bytes, usual_type, depth + 1, count)?);
            }
            // A boundary that never comes: what stands there is better than nothing.
            if parts.is_empty() { Content::Single(body) } else { Content::Several(parts) }
        }
        _ if matches!(&*head.media_type, "message/rfc822" | "message/global")
            && head.transfer == Transfer::Plain =>
        {
            Content::Message(Box::new(read_part(body, "text/plain", depth + 1, count)?))
        }
        _ => Content::Single(body),
    };
    Ok(Part { head, content })
}

/// Where the header ends, its empty line included.
fn header_end(bytes: &[u8]) -> usize {
    let mut end = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        if line.trim_ascii().is_empty() {
            break;
        }
    }
    end
}

/// What stands between the lines of a boundary.
struct Pieces<'a, 'b> {
    rest: &'a [u8],
    boundary: &'b [u8],
    is_inside: bool,
    is_over: bool,
}

impl<'a, 'b> Pieces<'a, 'b> {
    fn of(body: &'a [u8], boundary: &'b str) -> Self {
        Self { rest: body, boundary: boundary.as_bytes(), is_inside: false, is_over: false }
    }

    /// Whether a line is a boundary, and if so whether it is the last one.
    fn boundary_in(&self, line: &[u8]) -> Option<bool> {
        let rest = line.strip_prefix(b"--")?.strip_prefix(self.boundary)?.trim_ascii_end();
        match rest {
            b"" => Some(false),
            b"--" => Some(true),
            _ => None,
        }
    }
}

impl<'a> Iterator for Pieces<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let all = self.rest;
        let mut at = 0;
        while !self.is_over && at < all.len() {
            let line_end =
                all[at..].iter().position(|byte| *byte == b'\n').map_or(all.len(), |end| at + end + 1);
            let found = self.boundary_in(&all[at..line_end]);
            if let Some(is_last) = found {
                self.rest = &all[line_end..];
                self.is_over = is_last;
                if std::mem::replace(&mut self.is_inside, true) {
                    // The line break before a boundary belongs to it.
                    let piece = &all[..at];
                    let piece = piece.strip_suffix(b"\n").unwrap_or(piece);
                    return Some(piece.strip_suffix(b"\r").unwrap_or(piece));
                }
                return self.next_after_first();
            }
            at = line_end;
        }
        // The file ends before the last boundary.
        let is_cut = self.is_inside && !self.is_over && !all.trim_ascii().is_empty();
        self.is_over = true;
        is_cut.then_some(all)
    }
}

impl<'a> Pieces<'a, '_> {
    fn next_after_first(&mut self) -> Option<&'a [u8]> {
        if self.is_over { None } else { self.next() }
    }
}

impl Head {
    fn read(header: &[u8], usual_type: &str) -> Self {
        let header = &header[..header.len().min(MAX_HEADER_BYTES)];
        // Raw eight-bit headers are in no encoding that is named, so they are told like any text.
        let mut text = decode::decode(header, None).text.into_owned();
        text.push_str("\n\n");
        let Some(message) = MessageParser::default().parse_headers(text.as_bytes()) else {
            return Self { media_type: usual_type.to_owned(), ..Self::default() };
        };
        let mut head = Self {
            from: addresses(message.from()),
            to: addresses(message.to()),
            cc: addresses(message.cc()),
            subject: message.subject().and_then(one_line),
            date: message.date().filter(|date| date.is_valid()).map(|date| date.to_rfc3339()),
            message_id: message.message_id().and_then(one_line),
            in_reply_to: message.in_reply_to().as_text_list().and_then(|ids| one_line(ids.first()?)),
            keywords: texts(message.keywords()),
            language: texts(message.content_language()).into_iter().next(),
            ..Self::default()
        };
        head.read_mime(&message, usual_type);
        head
    }

    fn read_mime(&mut self, message: &Message<'_>, usual_type: &str) {
        self.media_type = usual_type.to_owned();
        if let Some(given) = message.content_type() {
            if let Some(subtype) = given.subtype() {
                self.media_type = format!("{}/{subtype}", given.ctype()).to_ascii_lowercase();
            }
            self.charset = given.attribute("charset").map(str::to_owned);
            self.boundary = given.attribute("boundary").filter(|own| !own.is_empty()).map(str::to_owned);
            self.is_flowed = given.attribute("format").is_some_and(|own| own.eq_ignore_ascii_case("flowed"));
        }
        self.transfer = match message.content_transfer_encoding().map(str::trim) {
            Some(name) if name.eq_ignore_ascii_case("base64") => Transfer::Base64,
            Some(name) if name.eq_ignore_ascii_case("quoted-printable") => Transfer::QuotedPrintable,
            _ => Transfer::Plain,
        };
        self.file_name = message.attachment_name().and_then(one_line);
        self.is_attachment = message.content_disposition().is_some_and(|own| own.is_attachment());
    }

    /// The bytes that a body stands for.
    pub(crate) fn decoded<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        let decoded = match self.transfer {
            Transfer::Plain => None,
            Transfer::Base64 => base64_decode(body),
            Transfer::QuotedPrintable => quoted_printable_decode(body),
        };
        decoded.map_or(Cow::Borrowed(body), Cow::Owned)
    }

    /// The text that a body stands for.
    pub(crate) fn text(&self, body: &[u8]) -> String {
        decode::decode(&self.decoded(body), self.charset.as_deref()).text.into_owned()
    }
}

/// Addresses as a reader sees them: `Name <address>`.
fn addresses(header: Option<&Address<'_>>) -> Vec<String> {
    let Some(header) = header else { return Vec::new() };
    let shown = header.iter().filter_map(|one| match (one.name(), one.address()) {
        (Some(name), Some(address)) if name != address => one_line(&format!("{name} <{address}>")),
        (name, address) => one_line(address.or(name)?),
    });
    shown.take(MAX_ADDRESSES).collect()
}

fn texts(header: &HeaderValue<'_>) -> Vec<String> {
    match header {
        HeaderValue::Text(text) => one_line(text).into_iter().collect(),
        HeaderValue::TextList(texts) => {
            texts.iter().take(MAX_ADDRESSES).filter_map(|text| one_line(text)).collect()
        }
        _ => Vec::new(),
    }
}
