//! What depends on the script: text from right to left, which a page shows in the order of the eye, and
//! scripts without spaces.

use std::borrow::Cow;

/// Whether most letters run from right to left.
pub(super) fn is_right_to_left(text: &str) -> bool {
    let (mut to_left, mut to_right) = (0, 0);
    for c in text.chars() {
        match of(c) {
            Some(true) => to_left += 1,
            Some(false) => to_right += 1,
            None => {}
        }
    }
    to_left > to_right
}

/// Whether a character runs from right to left; `None` for those that follow their neighbours.
fn of(c: char) -> Option<bool> {
    match c {
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
            // Arabic-Indic digits are written from left to right.
            Some(!matches!(c, '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}'))
        }
        _ if c.is_alphanumeric() => Some(false),
        _ => None,
    }
}

/// What one glyph says, in the order of the eye: a ligature of text from right to left is turned round.
pub(super) fn visual(glyph: &str) -> Cow<'_, str> {
    let mut chars = glyph.chars();
    let is_ligature = chars.next().is_some() && chars.next().is_some();
    if is_ligature && glyph.chars().all(|c| of(c) != Some(false)) && is_right_to_left(glyph) {
        Cow::Owned(glyph.chars().rev().collect())
    } else {
        Cow::Borrowed(glyph)
    }
}

/// Text in reading order, from text in the order of the eye, left to right; `None` if these are the same.
pub(super) fn logical(text: &str) -> Option<String> {
    if !text.chars().any(|c| of(c) == Some(true)) {
        return None;
    }
    let base_is_left = is_right_to_left(text);
    let chars: Vec<char> = text.chars().collect();
    // Runs of one direction; what has none goes with the base direction, unless it is inside the other.
    let mut kinds: Vec<bool> = vec![base_is_left; chars.len()];
    let mut next = None;
    let mut after = vec![None; chars.len()];
    for (at, &c) in chars.iter().enumerate().rev() {
        next = of(c).or(next);
        after[at] = next;
    }
    let mut before = None;
    for (at, &c) in chars.iter().enumerate() {
        before = of(c).or(before);
        if before == after[at] {
            kinds[at] = before.unwrap_or(base_is_left);
        }
    }
    let mut runs: Vec<(bool, std::ops::Range<usize>)> = Vec::new();
    for (at, &kind) in kinds.iter().enumerate() {
        match runs.last_mut() {
            Some((last, range)) if *last == kind => range.end = at + 1,
            _ => runs.push((kind, at..at + 1)),
        }
    }
    if base_is_left {
        runs.reverse();
    }
    let mut out = String::with_capacity(text.len());
    for (to_left, range) in runs {
        // Words of two directions are two words, even where the page has no room between them.
        let next = if to_left { range.end - 1 } else { range.start };
        if out.ends_with(char::is_alphabetic) && chars[next].is_alphabetic() {
            out.push(' ');
        }
        if to_left {
            out.extend(chars[range].iter().rev().map(|&c| mirrored(c)));
        } else {
            out.extend(&chars[range]);
        }
    }
    Some(out)
}

/// A bracket as it is stored, from the one that the eye sees in text from right to left.
fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        _ => c,
    }
}

/// Whether a line that ends in `before` goes on in `after` without a space: Chinese and Japanese.
pub(super) fn joins_without_space(before: char, after: char) -> bool {
    let unspaced = |c: char| {
        matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff65}' | '\u{20000}'..='\u{3134f}')
    };
    unspaced(before) && unspaced(after)
}
