//! Acronyms: mined from "Full Name (FN)" and "FN (Full Name)", and expanded in queries.
//!
//! Mining follows Schwartz and Hearst, "A simple algorithm for identifying abbreviation definitions in biomedical text",
//! PSB 2003: from the right, each letter of the short form must be found in the long form, the first one where a word
//! begins. Beyond that a short form has a capital that is not only its first letter: `(see)` and `(Smith)` are none.

mod mine;
mod query;

pub use mine::{Mined, mine};
pub use query::{Expanded, Lookup, expand};

/// Most characters of a short form.
pub const MAX_SHORT_CHARS: usize = 10;

/// Most characters of a long form.
pub const MAX_LONG_CHARS: usize = 120;

/// A short form and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acronym {
    /// Such as `SLA`.
    pub short: String,
    /// Such as `service level agreement`.
    pub long: String,
    /// Whether somebody has said so, and not only documents define it.
    pub is_given: bool,
}

/// By which a short form is looked up: in capitals.
pub fn short_key(short: &str) -> String {
    short.to_uppercase()
}

/// By which a long form is looked up: its words in lower case, without the plural's s of the last one. Empty where it has
/// no words.
pub fn long_key(long: &str) -> String {
    let mut key = String::with_capacity(long.len());
    push_words(long, &mut key);
    if is_plural(&key) {
        key.pop();
    }
    key
}

/// Appends the words of a text to a key, before the plural's s is taken away.
fn push_words(text: &str, key: &mut String) {
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !key.is_empty() {
            key.push(' ');
        }
        if word.is_ascii() {
            key.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        } else {
            key.push_str(&word.to_lowercase());
        }
    }
}

/// Whether the last word of a key has a plural's s.
fn is_plural(key: &str) -> bool {
    let last = key.rsplit(' ').next().unwrap_or_default();
    last.ends_with('s') && !last.ends_with("ss") && last.chars().count() > 3
}

/// Whether a word has a capital that is not only its first letter, or a capital and a digit.
fn has_capitals(word: &str) -> bool {
    word.chars().skip(1).any(char::is_uppercase)
        || (word.contains(char::is_uppercase) && word.contains(char::is_numeric))
}

/// A short form without the plural's s: `SLAs` is `SLA`.
fn singular(short: &str) -> &str {
    match short.strip_suffix('s') {
        Some(stem) if stem.chars().count() > 1 && !stem.contains(char::is_lowercase) => stem,
        _ => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_tell_number_case_and_hyphens_apart() {
        for long in ["Service Level Agreement", "service-level agreements", " service  level agreement "] {
            assert_eq!(long_key(long), "service level agreement");
        }
        assert_eq!(long_key("domain name address"), "domain name address");
        assert_eq!(long_key("gas"), "gas");
        assert_eq!(long_key("–"), "");
        assert_eq!(short_key("mRNA"), "MRNA");
        assert_eq!(
            (singular("SLAs"), singular("OS"), singular("GPS"), singular("as")),
            ("SLA", "OS", "GPS", "as")
        );
    }
}
