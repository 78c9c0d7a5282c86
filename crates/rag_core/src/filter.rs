//! The filter language over typed metadata: parsing, and the reference for what it means.
//!
//! ```json
//! {"lang": "en", "year": {"gte": 2020, "lt": 2024}, "topic": ["a", "b"], "uri": {"prefix": "https://"},
//!  "or": [{"draft": false}, {"draft": {"exists": false}}], "not": {"tag": "old"}}
//! ```
//!
//! Conditions side by side must all hold. A key names a row of [`crate::metadata::effective_rows`] (dotted for
//! nested objects); `and`, `or` and `not` are reserved. A key may have several values, one per array element:
//!
//! - `eq` (or a bare value), `in` (or a bare array) and `prefix` hold if *any* value of the key satisfies them; a
//!   value of another type does not. Texts compare by their bytes (UTF-8, as the C collation does).
//! - `lt`, `lte`, `gt`, `gte` and `between` of one key hold if *one* value of it satisfies all of them.
//! - `ne` and `nin` hold if the key exists and *no* value of it equals a given one, as SQL's `<>` is not true of
//!   a NULL. `{"not": {"k": v}}` holds for documents without the key too.
//! - A text that is a date or a time in ISO 8601 form compares, in a filter, with such texts alone, and as time:
//!   `2024-01-31` is that whole day in UTC, so `lte` it takes in the day, and `eq` it any time of the day. A stored
//!   date without a time counts as its first moment. See [`crate::metadata::moment`].
//! - `{"and": []}` and `{}` hold always, `{"or": []}` and `{"in": []}` never.
//!
//! Turning a filter into SQL is left to the storage layer; [`matches`] is what its result must equal.

use crate::metadata::MAX_INDEXED_CHARS;
use crate::metadata::moment::{Span, span_of};
use crate::option::{OptionError, kind_of, quoted, shown};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Most nodes of a filter: conditions, and `and`, `or`, `not` around them.
pub const MAX_NODES: usize = 256;

/// Deepest nesting of `and`, `or` and `not`.
pub const MAX_DEPTH: usize = 16;

/// Most values of one `in`.
pub const MAX_IN_VALUES: usize = 1_000;

/// A condition on a document's metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of them hold.
    All(Vec<Filter>),
    /// At least one of them holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// A value of the key equals one of these.
    In {
        /// Dotted key.
        key: String,
        /// At most [`MAX_IN_VALUES`].
        values: Vec<Scalar>,
    },
    /// The key has a value, and none that equals one of these.
    NotIn {
        /// Dotted key.
        key: String,
        /// At most [`MAX_IN_VALUES`].
        values: Vec<Scalar>,
    },
    /// One value of the key is within all bounds.
    Range {
        /// Dotted key.
        key: String,
        /// At least one.
        bounds: Vec<(Bound, Scalar)>,
    },
    /// A text of the key begins so.
    Prefix {
        /// Dotted key.
        key: String,
        /// Not empty.
        prefix: String,
    },
    /// The key has a value, or has none.
    Exists {
        /// Dotted key.
        key: String,
        /// Which of the two.
        exists: bool,
    },
}

impl Filter {
    /// The keys that it asks for a value of, each once; not those that it asks to be without.
    pub fn keys(&self) -> BTreeSet<&str> {
        match self {
            Self::All(filters) | Self::Any(filters) => filters.iter().flat_map(Self::keys).collect(),
            Self::Not(_) | Self::Exists { exists: false, .. } => BTreeSet::new(),
            Self::In { key, .. }
            | Self::NotIn { key, .. }
            | Self::Range { key, .. }
            | Self::Prefix { key, .. }
            | Self::Exists { key, .. } => BTreeSet::from([key.as_str()]),
        }
    }
}

/// One value of a metadata key.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A text.
    Text(String),
    /// A finite number.
    Number(f64),
    /// A boolean.
    Bool(bool),
}

