//! What stands beside a statement and is wanted with it, for the statement alone would not be understood, or not say what was asked.

use super::Passage;
use super::extract::Evidence;
use super::statement::{Statement, defined_term, is_row, statements, term_of};
use crate::sentence::{LineKind, lines};
use crate::terms::Terms;
use std::ops::Range;

/// First words that point at the sentence before.
const BACKWARD_WORDS: &[&str] = &[
    "he", "her", "his", "it", "its", "she", "such", "that", "their", "them", "these", "they", "this",
    "those", "diese", "dieser", "dieses", "er", "es", "sie",
];

/// First words behind which such a word points there as well, beside adverbs in -ly.
const OPENING_WORDS: &[&str] = &[
    "also", "although", "and", "because", "but", "by", "for", "from", "if", "in", "like", "since", "so",
    "then", "to", "when", "where", "with", "aber", "wenn", "da",
];

/// Words with which a question asks for a number or a time, each with what may follow it.
const NUMBER_QUESTIONS: [(&str, &[&str]); 2] = [
    (
        "how",
        &[
            "big", "deep", "far", "fast", "heavy", "high", "large", "long", "many", "much", "often", "old",
            "small", "tall", "wide",
        ],
    ),
    ("when", &["did", "do", "does", "is", "was", "were", "will"]),
];

/// The same by themselves.
const NUMBER_WORDS: &[&str] = &["wann", "wieviel", "wieviele", "year"];

/// What a question asks for, and a definition says in a sentence of its own.
const DEFAULT: &str = "default";

/// Sentences of a definition among which that one is looked for.
const DEFINITION_SENTENCES: usize = 12;

/// Words among which one points back from behind a block of code: "Messages like this mean".
const WORDS_BEHIND_CODE: usize = 4;

/// What a question asks for beside words that it shares with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// A number or a time.
    pub number: bool,
    /// What holds where nobody says otherwise.
    pub default: bool,
}

impl Wanted {
    /// By a question.
    pub fn by(question: &str) -> Self {
        let lower = question.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let asks = |pair: &[&str]| {
            NUMBER_QUESTIONS.iter().any(|(first, second)| pair[0] == *first && second.contains(&pair[1]))
        };
        Self {
            number: words.iter().any(|word| NUMBER_WORDS.contains(word)) || words.windows(2).any(asks),
            default: words.contains(&DEFAULT),
        }
    }

    /// Whether a text lacks what is asked for and another one has it.
    fn is_given(self, text: &str, other: &str) -> bool {
        let has_default = |text: &str| text.to_lowercase().contains(DEFAULT);
        match self {
            Self { default: true, .. } => !has_default(text) && has_default(other),
            Self { number: true, .. } => !has_digit(text) && has_digit(other),
            _ => false,
        }
    }
}

/// What is wanted with a statement, most needed first:
///
/// - where it says more of a term, the term's definition, else the sentence before it in its paragraph, if it points at that;
/// - what was asked for and it lacks: from the next sentence, or from any of the same definition;
/// - the sentence behind it, if that points back; behind code, if one of its first words does, for there stands what the code means.
///
/// The rows of a table are each about something else.
pub(super) fn beside(
    passage: &Passage<'_>,
    statement: &Evidence,
    terms: &Terms,
    wanted: Wanted,
) -> Vec<Statement> {
    let text = passage.text;
    let Range { start, end } = statement.bytes;
    let all = statements(passage, terms);
    let behind = all.iter().position(|other| other.bytes.start >= end).unwrap_or(all.len());
    let before = all[..behind].iter().rfind(|other| other.bytes.end <= start);
    let before = before
        .filter(|other| points_back(&statement.text) && is_within_paragraph(&text[other.bytes.end..start]));
    let definition = statement.about.as_deref().filter(|about| about.starts_with('`')).and_then(|term| {
        all[..behind].iter().rfind(|other| other.bytes.end <= start && term_of(&other.text) == Some(term))
    });
    let term = statement.about.as_deref().or_else(|| term_of(&statement.text));
    let after = all.get(behind).filter(|other| !is_row(&text[other.bytes.start..]));
    let goes_on = match is_code(text, &statement.bytes) {
        true => all[behind..].iter().find(|other| !is_code(text, &other.bytes)).filter(|other| {
            is_rest_of_code(text, end..other.bytes.start)
                && points_back_within(&other.text, WORDS_BEHIND_CODE)
        }),
        false => after
            .filter(|other| is_within_paragraph(&text[end..other.bytes.start]) && points_back(&other.text)),
    };
    let is_given = |other: &&Statement| wanted.is_given(&statement.text, &other.text);
    let next = after.filter(|other| is_within_paragraph(&text[end..other.bytes.start])).filter(is_given);
    let of_term = |other: &&Statement| term.is_some() && defined_term(text, other.bytes.start) == term;
    let detail = next.or_else(|| {
        all[behind..].iter().take(DEFINITION_SENTENCES).take_while(of_term).find(|other| is_given(other))
    });
    let mut found: Vec<Statement> = Vec::new();
    for other in [definition, before.filter(|_| definition.is_none()), detail, goes_on].into_iter().flatten()
    {
        if !found.contains(other) {
            found.push(other.clone());
        }
    }
    found
}

