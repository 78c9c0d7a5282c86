//! What a document is, by its content.

use super::zip::Archive;
use super::{asciidoc, csv, decode, mail, markdown};

pub(crate) const PLAIN: &str = "text/plain";
pub(crate) const MARKDOWN: &str = "text/markdown";
pub(crate) const HTML: &str = "text/html";
pub(crate) const CSV: &str = "text/csv";
pub(crate) const BOOK: &str = "application/epub+zip";
pub(crate) const ASCIIDOC: &str = "text/asciidoc";
pub(crate) const RTF: &str = "application/rtf";
pub(crate) const MAIL: &str = "message/rfc822";
pub(crate) const TSV: &str = "text/tab-separated-values";
/// Says nothing.
pub(crate) const BINARY: &str = "application/octet-stream";

/// Bytes looked at to tell binary from text, and to find an HTML page's first element.
const PROBE_BYTES: usize = 4_096;

/// First bytes of formats, from the WHATWG MIME Sniffing Standard and the formats' own specifications.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"{\\rtf", RTF),
    (b"%!PS", "application/postscript"),
    (b"\x7fELF", "application/x-executable"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"PGDMP", "application/x-postgresql-dump"),
];

/// Media types of Word documents: documents and templates, without and with macros.
pub(crate) const WORD: &[&str] = &[
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    "application/vnd.ms-word.document.macroenabled.12",
    "application/vnd.ms-word.template.macroenabled.12",
];

/// Media types of PowerPoint presentations: presentations, slide shows and templates, without and with macros.
pub(crate) const SLIDES: &[&str] = &[
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
    "application/vnd.openxmlformats-officedocument.presentationml.template",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
    "application/vnd.ms-powerpoint.template.macroenabled.12",
];

/// Media types of Excel workbooks: workbooks and templates, without and with macros.
pub(crate) const WORKBOOK: &[&str] = &[
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
    "application/vnd.ms-excel.sheet.macroenabled.12",
    "application/vnd.ms-excel.template.macroenabled.12",
    "application/vnd.ms-excel.addin.macroenabled.12",
];

/// The content type of an office document's main part, and the media type of the document.
const MAIN_PARTS: &[(&str, &str)] = &[
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml", WORD[0]),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml", WORD[1]),
    ("application/vnd.ms-word.document.macroenabled.main+xml", WORD[2]),
    ("application/vnd.ms-word.template.macroenabledtemplate.main+xml", WORD[3]),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml", SLIDES[0]),
    ("application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml", SLIDES[1]),
    ("application/vnd.openxmlformats-officedocument.presentationml.template.main+xml", SLIDES[2]),
    ("application/vnd.ms-powerpoint.presentation.macroenabled.main+xml", SLIDES[3]),
    ("application/vnd.ms-powerpoint.slideshow.macroenabled.main+xml", SLIDES[4]),
    ("application/vnd.ms-powerpoint.template.macroenabled.main+xml", SLIDES[5]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml", WORKBOOK[0]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml", WORKBOOK[1]),
    ("application/vnd.ms-excel.sheet.macroenabled.main+xml", WORKBOOK[2]),
    ("application/vnd.ms-excel.template.macroenabled.main+xml", WORKBOOK[3]),
    ("application/vnd.ms-excel.addin.macroenabled.main+xml", WORKBOOK[4]),
    (
        "application/vnd.ms-excel.sheet.binary.macroenabled.main",
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
    ),
];

/// Member names that tell the document formats inside a ZIP archive whose directory cannot be read.
const ZIP_MEMBERS: &[(&[u8], &str)] = &[
    (b"word/document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (b"ppt/presentation.xml", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (b"xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
    (b"application/epub+zip", BOOK),
];

/// Media types that archives name in an entry of their own.
const ARCHIVES_BY_MIMETYPE: &[&str] = &[
    BOOK,
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.presentation",
];

/// The media type of a file, by its content alone.
///
/// `text/html` if it begins as an HTML document or with an HTML block element, `text/csv` if its lines are rows of
/// a table beyond doubt, `text/markdown` if it is text with Markdown headings or front matter, `text/plain` for
/// other text; `application/octet-stream` for binary content of no known kind. Reads the whole content only where
/// it is text.
pub fn detect(bytes: &[u8]) -> &'static str {
    if mail::is_message(bytes) {
        return MAIL;
    }
    file_type(bytes).unwrap_or_else(|| detect_text(&decode::decode(bytes, None).text))
}

