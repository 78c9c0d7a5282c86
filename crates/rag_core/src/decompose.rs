//! Compound questions, taken apart by rules: "compare A with B", "the limits of A and B", two questions in one.
//!
//! Each part stands alone: what the parts share is repeated in each. A question that no rule knows stays whole.

use crate::terms::Terms;

/// Most parts of a question.
pub const MAX_PARTS: usize = 4;

/// Most characters of a question that is taken apart: a longer one is a text.
const MAX_CHARS: usize = 400;

/// A language whose questions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tongue {
    /// English.
    English,
    /// German.
    German,
}

/// Words that rules are made of, in lower case.
struct Rules {
    /// Begins a comparison, and what stands between the things compared.
    comparisons: &'static [(&'static str, &'static [&'static str])],
    /// Stands between things compared wherever it is.
    versus: &'static [&'static str],
    /// Joins.
    and: &'static [&'static str],
    /// Begins a question.
    interrogatives: &'static [&'static str],
    /// Behind these stands what a question is about.
    prepositions: &'static [&'static str],
}

static ENGLISH: Rules = Rules {
    comparisons: &[
        ("compare", &[" with ", " to ", " and ", " against "]),
        ("comparison of", &[" with ", " to ", " and "]),
        ("difference between", &[" and "]),
        ("differences between", &[" and "]),
        ("how does", &[" differ from ", " compare to ", " compare with "]),
        ("how do", &[" differ from ", " compare to ", " compare with "]),
    ],
    versus: &[" versus ", " vs. ", " vs "],
    and: &[" and "],
    interrogatives: &[
        "what", "which", "who", "whom", "whose", "where", "when", "why", "how", "is", "are", "was", "were",
        "do", "does", "did", "can", "could", "should", "must", "may", "will", "would", "has", "have",
    ],
    prepositions: &["of", "for", "in", "on", "with", "about", "between", "by", "from", "to"],
};

static GERMAN: Rules = Rules {
    comparisons: &[
        ("vergleiche", &[" mit ", " und "]),
        ("vergleich von", &[" mit ", " und "]),
        ("vergleich zwischen", &[" und "]),
        ("unterschied zwischen", &[" und "]),
        ("unterschiede zwischen", &[" und "]),
        ("wie unterscheidet sich", &[" von "]),
        ("wie unterscheiden sich", &[" von ", " und "]),
    ],
    versus: &[" versus ", " vs. ", " vs ", " gegenüber "],
    and: &[" und ", " sowie "],
    interrogatives: &[
        "was", "welche", "welcher", "welches", "welchen", "welchem", "wer", "wen", "wem", "wessen", "wo",
        "wohin", "woher", "wann", "warum", "weshalb", "wieso", "wie", "ist", "sind", "war", "waren", "kann",
        "können", "darf", "dürfen", "muss", "müssen", "soll", "sollen", "wird", "werden", "hat", "haben",
        "gibt",
    ],
    prepositions: &[
        "von", "für", "in", "im", "bei", "beim", "mit", "über", "zwischen", "aus", "zu", "zur", "zum", "der",
        "des",
    ],
};

/// The parts of a compound question, two to [`MAX_PARTS`]; none where it is not compound by the rules of these languages.
pub fn decompose(question: &str, tongues: &[Tongue]) -> Vec<String> {
    let question = question.split_whitespace().collect::<Vec<_>>().join(" ");
    if question.chars().count() > MAX_CHARS || question.contains('"') {
        return Vec::new();
    }
    for tongue in tongues {
        let rules = match tongue {
            Tongue::English => &ENGLISH,
            Tongue::German => &GERMAN,
        };
        let ways = [several_questions, compared, versus, two_questions, shared_beginning];
        if let Some(parts) = ways.iter().find_map(|way| checked(way(&question, rules))) {
            return parts;
        }
    }
    Vec::new()
}

/// Two to [`MAX_PARTS`] different parts with content; else none.
fn checked(parts: Vec<String>) -> Option<Vec<String>> {
    let terms = Terms::new();
    let mut kept: Vec<String> = Vec::new();
    for part in parts {
        let part = part.trim_matches(|c: char| c.is_whitespace() || ",;:.?!".contains(c)).to_owned();
        if terms.of(&part).is_empty() {
            return None;
        }
        if !kept.contains(&part) {
            kept.push(part);
        }
    }
    (2..=MAX_PARTS).contains(&kept.len()).then_some(kept)
}

