//! What a document says about itself, under the same keys whatever its format.
//!
//! Values are kept on one line and short; what the keys mean to a search is left to the metadata rules in SQL.

use serde_json::{Map, Value};

/// Most bytes of a value.
pub(crate) const MAX_VALUE_BYTES: usize = 1_024;

/// Most items of a list, such as authors.
const MAX_ITEMS: usize = 64;

pub(crate) const TITLE: &str = "title";
/// A list where the format knows several.
pub(crate) const AUTHOR: &str = "author";
/// When it was written or published, as an ISO 8601 date or time where the format has one.
pub(crate) const CREATED: &str = "created";
pub(crate) const MODIFIED: &str = "modified";
/// A BCP 47 tag.
pub(crate) const LANGUAGE: &str = "language";
pub(crate) const SUBJECT: &str = "subject";
pub(crate) const KEYWORDS: &str = "keywords";
pub(crate) const DESCRIPTION: &str = "description";
/// Pages, slides or sheets.
pub(crate) const PAGES: &str = "pages";
/// How its bytes were read as text.
pub(crate) const ENCODING: &str = "encoding";
/// Characters that could not be decoded and were replaced by U+FFFD.
pub(crate) const REPLACED: &str = "replaced_characters";

/// Metadata in the making.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    values: Map<String, Value>,
}

impl Properties {
    /// Takes values, each unless its key has one.
    pub(crate) fn merge(&mut self, values: Map<String, Value>) {
        for (key, value) in values {
            self.values.entry(key).or_insert(value);
        }
    }

    /// Takes a value unless it is empty or the key has one.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        if let Some(value) = one_line(value)
            && !self.values.contains_key(key)
        {
            self.values.insert(key.to_owned(), Value::from(value));
        }
    }

    /// Takes a number unless the key has a value.
    pub(crate) fn set_number(&mut self, key: &str, value: u64) {
        if !self.values.contains_key(key) {
            self.values.insert(key.to_owned(), Value::from(value));
        }
    }

    /// Adds a value; several become a list.
    pub(crate) fn add(&mut self, key: &str, value: &str) {
        let Some(value) = one_line(value) else { return };
        match self.values.get_mut(key) {
            None => {
                self.values.insert(key.to_owned(), Value::from(value));
            }
            Some(Value::Array(items)) if items.len() < MAX_ITEMS => items.push(Value::from(value)),
            Some(Value::Array(_)) => {}
            Some(first) => *first = Value::Array(vec![first.take(), Value::from(value)]),
        }
    }

    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of a key, if it is one text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).and_then(Value::as_str)
    }

    /// The metadata as a JSON object.
    pub(crate) fn into_json(self) -> String {
        Value::Object(self.values).to_string()
    }
}

/// A value on one line, cut to [`MAX_VALUE_BYTES`], without what does not belong in text; `None` if nothing is
/// left.
pub(crate) fn one_line(text: &str) -> Option<String> {
    // Longer texts are cut before they are looked at: white space may be all there is to them.
    let text = &text[..text.floor_char_boundary(MAX_VALUE_BYTES * 8)];
    let text = super::html::clean(text);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line[..line.floor_char_boundary(MAX_VALUE_BYTES)].trim_end();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_lines_and_the_first_one_stays() {
        let mut properties = Properties::default();
        properties.set(TITLE, " two\n\0lines\u{a0}here ");
        properties.set(TITLE, "another");
        properties.set(SUBJECT, " \u{200b} ");
        properties.set(DESCRIPTION, &"ü".repeat(10_000));
        assert_eq!(properties.text(TITLE), Some("two lines here"));
        assert_eq!(properties.text(SUBJECT), None);
        assert_eq!(properties.text(DESCRIPTION).map(str::len), Some(MAX_VALUE_BYTES));
    }

    #[test]
    fn several_values_become_a_list() {
        let mut properties = Properties::default();
        for author in ["Ada", "", "Grace", "Mary"] {
            properties.add(AUTHOR, author);
        }
        properties.set_number(PAGES, 3);
        assert_eq!(properties.into_json(), r#"{"author":["Ada","Grace","Mary"],"pages":3}"#);
    }
}
