//! Checking a completion: which passages it cites, and which sentences of theirs bear it out.
//!
//! Whether a passage supports a sentence is measured elsewhere; here markers are read and quotes are found.

use super::plain::readable;
use crate::sentence::{sentences, trimmed};
use crate::terms::Terms;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A completion, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedAnswer {
    /// Whether the model claims to have found an answer, and gave one.
    pub found: bool,
    /// The answer with markers `[n]`, each naming a passage that exists; empty if not found.
    pub answer: String,
    /// Numbers of the passages it cites, from 1, in order of their first marker.
    pub cited: Vec<usize>,
}

/// Least share of a sentence's meaningful words that its quote must hold.
const MIN_QUOTE_OVERLAP: f32 = 0.3;

/// Fewest meaningful words of a sentence that is matched with passages.
const MIN_MATCHED_TERMS: usize = 2;

/// Most times that a text is read anew because what was left of it made other markers; what makes more is no writing.
const MAX_READINGS: usize = 4;

/// Places at which a JSON object is looked for.
const MAX_JSON_STARTS: usize = 32;

/// A marker: `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `[passage 1]`, `【1】`, and what models put beside the number, as a prompt does:
/// `[1: guide.pdf, p.3]`.
static MARKER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix) [\[【] \s* \^? (?: (?:passages?|sources?|citations?|docs?|documents?|refs?) \s* [:\#.]? \s* )?
          ( \d{1,9} (?: \s* (?: [,;–-] | and | & ) \s* (?:passage\s*)? \d{1,9} )* ) \s* (?: [†:] [^\]】\n]{0,200} )? [\]】]",
    )
    .ok()
});

/// Reads a completion that should be `{"found": …, "answer": "… [1]"}`.
///
/// Code fences, text around the object, an object that breaks off, and plain text are accepted; a text
/// without an object is the answer itself, unless it says that there is none. Markers come out as `[n]`, one per number;
/// a number that names none of the `passages` passages is dropped with its marker, and none is ever added.
pub fn parse_completion(text: &str, passages: usize) -> ParsedAnswer {
    let (found, answer) = match json_answer(text) {
        Some(given) => given,
        None => {
            let plain = without_fence(text);
            (!is_refusal(plain), plain.to_owned())
        }
    };
    // As its reader will see it: what is invisible in a marker makes it no other text.
    let (answer, cited) = with_known_markers(&readable(&answer), passages);
    let has_words = without_markers(&answer).contains(char::is_alphanumeric);
    if found && has_words {
        ParsedAnswer { found: true, answer, cited }
    } else {
        ParsedAnswer { found: false, answer: String::new(), cited: Vec::new() }
    }
}

/// The sentences of an answer with the numbers of the passages they cite.
///
/// A range leaves out markers after the sentence's end; a marker between two sentences belongs to the one
/// before it. Numbers are in order of their markers, each once.
pub fn marked_sentences(answer: &str) -> Vec<(Range<usize>, Vec<usize>)> {
    let markers = markers(answer);
    // Sentences are found as if the markers were blank, so that "end.[1] Next" and "end [1]. Next" both part.
    let mut blank = answer.to_owned();
    for (range, _) in &markers {
        blank.replace_range(range.clone(), &" ".repeat(range.len()));
    }
    let mut found: Vec<(Range<usize>, Vec<usize>)> =
        sentences(&blank).into_iter().map(|range| (range, Vec::new())).collect();
    for (range, numbers) in markers {
        let after = found.partition_point(|(sentence, _)| sentence.start <= range.start);
        // A marker ahead of all sentences belongs to the first.
        if let Some((_, own)) = found.get_mut(after.saturating_sub(1)) {
            for number in numbers {
                if !own.contains(&number) {
                    own.push(number);
                }
            }
        }
    }
    found
}

/// A text without its citation markers.
pub fn without_markers(text: &str) -> String {
    with_known_markers(text, 0).0
}

/// An answer as it is shown, where taking marks out of it may have made markers: those of its citations, 1 to `citations`, alone.
pub fn with_citations_alone(text: &str, citations: usize) -> String {
    with_known_markers(text, citations).0
}

/// A text of a document whose own numbers in brackets cannot be taken for an answer's: `so it was [12]` reads
/// `so it was (12)`. Those right behind a word are the index of something, and stay.
pub fn without_own_markers(text: &str) -> String {
    let mut written = text.to_owned();
    for (range, _) in markers(text).into_iter().rev() {
        if !text[..range.start].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']')) {
            let inner = in_parentheses(&text[range.clone()]);
            written.replace_range(range, &inner);
        }
    }
    written
}