/// "Who pays? And when is it due?"
fn several_questions(question: &str, _: &Rules) -> Vec<String> {
    let parts: Vec<String> = question.split_inclusive('?').map(str::to_owned).collect();
    if parts.iter().all(|part| part.ends_with('?')) { parts } else { Vec::new() }
}

/// "Compare the cost of A with B", "the difference between A and B".
fn compared(question: &str, rules: &Rules) -> Vec<String> {
    let Some(lower) = aligned_lower(question) else { return Vec::new() };
    for (opening, betweens) in rules.comparisons {
        let Some(at) = find_word(&lower, opening) else { continue };
        let from = at + opening.len();
        for between in *betweens {
            if let Some(middle) = lower[from..].find(between).map(|found| found + from) {
                let end = question[from..].find(['?', '!']).map_or(question.len(), |end| from + end);
                if middle + between.len() <= end {
                    return with_shared(
                        &question[from..middle],
                        &question[middle + between.len()..end],
                        rules,
                    );
                }
            }
        }
    }
    Vec::new()
}

/// "A versus B".
fn versus(question: &str, rules: &Rules) -> Vec<String> {
    let Some(lower) = aligned_lower(question) else { return Vec::new() };
    let found = rules.versus.iter().find_map(|word| Some((lower.find(word)?, word.len())));
    found.map_or_else(Vec::new, |(at, length)| {
        let first = without_opening(&question[..at], rules);
        with_shared(first, &question[at + length..], rules)
    })
}

/// "Who wrote it and when was it printed": a word that begins a question stands behind the "and".
fn two_questions(question: &str, rules: &Rules) -> Vec<String> {
    let Some(lower) = aligned_lower(question) else { return Vec::new() };
    let mut parts = Vec::new();
    let mut from = 0;
    for and in rules.and {
        for (at, _) in lower.match_indices(and) {
            let next = at + and.len();
            let word = lower[next..].split(' ').next().unwrap_or_default();
            if at >= from && rules.interrogatives.contains(&word) {
                parts.push(question[from..at].to_owned());
                from = next;
            }
        }
    }
    if parts.is_empty() {
        return parts;
    }
    parts.push(question[from..].to_owned());
    parts
}

/// "What are the limits of X and Y?": what stands up to the preposition is shared. Both must be names or short.
fn shared_beginning(question: &str, rules: &Rules) -> Vec<String> {
    let is_question = {
        let first = question.split(' ').next().unwrap_or_default().to_lowercase();
        question.ends_with('?') || rules.interrogatives.contains(&first.as_str())
    };
    let Some(lower) = aligned_lower(question) else { return Vec::new() };
    let found = rules.and.iter().filter_map(|and| Some((lower.rfind(and)?, and.len()))).max();
    let Some((at, length)) = found.filter(|_| is_question) else { return Vec::new() };
    let (head, tail) = (&question[..at], question[at + length..].trim_end_matches(['?', '!', '.', ' ']));
    // A list: "X, Y and Z".
    let Some(things) = last_preposition(head, rules) else { return Vec::new() };
    let items: Vec<&str> = head[things..].split(", ").chain([tail]).collect();
    if items.iter().any(|item| item.split(' ').count() > 4) {
        return Vec::new();
    }
    let shared = without_opening(&head[..things], rules);
    items.into_iter().map(|item| format!("{shared}{item}")).collect()
}

/// Two things, with what stands before the first one's preposition in both: "the cost of A", "B".
fn with_shared(first: &str, second: &str, rules: &Rules) -> Vec<String> {
    let (first, second) = (first.trim(), second.trim());
    let shared = match last_preposition(first, rules) {
        Some(thing) if last_preposition(second, rules).is_none() => &first[..thing],
        _ => "",
    };
    vec![first.to_owned(), format!("{shared}{second}")]
}

/// The byte behind the last preposition of a text.
fn last_preposition(text: &str, rules: &Rules) -> Option<usize> {
    let mut found = None;
    let mut at = 0;
    for word in text.split_inclusive(' ') {
        at += word.len();
        if word.ends_with(' ') && rules.prepositions.contains(&word.trim_end().to_lowercase().as_str()) {
            found = Some(at);
        }
    }
    found
}

