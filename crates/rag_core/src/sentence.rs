//! Sentences of plain text and Markdown.
//!
//! Boundaries are those of Unicode (UAX #29), less the ones after abbreviations and initials, plus the ones
//! that Markdown's structure makes. Which sentences are worth quoting is decided elsewhere.

mod abbreviation;
mod line;

pub use abbreviation::SentenceLanguage;
pub(crate) use line::{LineKind, lines, marker_length};

use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The sentences of a text as byte ranges, in order and without overlap.
///
/// Each begins and ends on a character that is not white space, and every such character is in one of them.
/// A heading, a table row, and a line of a code block is a sentence of its own; a list item begins one; blank
/// lines end one. The lines of a paragraph are joined first, so hard-wrapped text does not break at line
/// ends. Linear in the length of the text.
///
/// Of abbreviations it knows those of [`SentenceLanguage::Unknown`].
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    sentences_in(text, SentenceLanguage::Unknown)
}

/// [`sentences`] of a text in a language, whose own abbreviations end none either.
pub fn sentences_in(text: &str, language: SentenceLanguage) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut paragraph: Option<Range<usize>> = None;
    for line in lines(text) {
        match line.kind {
            LineKind::Prose => match &mut paragraph {
                Some(open) => open.end = line.bytes.end,
                None => paragraph = Some(line.bytes),
            },
            LineKind::ListItem => {
                close(text, language, &mut paragraph, &mut found);
                paragraph = Some(line.bytes);
            }
            _ => {
                close(text, language, &mut paragraph, &mut found);
                push_trimmed(text, line.bytes, &mut found);
            }
        }
    }
    close(text, language, &mut paragraph, &mut found);
    found
}

/// Byte range of the visible part of `range`: without white space at its ends. Empty if there is none.
pub(crate) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let start = range.start + (slice.len() - slice.trim_start().len());
    let end = range.start + slice.trim_end().len();
    if start >= end { range.start..range.start } else { start..end }
}

fn push_trimmed(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let visible = trimmed(text, range);
    if !visible.is_empty() {
        found.push(visible);
    }
}

/// Splits the paragraph that ends here.
fn close(
    text: &str,
    language: SentenceLanguage,
    paragraph: &mut Option<Range<usize>>,
    found: &mut Vec<Range<usize>>,
) {
    let Some(block) = paragraph.take() else { return };
    // UAX #29 breaks after every line feed; within a paragraph it is a space of the same length.
    let joined: String = text[block.clone()]
        .chars()
        .map(|c| if matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}') { ' ' } else { c })
        .collect();
    // A list marker such as "1." is no sentence.
    let marker = line::marker_length(&joined);
    let mut start = 0;
    for (offset, piece) in joined[marker..].split_sentence_bound_indices() {
        let end = marker + offset + piece.len();
        let (before, after) = (&joined[start..end], &joined[end..]);
        if !after.is_empty()
            && (abbreviation::joins(language, before, after) || is_within_address(before, after))
        {
            continue;
        }
        push_trimmed(text, block.start + start..block.start + end, found);
        start = end;
    }
    push_trimmed(text, block.start + start..block.end, found);
}

