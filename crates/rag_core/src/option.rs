//! Reading an options object: typed values, limits, and errors that name value and limit.
//!
//! Every SQL function with `options jsonb` reads it through [`OptionReader`], so an unknown key or a value
//! out of range reads the same everywhere. Which options exist is the caller's business.

use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Most characters of a user's value that an error repeats.
pub const MAX_VALUE_CHARS_IN_ERROR: usize = 64;

/// Why an options object, or another JSON argument, is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OptionError {
    /// Maps to one SQLSTATE.
    pub kind: OptionErrorKind,
    /// Lower-case sentence with value and limit.
    pub message: String,
    /// More facts.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Kinds of [`OptionError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionErrorKind {
    /// 22023: the argument makes no sense.
    Invalid,
    /// 54000: it is over a limit.
    LimitExceeded,
}

impl OptionError {
    /// An argument that makes no sense (22023).
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { kind: OptionErrorKind::Invalid, message: message.into(), detail: None, hint: None }
    }

    /// An argument over a limit (54000).
    pub fn limit_exceeded(message: impl Into<String>) -> Self {
        Self { kind: OptionErrorKind::LimitExceeded, message: message.into(), detail: None, hint: None }
    }

    /// The same error with a DETAIL.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same error with a HINT.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// An enum whose values callers give as words. Declared by [`choices!`](crate::choices), so that what is parsed, named and
/// listed in errors is one list.
pub trait Choice: Copy + PartialEq + 'static {
    /// All values with their words, in the order in which errors list them.
    const ALL: &'static [(Self, &'static str)];

    /// The word of this value.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(value, _)| *value == self).map_or("", |(_, word)| word)
    }

    /// The value of the argument called `argument`. Errors: [`OptionErrorKind::Invalid`] for another word.
    fn parse(word: &str, argument: &str) -> Result<Self, OptionError> {
        Self::of(word).ok_or_else(|| {
            OptionError::invalid(format!("{argument} is {}", quoted(word))).with_hint(Self::hint())
        })
    }

    /// The value of a word.
    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(value, _)| *value)
    }

    /// What it can be.
    fn hint() -> String {
        let words: Vec<&str> = Self::ALL.iter().map(|(_, word)| *word).collect();
        format!("It can be {}.", listed(&words))
    }
}

/// Declares an enum and the word of each value: `Variant = "word"`. It implements [`Choice`](crate::option::Choice).
#[macro_export]
macro_rules! choices {
    ($(#[$outer:meta])* $visibility:vis enum $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$outer])*
        $visibility enum $name { $($(#[$inner])* $variant,)+ }

        impl $crate::option::Choice for $name {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $word)),+];
        }
    };
}

/// Takes typed values out of an options object and, at the end, complains about keys that nobody asked for.
///
/// A key whose value is JSON `null` counts as not given, because `jsonb_build_object('k', variable)` writes
/// it so.
#[derive(Debug)]
pub struct OptionReader<'a> {
    object: &'a Map<String, Value>,
    owner: &'a str,
    known: Vec<&'static str>,
}

impl<'a> OptionReader<'a> {
    /// Reads `value` for the function or object called `owner`.
    ///
    /// Errors: [`OptionErrorKind::Invalid`] if it is not an object, `null` included.
    pub fn new(value: &'a Value, owner: &'a str) -> Result<Self, OptionError> {
        match value {
            Value::Object(object) => Ok(Self { object, owner, known: Vec::new() }),
            other => Err(OptionError::invalid(format!(
                "options of {owner} must be a JSON object, not {}",
                kind_of(other)
            ))
            .with_hint("Use '{}' for the defaults.")),
        }
    }

    /// A whole number within `range`. A number such as `3.0` counts as whole.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, OptionError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let whole = value.as_i64().or_else(|| {
            let number = value.as_f64()?;
            // Beyond 2^53 a double no longer tells neighbouring whole numbers apart.
            (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
        });
        let limits = format!("between {} and {}", range.start(), range.end());
        match whole {
            Some(whole) if range.contains(&whole) => Ok(Some(whole)),
            None if !value.is_number() => Err(self.wrong_type(key, value, "a whole number")),
            _ => Err(self.out_of_range(key, value, &limits)),
        }
    }

    /// A number within `range`.
    pub fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, OptionError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_f64() {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            Some(_) => {
                let limits = format!("between {} and {}", range.start(), range.end());
                Err(self.out_of_range(key, value, &limits))
            }
            None => Err(self.wrong_type(key, value, "a number")),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Result<Option<bool>, OptionError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong_type(key, value, "true or false"))
    }

    /// A text of at most `max_chars` characters.
    pub fn text(&mut self, key: &'static str, max_chars: usize) -> Result<Option<&'a str>, OptionError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong_type(key, value, "a text"))?;
        let chars = text.chars().count();
        if chars > max_chars {
            return Err(OptionError::limit_exceeded(format!(
                "option \"{key}\" of {} has {chars} characters, more than {max_chars}",
                self.owner
            )));
        }
        Ok(Some(text))
    }

    /// One of a list of words.
    pub fn choice<C: Choice>(&mut self, key: &'static str) -> Result<Option<C>, OptionError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong_type(key, value, "a text"))?;
        C::parse(text, &format!("option \"{key}\" of {}", self.owner)).map(Some)
    }

    /// An object, to be read by a reader of its own.
    pub fn object(&mut self, key: &'static str) -> Result<Option<&'a Value>, OptionError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        if value.is_object() { Ok(Some(value)) } else { Err(self.wrong_type(key, value, "an object")) }
    }

    /// Any value, for what has a reader of its own (a filter, say).
    pub fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.take(key)
    }

    /// Refuses keys that were not asked for.
    pub fn finish(self) -> Result<(), OptionError> {
        let Some(unknown) = self.object.keys().find(|key| !self.known.contains(&key.as_str())) else {
            return Ok(());
        };
        let error = OptionError::invalid(format!("unknown option {} of {}", quoted(unknown), self.owner));
        Err(if self.known.is_empty() {
            error.with_hint("It takes no options.")
        } else {
            error.with_hint(format!("Known options are {}.", listed(&self.known)))
        })
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn wrong_type(&self, key: &str, value: &Value, wanted: &str) -> OptionError {
        OptionError::invalid(format!(
            "option \"{key}\" of {} must be {wanted}, not {}",
            self.owner,
            kind_of(value)
        ))
        .with_detail(format!("The value is {}.", shown(value)))
    }

    fn out_of_range(&self, key: &str, value: &Value, limits: &str) -> OptionError {
        OptionError::invalid(format!("option \"{key}\" of {} is {}", self.owner, shown(value)))
            .with_hint(format!("It must be {limits}."))
    }
}

