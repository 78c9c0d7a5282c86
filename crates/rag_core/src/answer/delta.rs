//! What of a completion can be shown while it is being written: the answer's words, not the object around them.
//!
//! It is not checked yet. Citation markers are left out, for the numbers of the checked answer are others; so are addresses;
//! tags are spoilt. What may become a marker or a link is held back until it is known.

use super::cite;
use super::plain::visible;
use regex::Regex;
use std::sync::LazyLock;

/// Most characters that are held back because something may be a link or a marker.
const HELD_BACK: usize = 300;

static LINK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"!?\[([^\[\]]*)\]\([^()]*\)").ok());
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)[a-z0-9+.-]*://\S*|\b(?:www\.|data:|javascript:)\S+").ok());

/// A completion that is being written.
#[derive(Debug, Default)]
pub struct Deltas {
    written: String,
    shown: String,
}

impl Deltas {
    /// Takes what was written next, and returns what can be shown next; perhaps nothing.
    pub fn push(&mut self, text: &str) -> String {
        self.written.push_str(text);
        self.advance(false)
    }

    /// What is left to show once all is written.
    pub fn finish(&mut self) -> String {
        self.advance(true)
    }

    /// All that was returned to be shown.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    fn advance(&mut self, is_whole: bool) -> String {
        let answer = answer_so_far(&self.written);
        let end = if is_whole { answer.len() } else { settled(&answer) };
        let visible = neutral(&answer[..end]);
        // What follows rarely changes what it was shown for, such as a backtick that makes code of a marker.
        let more = match visible.strip_prefix(self.shown.as_str()) {
            Some(more) => more.to_owned(),
            None => visible.chars().skip(self.shown.chars().count()).collect(),
        };
        self.shown.push_str(&more);
        more
    }
}

/// The answer in the beginning of a completion: the string `answer` of a JSON object, or all of a plain text.
fn answer_so_far(written: &str) -> String {
    let text = written.trim_start();
    let text = match text.strip_prefix("```") {
        Some(fenced) => fenced.split_once('\n').map_or("", |(_, body)| body.trim_start()),
        None => text,
    };
    let is_begun_fence = !text.is_empty() && "```".starts_with(text);
    if is_begun_fence {
        return String::new();
    }
    if !text.starts_with('{') {
        return text.to_owned();
    }
    let Some((before, after)) = text.split_once("\"answer\"") else { return String::new() };
    let says_no = before.replace(char::is_whitespace, "").contains("\"found\":false");
    let value = after.trim_start().strip_prefix(':').map(str::trim_start).and_then(|v| v.strip_prefix('"'));
    match value {
        Some(value) if !says_no => cite::unescaped(value),
        _ => String::new(),
    }
}

/// Up to where nothing that comes can change what is shown: whole words, outside of what may be a link, a marker or a tag.
fn settled(answer: &str) -> usize {
    let word = answer.rfind(char::is_whitespace).unwrap_or(0);
    let from = answer.char_indices().rev().nth(HELD_BACK).map_or(0, |(at, _)| at);
    let is_open = |open: char, close: &[char]| {
        let at = answer[from..word].rfind(open)? + from;
        (!answer[at..word].contains(close)).then_some(at)
    };
    let open = is_open('[', &[']']).into_iter().chain(is_open('【', &['】'])).min();
    let mut end = open.unwrap_or(word).min(word);
    // The blanks before a marker go with it.
    end = answer[..end].trim_end().len();
    end
}

fn neutral(answer: &str) -> String {
    let replaced = |pattern: &LazyLock<Option<Regex>>, text: &str, by: &str| match pattern.as_ref() {
        Some(pattern) => pattern.replace_all(text, by).into_owned(),
        None => text.to_owned(),
    };
    // Addresses last: what is taken out may have parted one.
    let text = replaced(&ADDRESS, &cite::without_markers(&replaced(&LINK, &visible(answer), "$1")), "…");
    let mut following = text.chars().skip(1);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let next = following.next();
        match c {
            // No tag begins so.
            '<' if next.is_some_and(|next| next.is_alphabetic() || matches!(next, '/' | '!' | '?')) => {
                shown.push('‹');
            }
            '\n' | '\t' => shown.push(c),
            c if !c.is_control() => shown.push(c),
            _ => {}
        }
    }
    shown
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&LINK);
    LazyLock::force(&ADDRESS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is shown of a completion that comes in pieces of so many characters.
    fn shown(completion: &str, piece: usize) -> String {
        let mut deltas = Deltas::default();
        let characters: Vec<char> = completion.chars().collect();
        let mut shown: String =
            characters.chunks(piece).map(|piece| deltas.push(&piece.iter().collect::<String>())).collect();
        shown.push_str(&deltas.finish());
        shown
    }

    #[test]
    fn the_answers_words_are_shown_and_nothing_else() {
        for piece in [1, 3, 1000] {
            let check = |completion: &str, expected: &str| {
                assert_eq!(shown(completion, piece), expected, "{completion} by {piece}");
            };
            check(
                r#"{"found": true, "answer": "It is 35 metres tall. [1] Built in 1901 [2]."}"#,
                "It is 35 metres tall. Built in 1901.",
            );
            check("```json\n{\"answer\": \"Two\\nlines \\u00e9\\ud83d\\ude00.\"}\n```", "Two\nlines é😀.");
            check(r#"{"found": false, "answer": "no"}"#, "");
            check(
                "It is tall [1]. See [the page](https://evil.example/?q=1) now.",
                "It is tall. See the page now.",
            );
            check(
                "Go to https://evil.example/x now <img src=x> or ![a](http://b.example)",
                "Go to … now ‹img src=x> or a",
            );
            check("", "");
        }
    }

    #[test]
    fn words_are_shown_as_soon_as_they_are_whole() {
        let mut deltas = Deltas::default();
        assert_eq!(deltas.push("The tower is"), "The tower");
        assert_eq!(deltas.push(" 35 metres"), " is 35");
        assert_eq!(deltas.push(" tall [1]."), " metres tall");
        assert_eq!(deltas.finish(), ".");
    }

    proptest! {
        #[test]
        fn no_address_and_no_tag_is_shown(text in "(https?://|www\\.|[a-z \\[\\]()<>/0-9.\n`]){0,40}", piece in 1usize..9) {
            let shown = shown(&text, piece);
            prop_assert!(!shown.contains("://"), "{shown:?}");
            let tag = shown.find('<').and_then(|at| shown[at + 1..].chars().next());
            prop_assert!(tag.is_none_or(|next| !next.is_alphabetic()), "{shown:?}");
        }
    }
}
