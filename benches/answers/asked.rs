//! Asks the questions, and checks what comes back with code of its own.

use crate::fit::SIGNALS;
use crate::sets::{Asked, Gold, Part, Question};
use rag_benches::{Times, timed};
use serde_json::Value;

/// The default reranker's `answer_threshold`.
const THRESHOLD: f64 = 0.5;

/// Fewest characters of a quote that counts as a part of a gold sentence.
const MIN_QUOTE_CHARS: usize = 20;

/// What counts as found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// What has a confidence. Whatever is found is answered: what would have been refused is told from the confidence
    /// afterwards, so that a curve can be drawn.
    ByConfidence,
    /// What the answer says.
    AsTold,
}

/// What a question came to.
pub(crate) struct Reply {
    pub(crate) part: Part,
    pub(crate) is_answerable: bool,
    pub(crate) kind: String,
    pub(crate) found: bool,
    /// From 0 to 1. What was refused has one, too: that of the answer that it would have been.
    pub(crate) confidence: f64,
    /// Whether the first citation is of a document that answers.
    pub(crate) cites_right_document: bool,
    /// Whether the answer has what it must hold.
    pub(crate) is_right: bool,
    pub(crate) quotes: usize,
    /// Quotes that are not what stands at their place in the document.
    pub(crate) untrue_quotes: usize,
    /// Words with a digit in the answer, and those of them that stand in no quote of it.
    pub(crate) numbers: usize,
    pub(crate) invented_numbers: Vec<String>,
    /// Sentences with citations, and those that were left out because nothing supports them.
    pub(crate) sentences: usize,
    pub(crate) dropped: usize,
    /// The scores that the confidence was told from: best, window, next, heading.
    pub(crate) scores: Option<[f64; SIGNALS]>,
    pub(crate) text: String,
    pub(crate) question: String,
}

/// Asks all questions of a set, and how long each took.
pub(crate) fn ask(asked: &mut Asked<'_>, options: &str, found: Found) -> (Vec<Reply>, Times) {
    let mut options: Value = serde_json::from_str(options).unwrap();
    if found == Found::ByConfidence {
        options["min_support"] = 0.into();
    }
    let options = options.to_string();
    let Asked { name, questions, session, .. } = asked;
    eprintln!("{name}: {} questions", questions.len());
    let mut times = Times::default();
    let client = session.client();
    let statement = client
        .prepare("SELECT rag_answer($1, filter => $2::text::jsonb, options => $3::text::jsonb)::text")
        .unwrap();
    let quote = client
        .prepare("SELECT substr(text, $2 + 1, $3 - $2), uri FROM rag.document WHERE id = $1::text::uuid")
        .unwrap();
    let replies = questions
        .iter()
        .map(|question| {
            let filter = question.filter().to_string();
            let (time, row) =
                timed(|| client.query_one(&statement, &[&question.text, &filter, &options]).unwrap());
            times.push(time);
            let answer: Value = serde_json::from_str(row.get(0)).unwrap();
            let stored = |citation: &Value| -> Option<(String, String)> {
                let place = |key: &str| citation[key].as_i64().unwrap() as i32;
                let row = client
                    .query_opt(
                        &quote,
                        &[&citation["document_id"].as_str().unwrap(), &place("char_from"), &place("char_to")],
                    )
                    .unwrap();
                row.map(|row| (row.get(0), row.get(1)))
            };
            reply(question, &answer, found, stored)
        })
        .collect();
    (replies, times)
}

/// `stored` is what stands at a citation's place, and the uri of its document.
fn reply(
    question: &Question,
    answer: &Value,
    found: Found,
    stored: impl FnMut(&Value) -> Option<(String, String)>,
) -> Reply {
    let text = answer["answer"].as_str().unwrap().to_owned();
    let none = Vec::new();
    let citations = answer["citations"].as_array().unwrap_or(&none);
    let quotes: Vec<&str> = citations.iter().map(|citation| citation["quote"].as_str().unwrap()).collect();
    let stored: Vec<Option<(String, String)>> = citations.iter().map(stored).collect();
    let is_true = |(stored, quote): &(&Option<(String, String)>, &&str)| {
        stored.as_ref().is_some_and(|(text, _)| text == **quote)
    };
    let untrue_quotes = stored.iter().zip(&quotes).filter(|pair| !is_true(pair)).count();
    let numbers = words_with_digits(&without_markers(&text));
    let quoted: Vec<String> = quotes.iter().flat_map(|quote| words_with_digits(quote)).collect();
    let first = stored.first().and_then(|stored| Some(stored.as_ref()?.1.as_str())).unwrap_or_default();
    let support = answer["diagnostics"].as_array().unwrap().iter().find(|stage| stage["stage"] == "support");
    let confidence = answer["confidence"].as_f64().unwrap_or(0.0);
    let score = |name: &str| support.and_then(|stage| stage["details"]["scores"][name].as_f64());
    let scores = || Some([score("best")?, score("window")?, score("next")?, score("heading")?]);
    Reply {
        part: question.part,
        is_answerable: question.is_answerable(),
        kind: question.kind.clone(),
        found: answer["found"] == true && (found == Found::AsTold || confidence >= THRESHOLD),
        confidence,
        cites_right_document: question.documents.contains(first),
        is_right: is_right(&question.gold, &text, &quotes),
        quotes: quotes.len(),
        untrue_quotes,
        numbers: numbers.len(),
        invented_numbers: numbers.into_iter().filter(|number| !quoted.contains(number)).collect(),
        sentences: runs_of_markers(&text),
        dropped: answer["unsupported"].as_array().map_or(0, Vec::len),
        scores: scores(),
        text,
        question: question.text.clone(),
    }
}

fn is_right(gold: &Gold, text: &str, quotes: &[&str]) -> bool {
    match gold {
        Gold::Nothing => false,
        Gold::Texts(texts) => texts.iter().any(|gold| plain(text).contains(&plain(gold))),
        Gold::Sentences(sentences) => quotes.iter().any(|quote| {
            let quote = plain(quote);
            let is_part = |gold: &str| gold.contains(&quote) && quote.chars().count() >= MIN_QUOTE_CHARS;
            sentences.iter().map(|gold| plain(gold)).any(|gold| quote.contains(&gold) || is_part(&gold))
        }),
    }
}

/// Words in lower case with one blank between them.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    format!(" {} ", words.map(str::to_lowercase).collect::<Vec<_>>().join(" "))
}

/// Dates, numbers and codes.
fn words_with_digits(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
        .map(str::to_lowercase)
        .collect()
}

/// How often `[n]` stands in a text, counted once where several follow each other.
fn runs_of_markers(text: &str) -> usize {
    let behind = |part: &'_ str| {
        part.split_once(']').filter(|(n, _)| n.parse::<u32>().is_ok()).map(|(_, rest)| rest.len())
    };
    let behind: Vec<usize> = text.split('[').skip(1).filter_map(behind).collect();
    behind.iter().enumerate().filter(|(at, length)| **length > 0 || at + 1 == behind.len()).count()
}

fn without_markers(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let is_marker = digits > 0 && rest[at + 1 + digits..].starts_with(']');
        left.push_str(&rest[..at + usize::from(!is_marker)]);
        rest = &rest[if is_marker { at + digits + 2 } else { at + 1 }..];
    }
    left + rest
}
