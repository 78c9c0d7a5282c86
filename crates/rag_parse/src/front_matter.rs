//! Front matter: what the author of a Markdown text says about it ahead of the text.
//!
//! Keys with a value or a list of values are read, from YAML and TOML alike; nested ones and texts of several lines
//! are passed over. What is wanted is title, author, date and the like, and a YAML parser would be a large thing to
//! point at untrusted text.

use crate::properties::{
    AUTHOR, CREATED, DESCRIPTION, KEYWORDS, LANGUAGE, MODIFIED, Properties, SUBJECT, TITLE,
};

/// Most keys that become metadata.
const MAX_KEYS: usize = 64;

/// Names that authors use, and the key of each. A value is kept under its own name too.
const NAMES: &[(&str, &str)] = &[
    ("authors", AUTHOR),
    ("creator", AUTHOR),
    ("date", CREATED),
    ("published", CREATED),
    ("pubdate", CREATED),
    ("lastmod", MODIFIED),
    ("last_modified", MODIFIED),
    ("updated", MODIFIED),
    ("tags", KEYWORDS),
    ("categories", KEYWORDS),
    ("lang", LANGUAGE),
    ("locale", LANGUAGE),
    ("abstract", DESCRIPTION),
    ("summary", DESCRIPTION),
    ("topic", SUBJECT),
    ("name", TITLE),
];

/// Front matter that is being read.
pub(crate) struct FrontMatter {
    /// Between a key and its value.
    separator: char,
    keys: usize,
    /// A key whose values follow, each in a line of its own.
    list: Option<String>,
}

impl FrontMatter {
    pub(crate) fn new(separator: char) -> Self {
        Self { separator, keys: 0, list: None }
    }

    /// Reads more lines.
    pub(crate) fn read(&mut self, lines: &str, properties: &mut Properties) {
        for line in lines.lines() {
            self.read_line(line, properties);
        }
    }

    fn read_line(&mut self, line: &str, properties: &mut Properties) {
        if let Some(key) = &self.list
            && let Some(item) = line.trim_start().strip_prefix("- ")
        {
            add(key, scalar(item), properties);
            return;
        }
        self.list = None;
        let Some((key, value)) = line.split_once(self.separator) else { return };
        let (key, value) = (key.trim_end().to_lowercase(), value.trim());
        let is_name = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
        if !is_name || self.keys >= MAX_KEYS {
            return;
        }
        self.keys += 1;
        if value.is_empty() {
            self.list = Some(key);
        } else if let Some(items) = value.strip_prefix('[').and_then(|items| items.strip_suffix(']')) {
            Items { rest: items }.for_each(|item| add(&key, scalar(item), properties));
        } else {
            add(&key, scalar(value), properties);
        }
    }
}

fn add(key: &str, value: Option<&str>, properties: &mut Properties) {
    let Some(value) = value else { return };
    properties.add(key, value);
    if let Some((_, known)) = NAMES.iter().find(|(name, _)| *name == key) {
        properties.add(known, value);
    }
}

/// A value without its quotes; `None` for what is no plain value.
fn scalar(value: &str) -> Option<&str> {
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    match quoted('"').or_else(|| quoted('\'')) {
        Some(value) => Some(value),
        None => (!value.is_empty() && !value.starts_with(['[', '{', '|', '>', '&', '*', '!', '#']))
            .then_some(value),
    }
}

/// Items between commas that stand in no quotes.
struct Items<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let mut quote = None;
        let end = self.rest.find(|c| {
            match (quote, c) {
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), _) if open == c => quote = None,
                _ => {}
            }
            quote.is_none() && c == ','
        });
        let (item, rest) = match end {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            // A quote that is never closed is none.
            None if quote.is_none() => (self.rest, ""),
            None => self.rest.split_once(',').unwrap_or((self.rest, "")),
        };
        self.rest = rest;
        Some(item)
    }
}
