//! From bytes to text.

mod wide;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use std::borrow::Cow;
use wide::Wide;

/// Bytes in which an HTML page must declare its encoding (HTML Standard, 4.2.5.4).
const HTML_PRESCAN_BYTES: usize = 1_024;

/// Bytes that are looked at to guess an encoding, from a little before the first that is not ASCII.
const GUESS_BYTES: usize = 1 << 20;

/// A text with what is known of its encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded<'a> {
    /// Without the byte order mark.
    pub(crate) text: Cow<'a, str>,
    /// Name by the Encoding Standard, such as `windows-1252`.
    pub(crate) encoding: &'static str,
    /// Characters that stand for bytes that are wrong in the encoding, U+FFFD each.
    pub(crate) replaced: usize,
}

/// Decodes a text file; the byte order mark is dropped.
///
/// In falling order: a byte order mark, `charset` where known, valid UTF-8, the encoding that an HTML page or
/// an XML declaration names, UTF-16 and UTF-32 without mark, and what the bytes look like most, which is
/// windows-1252 where there are few. Bytes that are wrong in the encoding become U+FFFD. UTF-8 goes before the
/// page's own word, because a text that is valid UTF-8 with non-ASCII characters is hardly ever anything else,
/// while declarations outlive conversions.
pub(crate) fn decode<'a>(bytes: &'a [u8], charset: Option<&str>) -> Decoded<'a> {
    if let Some((wide, mark)) = Wide::marked(bytes) {
        return decoded_wide(wide, &bytes[mark..]);
    }
    if let Some(bytes) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return decoded(UTF_8, bytes);
    }
    let given = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    if let Some(encoding) = given
        && encoding != UTF_8
    {
        return decoded(encoding, bytes);
    }
    if let Some(wide) = Wide::unmarked(bytes) {
        return decoded_wide(wide, bytes);
    }
    let is_utf8 = std::str::from_utf8(bytes).is_ok() && !is_escape_encoded(bytes);
    // A text that says UTF-8 and is mostly UTF-8 has a few broken bytes; one that is not, is something else.
    if is_utf8 || is_nearly_utf8(bytes) {
        return decoded(UTF_8, bytes);
    }
    match declared(bytes) {
        Some(encoding) if encoding != UTF_8 => decoded(encoding, bytes),
        _ => decoded(guessed(bytes), bytes),
    }
}

/// Whether bytes are UTF-16 or UTF-32, in which NUL bytes are nothing odd.
pub(crate) fn is_wide(bytes: &[u8]) -> bool {
    Wide::marked(bytes).is_some() || Wide::unmarked(bytes).is_some()
}

fn decoded_wide(wide: Wide, bytes: &[u8]) -> Decoded<'static> {
    let text = wide.decode(bytes);
    let replaced = replacements(&text);
    Decoded { text: Cow::Owned(text), encoding: wide.name(), replaced }
}

fn decoded<'a>(encoding: &'static Encoding, bytes: &'a [u8]) -> Decoded<'a> {
    let (text, had_errors) = encoding.decode_without_bom_handling(bytes);
    let replaced = if had_errors { replacements(&text) } else { 0 };
    Decoded { text, encoding: encoding.name(), replaced }
}

fn replacements(text: &str) -> usize {
    text.matches(char::REPLACEMENT_CHARACTER).count()
}

/// The encoding that bytes look like, which are not UTF-8.
fn guessed(bytes: &[u8]) -> &'static Encoding {
    let first = bytes.iter().position(|byte| !byte.is_ascii() || *byte == 0x1b).unwrap_or_default();
    let from = first.saturating_sub(1_024);
    let until = bytes.len().min(from + GUESS_BYTES);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes[from..until], until == bytes.len());
    detector.guess(None, Utf8Detection::Deny)
}

/// ISO-2022-JP is seven-bit, so it passes for UTF-8.
fn is_escape_encoded(bytes: &[u8]) -> bool {
    bytes.windows(3).any(|window| matches!(window, b"\x1b$B" | b"\x1b$@"))
}

/// Whether invalid bytes are rare beside valid multi-byte sequences, as in a file cut in the middle.
fn is_nearly_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid * 10
}

/// The encoding that an HTML page names in `<meta charset>`, `<meta http-equiv>` or `<?xml encoding>`.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(HTML_PRESCAN_BYTES)];
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let declaration = head.strip_prefix("<?xml").and_then(|rest| rest.split("?>").next());
    let in_xml = declaration.and_then(|rest| value_after(rest, "encoding"));
    let in_meta =
        || head.split("<meta").skip(1).find_map(|meta| value_after(meta.split('>').next()?, "charset"));
    let encoding = Encoding::for_label(in_xml.or_else(in_meta)?.as_bytes())?;
    // A page whose declaration could be read byte by byte is not UTF-16, whatever it says.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

