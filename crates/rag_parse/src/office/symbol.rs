//! Signs of symbol fonts, which office documents name by their place in the font.

/// Whether all characters of a font are signs.
pub(crate) fn is_font(font: &str) -> bool {
    matches!(font.to_ascii_lowercase().as_str(), "symbol" | "wingdings" | "wingdings 2")
}

/// A character of a text in such a font. Those that are no places of the font stay.
pub(crate) fn in_font(font: &str, character: char) -> Option<char> {
    match u32::from(character) {
        code @ 0xf020..=0xf0ff => of_font(font, code),
        _ => Some(character),
    }
}

/// The sign at a place of a font; `None` for one that is not known to mean anything.
pub(crate) fn of_font(font: &str, code: u32) -> Option<char> {
    // Symbol fonts are mapped to the private use area from F000 on.
    let place = if (0xf000..=0xf0ff).contains(&code) { code - 0xf000 } else { code };
    match font.to_ascii_lowercase().as_str() {
        "symbol" => symbol(place),
        "wingdings" => wingdings(place),
        "wingdings 2" => match place {
            0x50 | 0x52 => Some('☑'),
            0x4f | 0x51 | 0x53 | 0x54 => Some('☒'),
            0xa3 => Some('☐'),
            _ => None,
        },
        // The font has letters: the place is a character.
        _ if !(0xe000..=0xf8ff).contains(&code) => char::from_u32(code).filter(|c| !c.is_control()),
        _ => None,
    }
}

/// Adobe's symbol encoding, as far as it differs from ASCII.
fn symbol(place: u32) -> Option<char> {
    const GREEK_UPPER: &str = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ";
    const GREEK_LOWER: &str = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ";
    match place {
        0x41..=0x5a => GREEK_UPPER.chars().nth(place as usize - 0x41),
        0x61..=0x7a => GREEK_LOWER.chars().nth(place as usize - 0x61),
        0x22 => Some('∀'),
        0x24 => Some('∃'),
        0x2d => Some('−'),
        0x40 => Some('≅'),
        0xa2 => Some('′'),
        0xa3 => Some('≤'),
        0xa4 => Some('⁄'),
        0xa5 => Some('∞'),
        0xab => Some('↔'),
        0xac => Some('←'),
        0xad => Some('↑'),
        0xae => Some('→'),
        0xaf => Some('↓'),
        0xb0 => Some('°'),
        0xb1 => Some('±'),
        0xb2 => Some('″'),
        0xb3 => Some('≥'),
        0xb4 => Some('×'),
        0xb5 => Some('∝'),
        0xb6 => Some('∂'),
        0xb7 => Some('•'),
        0xb8 => Some('÷'),
        0xb9 => Some('≠'),
        0xba => Some('≡'),
        0xbb => Some('≈'),
        0xbc => Some('…'),
        0xc6 => Some('∅'),
        0xc7 => Some('∩'),
        0xc8 => Some('∪'),
        0xce => Some('∈'),
        0xcf => Some('∉'),
        0xd1 => Some('∇'),
        0xd2 | 0xe2 => Some('®'),
        0xd3 | 0xe3 => Some('©'),
        0xd4 | 0xe4 => Some('™'),
        0xd5 => Some('∏'),
        0xd6 => Some('√'),
        0xd7 => Some('⋅'),
        0xd8 => Some('¬'),
        0xdb => Some('⇔'),
        0xdc => Some('⇐'),
        0xde => Some('⇒'),
        0xe5 => Some('∑'),
        0xf2 => Some('∫'),
        0x20..=0x7e => char::from_u32(place),
        _ => None,
    }
}

fn wingdings(place: u32) -> Option<char> {
    match place {
        0x22 => Some('✂'),
        0x28 => Some('☎'),
        0x2a => Some('✉'),
        0x4a => Some('☺'),
        0x4c => Some('☹'),
        0x6c | 0x9f => Some('•'),
        0x6e | 0xa7 => Some('■'),
        0x6f | 0x70 | 0x71 | 0xa8 => Some('☐'),
        0xd8 => Some('➢'),
        0xdf => Some('←'),
        0xe0 | 0xe8 | 0xf0 => Some('→'),
        0xfb => Some('✗'),
        0xfc => Some('✓'),
        0xfd => Some('☒'),
        0xfe => Some('☑'),
        _ => None,
    }
}