/// The sentence of a passage that best bears out a sentence of an answer, by shared meaningful words.
///
/// `None` if no sentence holds 30 % of the answer's words (or the answer has none). Among equal ones the
/// shorter, then the earlier.
pub fn best_quote(answer_sentence: &str, passage_text: &str) -> Option<Range<usize>> {
    let terms = Terms::new();
    let wanted = terms.of(&without_markers(answer_sentence));
    if wanted.is_empty() {
        return None;
    }
    let mut best: Option<(f32, usize, Range<usize>)> = None;
    for range in sentences(passage_text) {
        let own = terms.of(&passage_text[range.clone()]);
        let common = own.intersection(&wanted).count() as f32;
        let held = common / wanted.len() as f32;
        if held < MIN_QUOTE_OVERLAP {
            continue;
        }
        // Mostly what of the answer it holds; of two that hold the same, the one that says less besides.
        let score = held + 0.2 * common / own.len().max(1) as f32;
        let is_better = match &best {
            Some((other, length, _)) => score > *other || (score == *other && range.len() < *length),
            None => true,
        };
        if is_better {
            best = Some((score, range.len(), range));
        }
    }
    let (_, _, range) = best?;
    let marker = crate::sentence::marker_length(&passage_text[range.clone()]);
    let inner = trimmed(passage_text, range.start + marker..range.end);
    Some(if inner.is_empty() { range } else { inner })
}

/// The passages that a sentence without a marker may be taken from, at most so many: those with a sentence that shares enough of
/// its words, most first. Of a word or two, which any text may have, there are none.
pub fn nearest(sentence: &str, passages: &[&str], most: usize) -> Vec<usize> {
    let terms = Terms::new();
    let wanted = terms.of(sentence);
    if wanted.len() < MIN_MATCHED_TERMS {
        return Vec::new();
    }
    let shared = |(index, passage): (usize, &&str)| {
        let quote = best_quote(sentence, passage)?;
        Some((terms.of(&passage[quote]).intersection(&wanted).count(), index))
    };
    let mut found: Vec<(usize, usize)> = passages.iter().enumerate().filter_map(shared).collect();
    // Stable: of equal ones, the better passage.
    found.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    found.into_iter().take(most).map(|(_, index)| index).collect()
}

/// The markers of a text outside of code, with their numbers; ranges such as `1-3` are spelt out.
fn markers(text: &str) -> Vec<(Range<usize>, Vec<usize>)> {
    let Some(marker) = MARKER.as_ref() else { return Vec::new() };
    let code = code_spans(text);
    marker
        .captures_iter(text)
        .filter_map(|captures| {
            let whole = captures.get(0)?.range();
            let span = code.partition_point(|span| span.end < whole.end);
            let in_code = code.get(span).is_some_and(|span| span.start <= whole.start);
            (!in_code)
                .then(|| (whole, captures.get(1).map(|list| numbers(list.as_str())).unwrap_or_default()))
        })
        .collect()
}

/// Numbers beyond this are no passages; a range up to one would only cost memory.
const MAX_NUMBER: usize = 1_000;

fn numbers(list: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut range_from = None;
    let mut rest = list;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let between = &rest[..start];
        let digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[start..start + digits].parse().unwrap_or(usize::MAX);
        match range_from {
            Some(from) if between.contains(['-', '–']) && from < number && number <= MAX_NUMBER => {
                found.extend(from + 1..=number);
            }
            _ => found.push(number),
        }
        range_from = Some(number);
        rest = &rest[start + digits..];
    }
    found
}

/// The text with its markers as `[n]`, those up to `passages` only, and the numbers in order of appearance.
///
/// What is left of a text without a marker may be another, as in `[98 [99]]`, so it is read until nothing changes. One that goes
/// on making markers keeps those of other numbers and forms as text in parentheses, of which none can be made.
fn with_known_markers(text: &str, passages: usize) -> (String, Vec<usize>) {
    let mut written = text.trim().to_owned();
    for _ in 0..MAX_READINGS {
        let read = markers(&written);
        if read.iter().all(|marker| is_known(&written, marker, passages)) {
            return cited(written, read);
        }
        written = with_markers_written(&written, read, passages);
    }
    // Each letter stands for one, so nothing moves together: neither around a marker nor between backticks.
    let mut settled = String::with_capacity(written.len());
    let mut last = 0;
    for marker in markers(&written).into_iter().filter(|marker| !is_known(&written, marker, passages)) {
        settled.push_str(&written[last..marker.0.start]);
        settled.push_str(&in_parentheses(&written[marker.0.clone()]));
        last = marker.0.end;
    }
    settled.push_str(&written[last..]);
    let read = markers(&settled);
    cited(settled, read)
}

/// Whether a marker is written `[n]` and names a passage.
fn is_known(text: &str, (range, numbers): &(Range<usize>, Vec<usize>), passages: usize) -> bool {
    matches!(numbers.as_slice(), [number] if (1..=passages).contains(number) && text[range.clone()] == format!("[{number}]"))
}

/// A text with the numbers of its markers, each once.
fn cited(text: String, markers: Vec<(Range<usize>, Vec<usize>)>) -> (String, Vec<usize>) {
    let mut cited = Vec::new();
    for number in markers.into_iter().flat_map(|(_, numbers)| numbers) {
        if !cited.contains(&number) {
            cited.push(number);
        }
    }
    (text, cited)
}

