//! Mail: a message, with the messages that it forwards, as one document.
//!
//! The header becomes a few lines under the subject; of the versions of a body the plain one is taken, unless the
//! HTML one says more. Attached text follows under its name; other attachments are named.

mod part;

use crate::format::{Format, TextFormat};
use crate::properties::{AUTHOR, CREATED, KEYWORDS, LANGUAGE, Properties, SUBJECT, TITLE};
use crate::writer::Writer;
use crate::{DocumentContent, ParseError, html, too_long};
use part::{Content, Head, Part};
use rag_core::document::ParsedDocument;

/// Bytes in which the header of a message must end for it to be told by content.
const PROBE_BYTES: usize = 65_536;

/// Headers of which a message has one besides `From`.
const TELLING: &[&str] = &["date", "message-id", "received", "mime-version"];

/// Whether bytes are a message beyond doubt: nothing but header lines up to the first empty line, among them the
/// sender and one that only mail programs write.
pub(crate) fn is_message(bytes: &[u8]) -> bool {
    let probe = &bytes[..bytes.len().min(PROBE_BYTES)];
    let (mut has_sender, mut tells) = (false, false);
    for (index, line) in probe.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            return index > 0 && has_sender && tells;
        }
        if index > 0 && line.starts_with(b" ") || line.starts_with(b"\t") || index == 0 && is_mbox_line(line)
        {
            continue;
        }
        let Some(end) = line.iter().position(|byte| *byte == b':') else { return false };
        let name = &line[..end];
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return false;
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        has_sender |= is("from");
        tells |= TELLING.iter().any(|known| is(known));
    }
    false
}

/// A message, or the messages of an mbox file.
///
/// Errors: those of `part::read`, and [`crate::ParseErrorKind::LimitExceeded`] for too long a text.
pub(crate) fn parse(
    bytes: &[u8],
    media_type: String,
    mut properties: Properties,
) -> Result<ParsedDocument, ParseError> {
    let mut writer = Writer::new();
    let mut count = 0;
    let mut messages = messages(bytes).peekable();
    let mut title = None;
    let mut is_first = true;
    while let Some(bytes) = messages.next() {
        let message = part::read(bytes, &mut count)?;
        if std::mem::take(&mut is_first) && messages.peek().is_none() {
            title.clone_from(&message.head.subject);
            describe(&message.head, &mut properties);
        }
        write_message(&message, 1, &mut writer, &mut properties);
    }
    let (text, headings) = writer.finish().ok_or_else(too_long)?;
    let metadata_json = properties.into_json();
    Ok(ParsedDocument { media_type, title, text, headings, pages: Vec::new(), metadata_json })
}

/// The messages of a file: one, or as many as the lines of an mbox file part.
fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_mbox = bytes.split(|byte| *byte == b'\n').next().is_some_and(is_mbox_line);
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        if !is_mbox {
            return Some(bytes);
        }
        let mut at = 0;
        let (mut start, mut after_empty) = (0, false);
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if index == 0 {
                start = line.len();
            } else if after_empty && is_mbox_line(line) {
                rest = Some(&bytes[at..]);
                break;
            }
            after_empty = line.trim_ascii().is_empty();
            at += line.len();
        }
        Some(&bytes[start.min(at)..at])
    })
}

/// The line before each message of an mbox file: `From address date`.
fn is_mbox_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line.starts_with(b"From ") && line.len() > 10 && line[line.len() - 4..].iter().all(u8::is_ascii_digit)
}

fn describe(head: &Head, properties: &mut Properties) {
    properties.set(TITLE, head.subject.as_deref().unwrap_or_default());
    properties.set(SUBJECT, head.subject.as_deref().unwrap_or_default());
    properties.set(CREATED, head.date.as_deref().unwrap_or_default());
    properties.set(LANGUAGE, head.language.as_deref().unwrap_or_default());
    properties.set("message_id", head.message_id.as_deref().unwrap_or_default());
    properties.set("in_reply_to", head.in_reply_to.as_deref().unwrap_or_default());
    for (key, values) in [
        (AUTHOR, &head.from),
        ("from", &head.from),
        ("to", &head.to),
        ("cc", &head.cc),
        (KEYWORDS, &head.keywords),
    ] {
        for value in values {
            properties.add(key, value);
        }
    }
}

/// Writes a message under a heading of its subject.
fn write_message(message: &Part<'_>, level: u8, writer: &mut Writer, properties: &mut Properties) {
    let head = &message.head;
    writer.heading(level, head.subject.clone().unwrap_or_else(|| "Message".to_owned()));
    let lines: Vec<String> = [
        ("From", head.from.join(", ")),
        ("To", head.to.join(", ")),
        ("Cc", head.cc.join(", ")),
        ("Date", head.date.clone().unwrap_or_default()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| format!("{name}: {value}"))
    .collect();
    if !lines.is_empty() {
        writer.lines(lines.iter().map(String::as_str));
    }
    let mut body = Body { level: (level + 1).min(6), named: Vec::new(), properties };
    body.write(message, writer);
    if !body.named.is_empty() {
        writer.lines(std::iter::once("Attachments:"));
        let named = body.named.iter().map(|name| format!("- {name}")).collect::<Vec<_>>();
        writer.lines(named.iter().map(String::as_str));
    }
}

/// The writing of one message's parts.
struct Body<'a> {
    /// Level of the headings within the message.
    level: u8,
    /// Attachments that are only named.
    named: Vec<String>,
    properties: &'a mut Properties,
}

