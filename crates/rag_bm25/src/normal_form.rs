//! One spelling for words that readers take for the same: lower case, compatibility forms, accents.
//!
//! What a word is, and whether it is stemmed, is left to `analyser`.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Appends `word` in lower case and Unicode compatibility form (NFKC), without characters that do not show
/// (soft hyphens, joiners) and with the plain apostrophe and hyphen.
pub(crate) fn push_normalised(word: &str, out: &mut String) {
    if word.is_ascii() {
        out.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        return;
    }
    for character in word.nfkc().flat_map(char::to_lowercase) {
        match character {
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            '\u{2019}' | '\u{2bc}' => out.push('\''),
            '\u{2010}' | '\u{2011}' => out.push('-'),
            other => out.push(other),
        }
    }
}

/// Replaces Latin and Greek letters by their bare form: `é` by `e`, `ß` by `ss`, `ø` by `o`.
///
/// Marks of other scripts stay, because there they are letters of their own (`й`, Indic vowels). Runs after
/// the stemmer, which needs the accents.
pub(crate) fn fold_accents(word: &mut String) {
    if word.is_ascii() || !word.chars().any(is_accented) {
        return;
    }
    let mut decomposed = Vec::with_capacity(word.len());
    for character in word.chars() {
        decompose_canonical(character, |part| decomposed.push(part));
    }
    let mut bare = String::with_capacity(word.len());
    let mut base_is_foldable = false;
    for character in decomposed {
        if is_combining_mark(character) {
            if !(base_is_foldable && ('\u{300}'..='\u{36f}').contains(&character)) {
                bare.push(character);
            }
            continue;
        }
        base_is_foldable = character.is_ascii() || is_accented(character);
        match bare_letters(character) {
            Some(letters) => bare.push_str(letters),
            None => bare.push(character),
        }
    }
    word.clear();
    word.extend(bare.nfc());
}

/// Whether folding could change a word with this character: Latin and Greek beyond ASCII, and their marks.
fn is_accented(character: char) -> bool {
    matches!(character, '\u{c0}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}')
}

/// Letters that have no canonical decomposition.
fn bare_letters(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        let mut word = String::new();
        push_normalised(input, &mut word);
        fold_accents(&mut word);
        assert_eq!(word, expected, "{input}");
    }

    #[test]
    fn letters_are_folded_to_their_bare_lower_case_form() {
        check("Hello", "hello");
        check("CAFÉ", "cafe");
        check("cafe\u{301}", "cafe");
        check("Straße", "strasse");
        check("Ångström", "angstrom");
        check("Łódź", "lodz");
        check("ŒUVRE", "oeuvre");
        check("İstanbul", "istanbul");
        check("Μάγος", "μαγοσ");
    }

    #[test]
    fn compatibility_forms_become_plain_ones() {
        check("ﬁle", "file");
        check("ＡＢＣ１２", "abc12");
        check("m²", "m2");
        check("co\u{ad}operate", "cooperate");
        check("John’s", "john's");
    }

    #[test]
    fn marks_of_other_scripts_stay() {
        check("йод", "йод");
        check("हिन्दी", "हिन्दी");
        check("한국", "한국");
        check("が", "が");
    }
}