impl Scalar {
    /// A total order: booleans, numbers, texts, each by value. For sorting only; filters compare values of
    /// one type.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Bool(_), _) | (Self::Number(_), Self::Text(_)) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    /// The span of time that a text in ISO 8601 form stands for.
    pub fn time(&self) -> Option<Span> {
        match self {
            Self::Text(text) => span_of(text),
            Self::Number(_) | Self::Bool(_) => None,
        }
    }

    /// Whether a document's value equals the one of a filter.
    fn equals(&self, wanted: &Self) -> bool {
        match wanted.time() {
            Some(span) => self.time().is_some_and(|own| span.from <= own.from && own.from < span.to),
            None => self == wanted,
        }
    }

    /// Whether a document's value is within the bound of a filter.
    fn is_within(&self, bound: Bound, limit: &Self) -> bool {
        if let Some(span) = limit.time() {
            return self.time().is_some_and(|own| match bound {
                Bound::Less => own.from < span.from,
                Bound::LessOrEqual => own.from < span.to,
                Bound::Greater => own.from >= span.to,
                Bound::GreaterOrEqual => own.from >= span.from,
            });
        }
        let order = match (self, limit) {
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            _ => None,
        };
        order.is_some_and(|order| match bound {
            Bound::Less => order.is_lt(),
            Bound::LessOrEqual => order.is_le(),
            Bound::Greater => order.is_gt(),
            Bound::GreaterOrEqual => order.is_ge(),
        })
    }
}

/// One end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `lt`.
    Less,
    /// `lte`, and the second value of `between`.
    LessOrEqual,
    /// `gt`.
    Greater,
    /// `gte`, and the first value of `between`.
    GreaterOrEqual,
}

const OPERATORS: &str =
    "\"eq\", \"ne\", \"in\", \"nin\", \"lt\", \"lte\", \"gt\", \"gte\", \"between\", \"prefix\", \"exists\"";

/// Reads a filter from JSON.
///
/// Errors: [`crate::option::OptionErrorKind::Invalid`] for what is no filter, `LimitExceeded` beyond
/// [`MAX_NODES`], [`MAX_DEPTH`], [`MAX_IN_VALUES`], or a text longer than what is indexed, which could never
/// match.
pub fn parse_filter(json: &Value) -> Result<Filter, OptionError> {
    FilterParser { nodes: 0 }.conditions(json, 1)
}

/// Whether a document with these values passes: the meaning that the SQL of a filter must have.
pub fn matches(filter: &Filter, values: &BTreeMap<String, Vec<Scalar>>) -> bool {
    let of = |key: &String| values.get(key).map(Vec::as_slice).unwrap_or_default();
    match filter {
        Filter::All(parts) => parts.iter().all(|part| matches(part, values)),
        Filter::Any(parts) => parts.iter().any(|part| matches(part, values)),
        Filter::Not(part) => !matches(part, values),
        Filter::Exists { key, exists } => of(key).is_empty() != *exists,
        Filter::In { key, values: wanted } => {
            of(key).iter().any(|own| wanted.iter().any(|one| own.equals(one)))
        }
        Filter::NotIn { key, values: unwanted } => {
            !of(key).is_empty() && !of(key).iter().any(|own| unwanted.iter().any(|one| own.equals(one)))
        }
        Filter::Range { key, bounds } => {
            of(key).iter().any(|own| bounds.iter().all(|(bound, limit)| own.is_within(*bound, limit)))
        }
        Filter::Prefix { key, prefix } => {
            of(key).iter().any(|own| matches!(own, Scalar::Text(text) if text.starts_with(prefix)))
        }
    }
}

struct FilterParser {
    nodes: usize,
}