/// The JSON type of a value, with its article.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value as an error shows it: JSON, at most [`MAX_VALUE_CHARS_IN_ERROR`] characters.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        // Neither is written out: it could be deep or long, and only its type matters.
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object of {}", fields.len()),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A user's text in double quotes, cut to [`MAX_VALUE_CHARS_IN_ERROR`] characters.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS_IN_ERROR) {
        Some((cut, _)) => format!("\"{}…\"", &text[..cut]),
        None => format!("\"{text}\""),
    }
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    crate::choices! {
        #[derive(Debug, Clone, Copy, PartialEq)]
        enum Fusion {
            Rrf = "rrf",
            Weighted = "weighted",
        }
    }

    #[test]
    fn given_values_come_back_and_missing_ones_are_none() {
        let value = json!({"k0": 60, "whole": 3.0, "weight": 0.5, "sync": true, "lang": "en",
                           "fusion": "rrf", "inner": {"a": 1}, "unset": null});
        let mut reader = OptionReader::new(&value, "rag_search").unwrap();
        assert_eq!(reader.integer("k0", 1..=1000).unwrap(), Some(60));
        assert_eq!(reader.integer("whole", 1..=1000).unwrap(), Some(3));
        assert_eq!(reader.number("weight", 0.0..=1.0).unwrap(), Some(0.5));
        assert_eq!(reader.boolean("sync").unwrap(), Some(true));
        assert_eq!(reader.text("lang", 10).unwrap(), Some("en"));
        assert_eq!(reader.choice("fusion").unwrap(), Some(Fusion::Rrf));
        assert_eq!(reader.object("inner").unwrap(), Some(&json!({"a": 1})));
        assert_eq!(reader.text("unset", 10).unwrap(), None);
        assert_eq!(reader.integer("absent", 1..=2).unwrap(), None);
        reader.finish().unwrap();
    }

    #[test]
    fn errors_name_the_value_and_the_limit() {
        let value =
            json!({"k": 0, "half": 1.5, "w": 2, "s": "yes", "f": "bm25", "t": "abcdef", "big": 1e300});
        let mut reader = OptionReader::new(&value, "rag_search").unwrap();
        let error = reader.integer("k", 1..=1000).unwrap_err();
        assert_eq!(error.message, "option \"k\" of rag_search is 0");
        assert_eq!(error.hint.as_deref(), Some("It must be between 1 and 1000."));
        assert_eq!(
            reader.integer("half", 1..=2).unwrap_err().message,
            "option \"half\" of rag_search is 1.5"
        );
        assert_eq!(reader.integer("big", 1..=2).unwrap_err().kind, OptionErrorKind::Invalid);
        assert_eq!(
            reader.number("w", 0.0..=1.0).unwrap_err().hint.as_deref(),
            Some("It must be between 0 and 1.")
        );
        let error = reader.boolean("s").unwrap_err();
        assert_eq!(error.message, "option \"s\" of rag_search must be true or false, not a text");
        assert_eq!(error.detail.as_deref(), Some("The value is \"yes\"."));
        let error = reader.choice::<Fusion>("f").unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("It can be \"rrf\", \"weighted\"."));
        assert_eq!(reader.text("t", 5).unwrap_err().kind, OptionErrorKind::LimitExceeded);
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_ones() {
        let value = json!({"k1": 60});
        let mut reader = OptionReader::new(&value, "rag_search").unwrap();
        reader.integer("k0", 1..=1000).unwrap();
        reader.choice::<Fusion>("fusion").unwrap();
        let error = reader.finish().unwrap_err();
        assert_eq!(error.message, "unknown option \"k1\" of rag_search");
        assert_eq!(error.hint.as_deref(), Some("Known options are \"k0\", \"fusion\"."));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for value in [json!(null), json!([]), json!(3), json!("x")] {
            assert_eq!(OptionReader::new(&value, "f").unwrap_err().kind, OptionErrorKind::Invalid);
        }
    }

    #[test]
    fn an_error_repeats_at_most_64_characters_of_a_value() {
        let value = json!({"f": "ü".repeat(10_000)});
        let mut reader = OptionReader::new(&value, "f").unwrap();
        let message = reader.choice::<Fusion>("f").unwrap_err().message;
        assert_eq!(message.matches('ü').count(), 64);
    }
}