/// The text with these markers of it as `[n]`, those up to `passages` only.
fn with_markers_written(text: &str, markers: Vec<(Range<usize>, Vec<usize>)>, passages: usize) -> String {
    let mut written = String::with_capacity(text.len());
    let mut last = 0;
    for (range, numbers) in markers {
        written.push_str(&text[last..range.start]);
        last = range.end;
        let mut own: Vec<usize> = Vec::new();
        for number in numbers.into_iter().filter(|number| (1..=passages).contains(number)) {
            if !own.contains(&number) {
                own.push(number);
            }
        }
        if own.is_empty() {
            // The space before a marker goes with it.
            written.truncate(written.trim_end_matches([' ', '\t']).len());
            if text[last..].starts_with(|c: char| c.is_alphanumeric()) {
                written.push(' ');
            }
        }
        for number in own {
            written.push_str(&format!("[{number}]"));
        }
    }
    written.push_str(&text[last..]);
    written.trim().to_owned()
}

/// A marker as text: all of its brackets are parentheses.
fn in_parentheses(marker: &str) -> String {
    marker.replace(['[', '【'], "(").replace([']', '】'], ")")
}

/// Code between backticks, where brackets are indices.
fn code_spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let bytes = text.as_bytes();
    let run = |at: usize| bytes[at..].iter().take_while(|b| **b == b'`').count();
    let mut open: Option<(usize, usize)> = None;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'`' {
            at += 1;
            continue;
        }
        let length = run(at);
        match open {
            Some((start, opened)) if opened == length => {
                spans.push(start..at + length);
                open = None;
            }
            Some(_) => {}
            None => open = Some((at, length)),
        }
        at += length;
    }
    spans
}

/// The whole JSON objects that a completion holds, whatever stands around them.
pub(crate) fn json_objects(
    text: &str,
) -> impl Iterator<Item = serde_json::Map<String, serde_json::Value>> + '_ {
    text.match_indices('{').take(MAX_JSON_STARTS).filter_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
        match values.next() {
            Some(Ok(serde_json::Value::Object(object))) => Some(object),
            _ => None,
        }
    })
}

/// `found` and `answer` of the first JSON object that has an answer.
fn json_answer(text: &str) -> Option<(bool, String)> {
    for object in json_objects(text) {
        let answer = object.get("answer");
        let found = object.get("found").and_then(serde_json::Value::as_bool);
        match (answer, found) {
            (Some(serde_json::Value::String(answer)), found) => {
                return Some((found.unwrap_or(true), answer.clone()));
            }
            (None | Some(serde_json::Value::Null), Some(_)) => return Some((false, String::new())),
            _ => {}
        }
    }
    broken_off(text)
}

/// The same of what is no JSON: an object that breaks off, as when the model ran out of tokens, or has raw line breaks or escapes
/// that JSON does not know.
fn broken_off(text: &str) -> Option<(bool, String)> {
    let start = text.find('{')?;
    let object = &text[start..];
    let key = object.find("\"answer\"")?;
    let value = object[key + 8..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let says_no = object[..key].replace(char::is_whitespace, "").contains("\"found\":false");
    Some((!says_no, unescaped(value)))
}

/// The characters of a JSON string up to its end, or to where it breaks off. An escape that JSON does not know is what it is
/// written as: `work\_mem`.
pub(super) fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value.chars();
    let mut high: Option<u32> = None;
    while let Some(c) = rest.next() {
        let first = high.take();
        let c = match c {
            '"' => break,
            '\\' => match rest.next() {
                None => break,
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r' | 'b' | 'f') => continue,
                Some('u') => {
                    let written = rest.as_str();
                    let digits = written.bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
                    if digits < 4 {
                        if digits == written.len() {
                            break;
                        }
                        text.push_str("\\u");
                        continue;
                    }
                    rest = written[4..].chars();
                    match (first, u32::from_str_radix(&written[..4], 16).unwrap_or_default()) {
                        (_, unit @ 0xd800..0xdc00) => {
                            high = Some(unit);
                            continue;
                        }
                        (Some(high), low @ 0xdc00..0xe000) => {
                            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                        }
                        (_, unit) => char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
                    }
                }
                Some(other) => {
                    if !matches!(other, '"' | '\\' | '/') {
                        text.push('\\');
                    }
                    other
                }
            },
            '\r' => continue,
            other => other,
        };
        text.push(c);
    }
    text
}

fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inner.split_once('\n').map_or(inner, |(_, body)| body).trim()
}

/// Whether plain text says that there is no answer.
fn is_refusal(text: &str) -> bool {
    const REFUSALS: &[&str] = &[
        "no answer found",
        "not found in the passages",
        "passages do not",
        "passages don't",
        "passages does not",
        "i cannot answer",
        "i can't answer",
        "i don't know",
        "i do not know",
        "not enough information",
        "keine antwort",
    ];
    let start: String = text.chars().take(200).collect::<String>().to_lowercase().replace('’', "'");
    REFUSALS.iter().any(|refusal| start.contains(refusal))
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&MARKER);
}

#[cfg(test)]
#[path = "cite_tests.rs"]
mod tests;