impl FilterParser {
    /// An object whose entries must all hold.
    fn conditions(&mut self, json: &Value, depth: usize) -> Result<Filter, OptionError> {
        if depth > MAX_DEPTH {
            return Err(OptionError::limit_exceeded(format!(
                "filter is nested more than {MAX_DEPTH} levels deep"
            )));
        }
        let Value::Object(entries) = json else {
            return Err(OptionError::invalid(format!("filter must be a JSON object, not {}", kind_of(json)))
                .with_hint("Write {\"key\": value} or {\"key\": {\"gte\": value}}."));
        };
        let mut parts = Vec::new();
        for (key, value) in entries {
            match key.as_str() {
                "and" => parts.push(Filter::All(self.list(key, value, depth)?)),
                "or" => parts.push(Filter::Any(self.list(key, value, depth)?)),
                "not" => {
                    self.count()?;
                    parts.push(Filter::Not(Box::new(self.conditions(value, depth + 1)?)));
                }
                _ => self.key(key, value, &mut parts)?,
            }
        }
        Ok(match parts.len() {
            1 => parts.swap_remove(0),
            _ => {
                self.count()?;
                Filter::All(parts)
            }
        })
    }

    fn list(&mut self, key: &str, value: &Value, depth: usize) -> Result<Vec<Filter>, OptionError> {
        self.count()?;
        let Value::Array(items) = value else {
            return Err(OptionError::invalid(format!(
                "\"{key}\" in a filter must be an array of filters, not {}",
                kind_of(value)
            )));
        };
        items.iter().map(|item| self.conditions(item, depth + 1)).collect()
    }

    fn key(&mut self, key: &str, value: &Value, parts: &mut Vec<Filter>) -> Result<(), OptionError> {
        if key.is_empty() {
            return Err(OptionError::invalid("filter has an empty key"));
        }
        if key.chars().nth(MAX_INDEXED_CHARS).is_some() {
            return Err(OptionError::limit_exceeded(format!(
                "filter key {} is longer than {MAX_INDEXED_CHARS} characters",
                quoted(key)
            )));
        }
        match value {
            Value::Object(operators) => self.operators(key, operators, parts),
            Value::Array(_) => {
                self.count()?;
                parts.push(Filter::In { key: key.to_owned(), values: values("in", key, value)? });
                Ok(())
            }
            _ => {
                self.count()?;
                parts.push(Filter::In { key: key.to_owned(), values: vec![scalar(key, value)?] });
                Ok(())
            }
        }
    }

    fn operators(
        &mut self,
        key: &str,
        operators: &Map<String, Value>,
        parts: &mut Vec<Filter>,
    ) -> Result<(), OptionError> {
        if operators.is_empty() {
            return Err(OptionError::invalid(format!("filter on {} has no operator", quoted(key)))
                .with_hint(format!("Operators are {OPERATORS}.")));
        }
        let mut bounds: Vec<(Bound, Scalar)> = Vec::new();
        for (operator, value) in operators {
            self.count()?;
            let key = key.to_owned();
            match operator.as_str() {
                "eq" => parts.push(Filter::In { values: vec![scalar(&key, value)?], key }),
                "ne" => parts.push(Filter::NotIn { values: vec![scalar(&key, value)?], key }),
                "in" => parts.push(Filter::In { values: values("in", &key, value)?, key }),
                "nin" => parts.push(Filter::NotIn { values: values("nin", &key, value)?, key }),
                "lt" => bounds.push((Bound::Less, ordered(operator, &key, value)?)),
                "lte" => bounds.push((Bound::LessOrEqual, ordered(operator, &key, value)?)),
                "gt" => bounds.push((Bound::Greater, ordered(operator, &key, value)?)),
                "gte" => bounds.push((Bound::GreaterOrEqual, ordered(operator, &key, value)?)),
                "between" => {
                    let Value::Array(pair) = value else { return Err(no_pair(&key, value)) };
                    let [low, high] = pair.as_slice() else { return Err(no_pair(&key, value)) };
                    bounds.push((Bound::GreaterOrEqual, ordered(operator, &key, low)?));
                    bounds.push((Bound::LessOrEqual, ordered(operator, &key, high)?));
                }
                "prefix" => match scalar(&key, value)? {
                    Scalar::Text(prefix) if !prefix.is_empty() => parts.push(Filter::Prefix { key, prefix }),
                    _ => {
                        return Err(OptionError::invalid(format!(
                            "\"prefix\" on {} must be a text that is not empty, not {}",
                            quoted(&key),
                            shown(value)
                        )));
                    }
                },
                "exists" => {
                    let Value::Bool(exists) = value else {
                        return Err(OptionError::invalid(format!(
                            "\"exists\" on {} must be true or false, not {}",
                            quoted(&key),
                            kind_of(value)
                        )));
                    };
                    parts.push(Filter::Exists { key, exists: *exists });
                }
                unknown => {
                    return Err(OptionError::invalid(format!(
                        "unknown filter operator {} on {}",
                        quoted(unknown),
                        quoted(&key)
                    ))
                    .with_hint(format!(
                        "Operators are {OPERATORS}; the keys of nested metadata are dotted, as in \"a.b\"."
                    )));
                }
            }
        }
        if !bounds.is_empty() {
            parts.push(Filter::Range { key: key.to_owned(), bounds });
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), OptionError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(OptionError::limit_exceeded(format!("filter has more than {MAX_NODES} nodes"))
                .with_hint("Use \"in\" for many values of one key."));
        }
        Ok(())
    }
}

