//! A passage as a block of a prompt: what it costs in tokens, and how it is made to cost less.

use crate::sentence::{LineKind, lines, sentences};

/// Most tokens of one block.
pub const MAX_BLOCK_TOKENS: usize = 600;

/// About how many tokens a text has for a model whose tokenizer is not known: four letters or blanks of ASCII, two digits or
/// marks, or two letters of another alphabet are one, and so is any other character. English prose comes out some percent
/// above what the tokenizers of Qwen, Llama and GPT count, code and tables above as well.
pub fn tokens(text: &str) -> usize {
    let quarters: usize = text
        .chars()
        .map(|c| match c {
            ' ' | 'a'..='z' | 'A'..='Z' => 1,
            _ if c.is_ascii() => 2,
            // Latin, Greek, Cyrillic.
            '\u{80}'..='\u{52f}' => 2,
            _ => 4,
        })
        .sum();
    quarters.div_ceil(4)
}

/// A text with single blanks and at most one blank line in a row; lines of code and of tables stay as they are.
pub fn collapsed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut was_blank = true;
    for line in lines(text) {
        let written = &text[line.bytes.clone()];
        match line.kind {
            LineKind::Blank => {
                if !was_blank {
                    shown.push('\n');
                }
                was_blank = true;
                continue;
            }
            LineKind::Code | LineKind::Fence | LineKind::TableRow => shown.push_str(written.trim_end()),
            _ => {
                // What a list item is indented by says whose it is.
                let indent = written.len() - written.trim_start_matches(' ').len();
                shown.push_str(&written[..indent.min(8)]);
                for (index, word) in written.split_whitespace().enumerate() {
                    if index > 0 {
                        shown.push(' ');
                    }
                    shown.push_str(word);
                }
            }
        }
        was_blank = false;
        shown.push('\n');
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// The beginning of a text that costs at most [`MAX_BLOCK_TOKENS`].
pub fn shortened(text: &str) -> String {
    beginning(text, MAX_BLOCK_TOKENS).to_owned()
}

/// The beginning of a text that costs at most so many tokens, back to the end of a sentence unless that would lose more than
/// half.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut cost = 0;
    let cut = text.char_indices().find(|(_, c)| {
        cost += match c {
            ' ' | 'a'..='z' | 'A'..='Z' => 1,
            c if c.is_ascii() || matches!(c, '\u{80}'..='\u{52f}') => 2,
            _ => 4,
        };
        cost > most * 4
    });
    cut.map_or(text.trim_end(), |(cut, _)| cut_at(text, cut))
}

/// The beginning of a text up to a byte, back to the end of a sentence unless that would lose more than half.
pub(super) fn cut_at(text: &str, cut: usize) -> &str {
    let whole = sentences(text).into_iter().map(|range| range.end).take_while(|end| *end <= cut).last();
    match whole {
        Some(end) if end * 2 >= cut => &text[..end],
        _ => text[..cut].trim_end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_collapse_but_in_code_and_tables() {
        let text = "a   b\tc\n\n\n\nd\n\n```\nx  =  1\n\ny\n```\n| a  |  b |\n  -  item   two\n";
        assert_eq!(collapsed(text), "a b c\n\nd\n\n```\nx  =  1\n\ny\n```\n| a  |  b |\n  - item two");
    }

    #[test]
    fn a_block_ends_with_a_sentence() {
        let text = "One sentence of some words. ".repeat(200);
        let cut = shortened(&text);
        assert!(
            cut.ends_with("words.") && tokens(&cut) <= MAX_BLOCK_TOKENS && tokens(&cut) > 580,
            "{}",
            tokens(&cut)
        );
        assert_eq!(shortened("short "), "short");
        assert!(tokens(&shortened(&"字".repeat(2_000))) <= MAX_BLOCK_TOKENS);
    }
}
