//! Text of HTML that a browser does not show: comments, and elements whose style or attribute hides them.

use crate::answer::code;
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// The start tag of an element that is not shown.
static HIDING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?ix) < ([a-z][a-z0-9]*) \b [^<>]*? (?:
            display\s*:\s*none | visibility\s*:\s*hidden | opacity\s*:\s*0(?:\.0+)?\s*[;"'] | font-size\s*:\s*[01](?:px|pt|em)?\s*[;"']
            | (?:color|colour)\s*:\s*(?:transparent|white|\#fff(?:fff)?)\b | \shidden(?:\s|=|>|/) | aria-hidden\s*=\s*["']?true
        ) [^<>]* >? "#,
    )
    .ok()
});

/// Places of comments and hidden elements outside of code, in order, without overlap.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    if !text.contains('<') {
        return Vec::new();
    }
    let code = code::spans(text);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(next) = next_hidden(text, at) {
        at = next.end.max(next.start + 1);
        if !code.iter().any(|span| span.start <= next.start && next.start < span.end) {
            found.push(next);
        } else {
            at = next.start + 1;
        }
    }
    found
}

fn next_hidden(text: &str, from: usize) -> Option<Range<usize>> {
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at))?;
    let comment = text[from..].find("<!--").map(|at| from + at);
    let element = HIDING.as_ref().and_then(|hiding| hiding.captures_at(text, from));
    let element = element.and_then(|captures| Some((captures.get(0)?.range(), captures.get(1)?.as_str())));
    match (comment, element) {
        (Some(comment), element) if element.as_ref().is_none_or(|(tag, _)| comment < tag.start) => {
            // A comment that nobody ends goes on, as in a browser.
            let end = text[comment..].find("-->").map_or(text.len(), |at| comment + at + 3);
            Some(comment..end)
        }
        (_, Some((tag, name))) => {
            let close = format!("</{}", name.to_ascii_lowercase());
            let rest = text[tag.end..].to_ascii_lowercase();
            let end = rest.find(&close).map_or(tag.end, |at| {
                let from = tag.end + at;
                text[from..].find('>').map_or(text.len(), |end| from + end + 1)
            });
            Some(tag.start..end)
        }
        _ => None,
    }
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&HIDING);
}
