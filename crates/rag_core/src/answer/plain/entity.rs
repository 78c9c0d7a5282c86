//! Entities of HTML for characters of which marks are made.

use regex::{Captures, Regex};
use std::borrow::Cow;
use std::sync::LazyLock;

/// How often an entity may be written by entities: `&amp;amp;lt;` is three deep.
const MAX_DEPTH: usize = 8;

static ENTITY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x) & (?: \# (?<decimal> [0-9]{1,7} ) ;? | \# [xX] (?<hex> [0-9a-fA-F]{1,6} ) ;?
          | (?<bare> lt | gt | amp | quot | LT | GT | AMP | QUOT ) ;?
          | (?<name> colon | sol | bsol | lpar | rpar | lbrack | lsqb | rbrack | rsqb | lbrace | lcub | rbrace | rcub | grave | excl | num
              | period | commat | Tab | NewLine | nbsp | apos | equals | lowbar | shy | zwj | zwnj | lrm | rlm ) ; )",
    )
    .ok()
});

/// A text with these as the characters that they stand for, however deep they are written.
pub(super) fn decoded(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    let Some(entity) = ENTITY.as_ref() else { return text.into_owned() };
    for _ in 0..MAX_DEPTH {
        if !text.contains('&') {
            break;
        }
        let next = entity.replace_all(&text, character).into_owned();
        if next == *text {
            break;
        }
        text = Cow::Owned(next);
    }
    // What is deeper is no entity of anything.
    if entity.is_match(&text) { entity.replace_all(&text, "").into_owned() } else { text.into_owned() }
}

fn character(found: &Captures<'_>) -> String {
    let number =
        |name: &str, radix| found.name(name).and_then(|n| u32::from_str_radix(n.as_str(), radix).ok());
    if let Some(code) = number("decimal", 10).or_else(|| number("hex", 16)) {
        return char::from_u32(code).map(String::from).unwrap_or_default();
    }
    let name = found.name("bare").or_else(|| found.name("name")).map_or("", |name| name.as_str());
    match name.to_ascii_lowercase().as_str() {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        "apos" => "'",
        "colon" => ":",
        "sol" => "/",
        "bsol" => "\\",
        "lpar" => "(",
        "rpar" => ")",
        "lbrack" | "lsqb" => "[",
        "rbrack" | "rsqb" => "]",
        "lbrace" | "lcub" => "{",
        "rbrace" | "rcub" => "}",
        "grave" => "`",
        "excl" => "!",
        "num" => "#",
        "period" => ".",
        "commat" => "@",
        "equals" => "=",
        "lowbar" => "_",
        "tab" | "nbsp" => " ",
        "newline" => "\n",
        _ => "",
    }
    .to_owned()
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&ENTITY);
}
