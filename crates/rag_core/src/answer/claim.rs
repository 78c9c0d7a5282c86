//! What a sentence of an answer claims, and what of it the cited texts state.
//!
//! Words are compared here; how well a text answers the question, a model says.

use super::Passage;
use super::cite::{best_quote, without_markers};
use super::extract::{Evidence, candidates};
use super::names::names;
use super::neutralise::{misleading, touches};
use super::statement::one_line;
use crate::terms::Terms;
use std::collections::HashSet;
use std::ops::Range;

/// Statements of one passage that are compared with a sentence.
const STATEMENTS: usize = 4;

/// Most numbers of the statements that are tried as parts of a sum: of many numbers some always fit.
const MAX_ADDENDS_TRIED: usize = 8;

/// Most numbers that one sum has.
const MAX_ADDENDS: u32 = 4;

/// Words that are an answer by themselves.
const VERDICTS: &[&str] = &[
    "yes", "no", "ja", "nein", "oui", "non", "sí", "si", "correct", "right", "true", "false", "indeed",
    "stimmt",
];

/// What the cited texts say about what a sentence tells beyond the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facts {
    /// It has a number, code or name that neither the texts nor the question have.
    Invented,
    /// It only says yes or no.
    Verdict,
    /// It has a number that is the sum of numbers in the statements.
    Summed,
    /// It has a number, code or name that a statement has too, and no other.
    Stated,
    /// Nothing but words.
    Words,
}

/// What was found out about a sentence's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What kind they are of.
    pub facts: Facts,
    /// Indices of the statements that hold them; none for `Invented`, `Verdict` and `Words`.
    pub held_by: Vec<usize>,
    /// For each of its numbers and codes that the question has not, the indices of the statements that have it; none where
    /// only headings have.
    pub places: Vec<Vec<usize>>,
}

impl Found {
    fn of(facts: Facts, held_by: Vec<usize>) -> Self {
        Self { facts, held_by, places: Vec::new() }
    }

    /// The statements that have the numbers and codes that this one lacks: for each the first in this order.
    pub fn beside(&self, statement: usize, order: &[usize]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for place in &self.places {
            if !place.contains(&statement) && !place.iter().any(|index| found.contains(index)) {
                found.extend(order.iter().find(|index| place.contains(index)));
            }
        }
        found
    }
}

