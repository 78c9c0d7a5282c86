//! An answer's text as mere text: nothing in it is a link, an image or HTML to whoever shows it as Markdown or as HTML, nor a
//! command to a terminal, and nothing in it is invisible.
//!
//! Addresses stay readable, without their scheme and as code; code stays what it is but for tags of HTML. Whether what
//! a text says is supported is decided elsewhere. Quotes of citations do not come here: they stay as they are stored.

mod entity;
mod link;
mod tag;

use super::code;
use super::neutralise::is_invisible;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Commands to a terminal, with the character that begins them.
static ESCAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x) \x1b (?: \[ [0-?]* [\ -/]* [@-~]? | [\]P^_X] [^\x07\x1b\u{9c}]* (?: \x07 | \x1b\\ | \u{9c} )? | [\ -/]* [0-~]? ) | \u{9b} [0-?]* [\ -/]* [@-~]?",
    )
    .ok()
});

/// Addresses that a renderer would make links of, or that a browser would run.
static ADDRESSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?ix) (?<uri> [a-z][a-z0-9+.-]* : [/\\]{2} [^\s<>"`‹›]* | (?:https?|ftps?|wss?) : [^\s<>"`‹›]+ )
          | (?<www> www\. [^\s<>"`‹›]+ )
          | (?<mail> (?: (?:mailto|xmpp) : )? [a-z0-9._%+-]+ @ [a-z0-9-]+ (?: \. [a-z0-9-]+ )+ )"#,
    )
    .ok()
});

/// The beginning of an address of the web or of mail.
static SCHEMES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:https?|ftps?|wss?):[/\\]*|(?:mailto|xmpp):").ok());

/// The beginning of an address that is a program or a page of its own.
static ACTIVE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(javascript|vbscript|livescript|blob|view-source|data)(:[a-z]+[/;,]|:[;,]|:)").ok()
});

/// An answer's text as mere text. What is so already stays as it is.
///
/// - Links and images of Markdown become their text, definitions of references lose their form, and addresses
///   outside of code become code without their scheme: `https://b.example/x` reads `` `b.example/x` ``.
/// - What a browser would take for a tag gets other brackets: `<b>` reads `‹b›`. Code between backticks keeps
///   brackets that are no tag of HTML, as in `` `Vec<String>` ``.
/// - Entities become the characters that they stand for first. Commands to a terminal and invisible characters go.
pub fn defused(text: &str) -> String {
    let text = link::without_links(&readable(text));
    let mut shown = String::with_capacity(text.len());
    let mut last = 0;
    for span in code::spans(&text) {
        push_prose(&text[last..span.start], &mut shown);
        push_code(&text[span.clone()], &mut shown);
        last = span.end;
    }
    push_prose(&text[last..], &mut shown);
    shown
}

/// Most times that a text is read anew because what was taken out of it made an entity; what makes more is no writing.
const MAX_READINGS: usize = 4;

/// A text as it is read: [`visible`], with the characters that entities stand for.
pub(super) fn readable(text: &str) -> String {
    let mut text = visible(&entity::decoded(text));
    for _ in 0..MAX_READINGS {
        let next = visible(&entity::decoded(&text));
        if next == text {
            break;
        }
        text = next;
    }
    text
}

/// A text without commands to a terminal and without invisible characters. Joiners stay between letters that need them.
pub fn visible(text: &str) -> String {
    let text = match ESCAPES.as_ref() {
        Some(escapes) => escapes.replace_all(text, ""),
        None => text.into(),
    };
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0f}');
        let joins = is_joiner && shown.ends_with(|before: char| !before.is_ascii() && !is_invisible(before));
        let joins = joins
            && (c == '\u{fe0f}'
                || characters.peek().is_some_and(|after| !after.is_ascii() && !is_invisible(*after)));
        if joins || !is_invisible(c) {
            shown.push(c);
        }
    }
    shown
}

/// Schemes that have a browser run something, whatever comes behind them.
const RUN: [&str; 11] = [
    "about",
    "blob",
    "data",
    "filesystem",
    "intent",
    "jar",
    "javascript",
    "livescript",
    "shell",
    "vbscript",
    "view-source",
];