/// Whether a boundary lies in a web address or a link's target, where `?` and `!` end nothing.
fn is_within_address(before: &str, after: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    (word.contains("://") || word.contains("](")) && after.starts_with(|c: char| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::{SentenceLanguage, sentences, sentences_in};
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn full_stops_question_and_exclamation_marks_end_sentences() {
        check("One. Two? Three! (Four.) Five", &["One.", "Two?", "Three!", "(Four.)", "Five"]);
        check("  \n ", &[]);
        check("日本語です。次の文です。", &["日本語です。", "次の文です。"]);
    }

    #[test]
    fn addresses_are_not_broken() {
        check(
            "Ask [the form](https://a.org/?Page=2!x) first. See https://a.org/?q=A.B now? Yes.",
            &["Ask [the form](https://a.org/?Page=2!x) first.", "See https://a.org/?q=A.B now?", "Yes."],
        );
    }

    #[test]
    fn abbreviations_initials_and_numbers_do_not() {
        check(
            "See e.g. Fig. 3 by Dr. Smith and J. R. Tolkien. Next.",
            &["See e.g. Fig. 3 by Dr. Smith and J. R. Tolkien.", "Next."],
        );
        check(
            "Use version 15.2. It costs 3.14 Euro, i.e. No. 5 of Sec. 2. Done.",
            &["Use version 15.2.", "It costs 3.14 Euro, i.e. No. 5 of Sec. 2.", "Done."],
        );
        check(
            "Is it? No. We left at 5 p.m. Then etc. and so on.",
            &["Is it?", "No.", "We left at 5 p.m.", "Then etc. and so on."],
        );
        check("So did I. Then we left.", &["So did I.", "Then we left."]);
        check(
            "Das gilt z. B. für Herrn Dr. Müller, d. h. ab dem 3. Mai. Punkt.",
            &["Das gilt z. B. für Herrn Dr. Müller, d. h. ab dem 3. Mai.", "Punkt."],
        );
    }

    #[test]
    fn a_language_has_abbreviations_of_its_own() {
        let cases = [
            (SentenceLanguage::French, "Voir p. ex. M. Dupont et Mme. Petit. Fin.", 2),
            (SentenceLanguage::French, "Il a vu M. Zola, né av. J.-C. ou non. Fin.", 2),
            (SentenceLanguage::Spanish, "El Sr. Pérez vive en la Avda. Mayor. Fin.", 2),
            (SentenceLanguage::Italian, "Il Sig. Rossi, ad es. Mario, parla. Fine.", 2),
            (SentenceLanguage::Portuguese, "O Sr. Silva e a Sra. Costa. Fim.", 2),
            (SentenceLanguage::Dutch, "Dhr. Jansen komt o.a. Maandag, d.w.z. Morgen. Einde.", 2),
            (SentenceLanguage::Polish, "Tak np. Kraków i ul. Długa. Koniec.", 2),
            (SentenceLanguage::German, "Die Str. Nummer ist geb. Meier usw. Ende.", 1),
            (SentenceLanguage::English, "He works at Acme Inc. Boston. Then he left.", 2),
            (SentenceLanguage::Unknown, "He works at Acme Inc. Boston. Then he left.", 3),
        ];
        for (language, text, expected) in cases {
            let found: Vec<&str> =
                sentences_in(text, language).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found.len(), expected, "{language:?}: {found:?}");
        }
    }

    #[test]
    fn languages_go_by_the_names_of_collections() {
        assert_eq!(SentenceLanguage::from_name("german"), SentenceLanguage::German);
        for name in ["simple", "tamil", "", "German"] {
            assert_eq!(SentenceLanguage::from_name(name), SentenceLanguage::Unknown, "{name}");
        }
    }

    #[test]
    fn hard_wrapped_lines_belong_together_and_blank_lines_part() {
        check(
            "This is one\nsentence. And\r\nanother\n\nno stop\n \nlast",
            &["This is one\nsentence.", "And\r\nanother", "no stop", "last"],
        );
    }

    #[test]
    fn headings_rows_items_and_code_lines_stand_alone() {
        check(
            "# A. B. C\ntext\n| a. B | c |\n| --- | --- |\n- one\n  more. Two\n2. three\n\nSet\n===\nx",
            &[
                "# A. B. C",
                "text",
                "| a. B | c |",
                "| --- | --- |",
                "- one\n  more.",
                "Two",
                "2. three",
                "Set",
                "===",
                "x",
            ],
        );
        check(
            "a\n```sql\nSELECT 1. FROM x;\n\n# no heading\n```\nb. C",
            &["a", "```sql", "SELECT 1. FROM x;", "# no heading", "```", "b.", "C"],
        );
    }

    #[test]
    fn a_long_text_without_a_stop_is_read_once() {
        let text = "word 1 ) ".repeat(200_000);
        assert_eq!(sentences(&text).len(), 1);
        let text = "a. ".repeat(200_000);
        assert!(!sentences(&text).is_empty());
    }

    proptest! {
        #[test]
        fn sentences_are_ordered_visible_and_complete(text in "([a-zA-Z0-9.!? \n#|`~>*-]|\\PC|\r\n|e\\.g\\. |```|。){0,80}") {
            let found = sentences(&text);
            let mut last = 0;
            for range in &found {
                prop_assert!(range.start >= last && range.end > range.start);
                let sentence = &text[range.clone()];
                prop_assert_eq!(sentence, sentence.trim());
                prop_assert!(text[last..range.start].trim().is_empty());
                last = range.end;
            }
            prop_assert!(text[last..].trim().is_empty());
        }
    }
}
