//! Code in Markdown: where a renderer shows what is written and makes nothing of it.

use crate::sentence::{LineKind, lines};
use std::ops::Range;

/// Fenced blocks, and code between backticks on one line, in order. Backticks behind a backslash open nothing, as in
/// CommonMark; spans over several lines, which other blocks may cut, count as none.
pub(crate) fn spans(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for line in lines(text) {
        match line.kind {
            LineKind::Fence | LineKind::Code => match found.last_mut() {
                Some(last) if last.end == line.bytes.start => last.end = line.next,
                _ => found.push(line.bytes.start..line.next),
            },
            _ => found.extend(
                inline(&text[line.bytes.clone()])
                    .into_iter()
                    .map(|span| line.bytes.start + span.start..line.bytes.start + span.end),
            ),
        }
    }
    found
}

fn inline(line: &str) -> Vec<Range<usize>> {
    let bytes = line.as_bytes();
    let run = |at: usize| bytes[at..].iter().take_while(|b| **b == b'`').count();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'`' => {
                let length = run(at);
                let mut end = at + length;
                while end < bytes.len() && (bytes[end] != b'`' || run(end) != length) {
                    end += if bytes[end] == b'`' { run(end) } else { 1 };
                }
                if end < bytes.len() {
                    found.push(at..end + length);
                    at = end;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_fenced_or_between_backticks() {
        for (text, expected) in [
            ("a `b` c ``d ` e`` f", &["`b`", "``d ` e``"][..]),
            ("\\`a` `b`", &["` `"]),
            ("`a\nb`", &[]),
            ("x\n```\na\n```\ny `z`", &["```\na\n```\n", "`z`"]),
            ("open ` only", &[]),
        ] {
            let found: Vec<&str> = spans(text).into_iter().map(|span| &text[span]).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
