//! How sure an answer is, in a word: a rule over what was measured of it.

use crate::terms::Terms;

/// What is known of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grounds {
    /// Confidence of the answer, 0 to 1: support of its best citation; `None` where nothing was measured.
    pub confidence: Option<f64>,
    /// Support of its weakest citation, 0 to 1.
    pub weakest: f64,
    /// Share of the question's meaningful words that the cited texts hold, 0 to 1: see [`coverage`].
    pub coverage: f64,
    /// Place of the first citation's chunk among what was found, from 1; 0 if it is not there.
    pub rank: usize,
    /// Whether it has a sentence that nothing supports.
    pub has_unsupported: bool,
}

/// How sure an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// There is reason to look it up.
    Low,
    /// Supported, with something that speaks against it.
    Medium,
    /// Supported throughout, by what was found first, and about what was asked.
    High,
}

impl Level {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Least confidence, and least support of each citation, of an answer that is high.
const HIGH_CONFIDENCE: f64 = 0.9;
const HIGH_WEAKEST: f64 = 0.5;
/// Least share of the question's words, and last place of the first citation, of an answer that is high.
const HIGH_COVERAGE: f64 = 0.5;
const HIGH_RANK: usize = 3;
/// Least confidence and least share of the question's words of an answer that is not low.
const MEDIUM_CONFIDENCE: f64 = 0.6;
const MEDIUM_COVERAGE: f64 = 0.25;

/// High: confidence from 0.9, each citation's support from 0.5, half of the question's words in the cited texts, the first
/// citation among the first three chunks, and no sentence without support. Low: not measured, confidence below 0.6, less
/// than a quarter of the question's words, or a sentence without support. Medium: the rest.
pub fn level(grounds: &Grounds) -> Level {
    let confidence = grounds.confidence.unwrap_or(0.0);
    if confidence < MEDIUM_CONFIDENCE || grounds.coverage < MEDIUM_COVERAGE || grounds.has_unsupported {
        return Level::Low;
    }
    let is_high = confidence >= HIGH_CONFIDENCE
        && grounds.weakest >= HIGH_WEAKEST
        && grounds.coverage >= HIGH_COVERAGE
        && (1..=HIGH_RANK).contains(&grounds.rank);
    if is_high { Level::High } else { Level::Medium }
}

/// Share of the question's meaningful words that texts hold; 1 for a question without any.
pub fn coverage<'a>(question: &str, texts: impl IntoIterator<Item = &'a str>) -> f64 {
    let terms = Terms::new();
    let wanted = terms.of(question);
    if wanted.is_empty() {
        return 1.0;
    }
    let held = texts.into_iter().flat_map(|text| terms.of(text)).filter(|term| wanted.contains(term));
    held.collect::<std::collections::BTreeSet<_>>().len() as f64 / wanted.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Grounds =
        Grounds { confidence: Some(0.99), weakest: 0.9, coverage: 0.8, rank: 1, has_unsupported: false };

    #[test]
    fn each_doubt_costs_a_level() {
        assert_eq!(level(&SURE), Level::High);
        for (grounds, expected) in [
            (Grounds { confidence: Some(0.8), ..SURE }, Level::Medium),
            (Grounds { weakest: 0.4, ..SURE }, Level::Medium),
            (Grounds { coverage: 0.4, ..SURE }, Level::Medium),
            (Grounds { rank: 4, ..SURE }, Level::Medium),
            (Grounds { rank: 0, ..SURE }, Level::Medium),
            (Grounds { confidence: Some(0.5), ..SURE }, Level::Low),
            (Grounds { confidence: None, ..SURE }, Level::Low),
            (Grounds { coverage: 0.2, ..SURE }, Level::Low),
            (Grounds { has_unsupported: true, ..SURE }, Level::Low),
        ] {
            assert_eq!(level(&grounds), expected, "{grounds:?}");
        }
    }

    #[test]
    fn coverage_is_of_words_that_mean_something() {
        assert_eq!(coverage("How tall is the tower?", ["The tower"]), 0.5);
        assert_eq!(coverage("How tall is the tower?", ["The tower", "is tall."]), 1.0);
        assert_eq!(coverage("of the", []), 1.0);
    }
}
