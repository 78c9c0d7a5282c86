//! Whether a question is simple or complex, from its words alone: what decides which chat model is asked, and how much it
//! may write.
//!
//! A question is complex if it
//! - has more than [`MANY_WORDS`] words, or two question marks, or
//! - is compound by the rules of [`crate::decompose`], or
//! - has one of the words that ask for a comparison, an explanation or an overview, in English or German.
//!
//! Any other is simple. In other languages the first rule alone decides.

use crate::decompose::{Tongue, decompose};

/// More words than these make a question complex.
pub const MANY_WORDS: usize = 25;

/// How much a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complexity {
    /// A fact.
    Simple,
    /// Several facts, a comparison, an explanation or an overview.
    Complex,
}

/// What asks for more than a fact, in lower case.
const ASKING_FOR_MORE: &[&str] = &[
    "advantages",
    "analyse",
    "analyze",
    "compare",
    "comparison",
    "cons",
    "consequences",
    "contrast",
    "describe",
    "difference",
    "differences",
    "differ",
    "disadvantages",
    "elaborate",
    "evaluate",
    "explain",
    "implications",
    "list",
    "outline",
    "overview",
    "pros",
    "relationship",
    "steps",
    "summarise",
    "summarize",
    "summary",
    "trade-offs",
    "tradeoffs",
    "versus",
    "vs",
    "why",
    "analysiere",
    "auswirkungen",
    "beschreibe",
    "beschreiben",
    "erkläre",
    "erklären",
    "erläutere",
    "erläutern",
    "nachteile",
    "schritte",
    "überblick",
    "unterscheidet",
    "unterscheiden",
    "unterschied",
    "unterschiede",
    "vergleich",
    "vergleiche",
    "vorteile",
    "warum",
    "weshalb",
    "wieso",
    "zusammenfassung",
    "zusammenhang",
];

impl Complexity {
    /// Of a question.
    pub fn of(question: &str) -> Self {
        let question = question.to_lowercase();
        let words: Vec<&str> = question
            .split(|c: char| !c.is_alphanumeric() && c != '-')
            .filter(|word| word.contains(char::is_alphanumeric))
            .collect();
        let asks_for_more = words.iter().any(|word| ASKING_FOR_MORE.contains(word));
        let is_complex = words.len() > MANY_WORDS
            || question.matches(['?', '？', '؟']).count() > 1
            || asks_for_more
            || !decompose(&question, &[Tongue::English, Tongue::German]).is_empty();
        if is_complex { Self::Complex } else { Self::Simple }
    }

    /// Most tokens of an answer, where nobody says otherwise.
    pub fn max_tokens(self) -> u32 {
        match self {
            Self::Simple => 512,
            Self::Complex => 1024,
        }
    }

    /// Its name in diagnostics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Complex => "complex",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_question_decide() {
        let check = |question: &str, expected| assert_eq!(Complexity::of(question), expected, "{question}");
        for simple in [
            "How tall is the lighthouse of Kap Arkona?",
            "What does work_mem limit?",
            "When was the ferry built?",
            "Wie hoch ist der Leuchtturm?",
            "max_connections",
            "",
            "Is the list-price 12 francs?",
        ] {
            check(simple, Complexity::Simple);
        }
        for complex in [
            "Compare hash joins with merge joins.",
            "What is the difference between VACUUM and VACUUM FULL?",
            "Why does the planner ignore my index?",
            "How tall is the tower? When was it built?",
            "Warum ist der Turm gesperrt?",
            "List the STEPS of a base backup",
            "What are the limits of work_mem and maintenance_work_mem?",
        ] {
            check(complex, Complexity::Complex);
        }
        check(&"word ".repeat(MANY_WORDS), Complexity::Simple);
        check(&"word ".repeat(MANY_WORDS + 1), Complexity::Complex);
    }

    #[test]
    fn a_complex_question_may_be_answered_at_length() {
        assert_eq!((Complexity::Simple.max_tokens(), Complexity::Complex.max_tokens()), (512, 1024));
    }
}