/// Schemes without `//` behind them that only name something.
const NAMES: [&str; 6] = ["doi", "file", "http", "https", "isbn", "urn"];

/// The uri of a document where it can be shown as where it is to be found: the name or path of a file, which has no scheme, or
/// an address such as `https://…` or `s3://…`. None where a browser or another program might run it: `javascript:`, `data:`,
/// `ms-word:`.
pub fn link_target(uri: &str) -> Option<&str> {
    // Browsers take white space and control characters for nothing there.
    if uri.chars().any(|c| is_invisible(c) || matches!(c, '\n' | '\t')) || uri.contains(['<', '>', '"']) {
        return None;
    }
    let Some((scheme, rest)) = uri.trim_start().split_once(':') else { return Some(uri) };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let is_any = |known: &[&str]| known.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    // The letter of a drive is no scheme.
    let is_shown =
        !is_scheme || scheme.len() == 1 || is_any(&NAMES) || (rest.starts_with("//") && !is_any(&RUN));
    is_shown.then_some(uri)
}

fn push_prose(text: &str, shown: &mut String) {
    // Backticks that are no code's would make code of what comes between them.
    let text = without_active(&tag::without_tags(&text.replace('`', "'"), |_| true));
    let mut last = 0;
    for found in addresses(&text) {
        let (range, address) = found;
        shown.push_str(&text[last..range.start]);
        last = range.end;
        if address.is_empty() {
            // What follows must not become the target of a link.
            if shown.ends_with(']') {
                shown.push(' ');
            }
            continue;
        }
        keep_apart(shown);
        shown.push('`');
        shown.push_str(&address);
        shown.push('`');
    }
    let rest = &text[last..];
    shown.push_str(rest);
}

/// What comes next is code whatever stands before it: neither more of a code's backticks nor escaped.
fn keep_apart(shown: &mut String) {
    if shown.ends_with(['`', '\\']) {
        shown.push(' ');
    }
}

fn push_code(code: &str, shown: &mut String) {
    let changed = without_active(&without_schemes(code));
    let changed = link::broken(&tag::without_tags(&changed, tag::is_html));
    // Without a scheme, backticks may have come together: it is code no longer, or not all of it.
    let whole = 0..changed.len();
    if changed != code && code::spans(&changed) != std::slice::from_ref(&whole) {
        return push_prose(code, shown);
    }
    keep_apart(shown);
    shown.push_str(&changed);
}

/// Addresses of a text, each with what is shown in its place.
fn addresses(text: &str) -> Vec<(Range<usize>, String)> {
    let Some(addresses) = ADDRESSES.as_ref() else { return Vec::new() };
    let all = addresses.find_iter(text).map(|found| {
        // What ends a sentence or a bracket around the address is not its own.
        let address = found.as_str().trim_end_matches(|c: char| ".,;:!?)]}'*_|…”’»".contains(c));
        let address = if address.is_empty() { found.as_str() } else { address };
        (found.start()..found.start() + address.len(), link::broken(&without_schemes(address)))
    });
    all.collect()
}

fn without_schemes(text: &str) -> String {
    let mut text = text.to_owned();
    let Some(schemes) = SCHEMES.as_ref() else { return text };
    while schemes.is_match(&text) {
        text = schemes.replace_all(&text, "").into_owned();
    }
    text
}

/// With a blank in front of the colon of an address that a browser would run, so that it is none.
fn without_active(text: &str) -> String {
    let Some(active) = ACTIVE.as_ref() else { return text.to_owned() };
    active
        .replace_all(text, |found: &regex::Captures<'_>| {
            // "data:" alone is a word with a colon.
            let is_word = found[1].eq_ignore_ascii_case("data") && &found[2] == ":";
            if is_word { found[0].to_owned() } else { format!("{} {}", &found[1], &found[2]) }
        })
        .into_owned()
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&ESCAPES);
    LazyLock::force(&ADDRESSES);
    LazyLock::force(&SCHEMES);
    LazyLock::force(&ACTIVE);
    entity::prepare();
    link::prepare();
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