/// Statements of the passages that may bear a sentence out: of each, the one that shares most words with it, and those
/// that answer the question. What gives orders to a model, and what no reader sees, is none.
pub fn statements_for(question: &str, sentence: &str, passages: &[Passage<'_>]) -> Vec<Evidence> {
    let sentence = without_markers(sentence);
    let wanted = format!("{question} {sentence}");
    let mut found: Vec<Evidence> = Vec::new();
    for (source, passage) in passages.iter().enumerate() {
        let misleading = misleading(passage.text);
        let is_sound = |bytes: &Range<usize>| !touches(&misleading, bytes);
        let mut others = candidates(&wanted, &[*passage], std::slice::from_ref(&misleading), STATEMENTS);
        others.iter_mut().for_each(|other| other.source = source);
        if let Some(bytes) = best_quote(&sentence, passage.text).filter(is_sound) {
            let at = others.iter().position(|other| other.bytes == bytes);
            let text = one_line(&passage.text[bytes.clone()]);
            found.push(at.map_or(Evidence { source, bytes, text, about: None }, |at| others.remove(at)));
        }
        found.extend(others);
    }
    found
}

/// Compares a sentence's facts with statements, and with the whole texts that it cites, titles and headings among them: numbers,
/// codes and names may stand anywhere in these, or in the question.
pub fn facts(question: &str, sentence: &str, statements: &[&str], texts: &[&str]) -> Found {
    let sentence = without_markers(sentence);
    let is_verdict = is_verdict(question, &sentence);
    let asked = numbers(question);
    let known: Vec<Number> = texts.iter().flat_map(|text| numbers(text)).collect();
    let stated: Vec<(usize, Number)> = statements
        .iter()
        .enumerate()
        .flat_map(|(index, text)| numbers(text).into_iter().map(move |number| (index, number)))
        .collect();
    let mut found = Found::of(if is_verdict { Facts::Verdict } else { Facts::Words }, Vec::new());
    for number in &numbers(&sentence) {
        let is_asked = asked.iter().any(|other| other.is(number));
        if !is_asked {
            let has_it = stated.iter().filter(|(_, other)| other.is(number)).map(|(index, _)| *index);
            found.places.push(has_it.collect());
        }
        if known.iter().any(|other| other.is(number)) {
            let holders = stated.iter().filter(|(_, other)| other.is(number) && other.measures(number));
            let holders: Vec<usize> = holders.map(|(index, _)| *index).collect();
            if !is_asked && !holders.is_empty() && found.facts != Facts::Summed {
                found.facts = Facts::Stated;
                found.held_by.extend(holders);
            }
        } else if let Some(addends) = addends(number, &stated) {
            (found.facts, found.held_by) = (Facts::Summed, addends);
        } else if !(is_verdict && is_asked) {
            return Found::of(Facts::Invented, Vec::new());
        }
    }
    if has_unknown_word(question, &sentence, texts) {
        return Found::of(Facts::Invented, Vec::new());
    }
    if found.facts == Facts::Words {
        found.held_by = holders_of_names(question, &sentence, statements);
        if !found.held_by.is_empty() {
            found.facts = Facts::Stated;
        }
    }
    found.held_by.sort_unstable();
    found.held_by.dedup();
    found
}

/// Of the meaningful words that a sentence says beyond the question, the share that a text has; `None` if it says none.
///
/// A sentence made of the question's words says nothing of its own, and texts about the same thing have them all.
pub fn share_beyond(question: &str, sentence: &str, text: &str) -> Option<f64> {
    let terms = Terms::new();
    let (asked, held) = (terms.of(question), terms.of(text));
    let own: Vec<String> = terms.of(&without_markers(sentence)).difference(&asked).cloned().collect();
    let found = own.iter().filter(|term| held.contains(*term)).count();
    (!own.is_empty()).then(|| found as f64 / own.len() as f64)
}

/// Whether a sentence says yes or no, and nothing that the question does not say: `Yes.`, `No, the tower is not tall.`
fn is_verdict(question: &str, sentence: &str) -> bool {
    let mut words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_lowercase();
    let rest: Vec<&str> = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect();
    let terms = Terms::new();
    VERDICTS.contains(&first.as_str()) && terms.of(&rest.join(" ")).is_subset(&terms.of(question))
}

/// Words that English text has and German has not, for in German every noun has a capital.
const ENGLISH: &[&str] = &[
    "the", "is", "are", "were", "of", "and", "it", "its", "by", "with", "which", "that", "to", "has", "from",
];

/// Whether a sentence has a name, or an identifier such as `work_mem`, that neither the texts nor the question have.
fn has_unknown_word(question: &str, sentence: &str, texts: &[&str]) -> bool {
    let words = |text: &str| -> HashSet<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .map(|word| word.to_lowercase())
            .collect()
    };
    let is_english = words(sentence).iter().any(|word| ENGLISH.contains(&word.as_str()));
    let mut named = names(sentence, is_english);
    let identifiers = sentence.split(|c: char| !c.is_alphanumeric() && c != '_');
    named.extend(identifiers.filter(|word| word.trim_matches('_').contains('_')));
    if named.is_empty() {
        return false;
    }
    let mut known = words(question);
    known.extend(texts.iter().flat_map(|text| words(text)));
    let is_known = |word: &String| {
        let singular = word.strip_suffix('s').is_some_and(|word| known.contains(word));
        // What has a digit is compared as a number or code.
        known.contains(word)
            || singular
            || word.chars().count() < 2
            || word.contains(|c: char| c.is_ascii_digit())
    };
    named
        .iter()
        .flat_map(|name| words(name))
        .any(|word| !is_known(&word) && !ENGLISH.contains(&word.as_str()))
}

/// Statements with names that the sentence has and the question has not, words with a capital behind the first; none where
/// one of the names stands in no statement.
fn holders_of_names(question: &str, sentence: &str, statements: &[&str]) -> Vec<usize> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '-')
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let asked = words(question);
    let names: Vec<String> = words(sentence)
        .into_iter()
        .skip(1)
        .filter(|word| word.starts_with(char::is_uppercase) && word.chars().count() > 1)
        .filter(|name| !asked.iter().any(|word| word.eq_ignore_ascii_case(name)))
        .collect();
    let stated: Vec<Vec<String>> =
        statements.iter().map(|text| words(text).into_iter().skip(1).collect()).collect();
    if !names.iter().all(|name| stated.iter().any(|words| words.contains(name))) {
        return Vec::new();
    }
    let holds = |words: &Vec<String>| words.iter().any(|word| names.contains(word));
    stated.iter().enumerate().filter(|(_, words)| holds(words)).map(|(index, _)| index).collect()
}