impl Body<'_> {
    fn write(&mut self, part: &Part<'_>, writer: &mut Writer) {
        if writer.is_full() {
            return;
        }
        match &part.content {
            Content::Message(message) => write_message(message, self.level, writer, self.properties),
            Content::Several(parts) if part.head.media_type == "multipart/alternative" => {
                self.write_best(parts, writer);
            }
            Content::Several(parts) => parts.iter().for_each(|part| self.write(part, writer)),
            Content::Single(body) => self.write_single(&part.head, body, writer),
        }
    }

    /// Of versions of the same: the plain one unless a rich one, of which the last is the best, has more than twice
    /// as many words; else the last one.
    fn write_best(&mut self, parts: &[Part<'_>], writer: &mut Writer) {
        let plain = parts.iter().find(|part| is_body(part) && part.head.media_type == "text/plain");
        let rich = parts.iter().rev().find(|part| is_body(part) && part.head.media_type != "text/plain");
        let (Some(plain), Some(rich)) = (plain, rich) else {
            if let Some(only) = plain.or(rich).or(parts.last()) {
                self.write(only, writer);
            }
            return;
        };
        let [plain, rich] = [plain, rich].map(|part| {
            let mut apart = Writer::new();
            self.write(part, &mut apart);
            apart.finish().unwrap_or_default()
        });
        let words = |text: &str| text.split_whitespace().count();
        let (text, headings) = if words(&rich.0) > 2 * words(&plain.0) { rich } else { plain };
        writer.markdown(&text, &headings, 0);
    }

    fn write_single(&mut self, head: &Head, body: &[u8], writer: &mut Writer) {
        let is_text = head.media_type.starts_with("text/") || head.media_type.starts_with("multipart/");
        let name = head.file_name.as_deref();
        if let Some(name) = name {
            self.properties.add("attachments", name);
        }
        if is_text && (head.is_attachment || name.is_some()) {
            let text = head.text(body);
            let given = match Format::of(&head.media_type) {
                Some(Format::Text(TextFormat::Html | TextFormat::Markdown | TextFormat::Separated)) => {
                    &head.media_type
                }
                _ => "text/plain",
            };
            if let Ok(parsed) = crate::parse(DocumentContent::Text(&text), Some(given)) {
                writer.heading(self.level, name.unwrap_or("Attachment").to_owned());
                writer.markdown(&parsed.text, &parsed.headings, self.level);
                return;
            }
        } else if head.media_type == "text/html" {
            if let Ok(parsed) = html::parse(&head.text(body), String::new(), Properties::default()) {
                writer.markdown(&parsed.text, &parsed.headings, self.level - 1);
                return;
            }
        } else if is_text {
            write_plain(&head.text(body), head.is_flowed, writer);
            return;
        }
        // Signatures are no attachments to a reader.
        if head.media_type.ends_with("-signature") {
            return;
        }
        let size = head.decoded(body).len();
        self.named.push(match name {
            Some(name) => format!("{name} ({}, {size} bytes)", head.media_type),
            None => format!("{}, {size} bytes", head.media_type),
        });
    }
}

/// Whether a part is what a message says, and not something attached to it.
fn is_body(part: &Part<'_>) -> bool {
    !part.head.is_attachment
        && match &part.content {
            Content::Single(_) => matches!(&*part.head.media_type, "text/plain" | "text/html"),
            Content::Several(parts) => parts.iter().any(is_body),
            Content::Message(_) => false,
        }
}

/// Writes plain text with its lines as they are; its quotes are Markdown's already.
fn write_plain(text: &str, is_flowed: bool, writer: &mut Writer) {
    let mut paragraph: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let line = html::clean(line);
        let kept = line.trim_end();
        if kept.is_empty() {
            writer.paragraph(&std::mem::take(&mut paragraph));
            goes_on = false;
            continue;
        }
        let may_join = |last: &String| is_quote(last) == is_quote(kept);
        match paragraph.last_mut() {
            Some(last) if goes_on && may_join(last) => {
                last.push(' ');
                last.push_str(kept.trim_start_matches(['>', ' ']));
            }
            _ => paragraph.push(kept.to_owned()),
        }
        goes_on = is_flowed && line.ends_with(' ') && kept != "--";
    }
    writer.paragraph(&paragraph);
}

fn is_quote(line: &str) -> bool {
    line.starts_with('>')
}

#[cfg(test)]
#[path = "mail_tests.rs"]
mod tests;