fn has_digit(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

fn points_back(sentence: &str) -> bool {
    let first = sentence.split_whitespace().next().map(bare).unwrap_or_default();
    let opens = OPENING_WORDS.contains(&&first[..]) || first.ends_with("ly");
    points_back_within(sentence, if opens { 2 } else { 1 })
}

fn points_back_within(sentence: &str, words: usize) -> bool {
    sentence.split_whitespace().take(words).any(|word| BACKWARD_WORDS.contains(&&bare(word)[..]))
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn is_within_paragraph(gap: &str) -> bool {
    gap.chars().all(char::is_whitespace) && !gap.contains("\n\n")
}

/// Whether a statement is code, or ends with it.
fn is_code(text: &str, bytes: &Range<usize>) -> bool {
    let last = lines(text).take_while(|line| line.bytes.start < bytes.end).last();
    last.is_some_and(|line| matches!(line.kind, LineKind::Code | LineKind::Fence))
}

/// Whether nothing but the rest of a block of code stands there, and not another one.
fn is_rest_of_code(text: &str, gap: Range<usize>) -> bool {
    let kinds: Vec<LineKind> =
        lines(text).filter(|line| gap.contains(&line.bytes.start)).map(|line| line.kind).collect();
    kinds.iter().all(|kind| matches!(kind, LineKind::Code | LineKind::Fence | LineKind::Blank))
        && kinds.iter().filter(|kind| **kind == LineKind::Fence).count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::extract::candidates;

    /// What comes with the statement that holds some words.
    fn with(text: &str, words: &str, question: &str) -> Vec<String> {
        let passage = Passage { title: "", header_path: &[], table_header: None, text };
        let found = candidates("", std::slice::from_ref(&passage), &[], 100);
        let statement = found.iter().find(|one| one.text.contains(words)).expect("it is a statement");
        let beside = beside(&passage, statement, &Terms::new(), Wanted::by(question));
        beside.into_iter().map(|other| other.text).collect()
    }

    #[test]
    fn more_of_a_term_comes_with_its_definition() {
        let text = "- `pump_rest` (`integer`): How long the pump rests. For example, if you set it to `5min` it rests five minutes. Only keepers of pumps set that.\n- `pump_speed` (`integer`): How fast it turns.";
        assert_eq!(
            with(text, "five minutes", "How do I rest the pump?"),
            ["`pump_rest` (`integer`): How long the pump rests."]
        );
        assert_eq!(with(text, "How fast it turns", "How do I rest the pump?"), [""; 0]);
    }

    #[test]
    fn the_default_is_found_anywhere_in_the_definition_and_nowhere_else() {
        let text = "- `pump_rest` (`integer`): How long the pump rests at night. Nobody in the village hears the pump. Without a unit the value counts seconds. The default rest for pumps is `90`. Only keepers of pumps set that.\n- `pump_speed` (`integer`): How fast it turns in a storm.\n\nThe default is a guess of some keepers.";
        let with_default = |question| with(text, "How long the pump rests", question);
        assert_eq!(
            with_default("How long does it rest by default?"),
            ["The default rest for pumps is `90`."]
        );
        assert_eq!(with_default("How long does it rest?"), ["The default rest for pumps is `90`."]);
        assert_eq!(with_default("Why does it rest?"), [""; 0]);
        assert_eq!(with(text, "How fast it turns", "How fast does it turn by default?"), [""; 0]);
    }

    #[test]
    fn what_stands_behind_code_says_what_it_means() {
        let text = "The lamp complains:\n\n```\nLAMP:  could not light the wick: no oil\nHINT:  fill it\n```\n\nMessages like this mean that the tank is empty. Another lamp hums.\n\n```\n$ lamp --hum\n```\n\nNothing else is heard.";
        assert_eq!(
            with(text, "could not light", "What does it mean?"),
            ["Messages like this mean that the tank is empty."]
        );
        assert_eq!(with(text, "lamp --hum", "What does it mean?"), [""; 0]);
    }

    #[test]
    fn a_sentence_points_back_also_behind_an_opening_word() {
        for (sentence, points) in [
            ("It hangs there.", true),
            ("If this is empty, nothing is lit.", true),
            ("Currently this keeper sleeps.", true),
            ("Keepers like this lamp.", false),
            ("Lamps burn.", false),
        ] {
            assert_eq!(points_back(sentence), points, "{sentence}");
        }
    }
}
