//! The repository as text: its files, and Rust source taken apart into code, comments and string literals.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All files that belong to the project, relative to its root, in order: build output and what was
/// downloaded are left out.
pub fn project_files() -> Vec<PathBuf> {
    let root = repository();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            if entry.file_type().unwrap().is_dir() {
                if !matches!(name.to_str(), Some("target" | ".git" | ".local" | "shared" | "node_modules")) {
                    folders.push(entry.path());
                }
            } else {
                found.push(entry.path().strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// A Rust file: its code with strings and comments blanked out, and its string literals with their lines.
#[derive(Debug, Default)]
pub struct RustSource {
    /// The code, line for line as in the file.
    pub code: String,
    /// Its string literals.
    pub strings: Vec<StringLiteral>,
}

/// A string literal of a [`RustSource`].
#[derive(Debug, PartialEq, Eq)]
pub struct StringLiteral {
    /// The line where it starts, from 1.
    pub line: usize,
    /// What is between the quotes, as written.
    pub text: String,
    /// The last word of code before it, such as `hint` in `.hint("…")`.
    pub argument_of: String,
}

impl RustSource {
    /// Takes a file's text apart.
    pub fn parse(text: &str) -> Self {
        let mut source = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = source.step(rest, first);
            rest = &rest[length..];
        }
        source
    }

    /// Takes the next piece and returns its length in bytes.
    fn step(&mut self, rest: &str, first: char) -> usize {
        if rest.starts_with("//") {
            return rest.find('\n').unwrap_or(rest.len());
        }
        if rest.starts_with("/*") {
            return self.blank(&rest[..rest.find("*/").map_or(rest.len(), |end| end + 2)]);
        }
        if first == '"' {
            return self.string(rest, 1, end_of_string(&rest[1..]) + 1, 1);
        }
        let in_a_word = self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if first == 'r' && !in_a_word {
            let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
            if rest[1 + hashes..].starts_with('"') {
                let close = format!("\"{}", "#".repeat(hashes));
                let start = 2 + hashes;
                let end = rest[start..].find(&close).map_or(rest.len(), |end| start + end);
                return self.string(rest, start, end, close.len());
            }
        }
        // A character literal may hold a quote; a lifetime has no closing one.
        for quote in ["'\"'", "'\\\"'", "'\\''"] {
            if rest.starts_with(quote) {
                return self.blank(quote);
            }
        }
        self.code.push(first);
        first.len_utf8()
    }

    fn string(&mut self, rest: &str, start: usize, end: usize, closing: usize) -> usize {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = self.code.trim_end_matches(|c| !is_word(c));
        let argument_of = before.rsplit(|c| !is_word(c)).next().unwrap_or_default().to_owned();
        let line = self.code.matches('\n').count() + 1;
        self.strings.push(StringLiteral { line, text: rest[start..end].to_owned(), argument_of });
        let whole = rest.len().min(end + closing);
        self.blank(&rest[..whole])
    }

    /// Keeps the line breaks of what is left out.
    fn blank(&mut self, piece: &str) -> usize {
        self.code.push(' ');
        self.code.extend(piece.chars().filter(|c| *c == '\n'));
        piece.len()
    }
}

fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (position, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return position,
            _ => {}
        }
    }
    text.len()
}
