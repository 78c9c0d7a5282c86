//! Texts to measure with: sentences of real words that make little sense, the same in each run and on each machine.

/// Fewest and most words of a text, but for the end of its last sentence.
const WORDS: std::ops::Range<usize> = 95..136;

const ADJECTIVES: [&str; 16] = [
    "old", "quiet", "northern", "broken", "careful", "green", "narrow", "public", "seasonal", "wooden",
    "early", "distant", "reliable", "monthly", "crowded", "unusual",
];

const NOUNS: [&str; 32] = [
    "ferry",
    "harbour",
    "library",
    "invoice",
    "engineer",
    "village",
    "bridge",
    "contract",
    "museum",
    "kitchen",
    "orchard",
    "railway",
    "ticket",
    "teacher",
    "server",
    "backup",
    "garden",
    "letter",
    "market",
    "mountain",
    "patient",
    "machine",
    "river",
    "station",
    "student",
    "warehouse",
    "committee",
    "festival",
    "lighthouse",
    "database",
    "bakery",
    "captain",
];

const VERBS: [&str; 16] = [
    "replaces",
    "crosses",
    "describes",
    "opens",
    "delays",
    "supports",
    "inspects",
    "remembers",
    "follows",
    "measures",
    "protects",
    "announces",
    "repairs",
    "visits",
    "explains",
    "surrounds",
];

const ENDINGS: [&str; 8] = [
    "before the end of the month",
    "although nobody had asked for it",
    "at 7.30 in the morning",
    "because of the heavy rain",
    "in all 16 districts",
    "as the annual report says",
    "until further notice",
    "for less than 40 euros",
];

/// So many different texts of about 120 words each.
pub(super) fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| text(number as u64)).collect()
}

fn text(number: u64) -> String {
    let mut draws = Draws(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let length = WORDS.start + draws.below(WORDS.len());
    let mut text = String::new();
    let mut words = 0;
    while words < length {
        let sentence = format!(
            "The {} {} {} the {} {} and {} the {} {}.",
            draws.one_of(&ADJECTIVES),
            draws.one_of(&NOUNS),
            draws.one_of(&VERBS),
            draws.one_of(&ADJECTIVES),
            draws.one_of(&NOUNS),
            draws.one_of(&VERBS),
            draws.one_of(&NOUNS),
            draws.one_of(&ENDINGS),
        );
        words += sentence.split(' ').count();
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&sentence);
    }
    text
}

/// Numbers that look random: Knuth's MMIX generator, of which the upper half is used.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn texts_differ_and_have_about_120_words() {
        let all = texts(2000);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        let lengths: Vec<usize> = all.iter().map(|text| text.split_whitespace().count()).collect();
        assert!(lengths.iter().all(|words| (95..160).contains(words)), "{lengths:?}");
        let mean = lengths.iter().sum::<usize>() / lengths.len();
        assert!((110..=130).contains(&mean), "{mean} words");
    }

    #[test]
    fn a_text_is_the_same_however_many_are_asked_for() {
        assert_eq!(texts(3)[..2], texts(2)[..]);
        assert!(texts(1)[0].starts_with("The ") && texts(1)[0].ends_with('.'));
    }
}
