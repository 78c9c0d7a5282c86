//! Whether passages answer a question at all: four scores of a cross-encoder and five weights.
//!
//! The best statement alone tells little: a text about the same thing often has a sentence that scores as an answer does.
//! What helps is how well the words around it do, for they tell whether it is about what was asked; and how much better
//! than its title and headings alone: these name the topic, and what they score is the topic's share.
//!
//! Weights go with the model whose scores they weigh (`answer_weights` of its folder), and are fitted by logistic
//! regression: `scripts/bench.sh answers fit`.

use serde::{Deserialize, Serialize};

/// Most bytes of the text around the best statement.
const WINDOW_BYTES: usize = 500;

/// Weights of the scores of a question.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerWeights {
    /// Added whatever the scores are.
    pub bias: f64,
    /// Of the best statement's.
    pub best: f64,
    /// Of that of the text around it.
    pub window: f64,
    /// Of the next best statement's.
    pub next: f64,
    /// Of its title's and headings'; 0 where nothing is said.
    #[serde(default)]
    pub heading: f64,
}

/// Scores of a question's best statements, as logits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Of the best statement.
    pub best: f64,
    /// Of the text around it.
    pub window: f64,
    /// Of the next best statement; what nothing would have, where there is none.
    pub next: f64,
    /// Of the title and headings above it alone; what nothing would have, where there are none.
    pub heading: f64,
}

/// The logit of a text that has nothing to do with a question.
pub const NOTHING: f64 = -11.0;

impl AnswerWeights {
    /// How likely it is that the passages answer the question, from 0 to 1.
    pub fn probability(&self, signals: &Signals) -> f64 {
        let Signals { best, window, next, heading } = signals;
        let logit =
            self.bias + self.best * best + self.window * window + self.next * next + self.heading * heading;
        1.0 / (1.0 + (-logit).exp())
    }

    /// Whether they are numbers.
    pub fn are_finite(&self) -> bool {
        [self.bias, self.best, self.window, self.next, self.heading].iter().all(|weight| weight.is_finite())
    }
}

/// The text around a statement, a third of it before: as much as the window takes, to whole words.
pub fn window(text: &str, statement: std::ops::Range<usize>) -> &str {
    let spare = WINDOW_BYTES.saturating_sub(statement.len());
    let start = statement.start.saturating_sub(spare / 3);
    let end = (statement.end + spare - (statement.start - start)).min(text.len());
    // What the end of the text leaves over goes before.
    let start = start.min(end.saturating_sub(WINDOW_BYTES));
    let is_blank = |at: usize| text.as_bytes().get(at).is_none_or(u8::is_ascii_whitespace);
    let start = (start..statement.start)
        .find(|at| *at == 0 || (text.is_char_boundary(*at) && is_blank(at - 1)))
        .unwrap_or(statement.start);
    let end = (statement.end..=end)
        .rfind(|at| text.is_char_boundary(*at) && is_blank(*at))
        .unwrap_or(statement.end);
    text[start..end].trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_window_raises_the_probability_and_a_rival_or_the_heading_lowers_it() {
        let weights = AnswerWeights { bias: -1.5, best: 0.1, window: 0.5, next: -0.2, heading: -0.3 };
        let of = |best, window, next, heading| weights.probability(&Signals { best, window, next, heading });
        assert!(of(6.0, 6.0, 0.0, 0.0) > of(6.0, 2.0, 0.0, 0.0));
        assert!(of(6.0, 6.0, 5.0, 0.0) < of(6.0, 6.0, 0.0, 0.0));
        assert!(of(6.0, 6.0, 0.0, 5.0) < of(6.0, 6.0, 0.0, NOTHING));
        assert!((of(0.0, 3.0, 0.0, 0.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn weights_may_leave_the_heading_out() {
        let weights = r#"{"bias": -1.5, "best": 0.1, "window": 0.5, "next": -0.2}"#;
        let weights: Option<AnswerWeights> = serde_json::from_str(weights).ok();
        assert_eq!(weights.map(|weights| weights.heading), Some(0.0));
    }

    #[test]
    fn a_window_has_whole_words_and_the_statement_in_it() {
        let text = format!("{} The statement stands here. {}", "before ".repeat(100), "after ".repeat(100));
        let at = text.find("The").unwrap_or_default();
        let found = window(&text, at..at + 26);
        assert!(found.contains("The statement stands here.") && found.len() <= WINDOW_BYTES, "{found}");
        assert!(found.starts_with("before") && found.ends_with("after"), "{found}");
        assert_eq!(window("Short.", 0..6), "Short.");
    }

    proptest! {
        #[test]
        fn a_window_holds_its_statement(text in "(\\PC{0,3}[a-zé 。\n]{0,9}){0,80}", from in 0usize..400, to in 0usize..400) {
            let boundary = |at: usize| (0..=at.min(text.len())).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (from, to) = (boundary(from.min(to)), boundary(from.max(to)));
            prop_assert!(window(&text, from..to).contains(text[from..to].trim()));
        }
    }
}
