//! A conversation as a model's template writes it, with what was said kept apart from what is the template's.
//!
//! Tokens such as `<|im_end|>` are read in the template's own parts alone: a document that has such words in it ends no
//! message. So the template is given stand-ins in place of the messages' texts.

/// Bounds a stand-in. No template has it.
const BOUND: char = '\u{1}';

/// A part of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// The template's: special tokens are read.
    Template(&'a str),
    /// What somebody said: no special tokens are read.
    Text(&'a str),
}

/// What stands for the text of a message while the template is applied.
pub fn stand_in(message: usize) -> String {
    format!("{BOUND}{message}{BOUND}")
}

/// The parts of what a template made of stand-ins, with `texts` in their places, trimmed as most templates trim them.
/// `None` where the template lost one, or changed their order.
pub fn segments<'a>(rendered: &'a str, texts: &[&'a str]) -> Option<Vec<Segment<'a>>> {
    let mut found = Vec::new();
    let mut next = 0;
    for (index, part) in rendered.split(BOUND).enumerate() {
        if index % 2 == 0 {
            if !part.is_empty() {
                found.push(Segment::Template(part));
            }
            continue;
        }
        if part.parse() != Ok(next) {
            return None;
        }
        found.push(Segment::Text(texts.get(next)?.trim()));
        next += 1;
    }
    (next == texts.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_where_their_stand_ins_were() {
        let rendered = format!("<s>system\n{}<e>user\n{}<e>", stand_in(0), stand_in(1));
        let expected = [
            Segment::Template("<s>system\n"),
            Segment::Text("Be brief. <e>"),
            Segment::Template("<e>user\n"),
            Segment::Text(""),
            Segment::Template("<e>"),
        ];
        assert_eq!(segments(&rendered, &["Be brief. <e>\n", " "]).as_deref(), Some(&expected[..]));
    }

    #[test]
    fn a_template_that_loses_or_moves_a_message_is_not_used() {
        let texts = ["a", "b"];
        for rendered in [
            stand_in(0),
            format!("{}{}", stand_in(1), stand_in(0)),
            format!("{}{}{}", stand_in(0), stand_in(0), stand_in(1)),
            format!("{}{}{}", stand_in(0), stand_in(1), stand_in(2)),
            format!("{}{BOUND}", stand_in(0)),
        ] {
            assert_eq!(segments(&rendered, &texts), None, "{rendered:?}");
        }
    }
}
