//! One rule for metadata: what a user writes, what of it is refused, and what it finds in a text.
//!
//! How a pattern is looked for is left to [`super::pattern`]; which rules apply to a document, and how their findings
//! become one object, to [`super::extract`].

use super::pattern::Pattern;
use super::{MAX_INDEXED_CHARS, date, moment, name};
use crate::option::{OptionError, quoted};
use aho_corasick::AhoCorasick;
use serde::Deserialize;
use serde_json::Value;

/// Most words of a keyword rule.
pub const MAX_WORDS: usize = 300;

/// Most values that one rule finds in one document.
pub const MAX_VALUES: usize = 50;

/// Most matches of a pattern that are looked at, the same value found again included.
const MAX_MATCHES: usize = 500;

/// A rule as it stands in `rag.metadata_rule`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleDefinition {
    /// Its name, which a more special rule of the same name replaces.
    pub name: String,
    /// Key of the metadata that it finds.
    pub key: String,
    /// `pattern`, `keyword`, `date`, `company` or `name`.
    pub kind: String,
    /// Where it looks: `text`, `title`, `uri` or `file_name`.
    pub source: String,
    /// Regular expression of a `pattern` rule.
    pub pattern: Option<String>,
    /// What is found instead of the matched text: a template such as `$1-$2` for a pattern, a word for keywords.
    pub value: Option<String>,
    /// Keywords; `*` at either end stands for any letters.
    pub words: Vec<String>,
    /// Occurrences of keywords that it takes.
    pub minimum: i32,
    /// `text`, `number`, `date` or `boolean`.
    #[serde(rename = "type")]
    pub value_type: String,
    /// Whether all values count, or only the first.
    pub multiple: bool,
}

impl Default for RuleDefinition {
    fn default() -> Self {
        Self {
            name: String::new(),
            key: String::new(),
            kind: "pattern".into(),
            source: "text".into(),
            pattern: None,
            value: None,
            words: Vec::new(),
            minimum: 1,
            value_type: "text".into(),
            multiple: false,
        }
    }
}

/// Where a rule looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SourceField {
    Text,
    Title,
    Uri,
    FileName,
}

#[derive(Debug)]
enum Finder {
    Pattern { pattern: Pattern, template: Option<String> },
    Keyword { words: Vec<Keyword>, automaton: AhoCorasick, minimum: usize, value: String },
    Date,
    Company,
    Name,
}

#[derive(Debug)]
struct Keyword {
    open_start: bool,
    open_end: bool,
}

#[derive(Debug, Clone, Copy)]
enum ValueType {
    Text,
    Number,
    Date,
    Boolean,
}

/// A rule ready to be used.
#[derive(Debug)]
pub struct Rule {
    pub(super) key: String,
    pub(super) source: SourceField,
    pub(super) multiple: bool,
    finder: Finder,
    value_type: ValueType,
}

impl Rule {
    /// Reads a definition.
    ///
    /// Errors: [`crate::option::OptionErrorKind::Invalid`] for what makes no sense, such as a pattern that is no
    /// regular expression; `LimitExceeded` for one that is too long or too large.
    pub fn compile(definition: &RuleDefinition) -> Result<Self, OptionError> {
        let source = match definition.source.as_str() {
            "text" => SourceField::Text,
            "title" => SourceField::Title,
            "uri" => SourceField::Uri,
            "file_name" => SourceField::FileName,
            other => return Err(unknown("source", other, "\"text\", \"title\", \"uri\", \"file_name\"")),
        };
        let value_type = match definition.value_type.as_str() {
            "text" => ValueType::Text,
            "number" => ValueType::Number,
            "date" => ValueType::Date,
            "boolean" => ValueType::Boolean,
            other => return Err(unknown("type", other, "\"text\", \"number\", \"date\", \"boolean\"")),
        };
        let finder = match definition.kind.as_str() {
            "pattern" => pattern(definition)?,
            "keyword" => keywords(definition)?,
            "date" => Finder::Date,
            "company" => Finder::Company,
            "name" => Finder::Name,
            other => {
                let kinds = "\"pattern\", \"keyword\", \"date\", \"company\", \"name\"";
                return Err(unknown("kind", other, kinds));
            }
        };
        let takes_pattern = matches!(finder, Finder::Pattern { .. });
        let takes_words = matches!(finder, Finder::Keyword { .. });
        for (given, taken, field) in [
            (definition.pattern.is_some(), takes_pattern, "pattern"),
            (!definition.words.is_empty(), takes_words, "words"),
            (definition.value.is_some(), takes_pattern || takes_words, "value"),
        ] {
            if given && !taken {
                return Err(OptionError::invalid(format!(
                    "a metadata rule of kind \"{}\" takes no {field}",
                    definition.kind
                )));
            }
        }
        Ok(Self { key: key(&definition.key)?, source, multiple: definition.multiple, finder, value_type })
    }

