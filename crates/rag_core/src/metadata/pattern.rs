//! Looking for a pattern in a text, in steps that somebody may end.
//!
//! Patterns are those of the `regex` crate: no look-around and no back-references, and so no backtracking. Even so one
//! search may take as long as the text and the compiled pattern multiplied, and the search for each next match as
//! long again. So a match lies within a window of the text, the smaller the larger the pattern is, and whoever waits is
//! asked before each search. What a rule makes of a match is left to [`super::rule`].

use crate::option::{OptionError, quoted};
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Input, Span};

/// Most characters of a rule's pattern.
const MAX_PATTERN_CHARS: usize = 1_000;

/// Most bytes of a compiled pattern: what a match may cost per character of text grows with it.
const MAX_COMPILED_BYTES: usize = 256 * 1024;

/// Most that one search may cost: bytes of text, times bytes of the compiled pattern. The worst patterns take half a
/// second for it, usual ones microseconds.
const MAX_COST: usize = 1 << 32;

/// Bytes that a match may always have.
const MIN_WINDOW_BYTES: usize = 8 * 1024;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// Bytes of text that one search goes over. Half as many may be one match.
    window: usize,
}

impl Pattern {
    /// Errors: [`crate::option::OptionErrorKind::Invalid`] for what is no regular expression, or matches the empty
    /// text; `LimitExceeded` for what is too long or too large.
    pub(super) fn compile(pattern: &str) -> Result<Self, OptionError> {
        let chars = pattern.chars().count();
        if chars > MAX_PATTERN_CHARS {
            return Err(OptionError::limit_exceeded(format!(
                "pattern has {chars} characters, more than {MAX_PATTERN_CHARS}"
            )));
        }
        let limits = Config::new()
            .nfa_size_limit(Some(MAX_COMPILED_BYTES))
            .onepass_size_limit(Some(MAX_COMPILED_BYTES))
            .hybrid_cache_capacity(4 * MAX_COMPILED_BYTES);
        let regex = Regex::builder()
            .configure(limits)
            .syntax(syntax::Config::new().nest_limit(50))
            .build(pattern)
            .map_err(|error| refusal(pattern, &error))?;
        if regex.is_match("") {
            return Err(OptionError::invalid(format!("pattern {} matches the empty text", quoted(pattern)))
                .with_hint("Make at least one character required."));
        }
        let window = (MAX_COST / regex.memory_usage().max(1)).max(2 * MIN_WINDOW_BYTES);
        Ok(Self { regex, window })
    }

    /// What is found in a text, match by match: the template filled in, or the group `value`, or the first group, or the
    /// whole match. Ends early once `goes_on` says no.
    pub(super) fn matches<'a>(
        &'a self,
        text: &'a str,
        template: Option<&'a str>,
        goes_on: &'a mut dyn FnMut() -> bool,
    ) -> impl Iterator<Item = String> + 'a {
        let mut captures = self.regex.create_captures();
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.next(text, from, &mut captures, goes_on)?;
            from = if found.is_empty() { border(text, found.end + 1) } else { found.end };
            Some(matched_text(&captures, text, template))
        })
    }

    /// Finds the first match at or after `from`.
    fn next(
        &self,
        text: &str,
        mut from: usize,
        captures: &mut Captures,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<Span> {
        while from < text.len() && goes_on() {
            let end = border(text, from.saturating_add(self.window));
            // What stands around the window still counts for \b, ^ and $.
            self.regex.search_captures(&Input::new(text).range(from..end), captures);
            let middle = border(text, from + self.window / 2);
            match captures.get_match() {
                // One that begins late may be cut short by the window's end.
                Some(found) if found.start() > middle && end < text.len() => from = found.start(),
                Some(found) => return Some(found.span()),
                None if end == text.len() => return None,
                None => from = middle,
            }
        }
        None
    }
}

/// The first place at or after `place` where a character begins, or the text's end.
fn border(text: &str, place: usize) -> usize {
    (place..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len())
}

fn refusal(pattern: &str, error: &BuildError) -> OptionError {
    if let Some(limit) = error.size_limit() {
        return OptionError::limit_exceeded(format!(
            "pattern {} needs more than {limit} bytes",
            quoted(pattern)
        ))
        .with_hint("Use fewer repetitions, or [a-z] and (?-u:\\w) instead of Unicode classes.");
    }
    let reason = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    OptionError::invalid(format!("pattern {} is not a regular expression", quoted(pattern)))
        .with_detail(reason)
        .with_hint("The syntax is that of Rust's regex crate: no look-around, no back-references.")
}

fn matched_text(captures: &Captures, text: &str, template: Option<&str>) -> String {
    if let Some(template) = template {
        return captures.interpolate_string(text, template);
    }
    let group = captures.get_group_by_name("value").or_else(|| captures.get_group(1));
    let group = group.or_else(|| captures.get_group(0));
    group.map_or_else(String::new, |group| text[group.range()].to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn found(pattern: &str, text: &str) -> Vec<String> {
        Pattern::compile(pattern).unwrap().matches(text, None, &mut || true).collect()
    }

    #[test]
    fn windows_change_nothing_for_matches_that_are_shorter() {
        for gap in [0, 1, 5_000, 20_000, 70_000] {
            let text = format!("äß{}code-17 {}code-18.", "ü ".repeat(gap), "é".repeat(gap));
            for pattern in [r"\bcode-\d+\b", r"(?:code)-(\d+)", r"code-\d+\.$", r"(?i)\p{Lu}ode"] {
                // Large enough for a window of the least size.
                let large = Pattern { regex: Regex::new(pattern).unwrap(), window: 2 * MIN_WINDOW_BYTES };
                let in_windows: Vec<String> = large.matches(&text, None, &mut || true).collect();
                let whole: Vec<String> = found(pattern, &text);
                assert_eq!(in_windows, whole, "{pattern} {gap}");
            }
        }
    }

    #[test]
    fn the_pattern_is_asked_whether_to_go_on_and_no_search_is_long() {
        let text = "ab".repeat(125_000);
        let pattern = Pattern::compile("(?:[ab]*a[ab]{1500}c)|b").unwrap();
        let mut left = 3;
        let mut goes_on = || {
            left -= 1;
            left >= 0
        };
        assert_eq!(pattern.matches(&text, None, &mut goes_on).count(), 3);
        assert!(pattern.window < 80 * 1024, "{}", pattern.window);
        let usual = Pattern::compile(r"Order (\d+)").unwrap();
        assert!(usual.window > pattern.window, "{}", usual.window);
    }
}