/// A number or code of a text, with what it measures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Number {
    /// In lower case, without the marks around it.
    word: String,
    /// What it may be as a number: `1.200` is 1.2 or 1200.
    values: Vec<f64>,
    /// The word behind it, or what is written onto it; empty if it is none.
    unit: String,
}

impl Number {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.word == other.word || self.values.iter().any(|value| other.values.contains(value))
    }

    /// Whether both count the same thing, as far as the words behind them tell: `m` and `metres` do, `metres` and `tonnes` do
    /// not.
    fn measures(&self, other: &Self) -> bool {
        let common = self.unit.chars().zip(other.unit.chars()).take_while(|(a, b)| a == b).count();
        let shorter = self.unit.chars().count().min(other.unit.chars().count());
        common >= shorter.min(2)
    }
}

/// The words of a text that have a digit.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || "()[]{}\"'“”‘’;:!?*`|".contains(c))
        .map(|word| word.trim_matches(['.', ',']).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if !word.contains(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let bare = word.trim_start_matches(['$', '€', '£', '~', '≈', '+']);
        let digits = bare.trim_end_matches(|c: char| c.is_alphabetic() || "%°€$£-".contains(c));
        let written_on = bare[digits.len()..].trim_matches('-');
        let values = values(digits);
        let next = words.get(index + 1).filter(|next| !next.contains(|c: char| c.is_ascii_digit()));
        let unit =
            if written_on.is_empty() { next.cloned().unwrap_or_default() } else { written_on.to_owned() };
        found.push(Number { word: word.clone(), values, unit });
    }
    found
}

/// What digits with points and commas may mean; nothing for a code.
fn values(digits: &str) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::new();
    for (group, point) in [(',', '.'), ('.', ',')] {
        let (whole, fraction) = digits.split_once(point).unwrap_or((digits, ""));
        let mut groups = whole.split(group);
        let first = groups.next().unwrap_or_default();
        let is_grouped = groups.clone().count() == 0 || (1..=3).contains(&first.len());
        if !is_grouped || !groups.all(|group| group.len() == 3) {
            continue;
        }
        let plain = format!("{}.{fraction}", whole.replace(group, ""));
        if plain.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && let Ok(value) = plain.parse::<f64>()
            && !values.contains(&value)
        {
            values.push(value);
        }
    }
    values
}