fn value_after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let after = text[text.find(name)? + name.len()..].trim_start().strip_prefix('=')?;
    let value = after.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| c.is_whitespace() || "\"';/>".contains(c)).unwrap_or(value.len());
    Some(&value[..end])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Decoded, decode};
    use encoding_rs::Encoding;

    fn text(bytes: &[u8], charset: Option<&str>) -> String {
        decode(bytes, charset).text.into_owned()
    }

    #[test]
    fn encodings_are_told_apart() {
        let cases: &[(&[u8], Option<&str>, &str)] = &[
            ("grün €".as_bytes(), None, "grün €"),
            (b"\xef\xbb\xbfabc", None, "abc"),
            (b"\xff\xfea\0\xfc\0", None, "aü"),
            (b"\xfe\xff\0a\0\xfc", None, "aü"),
            (b"gr\xfcn \x80", None, "grün €"),
            (b"\xc3\xa4", Some("iso-8859-1"), "Ã¤"),
            (b"<meta charset=\"iso-8859-5\">\xd0", None, "<meta charset=\"iso-8859-5\">а"),
            (
                b"<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>\xff",
                None,
                "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>я",
            ),
            (
                b"<?xml version='1.0' encoding='koi8-r'?>\xc1",
                None,
                "<?xml version='1.0' encoding='koi8-r'?>а",
            ),
            ("<meta charset=iso-8859-1>grün".as_bytes(), None, "<meta charset=iso-8859-1>grün"),
            ("äöüäöüäöüäöü\u{e4}".as_bytes(), None, "äöüäöüäöüäöüä"),
            (b"\x82\xa0", Some("shift_jis"), "あ"),
            (b"\x1b$B$\"\x1b(B", Some("iso-2022-jp"), "あ"),
            (b"\x1b$B$\"\x1b(B", None, "あ"),
            (b"x", Some("no-such-charset"), "x"),
        ];
        for (bytes, charset, expected) in cases {
            assert_eq!(text(bytes, *charset), *expected);
        }
    }

    /// A few sentences each, as files in these encodings have.
    const SENTENCES: &[(&str, &str)] = &[
        (
            "windows-1251",
            "Съешь же ещё этих мягких французских булок, да выпей чаю. Ведро воды стоит в углу.",
        ),
        ("KOI8-U", "Съешь же ещё этих мягких французских булок, да выпей чаю. Ведро воды стоит в углу."),
        ("Shift_JIS", "いろはにほへと ちりぬるを。わかよたれそ、つねならむ。漢字とカタカナも使います。"),
        ("EUC-JP", "いろはにほへと ちりぬるを。わかよたれそ、つねならむ。漢字とカタカナも使います。"),
        ("GBK", "我能吞下玻璃而不伤身体。今天的天气很好，我们去公园散步吧。这是一个测试文件。"),
        ("Big5", "我能吞下玻璃而不傷身體。今天的天氣很好，我們去公園散步吧。這是一個測試文件。"),
        ("EUC-KR", "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요. 오늘은 날씨가 좋습니다."),
        ("windows-1253", "Μπορώ να φάω σπασμένα γυαλιά χωρίς να πάθω τίποτα. Καλημέρα σας, κύριε."),
        ("windows-1255", "אני יכול לאכול זכוכית וזה לא מזיק לי. היום יפה מאוד בחוץ."),
        ("windows-1252", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich – für 5 €."),
        ("windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. Škoda, že dnes není hezké počasí."),
    ];

    #[test]
    fn text_without_any_declaration_is_read_in_the_encoding_it_looks_like() {
        for (name, sentence) in SENTENCES {
            let (bytes, encoding, unmappable) =
                Encoding::for_label(name.as_bytes()).unwrap().encode(sentence);
            assert!(!unmappable, "{name}");
            assert_eq!(
                decode(&bytes, None),
                Decoded { text: (*sentence).into(), encoding: encoding.name(), replaced: 0 }
            );
        }
    }

    #[test]
    fn wide_encodings_need_no_mark() {
        let texts = [
            "Plain words, and a line.\r\nAnother.",
            "Съешь же ещё\nэтих мягких булок.",
            "第一行很短。\n第二行稍微长一些，也有标点。\n",
            "日本語のテキスト、カタカナ。\n二行目です。",
        ];
        for text in texts {
            let utf16 = |read: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(read).collect::<Vec<u8>>();
            let utf32 =
                |read: fn(u32) -> [u8; 4]| text.chars().flat_map(|c| read(u32::from(c))).collect::<Vec<u8>>();
            for (bytes, mark, encoding) in [
                (utf16(u16::to_le_bytes), b"\xff\xfe".as_slice(), "UTF-16LE"),
                (utf16(u16::to_be_bytes), b"\xfe\xff", "UTF-16BE"),
                (utf32(u32::to_le_bytes), b"\xff\xfe\0\0", "UTF-32LE"),
                (utf32(u32::to_be_bytes), b"\0\0\xfe\xff", "UTF-32BE"),
            ] {
                let expected = Decoded { text: text.into(), encoding, replaced: 0 };
                assert_eq!(decode(&bytes, None), expected);
                assert_eq!(decode(&[mark, &bytes].concat(), None), expected);
            }
        }
    }

    #[test]
    fn binary_bytes_and_a_stray_nul_are_not_taken_for_wide_text() {
        for bytes in [b"Hello\0worl".as_slice(), b"\0\x01\0\x02\0\x03", b"ab\0\0", b"\0", b"PK\x03\x04\0\0"] {
            assert!(!super::is_wide(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn a_few_broken_bytes_do_not_make_utf8_latin_and_are_counted() {
        let mut bytes = "Größe und Länge und Höhe und Stärke und Fülle und Kälte, Öl".repeat(3).into_bytes();
        bytes.push(0xc3);
        let decoded = decode(&bytes, None);
        assert!(decoded.text.starts_with("Größe"));
        assert_eq!((decoded.encoding, decoded.replaced), ("UTF-8", 1));
        assert_eq!(decode("\u{fffd}".as_bytes(), None).replaced, 0);
        assert_eq!(decode(b"\xff\xfea\0\0\xd8", None).replaced, 1);
    }
}