    /// The values in a text, each once, in its order; only the first unless the rule is `multiple`.
    /// `goes_on` is asked between the matches of a pattern; once it says no, what was found until then is all.
    pub(super) fn values(
        &self,
        text: &str,
        language: Option<&str>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Vec<Value> {
        let limit = if self.multiple { MAX_VALUES } else { 1 };
        let in_name = matches!(self.source, SourceField::Uri | SourceField::FileName);
        let found: Vec<String> = match &self.finder {
            Finder::Pattern { pattern, template } => {
                return self.matched(pattern, template.as_deref(), text, limit, goes_on);
            }
            Finder::Keyword { words, automaton, minimum, value } => {
                let enough = occurs_at_least(words, automaton, text, *minimum);
                if enough { vec![value.clone()] } else { Vec::new() }
            }
            Finder::Date => date::dates(text, in_name, limit),
            Finder::Company => name::companies(text, limit),
            Finder::Name => name::names(text, language.is_some_and(|l| l == "de" || l == "lb"), limit),
        };
        found.iter().filter_map(|text| self.value(text)).collect()
    }

    fn matched(
        &self,
        pattern: &Pattern,
        template: Option<&str>,
        text: &str,
        limit: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Vec<Value> {
        let mut values = Vec::new();
        for found in pattern.matches(text, template, goes_on).take(MAX_MATCHES) {
            let Some(value) = self.value(&found) else { continue };
            if !values.contains(&value) {
                values.push(value);
                if values.len() == limit {
                    break;
                }
            }
        }
        values
    }

    /// A found text as a value of the rule's type; `None` if it is none, is empty, or is longer than what
    /// filters see.
    fn value(&self, text: &str) -> Option<Value> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\0', "");
        if text.is_empty() || text.chars().nth(MAX_INDEXED_CHARS).is_some() {
            return None;
        }
        match self.value_type {
            ValueType::Text => Some(Value::from(text)),
            ValueType::Number => {
                text.replace(['\'', '’', ' '], "").parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| {
                    if n.fract() == 0.0 && n.abs() < 9e15 { Value::from(n as i64) } else { Value::from(n) }
                })
            }
            ValueType::Date => match moment::span_of(&text) {
                Some(_) => Some(Value::from(text)),
                None => date::dates(&text, true, 1).pop().map(Value::from),
            },
            ValueType::Boolean => match text.to_lowercase().as_str() {
                "true" | "yes" | "y" | "ja" | "wahr" | "1" | "on" | "x" => Some(Value::from(true)),
                "false" | "no" | "n" | "nein" | "falsch" | "0" | "off" => Some(Value::from(false)),
                _ => None,
            },
        }
    }
}

fn pattern(definition: &RuleDefinition) -> Result<Finder, OptionError> {
    let Some(pattern) = definition.pattern.as_deref().filter(|pattern| !pattern.is_empty()) else {
        return Err(OptionError::invalid("a metadata rule of kind \"pattern\" needs a pattern"));
    };
    Ok(Finder::Pattern { pattern: Pattern::compile(pattern)?, template: definition.value.clone() })
}

fn keywords(definition: &RuleDefinition) -> Result<Finder, OptionError> {
    let Some(value) = definition.value.clone().filter(|value| !value.trim().is_empty()) else {
        return Err(OptionError::invalid("a metadata rule of kind \"keyword\" needs a value").with_hint(
            "The value is what the key gets where enough of the words occur, such as 'finance'.",
        ));
    };
    if definition.words.is_empty() {
        return Err(OptionError::invalid("a metadata rule of kind \"keyword\" needs words"));
    }
    if definition.words.len() > MAX_WORDS {
        return Err(OptionError::limit_exceeded(format!(
            "a metadata rule has {} words, more than {MAX_WORDS}",
            definition.words.len()
        )));
    }
    let minimum =
        usize::try_from(definition.minimum).ok().filter(|minimum| *minimum >= 1).ok_or_else(|| {
            OptionError::invalid(format!(
                "minimum of a metadata rule is {}, but must be at least 1",
                definition.minimum
            ))
        })?;
    let mut texts = Vec::new();
    let mut words = Vec::new();
    for word in &definition.words {
        let bare = word.trim().trim_matches('*').to_lowercase();
        if bare.is_empty() || bare.chars().nth(64).is_some() {
            return Err(OptionError::invalid(format!("keyword {} is empty or too long", quoted(word)))
                .with_hint(
                    "A keyword has from 1 to 64 characters; * at either end stands for any letters.",
                ));
        }
        texts.push(bare);
        let word = word.trim();
        words.push(Keyword { open_start: word.starts_with('*'), open_end: word.ends_with('*') });
    }
    let automaton = AhoCorasick::new(&texts)
        .map_err(|error| OptionError::limit_exceeded(format!("keywords cannot be used: {error}")))?;
    Ok(Finder::Keyword { words, automaton, minimum, value })
}

/// Whether the keywords occur so often, as whole words where they are not open. `text` is lower-case.
fn occurs_at_least(words: &[Keyword], automaton: &AhoCorasick, text: &str, minimum: usize) -> bool {
    let mut found = 0;
    for hit in automaton.find_overlapping_iter(text) {
        let word = &words[hit.pattern().as_usize()];
        let begins = word.open_start || !text[..hit.start()].ends_with(|c: char| c.is_alphanumeric());
        let ends = word.open_end || !text[hit.end()..].starts_with(|c: char| c.is_alphanumeric());
        if begins && ends {
            found += 1;
            if found >= minimum {
                return true;
            }
        }
    }
    false
}

impl Rule {
    /// Whether the rule reads its text in lower case.
    pub(super) fn reads_lower_case(&self) -> bool {
        matches!(self.finder, Finder::Keyword { .. })
    }
}

fn key(key: &str) -> Result<String, OptionError> {
    let mut chars = key.chars();
    let begins = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let goes_on = chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    if !begins || !goes_on || key.chars().nth(64).is_some() || matches!(key, "and" | "or" | "not") {
        return Err(OptionError::invalid(format!("invalid key {} of a metadata rule", quoted(key))).with_hint(
            "A key has from 1 to 64 letters, digits, _ or -, begins with a letter or _, and is not and, or, not.",
        ));
    }
    Ok(key.to_owned())
}

fn unknown(field: &str, value: &str, known: &str) -> OptionError {
    OptionError::invalid(format!("unknown {field} {} of a metadata rule", quoted(value)))
        .with_hint(format!("It can be {known}."))
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
