//! Short forms and their long forms, found in a text.

use super::{Acronym, MAX_LONG_CHARS, MAX_SHORT_CHARS, has_capitals, long_key, short_key, singular};
use std::collections::HashSet;

/// Most pairs of one text: the first ones.
const MAX_MINED: usize = 200;

/// Most brackets of one text that are looked at: the first ones.
const MAX_BRACKETS: usize = 20_000;

/// Most bytes within brackets, and before them, that are looked at.
const REACH: usize = 4 * MAX_LONG_CHARS;

/// What a text defines.
pub type Mined = Vec<Acronym>;

/// The acronyms that a text (Markdown) defines, each pair once, in their order. Cost is linear in the text.
pub fn mine(text: &str) -> Mined {
    let mut seen: HashSet<(String, String)> = HashSet::new();
    let mut mined = Vec::new();
    for (at, _) in text.match_indices('(').take(MAX_BRACKETS) {
        if mined.len() == MAX_MINED {
            break;
        }
        let Some(found) = defined_at(text, at) else { continue };
        if seen.insert((short_key(&found.short), long_key(&found.long))) {
            mined.push(found);
        }
    }
    mined
}

/// What the bracket that opens at a byte defines.
fn defined_at(text: &str, open: usize) -> Option<Acronym> {
    // The address of a link stands in brackets, too.
    if text[..open].ends_with(']') {
        return None;
    }
    let inside = inside(&text[open + 1..])?;
    let before = before(&text[..open]);
    let head = inside.split([',', ';']).next().unwrap_or_default();
    if let Some(short) = short_form(bare(head)) {
        let words = short.chars().count().saturating_add(5).min(short.chars().count() * 2);
        let from = before.len().saturating_sub(words);
        return pair(short, &before[from..].join(" "));
    }
    let short = short_form(before.last()?)?;
    let words: Vec<&str> = head.split_whitespace().map(bare).collect();
    // Here it is the whole of it that is the long form, and not its end.
    pair(short, &words.join(" ")).filter(|found| long_key(&found.long) == long_key(&words.join(" ")))
}

/// What stands up to the closing bracket, if that comes soon and nothing else opens.
fn inside(text: &str) -> Option<&str> {
    let end = text.bytes().take(REACH).position(|byte| matches!(byte, b')' | b'(' | b'\n'))?;
    (text.as_bytes()[end] == b')').then(|| &text[..end])
}

/// The words before a bracket, in its line, back to the end of another sentence or bracket, or the border of a table's cell.
fn before(text: &str) -> Vec<&str> {
    let mut start = text.len().saturating_sub(REACH);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let near = &text[start..];
    let line = &near[near.rfind(['\n', '(', ')', '|', ':', ';', '?', '!']).map_or(0, |border| border + 1)..];
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        // What ends so ends a sentence, unless it is an initial.
        if word.ends_with('.') && word.chars().count() > 2 {
            words.clear();
        } else {
            words.push(bare(word));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A word without the marks of Markdown and the quotes around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| c.is_whitespace() || "*_`[]\"'“”„‘’«»".contains(c))
}

/// The short form that a word is, without its plural.
fn short_form(word: &str) -> Option<&str> {
    let short = singular(word);
    let chars = short.chars().count();
    let is_word = short.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '&' | '.' | '/'));
    let is_numeral = short.chars().all(|c| matches!(c, 'I' | 'V' | 'X'));
    ((2..=MAX_SHORT_CHARS).contains(&chars)
        && is_word
        && !is_numeral
        && has_capitals(short)
        && short.starts_with(char::is_alphanumeric))
    .then_some(short)
}

fn pair(short: &str, candidate: &str) -> Option<Acronym> {
    let long = long_form(short, candidate)?;
    let chars = long.chars().count();
    let is_text = |c: char| c.is_alphanumeric() || c == ' ' || "-–'’&.,".contains(c);
    let says_more = chars > short.chars().count() && chars <= MAX_LONG_CHARS && long.chars().all(is_text);
    let repeats = long.split(' ').any(|word| short_key(singular(word)) == short_key(short));
    (says_more && !repeats).then(|| Acronym {
        short: short.to_owned(),
        long: long.to_owned(),
        is_given: false,
    })
}