/// A text without the words of a question at its beginning: "What are the limits of" is "limits of".
fn without_opening<'a>(text: &'a str, rules: &Rules) -> &'a str {
    const ARTICLES: &[&str] = &["the", "a", "an", "der", "die", "das", "den", "dem"];
    let mut rest = text;
    loop {
        let word = rest.split_inclusive(' ').next().unwrap_or_default();
        let lower = word.trim_end().to_lowercase();
        let opens = rules.interrogatives.contains(&lower.as_str()) || ARTICLES.contains(&lower.as_str());
        if !opens || word.len() == rest.len() {
            return rest;
        }
        rest = &rest[word.len()..];
    }
}

/// Where words stand as such.
fn find_word(text: &str, words: &str) -> Option<usize> {
    text.match_indices(words).map(|(at, _)| at).find(|at| {
        let (before, after) = (&text[..*at], &text[at + words.len()..]);
        !before.ends_with(char::is_alphanumeric) && after.starts_with(' ')
    })
}

/// The text in lower case, if that has the same bytes at the same places.
fn aligned_lower(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    (lower.len() == text.len()
        && lower.char_indices().map(|(at, _)| at).eq(text.char_indices().map(|(at, _)| at)))
    .then_some(lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(tongue: Tongue, question: &str, expected: &[&str]) {
        assert_eq!(decompose(question, &[tongue]), expected, "{question}");
    }

    #[test]
    fn comparisons_come_apart_in_english() {
        let check = |question, expected: &[&str]| check(Tongue::English, question, expected);
        check("Compare tea with coffee.", &["tea", "coffee"]);
        check("Compare the price of tea with coffee", &["the price of tea", "the price of coffee"]);
        check("What is the difference between RIPv2 and OSPF?", &["RIPv2", "OSPF"]);
        check("How does a glacier differ from a river?", &["a glacier", "a river"]);
        check("GIN vs. GiST", &["GIN", "GiST"]);
        check("speed of GIN versus GiST", &["speed of GIN", "speed of GiST"]);
    }

    #[test]
    fn what_is_shared_is_said_in_each_part() {
        let check = |question, expected: &[&str]| check(Tongue::English, question, expected);
        check("What are the limits of arrays and hashes?", &["limits of arrays", "limits of hashes"]);
        check(
            "Is there a fee for boats, lockers and keys?",
            &["there a fee for boats", "there a fee for lockers", "there a fee for keys"],
        );
        check("Who wrote the book and when was it printed?", &["Who wrote the book", "when was it printed"]);
        check("Who pays? When is it due?", &["Who pays", "When is it due"]);
    }

    #[test]
    fn german_is_known_too() {
        let check = |question, expected: &[&str]| check(Tongue::German, question, expected);
        check("Was ist der Unterschied zwischen Tee und Kaffee?", &["Tee", "Kaffee"]);
        check("Vergleiche den Preis von Tee mit Kaffee", &["den Preis von Tee", "den Preis von Kaffee"]);
        check(
            "Wie hoch sind die Gebühren für Boote und Schränke?",
            &["hoch sind die Gebühren für Boote", "hoch sind die Gebühren für Schränke"],
        );
        check(
            "Wer schrieb es und wann wurde das Buch gedruckt?",
            &["Wer schrieb es", "wann wurde das Buch gedruckt"],
        );
    }

    #[test]
    fn what_is_not_compound_stays_whole() {
        for question in [
            "How tall is the lighthouse?",
            "research and development",
            "trial and error",
            "What did Marks and Spencer sell?",
            "\"compare a with b\"",
            "compare",
            "and?",
            "Is it? Is it?",
            "",
        ] {
            check(Tongue::English, question, &[]);
        }
        assert!(decompose("Compare tea with coffee", &[]).is_empty());
        assert!(decompose("Compare tea with coffee", &[Tongue::German]).is_empty());
        assert!(decompose(&"What of a and b? ".repeat(100), &[Tongue::English]).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(compare |what |of | and | with | vs |\\?|İ|\\PC|, ){0,30}") {
            let parts = decompose(&text, &[Tongue::English, Tongue::German]);
            prop_assert!(parts.is_empty() || (2..=MAX_PARTS).contains(&parts.len()));
        }
    }
}
