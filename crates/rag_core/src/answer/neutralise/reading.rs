//! A text as a lenient reader takes it: letters that look alike are one, and what is not seen is not there.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Control characters, format characters, and those that show nothing. Line break and tab are visible.
pub(crate) fn is_invisible(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether an invisible character has no place in ordinary text. Soft hyphens, joiners, variation selectors and byte order
/// marks do.
pub(super) fn is_suspicious(c: char) -> bool {
    !matches!(c, '\r' | '\u{c}' | '\u{ad}' | '\u{200c}'..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// A text in lower case, in plain letters where it has letters that look like these, without marks and what is not seen.
pub(super) fn plain(text: &str) -> String {
    let folded = text
        .chars()
        .filter(|c| !is_invisible(*c))
        .nfkd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .map(look_alike);
    folded.collect()
}

/// The words of a plain text between single blanks: digits within a word read as the letters that they look like, and
/// letters that stand alone, three or more, as a word.
pub(super) fn words(plain: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    // The last word is made of single letters.
    let mut is_spelt = false;
    let letters = plain.split(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | '$'));
    for word in letters.filter(|word| !word.is_empty()) {
        let is_single = word.chars().count() == 1;
        match words.last_mut() {
            Some(last) if is_single && is_spelt => last.push_str(word),
            _ => words.push(word.to_owned()),
        }
        is_spelt = is_single;
    }
    words.iter().map(|word| without_digits(word)).collect::<Vec<_>>().join(" ")
}

/// Digits that stand for letters in a word that begins or ends with one.
fn without_digits(word: &str) -> String {
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    if letters * 2 < word.chars().count() {
        return word.to_owned();
    }
    let letter = |c| match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    };
    word.chars().map(letter).collect()
}

/// The Latin letter that a Cyrillic, Greek or other letter looks like.
fn look_alike(c: char) -> char {
    match c {
        'а' | 'α' | 'ɑ' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ε' | 'є' => 'e',
        'ɡ' => 'g',
        'н' | 'һ' => 'h',
        'і' | 'ι' | 'ı' | 'ӏ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ʟ' => 'l',
        'м' | 'μ' => 'm',
        'ո' | 'η' => 'n',
        'о' | 'ο' | 'σ' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' | 'ʀ' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'ᴢ' => 'z',
        other => other,
    }
}
