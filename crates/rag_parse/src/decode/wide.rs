//! UTF-16 and UTF-32, with and without byte order mark.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// Bytes that are looked at to find an encoding without a mark.
const SAMPLE_BYTES: usize = 16_384;

/// An encoding with code units of more than a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wide {
    Utf16(&'static Encoding),
    /// Whether the first byte is the most significant one.
    Utf32 {
        is_big_endian: bool,
    },
}

impl Wide {
    /// The encoding that a byte order mark names, and the mark's length.
    pub(crate) fn marked(bytes: &[u8]) -> Option<(Self, usize)> {
        // The mark of UTF-16LE begins that of UTF-32LE, of which a UTF-16 text would have to go on with a NUL.
        let utf32 = |mark: &[u8]| bytes.starts_with(mark) && bytes.len().is_multiple_of(4);
        if utf32(b"\xff\xfe\0\0") {
            Some((Self::Utf32 { is_big_endian: false }, 4))
        } else if utf32(b"\0\0\xfe\xff") {
            Some((Self::Utf32 { is_big_endian: true }, 4))
        } else if bytes.starts_with(b"\xff\xfe") {
            Some((Self::Utf16(UTF_16LE), 2))
        } else if bytes.starts_with(b"\xfe\xff") {
            Some((Self::Utf16(UTF_16BE), 2))
        } else {
            None
        }
    }

    /// The encoding of bytes without a mark, if they make sense in one of these and hold a NUL byte, which text
    /// in any other encoding does not.
    ///
    /// A UTF-16 text without a single ASCII character has no NUL byte, and is not found.
    pub(crate) fn unmarked(bytes: &[u8]) -> Option<Self> {
        let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
        if !sample.contains(&0) {
            return None;
        }
        if bytes.len().is_multiple_of(4) && bytes.len() >= 8 {
            let reads = |read: fn([u8; 4]) -> u32| {
                sample
                    .as_chunks()
                    .0
                    .iter()
                    .all(|unit| char::from_u32(read(*unit)).is_some_and(|c| !is_binary(c)))
            };
            if reads(u32::from_le_bytes) {
                return Some(Self::Utf32 { is_big_endian: false });
            }
            if reads(u32::from_be_bytes) {
                return Some(Self::Utf32 { is_big_endian: true });
            }
        }
        if !bytes.len().is_multiple_of(2) {
            return None;
        }
        let units = |read: fn([u8; 2]) -> u16| {
            sample.as_chunks().0.iter().map(|unit| read(*unit)).collect::<Vec<u16>>()
        };
        match (is_text(&units(u16::from_le_bytes)), is_text(&units(u16::from_be_bytes))) {
            (true, false) => Some(Self::Utf16(UTF_16LE)),
            (false, true) => Some(Self::Utf16(UTF_16BE)),
            _ => None,
        }
    }

    /// Name in the style of the Encoding Standard.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf16(encoding) => encoding.name(),
            Self::Utf32 { is_big_endian: false } => "UTF-32LE",
            Self::Utf32 { is_big_endian: true } => "UTF-32BE",
        }
    }

    /// Decodes bytes behind the mark; what is wrong becomes U+FFFD.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        match self {
            Self::Utf16(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
            Self::Utf32 { is_big_endian } => {
                let read = if is_big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
                let (units, rest) = bytes.as_chunks();
                let mut text: String = units
                    .iter()
                    .map(|unit| char::from_u32(read(*unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect();
                if !rest.is_empty() {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
                text
            }
        }
    }
}

/// Whether UTF-16 code units look like text: no control characters, no lone surrogates, and nearly all of
/// them in ASCII and one more block, or in the blocks of Chinese, Japanese and Korean.
fn is_text(units: &[u16]) -> bool {
    let mut pages = [0usize; 256];
    for decoded in char::decode_utf16(units.iter().copied()) {
        match decoded {
            Ok(c) if !is_binary(c) => {
                pages[(u32::from(c) >> 8 & 0xff) as usize] += 1;
            }
            Ok(_) => return false,
            // The sample may end within a pair.
            Err(error) if units.last() == Some(&error.unpaired_surrogate()) => {}
            Err(_) => return false,
        }
    }
    let sum = |pages: &[usize]| pages.iter().sum::<usize>();
    let all = sum(&pages);
    // Alphabets: one block beside ASCII, or ASCII alone. Pairs of ASCII characters are in none of these blocks.
    let alphabet = pages[0x01..0x1f].iter().max().copied().unwrap_or_default();
    // Chinese, Japanese and Korean. Pairs of ASCII letters are Chinese characters too, of the lower half.
    let east_asian = sum(&pages[0x30..0x32]) + sum(&pages[0x4e..0xa0]) + sum(&pages[0xac..0xd8]);
    let high = sum(&pages[0x30..0x32]) + sum(&pages[0x80..0xa0]) + sum(&pages[0xac..0xd8]);
    let is_mostly = |part: usize| part * 10 >= all * 9;
    pages[0] > 0
        && (is_mostly(pages[0] + alphabet)
            || is_mostly(pages[0] + east_asian + pages[0xff]) && high * 10 >= all)
}

/// Whether a character does not occur in text.
fn is_binary(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}' | '\u{85}')
}