/// The shortest end of a text, from the start of a word, in which the letters of a short form follow each other.
fn long_form<'a>(short: &str, candidate: &'a str) -> Option<&'a str> {
    let chars: Vec<(usize, char)> = candidate.char_indices().collect();
    let same = |a: char, b: char| a == b || a.to_lowercase().eq(b.to_lowercase());
    let begins_word = |at: usize| at == 0 || !chars[at - 1].1.is_alphanumeric();
    // Characters not yet looked at.
    let mut left = chars.len();
    for (place, wanted) in short.char_indices().rev().filter(|(_, c)| c.is_alphanumeric()) {
        left = (0..left).rev().find(|at| same(chars[*at].1, wanted) && (place > 0 || begins_word(*at)))?;
    }
    let start = chars[..left].iter().rev().find(|(_, c)| *c == ' ').map_or(0, |(at, _)| at + 1);
    Some(candidate[start..].trim_end_matches(['.', ',']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let mined = mine(text);
        let found: Vec<(&str, &str)> = mined.iter().map(|a| (a.short.as_str(), a.long.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn full_names_before_and_after_their_short_forms_are_found() {
        check("The service level agreement (SLA) is signed.", &[("SLA", "service level agreement")]);
        check("An SLA (service level agreement) is signed.", &[("SLA", "service level agreement")]);
        check(
            "See **Transport Layer Security** (TLS, formerly SSL).",
            &[("TLS", "Transport Layer Security")],
        );
        check("heat shock protein 70 (HSP70)", &[("HSP70", "heat shock protein 70")]);
        check("messenger ribonucleic acid (mRNA)", &[("mRNA", "messenger ribonucleic acid")]);
        check("It meets its end-of-life (EOL) soon.", &[("EOL", "end-of-life")]);
        check("| x | tuberculosis (TB) | y |", &[("TB", "tuberculosis")]);
    }

    #[test]
    fn words_inside_need_no_letter_and_plurals_are_undone() {
        check("the Bureau of Land Management (BLM)", &[("BLM", "Bureau of Land Management")]);
        check("Service Level Agreements (SLAs)", &[("SLA", "Service Level Agreements")]);
        check("a Doctor of Philosophy (PhD)", &[]);
        check("a Physical Doctor (PhD)", &[("PhD", "Physical Doctor")]);
        check("research and development (R&D)", &[("R&D", "research and development")]);
    }

    #[test]
    fn scripts_with_capitals_are_read_and_others_left_alone() {
        check("Организация Объединённых Наций (ООН)", &[("ООН", "Организация Объединённых Наций")]);
        check("die Bundesanstalt für Straßenwesen (BASt)", &[("BASt", "Bundesanstalt für Straßenwesen")]);
        check("世界卫生组织 (WHO) 与 منظمة (الصحة) ", &[]);
    }

    #[test]
    fn what_only_looks_like_it_is_none() {
        for text in [
            "it runs (see below)",
            "as others found (Smith)",
            "in five parts (IV)",
            "the year of the flood (1953)",
            "the [Service Level Agreement](SLA)",
            "[SLA](http://serverlessapp.example)",
            "a list (a) of things (b)",
            "Munich is far (XYZ)",
            "It ended. (SLA)",
            "the SLA of us (SLA)",
            "an open bracket (SLA",
            "nothing here () at (  ) all",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn a_pair_is_given_once_and_another_sentence_is_not_taken() {
        check("Fire Brigade (FB). A fire brigade (FB).", &[("FB", "Fire Brigade")]);
        check("A lot of snow fell. All roads (SAR)", &[]);
        check("first aid (FA)\n\nfine art (FA)", &[("FA", "first aid"), ("FA", "fine art")]);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([A-Zß(),.; -]|\\PC|\n){0,60}") {
            for found in mine(&text) {
                prop_assert!(found.long.chars().count() <= MAX_LONG_CHARS);
                prop_assert!(!long_key(&found.long).is_empty());
            }
        }
    }
}
