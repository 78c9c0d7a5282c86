//! The words of a query as its author may have meant them otherwise: those that they neither quoted nor excluded.

use std::ops::Range;

/// Where words stand, without the marks around them. What stands in double quotes, or behind a minus, is left out.
pub fn plain_words(query: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut is_quoted = false;
    let mut start = 0;
    for piece in query.split_inclusive(|c: char| c.is_whitespace() || is_quote(c)) {
        let is_excluded = piece.starts_with(['-', '\u{2212}']);
        let from = piece.find(char::is_alphanumeric);
        let to = piece.char_indices().rev().find(|(_, c)| c.is_alphanumeric());
        if let (Some(from), Some((to, last)), false, false) = (from, to, is_quoted, is_excluded) {
            words.push(start + from..start + to + last.len_utf8());
        }
        is_quoted ^= piece.ends_with(is_quote);
        start += piece.len();
    }
    words
}

/// Whether a character begins or ends a phrase.
fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201c}'..='\u{201f}' | '«' | '»' | '\u{ff02}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_or_excluded_is_left_out() {
        let query = "+Was, „ist das“ -nicht (C++) \"noch";
        let words: Vec<&str> = plain_words(query).into_iter().map(|range| &query[range]).collect();
        assert_eq!(words, ["Was", "C"]);
    }
}
