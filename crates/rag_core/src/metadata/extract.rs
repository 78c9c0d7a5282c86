//! What is known about a document without anybody saying so: facts, the file's own metadata, findings of rules.
//!
//! Later layers replace equal keys of earlier ones: facts (words, language, source, …), the file's metadata
//! (author, created, …), rules. What a user gave stands apart and wins in filters, see [`super::effective_rows`].

use super::rule::{MAX_VALUES, Rule, RuleDefinition, SourceField};
use super::{MAX_INDEXED_CHARS, date, language, moment};
use crate::file_name::{extension, file_name, source};
use crate::option::OptionError;
use serde_json::{Map, Value};
use std::collections::HashMap;
use unicode_segmentation::UnicodeSegmentation;

/// Bytes of a text that rules look at: what stands behind the first quarter of a million is rarely about the
/// whole, and a pattern costs at most so much.
pub const MAX_SCANNED_BYTES: usize = 256 * 1024;

/// Most keys that are taken over from a file.
const MAX_FILE_KEYS: usize = 100;

/// Most characters of a value that is taken over from a file.
const MAX_FILE_VALUE_CHARS: usize = 1_000;

/// What rules look at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The document as Markdown.
    pub text: &'a str,
    /// Its title, given or found.
    pub title: Option<&'a str>,
    /// Where it came from.
    pub uri: Option<&'a str>,
    /// Metadata found in the file, see [`file_metadata`].
    pub file_metadata: Option<&'a Value>,
}

/// Rules in the order in which they are asked.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

impl RuleSet {
    /// Reads definitions. A rule that makes no sense is left out and reported, for the others are still good.
    pub fn compile(definitions: &[RuleDefinition]) -> (Self, Vec<OptionError>) {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for definition in definitions {
            match Rule::compile(definition) {
                Ok(rule) => rules.push(rule),
                Err(error) => errors.push(error),
            }
        }
        (Self { rules }, errors)
    }

    /// The metadata of a document: a JSON object.
    ///
    /// `goes_on` is asked before each rule and before each search for a pattern; once it says no, what is left is left
    /// out and the key `extraction_incomplete` is true.
    pub fn extract(&self, subject: &Subject<'_>, goes_on: &mut dyn FnMut() -> bool) -> Map<String, Value> {
        let mut found = facts(subject);
        let language = found.get("language").and_then(Value::as_str).map(str::to_owned);
        let text = head(subject.text, MAX_SCANNED_BYTES);
        let file_name = subject.uri.and_then(file_name);
        let mut lower: HashMap<SourceField, String> = HashMap::new();
        let mut by_rules: Map<String, Value> = Map::new();
        let mut stopped = false;
        let mut goes_on = || {
            stopped = stopped || !goes_on();
            !stopped
        };
        for rule in &self.rules {
            if !rule.multiple && by_rules.contains_key(&rule.key) {
                continue;
            }
            if !goes_on() {
                break;
            }
            let looked_at = match rule.source {
                SourceField::Text => Some(text),
                SourceField::Title => subject.title,
                SourceField::Uri => subject.uri,
                SourceField::FileName => file_name.as_deref(),
            };
            let Some(looked_at) = looked_at else { continue };
            let values = if rule.reads_lower_case() {
                let lower = lower.entry(rule.source).or_insert_with(|| looked_at.to_lowercase());
                rule.values(lower, language.as_deref(), &mut goes_on)
            } else {
                rule.values(looked_at, language.as_deref(), &mut goes_on)
            };
            add(&mut by_rules, rule, values);
        }
        if stopped {
            by_rules.insert("extraction_incomplete".into(), true.into());
        }
        found.extend(by_rules);
        found
    }
}

/// The metadata that a parser found in a file, as `jsonb` takes it: an object, without NUL characters. What is no
/// JSON object gives an empty one.
pub fn file_metadata(json: &str) -> Value {
    fn without_nul(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(text.replace('\0', "")),
            Value::Array(items) => items.into_iter().map(without_nul).collect(),
            Value::Object(fields) => {
                let fields =
                    fields.into_iter().map(|(key, value)| (key.replace('\0', ""), without_nul(value)));
                Value::Object(fields.collect())
            }
            other => other,
        }
    }
    let object: Option<Map<String, Value>> = serde_json::from_str(json).ok();
    without_nul(Value::Object(object.unwrap_or_default()))
}

fn add(found: &mut Map<String, Value>, rule: &Rule, values: Vec<Value>) {
    let Some(first) = values.first() else { return };
    if !rule.multiple {
        found.entry(rule.key.clone()).or_insert_with(|| first.clone());
        return;
    }
    let known = found.entry(rule.key.clone()).or_insert_with(|| Value::Array(Vec::new()));
    if !known.is_array() {
        *known = Value::Array(vec![known.take()]);
    }
    if let Value::Array(known) = known {
        for value in values {
            if known.len() < MAX_VALUES && !known.contains(&value) {
                known.push(value);
            }
        }
    }
}

/// What needs no rule: the file's own metadata, and what can be counted or read off the address.
fn facts(subject: &Subject<'_>) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("words".into(), Value::from(subject.text.unicode_words().count()));
    if let Some(uri) = subject.uri {
        let name = file_name(uri);
        let extension = name.as_deref().and_then(extension);
        for (key, value) in [("file_extension", extension), ("file_name", name), ("source", source(uri))] {
            if let Some(value) = value.filter(|value| value.chars().nth(MAX_INDEXED_CHARS).is_none()) {
                facts.insert(key.into(), value.into());
            }
        }
    }
    let file = subject.file_metadata.and_then(Value::as_object);
    for (key, value) in file.into_iter().flatten().take(MAX_FILE_KEYS) {
        let key = key.trim().to_lowercase().replace([' ', '.'], "_");
        if let Some(value) = file_value(&key, value)
            && !key.is_empty()
            && key.chars().nth(64).is_none()
        {
            facts.insert(key, value);
        }
    }
    let detected = language::language_of(subject.text).map(str::to_owned);
    let declared = facts.get("language").and_then(Value::as_str).and_then(language::declared);
    match detected.or(declared) {
        Some(language) => facts.insert("language".into(), language.into()),
        None => facts.remove("language"),
    };
    facts
}