/// The statements that hold two to four numbers of the same measure whose sum this is.
fn addends(number: &Number, stated: &[(usize, Number)]) -> Option<Vec<usize>> {
    let parts: Vec<(usize, f64)> = stated
        .iter()
        .filter(|(_, other)| other.measures(number))
        .filter_map(|(index, other)| Some((*index, *other.values.first()?)))
        .take(MAX_ADDENDS_TRIED)
        .collect();
    let sets = (1u32..1 << parts.len()).filter(|set| (2..=MAX_ADDENDS).contains(&set.count_ones()));
    sets.map(|set| {
        parts.iter().enumerate().filter(move |(at, _)| set & (1 << at) != 0).map(|(_, part)| *part)
    })
    .find(|set| {
        let sum: f64 = set.clone().map(|(_, value)| value).sum();
        number.values.iter().any(|value| (value - sum).abs() < 1e-9)
    })
    .map(|set| set.map(|(index, _)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(question: &str, sentence: &str, texts: &[&str], expected: Facts) {
        assert_eq!(facts(question, sentence, texts, texts).facts, expected, "{sentence}");
    }

    const TOWER: &[&str] = &["The lighthouse of Kap Arkona is 35 metres tall."];

    #[test]
    fn a_number_is_stated_summed_or_invented() {
        check("How tall?", "Its height is 35 metres. [1]", TOWER, Facts::Stated);
        check("Wie hoch?", "Er ist 35 Meter hoch.", TOWER, Facts::Stated);
        check("How tall?", "It rises 35m.", TOWER, Facts::Stated);
        check("How tall?", "It weighs 35 tonnes.", TOWER, Facts::Words);
        check("How tall?", "It is 812 metres tall.", TOWER, Facts::Invented);
        let fees = &["The fee is 60 euros.", "A locker costs 15 euros a year, a key 1,200.50 euros."];
        check("How much together?", "Together 75 euros.", fees, Facts::Summed);
        check("How much together?", "Zusammen 1.275,50 Euro.", fees, Facts::Summed);
        check("How much together?", "Together 76 euros.", fees, Facts::Invented);
        check("How much together?", "Together 75 sheep.", fees, Facts::Invented);
        check("Which?", "See FC-002.", &["See FC-001."], Facts::Invented);
        check("Which?", "It is fc-001.", &["See FC-001."], Facts::Stated);
    }

    #[test]
    fn a_sum_names_the_statements_that_hold_its_parts() {
        let texts = &["The fee is 60 euros.", "It rains for 15 days.", "A locker costs 15 euros."];
        let found = facts("How much?", "Together 75 euros.", texts, texts);
        assert_eq!((found.facts, found.held_by), (Facts::Summed, vec![0, 2]));
    }

    #[test]
    fn numbers_that_a_statement_lacks_stand_in_others() {
        let texts =
            &["The bridge was built in 1831.", "It was sold in 1967.", "In 1967 it rained.", "Nobody came."];
        let found = facts("What of the bridge?", "Built in 1831, it was sold in 1967.", texts, texts);
        assert_eq!(found.beside(0, &[3, 0, 2, 1]), [2]);
        assert_eq!(found.beside(3, &[3, 0, 2, 1]), [0, 2]);
        let asked = facts("Was it sold in 1967?", "It was sold in 1967.", texts, texts);
        assert_eq!(asked.beside(0, &[0, 1, 2, 3]), [0; 0]);
    }

    #[test]
    fn a_verdict_says_nothing_else() {
        check("Is it tall?", "Yes. [1]", TOWER, Facts::Verdict);
        check("Is it taller than 30 metres?", "Yes, it is more than 30.", TOWER, Facts::Verdict);
        check(
            "Is the lighthouse taller than 30 metres?",
            "Yes, the lighthouse is taller than 30 metres.",
            TOWER,
            Facts::Verdict,
        );
        check("Is it tall?", "Yes, and made of cheese.", TOWER, Facts::Words);
        check("Is it tall?", "Yes, 812.", TOWER, Facts::Invented);
    }

    #[test]
    fn a_name_counts_where_the_question_has_it_not() {
        let ferry = &["The night ferry sails from Holmsund to Vaasa."];
        check("Where does it go?", "Sie fährt nach Vaasa.", ferry, Facts::Stated);
        check("Does it go to Vaasa?", "It goes to Vaasa.", ferry, Facts::Words);
        check("Where does it go?", "It goes to Turku.", ferry, Facts::Invented);
        check("Does it go to Turku?", "It goes to Turku.", ferry, Facts::Words);
        check("Where does it go?", "It goes from Holmsund to Turku.", ferry, Facts::Invented);
        check("Wohin?", "Sie verkehrt nach Fahrplan.", ferry, Facts::Words);
        check("Which one?", "It is set by work_mem.", &["Set `shared_mem` here."], Facts::Invented);
        check("Which one?", "It is set by `shared_mem`.", &["Set shared_mem here."], Facts::Words);
    }

    #[test]
    fn words_of_the_question_are_nothing_that_is_said() {
        let beyond = |sentence| share_beyond("How tall is the lighthouse?", sentence, TOWER[0]);
        assert_eq!(beyond("The lighthouse was sold to pirates. [1]"), Some(0.0));
        assert_eq!(beyond("The lighthouse is 35 metres high."), Some(2.0 / 3.0));
        assert_eq!(beyond("The lighthouse is tall."), None);
    }

    #[test]
    fn numbers_are_read_in_both_ways_of_writing() {
        for (text, expected) in [
            ("1,200", &[1200.0, 1.2][..]),
            ("1.200", &[1.2, 1200.0]),
            ("1,200.50", &[1200.5]),
            ("3,5", &[3.5]),
            ("35", &[35.0]),
            ("fc-001", &[]),
            ("1.2.3", &[]),
        ] {
            assert_eq!(values(text), expected, "{text}");
        }
    }

    #[test]
    fn statements_are_the_nearest_and_those_that_answer() {
        let text = "The fee is 60 euros. Nothing else matters here. A locker costs 15 euros.";
        let passage = Passage { title: "", header_path: &[], table_header: None, text };
        let found = statements_for("What do fee and locker cost?", "Together 75 euros. [1]", &[passage]);
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert!(
            texts.contains(&"The fee is 60 euros.") && texts.contains(&"A locker costs 15 euros."),
            "{texts:?}"
        );
    }
}