/// The media type of a file that is not text; `None` for text in any encoding.
pub(crate) fn file_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"PK\x03\x04") {
        if let Some(media_type) = in_archive(bytes) {
            return Some(media_type);
        }
        let found = ZIP_MEMBERS.iter().find(|(name, _)| find(bytes, name).is_some());
        return Some(found.map_or("application/zip", |(_, media_type)| media_type));
    }
    let probe = &bytes[..bytes.len().min(PROBE_BYTES)];
    // The header of a PDF may stand anywhere in its first kilobyte (ISO 32000-1, annex H.3.4.1); here it is
    // looked for at the start of a line, so text that speaks of it stays text.
    if probe.starts_with(b"%PDF-")
        || (is_binary(probe) && find(&probe[..probe.len().min(1_024)], b"%PDF-").is_some())
    {
        return Some("application/pdf");
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Some("video/mp4");
    }
    // Short signatures that are letters could begin a text as well.
    let found = MAGIC.iter().find(|(magic, _)| {
        bytes.starts_with(magic) && (magic.iter().any(|b| !b.is_ascii_alphanumeric()) || is_binary(probe))
    });
    if let Some((_, media_type)) = found {
        return Some(media_type);
    }
    (is_binary(probe) && !decode::is_wide(bytes)).then_some(BINARY)
}

/// The media type of the document that an archive is: as its content types say, or its first entry, `mimetype`.
fn in_archive(bytes: &[u8]) -> Option<&'static str> {
    let archive = Archive::open(bytes).ok()?;
    if let Ok(Some(types)) = archive.text("[Content_Types].xml") {
        let types = types.to_ascii_lowercase();
        let found = types.split(['"', '\'']).find_map(|word| {
            MAIN_PARTS.iter().find(|(content_type, _)| *content_type == word.trim()).map(|found| found.1)
        });
        if found.is_some() {
            return found;
        }
    }
    let media_type = archive.text("mimetype").ok().flatten().unwrap_or_default();
    let named = ARCHIVES_BY_MIMETYPE.iter().find(|known| **known == media_type.trim()).copied();
    named.or_else(|| archive.has("META-INF/container.xml").then_some(BOOK))
}

/// Whether a file is an office document encrypted with a password: an OLE container around the package
/// ([MS-OFFCRYPTO], 2.3.4).
pub(crate) fn is_protected_office_file(bytes: &[u8]) -> bool {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") && find(bytes, &name).is_some()
}

/// The media type of text.
pub(crate) fn detect_text(text: &str) -> &'static str {
    match first_markup(text) {
        Some(Markup::Html) => HTML,
        Some(Markup::Xml) => "application/xml",
        None if csv::is_table(text) => CSV,
        None if asciidoc::is_document(text) => ASCIIDOC,
        None if markdown::has_headings(text) => MARKDOWN,
        None => PLAIN,
    }
}

/// Whether the start of a file holds bytes that no text has.
fn is_binary(probe: &[u8]) -> bool {
    // As in the MIME Sniffing Standard: control characters other than white space and escape.
    probe.iter().any(|b| matches!(b, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

enum Markup {
    Html,
    Xml,
}

/// What kind of markup a text begins with. Comments, declarations and instructions before it are passed over.
fn first_markup(text: &str) -> Option<Markup> {
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut is_xml = false;
    loop {
        rest = rest.trim_start();
        let tag = rest.strip_prefix('<')?;
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = &comment[comment.find("-->")? + 3..];
        } else if tag.starts_with('?') {
            is_xml |= tag.starts_with("?xml");
            rest = &tag[tag.find('>')? + 1..];
        } else if let Some(declaration) = tag.strip_prefix('!') {
            let mut words = declaration.split_ascii_whitespace();
            let doctype = words.next().is_some_and(|word| word.eq_ignore_ascii_case("doctype"));
            let name =
                words.next().and_then(|word| word.split(['>', '<']).next()).map(str::to_ascii_lowercase);
            return match (doctype, name.as_deref()) {
                (true, Some("html")) => Some(Markup::Html),
                (true, _) => Some(Markup::Xml),
                (false, _) => None,
            };
        } else {
            let name: String = tag
                .chars()
                .take(32)
                .take_while(|c| c.is_ascii_alphanumeric() || ":-_".contains(*c))
                .collect();
            let name = name.to_ascii_lowercase();
            let starts = |names: &[&str]| names.contains(&name.as_str()) && ends_tag(&tag[name.len()..]);
            return if starts(DOCUMENT_STARTS) || (starts(FRAGMENT_STARTS) && is_fragment(text)) {
                Some(Markup::Html)
            } else {
                is_xml.then_some(Markup::Xml)
            };
        }
    }
}

/// Whether a text that begins with a block element is HTML throughout. Markdown may begin with one too
/// (many a README has its logo in a `<p>`), but then it has Markdown headings or ends in prose.
fn is_fragment(text: &str) -> bool {
    text.trim_end().ends_with('>') && !markdown::has_headings(text)
}

fn ends_tag(rest: &str) -> bool {
    rest.starts_with(['>', ' ', '\t', '\n', '\r', '/'])
}

/// Elements that begin an HTML document whose `<!doctype>` is missing.
const DOCUMENT_STARTS: &[&str] = &["html", "head", "body", "title", "meta", "link", "script", "style"];

/// Elements that begin an HTML fragment.
const FRAGMENT_STARTS: &[&str] = &[
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "table",
    "ul",
    "ol",
    "dl",
    "pre",
    "blockquote",
];

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