/// A value of the file's metadata: scalars and lists of them; dates in ISO form.
fn file_value(key: &str, value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            if text.is_empty() || text.chars().nth(MAX_FILE_VALUE_CHARS).is_some() {
                return None;
            }
            let is_date = matches!(key, "created" | "modified" | "date" | "published" | "issued");
            let iso = (is_date && moment::span_of(text).is_none())
                .then(|| date::dates(text, true, 1).pop())
                .flatten();
            Some(Value::from(iso.unwrap_or_else(|| text.to_owned())))
        }
        Value::Number(_) | Value::Bool(_) => Some(value.clone()),
        Value::Array(items) => {
            let items: Vec<Value> = items
                .iter()
                .filter(|i| !i.is_array())
                .take(MAX_VALUES)
                .filter_map(|i| file_value(key, i))
                .collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// The beginning of a text, cut before a word rather than within one.
fn head(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind(char::is_whitespace).filter(|at| *at > bytes / 2).unwrap_or(end);
    &text[..end]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    fn extract(rules: Value, subject: &Subject<'_>) -> Value {
        let definitions: Vec<RuleDefinition> = serde_json::from_value(rules).unwrap();
        let (set, errors) = RuleSet::compile(&definitions);
        assert_eq!(errors, []);
        set.extract(subject, &mut || true).into()
    }

    #[test]
    fn facts_are_read_off_the_text_and_the_address() {
        let text = "The committee met on Tuesday and decided that the bridge would be closed.";
        let subject =
            Subject { text, uri: Some("https://www.Example.org:8080/a/b%20c.PDF?x=1"), ..Subject::default() };
        assert_eq!(
            extract(json!([]), &subject),
            json!({"words": 13, "language": "en", "file_name": "b c.PDF", "file_extension": "pdf", "source": "example.org"})
        );
    }

    #[test]
    fn the_files_own_metadata_is_taken_over_in_a_form_that_filters_understand() {
        let file = r#"{"Author": " Ann ", "created": "3 March 2024", "keywords": ["a", "b", null], "empty": "", "deep": {"x": 1},
                       "pages": 3, "language": "en-GB", "nul": "a\u0000b"}"#;
        let file = file_metadata(file);
        let subject = Subject { text: "Hi", file_metadata: Some(&file), ..Subject::default() };
        assert_eq!(
            extract(json!([]), &subject),
            json!({"words": 1, "author": "Ann", "created": "2024-03-03", "keywords": ["a", "b"], "pages": 3,
                   "language": "en", "nul": "ab"})
        );
    }

    #[test]
    fn what_is_no_object_is_no_metadata() {
        for json in ["", "[]", "null", "{\"a\": 1e999}", "{\"a\": \"\\ud800\"}"] {
            assert_eq!(file_metadata(json), json!({}), "{json}");
        }
        assert_eq!(file_metadata(r#"{"a\u0000": ["\u0000b"]}"#), json!({"a": ["b"]}));
    }

    #[test]
    fn rules_of_one_key_add_up_or_the_first_wins() {
        let rules = json!([
            {"key": "date", "kind": "date", "source": "title", "type": "date"},
            {"key": "date", "kind": "date", "source": "text", "type": "date"},
            {"key": "topics", "kind": "keyword", "value": "a", "words": ["alpha"], "multiple": true},
            {"key": "topics", "kind": "keyword", "value": "b", "words": ["beta"], "multiple": true},
            {"key": "words", "pattern": "(\\d+) words", "type": "number"}
        ]);
        let subject = Subject {
            text: "Alpha beta 2020-01-01, 7 words",
            title: Some("of 2021-01-01"),
            ..Subject::default()
        };
        assert_eq!(
            extract(rules.clone(), &subject),
            json!({"words": 7, "date": "2021-01-01", "topics": ["a", "b"]})
        );
        let untitled = Subject { title: None, ..subject };
        assert_eq!(extract(rules, &untitled)["date"], json!("2020-01-01"));
    }

    #[test]
    fn a_bad_rule_does_not_spoil_the_others() {
        let rules: Vec<RuleDefinition> =
            serde_json::from_value(json!([{"key": "a", "pattern": "("}, {"key": "b", "pattern": "x"}]))
                .unwrap();
        let (set, errors) = RuleSet::compile(&rules);
        assert_eq!((set.rules.len(), errors.len()), (1, 1));
    }

    #[test]
    fn rules_that_found_no_time_are_told_of() {
        let (set, _) = RuleSet::compile(&[RuleDefinition {
            key: "k".into(),
            pattern: Some("x".into()),
            ..RuleDefinition::default()
        }]);
        let found = set.extract(&Subject { text: "x", ..Subject::default() }, &mut || false);
        assert_eq!(Value::from(found), json!({"words": 1, "extraction_incomplete": true}));
    }

    #[test]
    fn a_long_text_is_looked_at_up_to_the_limit() {
        let text = format!("{} needle", "hay ".repeat(MAX_SCANNED_BYTES / 4));
        let found = extract(
            json!([{"key": "k", "pattern": "needle"}]),
            &Subject { text: &text, ..Subject::default() },
        );
        assert_eq!(found.get("k"), None);
    }
}
