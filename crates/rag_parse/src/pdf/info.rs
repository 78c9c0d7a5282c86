//! What a PDF says about itself: title, author, dates, language.

use crate::properties::{self, Properties};
use hayro_font::hayro_syntax::Pdf;
use hayro_font::hayro_syntax::object::{DateTime, Dict, String as PdfString};

/// The title of the document information, if it is one.
pub(super) fn title(pdf: &Pdf) -> Option<String> {
    let title = line(pdf.metadata().title.as_deref()?)?;
    // Word processors put the name of the file there.
    let lower = title.to_lowercase();
    let is_name = [".doc", ".docx", ".dvi", ".tex", ".ps", ".pdf", ".indd", ".rtf", ".odt", ".ppt", ".pptx"]
        .iter()
        .any(|end| lower.ends_with(end))
        || lower.starts_with("microsoft word - ")
        || lower == "untitled";
    (!is_name && title.chars().any(char::is_alphabetic)).then_some(title)
}

/// What the document information and the catalog say.
pub(super) fn metadata(pdf: &Pdf) -> Properties {
    let info = pdf.metadata();
    let mut found = Properties::default();
    let text = |bytes: &Option<Box<[u8]>>| bytes.as_deref().and_then(line).unwrap_or_default();
    found.set(properties::TITLE, &title(pdf).unwrap_or_default());
    found.set(properties::AUTHOR, &text(&info.author));
    found.set(properties::SUBJECT, &text(&info.subject));
    found.set(properties::KEYWORDS, &text(&info.keywords));
    found.set(properties::CREATED, &info.creation_date.and_then(timestamp).unwrap_or_default());
    found.set(properties::MODIFIED, &info.modification_date.and_then(timestamp).unwrap_or_default());
    let root: Option<Dict<'_>> = pdf.xref().get(pdf.xref().root_id());
    let language = root.and_then(|root| root.get::<PdfString<'_>>("Lang"));
    if let Some(language) = language.and_then(|language| line(language.as_bytes())) {
        found.set(properties::LANGUAGE, &language);
    }
    found.set_number(properties::PAGES, pdf.pages().len() as u64);
    found
}

/// ISO 8601, as Postgres reads it.
fn timestamp(date: DateTime) -> Option<String> {
    let DateTime { year, month, day, hour, minute, second, .. } = date;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year == 0 {
        return None;
    }
    let zone = match (date.utc_offset_hour, date.utc_offset_minute) {
        (0, 0) => "Z".to_owned(),
        (hours, minutes) => format!("{hours:+03}:{minutes:02}"),
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}"))
}

/// A text string as one line; `None` if nothing is in it.
fn line(bytes: &[u8]) -> Option<String> {
    let text = text_string(&bytes[..bytes.len().min(4_096)]);
    let text: String = text.chars().filter(|c| !c.is_control() || c.is_whitespace()).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// A text string of a PDF: UTF-16 or UTF-8 with a byte order mark, else PDFDocEncoding.
pub(super) fn text_string(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|&byte| pdf_doc_char(byte)).collect(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// A character of PDFDocEncoding (ISO 32000-1, annex D.2), which is Latin-1 but for these.
fn pdf_doc_char(byte: u8) -> char {
    const LOW: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const HIGH: [char; 33] = [
        '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ',
        'ﬂ', 'Ł', 'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{fffd}', '€',
    ];
    match byte {
        0x18..=0x1f => LOW[usize::from(byte - 0x18)],
        0x80..=0xa0 => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}
