//! The lines of a text and what Markdown makes of them.
//!
//! A reading of single lines, not a Markdown parser: enough to know where a sentence or a chunk may end.

use std::ops::Range;

/// A line without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Place in the text.
    pub(crate) bytes: Range<usize>,
    /// First byte after the line break.
    pub(crate) next: usize,
    /// What it is.
    pub(crate) kind: LineKind,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Nothing visible.
    Blank,
    /// `# Title`.
    Heading,
    /// `===` or `---`: underlines a heading, or parts two blocks.
    Rule,
    /// `| a | b |`.
    TableRow,
    /// Opens or closes a code block.
    Fence,
    /// Inside a code block.
    Code,
    /// First line of a list item.
    ListItem,
    /// Anything else.
    Prose,
}

/// The lines of a text, in order. Code blocks that are not closed last to the end.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Line> {
    let mut start = 0;
    // The fence character and how many of it opened the block.
    let mut fence: Option<(u8, usize)> = None;
    std::iter::from_fn(move || {
        if start >= text.len() {
            return None;
        }
        let next = text[start..].find('\n').map_or(text.len(), |at| start + at + 1);
        let line = text[start..next].trim_end_matches(['\n', '\r']);
        let kind = classify(line, &mut fence);
        let bytes = start..start + line.len();
        start = next;
        Some(Line { bytes, next, kind })
    })
}

fn classify(line: &str, fence: &mut Option<(u8, usize)>) -> LineKind {
    let body = line.trim();
    let run = |byte: u8| body.bytes().take_while(|b| *b == byte).count();
    if let Some((byte, length)) = *fence {
        if run(byte) >= length && body.len() == run(byte) {
            *fence = None;
            return LineKind::Fence;
        }
        return LineKind::Code;
    }
    let Some(&first) = body.as_bytes().first() else { return LineKind::Blank };
    match first {
        b'`' | b'~' if run(first) >= 3 => {
            // Backticks in the info string make it inline code.
            if first == b'`' && body[run(first)..].contains('`') {
                return LineKind::Prose;
            }
            *fence = Some((first, run(first)));
            LineKind::Fence
        }
        b'#' if run(b'#') <= 6 && matches!(body.as_bytes().get(run(b'#')), None | Some(b' ' | b'\t')) => {
            LineKind::Heading
        }
        b'|' => LineKind::TableRow,
        b'=' | b'-' | b'*' | b'_' if body.len() >= 2 && body.bytes().all(|b| b == first) => LineKind::Rule,
        _ if marker_length(line) > 0 => LineKind::ListItem,
        _ => LineKind::Prose,
    }
}

/// Bytes up to the text of a list item, its indentation included; 0 if the line is none.
pub(crate) fn marker_length(line: &str) -> usize {
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    let body = &line.as_bytes()[indent..];
    let digits = body.iter().take_while(|b| b.is_ascii_digit()).count();
    let marker = match body.get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        _ => return 0,
    };
    let spaces = body[marker..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    if spaces == 0 { 0 } else { indent + marker + spaces }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        use LineKind::*;
        let cases = [
            ("", Blank),
            ("  \t", Blank),
            ("# Title", Heading),
            ("#", Heading),
            ("#hashtag", Prose),
            ("####### seven", Prose),
            ("===", Rule),
            ("---", Rule),
            ("| a |", TableRow),
            ("- item", ListItem),
            ("  12. item", ListItem),
            ("-5 degrees", Prose),
            ("2024. ", ListItem),
            ("3.14 is pi", Prose),
            ("```sql", Fence),
            ("``` a `b`", Prose),
        ];
        for (text, expected) in cases {
            assert_eq!(classify(text, &mut None), expected, "{text:?}");
        }
    }

    #[test]
    fn a_fence_is_closed_by_its_own_kind_only() {
        let text = "````\n```\n~~~~\n````\nx\n~~~\n# a";
        let kinds: Vec<LineKind> = lines(text).map(|line| line.kind).collect();
        use LineKind::*;
        assert_eq!(kinds, [Fence, Code, Code, Fence, Prose, Fence, Code]);
    }
}
