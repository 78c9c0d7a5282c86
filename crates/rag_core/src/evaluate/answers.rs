//! Measures of answers against what is right for their questions.
//!
//! Each is of one question, 0 or 1 or a share, and none where the question says nothing of it: a mean is over those that do.

use crate::answer::cite::marked_sentences;

/// What is right for a question, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// A text that the answer must hold.
    pub answer: Option<String>,
    /// A text that a citation must quote.
    pub quote: Option<String>,
    /// The document that answers it, by uri or id.
    pub document: Option<String>,
    /// Whether the documents answer it; else it is to be refused.
    pub is_answerable: bool,
}

/// A citation of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    /// The document's uri and id, whichever it has.
    pub names: Vec<String>,
    /// What is quoted.
    pub quote: String,
    /// Whether the quote stands in the document's text where the citation says; none where that text is not kept.
    pub is_exact: Option<bool>,
}

/// What came of a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// The answer's text; none: it was refused.
    pub text: Option<String>,
    /// In the order of their numbers.
    pub citations: Vec<Cited>,
    /// Sentences that nothing supports, left out or kept.
    pub unsupported: usize,
}

/// What an answer is worth, or the mean of several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AnswerMeasures {
    /// Of an answerable question: whether it was answered.
    pub answered: Option<f64>,
    /// Of one that is not: whether it was refused.
    pub refused: Option<f64>,
    /// Of one whose answer is known: whether the text, or a quote, holds it; 0 where it was refused.
    pub correct: Option<f64>,
    /// Of one whose quote is known: whether a citation has it; 0 where it was refused.
    pub quoted: Option<f64>,
    /// Of an answer whose document is known: share of the citations that are of it.
    pub citation_precision: Option<f64>,
    /// Of a question whose document is known: whether a citation is of it; 0 where it was refused.
    pub citation_recall: Option<f64>,
    /// Of an answered question whose document is known: whether the first citation is of it.
    pub first_citation: Option<f64>,
    /// Of an answer: share of its sentences that what they cite supports, those among them that were left out.
    pub faithfulness: Option<f64>,
    /// Of an answer: share of citations whose quote stands where they say, of those whose document's text is kept.
    pub exact: Option<f64>,
}

/// What one answer is worth.
pub fn measures(expected: &Expected, given: &Given) -> AnswerMeasures {
    let is_answered = given.text.is_some();
    let citations = &given.citations;
    let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
    let share = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    let holds = |wanted: &str, text: &str| {
        let wanted = normal(wanted);
        !wanted.is_empty() && normal(text).contains(&wanted)
    };
    let is_wanted = |cited: &Cited, document: &str| cited.names.iter().any(|name| name == document);
    let is_quoted =
        |quote: &str| citations.iter().any(|cited| holds(quote, &cited.quote) || holds(&cited.quote, quote));

    let answerable = expected.is_answerable.then_some(());
    let document = answerable.and(expected.document.as_deref());
    let of_document = |document: &str| citations.iter().filter(|cited| is_wanted(cited, document)).count();
    AnswerMeasures {
        answered: answerable.map(|()| truth(is_answered)),
        refused: (!expected.is_answerable).then(|| truth(!is_answered)),
        correct: answerable.and(expected.answer.as_deref()).map(|answer| {
            let text = given.text.as_deref();
            truth(text.is_some_and(|text| {
                holds(answer, text) || citations.iter().any(|cited| holds(answer, &cited.quote))
            }))
        }),
        quoted: answerable.and(expected.quote.as_deref()).map(|quote| truth(is_answered && is_quoted(quote))),
        citation_precision: document.and_then(|document| share(of_document(document), citations.len())),
        citation_recall: document.map(|document| truth(of_document(document) > 0)),
        first_citation: document
            .and_then(|document| citations.first().map(|first| truth(is_wanted(first, document)))),
        faithfulness: given.text.as_deref().and_then(|text| {
            let sentences = marked_sentences(text);
            let supported = sentences.iter().filter(|(_, numbers)| !numbers.is_empty()).count();
            share(supported, supported + given.unsupported)
        }),
        exact: share(
            citations.iter().filter(|cited| cited.is_exact == Some(true)).count(),
            citations.iter().filter(|cited| cited.is_exact.is_some()).count(),
        ),
    }
}

/// The mean of each over those that have it.
pub fn mean(of_questions: &[AnswerMeasures]) -> AnswerMeasures {
    let mean = |value: fn(&AnswerMeasures) -> Option<f64>| {
        let values: Vec<f64> = of_questions.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    AnswerMeasures {
        answered: mean(|m| m.answered),
        refused: mean(|m| m.refused),
        correct: mean(|m| m.correct),
        quoted: mean(|m| m.quoted),
        citation_precision: mean(|m| m.citation_precision),
        citation_recall: mean(|m| m.citation_recall),
        first_citation: mean(|m| m.first_citation),
        faithfulness: mean(|m| m.faithfulness),
        exact: mean(|m| m.exact),
    }
}

/// A text as it is compared: lower case, single blanks, no marks at its ends.
fn normal(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    words.trim_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(document: &str, quote: &str) -> Cited {
        Cited { names: vec![document.to_owned()], quote: quote.to_owned(), is_exact: Some(true) }
    }

    fn expected() -> Expected {
        Expected {
            answer: Some("35 metres".into()),
            quote: Some("The tower is 35 metres tall.".into()),
            document: Some("tower.md".into()),
            is_answerable: true,
        }
    }

    #[test]
    fn an_answer_is_measured_by_what_is_known_of_it() {
        let given = Given {
            text: Some("It is 35  Metres tall. [1] Nice. [2]".into()),
            citations: vec![
                cited("tower.md", "the tower is 35 metres tall"),
                cited("fee.md", "The fee is 60."),
            ],
            unsupported: 2,
        };
        let found = measures(&expected(), &given);
        assert_eq!((found.answered, found.refused), (Some(1.0), None));
        assert_eq!((found.correct, found.quoted), (Some(1.0), Some(1.0)));
        assert_eq!((found.citation_precision, found.citation_recall), (Some(0.5), Some(1.0)));
        assert_eq!(
            (found.first_citation, found.faithfulness, found.exact),
            (Some(1.0), Some(0.5), Some(1.0))
        );
    }

    #[test]
    fn a_refusal_is_right_where_there_is_no_answer_and_wrong_where_there_is_one() {
        let wrong = measures(&expected(), &Given::default());
        assert_eq!((wrong.answered, wrong.correct, wrong.quoted), (Some(0.0), Some(0.0), Some(0.0)));
        assert_eq!((wrong.citation_precision, wrong.faithfulness, wrong.exact), (None, None, None));
        let unanswerable = Expected { is_answerable: false, ..expected() };
        let right = measures(&unanswerable, &Given::default());
        assert_eq!(right, AnswerMeasures { refused: Some(1.0), ..AnswerMeasures::default() });
        let mean = mean(&[wrong, right]);
        assert_eq!((mean.answered, mean.refused), (Some(0.0), Some(1.0)));
    }
}