fn no_pair(key: &str, value: &Value) -> OptionError {
    OptionError::invalid(format!("\"between\" on {} must be two values, not {}", quoted(key), shown(value)))
        .with_hint("Write {\"between\": [lowest, highest]}; both belong to it.")
}

/// A value that has an order.
fn ordered(operator: &str, key: &str, value: &Value) -> Result<Scalar, OptionError> {
    match scalar(key, value)? {
        Scalar::Bool(_) => {
            Err(OptionError::invalid(format!("\"{operator}\" on {} cannot compare a boolean", quoted(key))))
        }
        value => Ok(value),
    }
}

fn values(operator: &str, key: &str, value: &Value) -> Result<Vec<Scalar>, OptionError> {
    let Value::Array(items) = value else {
        return Err(OptionError::invalid(format!(
            "\"{operator}\" on {} must be an array, not {}",
            quoted(key),
            kind_of(value)
        )));
    };
    if items.len() > MAX_IN_VALUES {
        return Err(OptionError::limit_exceeded(format!(
            "\"{operator}\" on {} has {} values, more than {MAX_IN_VALUES}",
            quoted(key),
            items.len()
        )));
    }
    items.iter().map(|item| scalar(key, item)).collect()
}

fn scalar(key: &str, value: &Value) -> Result<Scalar, OptionError> {
    let refused = |hint: &str| {
        Err(OptionError::invalid(format!("filter on {} cannot compare with {}", quoted(key), shown(value)))
            .with_hint(hint))
    };
    match value {
        Value::String(text) if text.chars().nth(MAX_INDEXED_CHARS).is_some() => {
            Err(OptionError::limit_exceeded(format!(
                "filter value of {} is longer than {MAX_INDEXED_CHARS} characters",
                quoted(key)
            ))
            .with_detail("Longer values are not indexed, so none can match."))
        }
        Value::String(text) => Ok(Scalar::Text(text.clone())),
        Value::Bool(value) => Ok(Scalar::Bool(*value)),
        Value::Number(number) => match number.as_f64().filter(|number| number.is_finite()) {
            Some(number) => Ok(Scalar::Number(number + 0.0)),
            None => refused("Numbers are doubles."),
        },
        Value::Null => refused("Use {\"exists\": false} for documents without the key."),
        Value::Array(_) => refused("Use {\"in\": […]} for one of several values."),
        Value::Object(_) => refused("Compare with a text, a number or a boolean."),
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
