//! Metadata as typed rows: what a filter is compared with. What is found out about a document is in [`extract`].
//!
//! Storing the rows is left to the caller; their meaning under a filter stands in [`crate::filter`].

pub mod extract;
pub mod language;
pub mod moment;
pub mod rule;

mod date;
pub(crate) mod name;
mod pattern;

use crate::filter::Scalar;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// Most characters of a text value, and of a key, that is indexed.
pub const MAX_INDEXED_CHARS: usize = 256;

/// Most rows that one document's metadata gives.
pub const MAX_ROWS: usize = 1_000;

/// Deepest nesting of objects and arrays that is looked into.
pub const MAX_DEPTH: usize = 16;

/// Deepest nesting of metadata that is taken. What reads JSON gives up a little later.
pub const MOST_LEVELS: usize = 100;

/// Whether metadata is nested more deeply than [`MOST_LEVELS`].
pub fn is_too_deep(metadata: &Value) -> bool {
    levels_exceed(metadata, MOST_LEVELS)
}

/// Whether objects and arrays are nested in each other more than so many times.
pub fn levels_exceed(value: &Value, most: usize) -> bool {
    let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => return false,
    };
    most == 0 || inner.any(|value| levels_exceed(value, most - 1))
}

/// The rows of a metadata object: dotted key and scalar value, by key and value, each pair once.
///
/// `{"a": {"b": 1}}` gives `a.b`; an array gives a row per element, and an array of objects a row per field of
/// each, so `{"authors": [{"name": "x"}, {"name": "y"}]}` gives two rows `authors.name`. Nulls and empty
/// arrays give none: such a key does not exist for a filter. What is over [`MAX_INDEXED_CHARS`] or
/// [`MAX_DEPTH`], and rows beyond [`MAX_ROWS`], are not indexed; the metadata itself keeps them. A value that
/// is no object gives no rows.
pub fn typed_rows(metadata: &Value) -> Vec<(String, Scalar)> {
    let mut rows = Vec::new();
    if metadata.is_object() {
        collect(metadata, &mut String::new(), 0, &mut rows);
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)));
    rows.dedup_by(|a, b| a.0 == b.0 && a.1.total_cmp(&b.1).is_eq());
    rows.truncate(MAX_ROWS);
    rows
}

/// The same rows grouped by key, as [`crate::filter::matches`] wants them.
pub fn typed_values(metadata: &Value) -> BTreeMap<String, Vec<Scalar>> {
    let mut values: BTreeMap<String, Vec<Scalar>> = BTreeMap::new();
    for (key, value) in typed_rows(metadata) {
        values.entry(key).or_default().push(value);
    }
    values
}

/// The rows of a document: what was given, then what was extracted, then the document's own fields; of each key
/// only what the first of them says.
///
/// A key that was given, be it as null, hides the later ones whole: `{"author": null}` means that there is none.
pub fn effective_rows(given: &Value, extracted: &Value, fields: &Value) -> Vec<(String, Scalar)> {
    let mut rows = typed_rows(given);
    let mut hidden: HashSet<&str> =
        given.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for layer in [extracted, fields] {
        let Some(layer) = layer.as_object() else { continue };
        let left: Map<String, Value> = layer
            .iter()
            .filter(|(key, _)| !hidden.contains(key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        hidden.extend(layer.keys().map(String::as_str));
        // Dotted keys may meet though their first parts differ: {"a.b": 1} and {"a": {"b": 2}}.
        let known: HashSet<String> = rows.iter().map(|(key, _)| key.clone()).collect();
        rows.extend(typed_rows(&Value::Object(left)).into_iter().filter(|(key, _)| !known.contains(key)));
    }
    rows
}

fn collect(value: &Value, key: &mut String, depth: usize, rows: &mut Vec<(String, Scalar)>) {
    if depth > MAX_DEPTH || key.chars().nth(MAX_INDEXED_CHARS).is_some() {
        return;
    }
    match value {
        Value::Null => {}
        Value::Bool(value) => rows.push((key.clone(), Scalar::Bool(*value))),
        Value::Number(number) => rows.extend(
            number
                .as_f64()
                .filter(|number| number.is_finite())
                .map(|n| (key.clone(), Scalar::Number(n + 0.0))),
        ),
        Value::String(text) => {
            if text.chars().nth(MAX_INDEXED_CHARS).is_none() {
                rows.push((key.clone(), Scalar::Text(text.clone())));
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(item, key, depth + 1, rows);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let outer = key.len();
                if depth > 0 && outer > 0 {
                    key.push('.');
                }
                key.push_str(name);
                collect(field, key, depth + 1, rows);
                key.truncate(outer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(value: &str) -> Scalar {
        Scalar::Text(value.to_owned())
    }

    #[test]
    fn nested_objects_are_dotted_and_arrays_give_several_rows() {
        let metadata = json!({"b": {"c": {"d": true}}, "a": ["y", "x", "x", 2], "none": null, "empty": [],
                              "authors": [{"name": "p"}, {"name": "q"}], "n": 1.5});
        let expected = [
            ("a", Scalar::Number(2.0)),
            ("a", text("x")),
            ("a", text("y")),
            ("authors.name", text("p")),
            ("authors.name", text("q")),
            ("b.c.d", Scalar::Bool(true)),
            ("n", Scalar::Number(1.5)),
        ];
        assert_eq!(typed_rows(&metadata), expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn what_is_over_a_limit_is_left_out() {
        let fits = "ü".repeat(MAX_INDEXED_CHARS);
        let metadata = json!({"fits": fits, "long": format!("{fits}x"), "k".repeat(257): 1});
        assert_eq!(typed_rows(&metadata), [("fits".to_owned(), Scalar::Text(fits))]);
        let many: Vec<usize> = (0..5_000).collect();
        assert_eq!(typed_rows(&json!({ "n": many })).len(), MAX_ROWS);
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert_eq!(typed_rows(&json!({ "deep": deep })), []);
    }

    #[test]
    fn a_value_that_is_no_object_gives_no_rows() {
        for value in [json!(null), json!(3), json!(["a"])] {
            assert_eq!(typed_rows(&value), []);
        }
    }

    #[test]
    fn what_was_given_hides_what_was_extracted_and_that_the_fields() {
        let given = json!({"author": null, "topic": "x", "a": {"b": 1}});
        let extracted = json!({"author": "Ann", "topic": ["y", "z"], "a.b": 2, "words": 3, "title": "T"});
        let fields = json!({"title": "Field", "uri": "u", "words": 9, "media_type": null});
        let rows = effective_rows(&given, &extracted, &fields);
        let expected = [
            ("a.b", Scalar::Number(1.0)),
            ("topic", text("x")),
            ("title", text("T")),
            ("words", Scalar::Number(3.0)),
            ("uri", text("u")),
        ];
        assert_eq!(rows, expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn minus_zero_is_zero() {
        assert_eq!(typed_rows(&json!({"z": [0.0, -0.0]})).len(), 1);
    }
}
