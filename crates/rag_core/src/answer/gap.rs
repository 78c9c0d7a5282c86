//! Sentences that say what the passages do not cover: no claim, so nothing has to bear them out.

use super::cite::without_markers;
use super::claim::numbers;
use regex::Regex;
use std::sync::LazyLock;

/// Most words of such a sentence: a longer one tells something besides.
const MAX_WORDS: usize = 40;

/// Whose silence it is, and that it is silence, in either order.
static SILENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        \b (?:passages?|documents?|sources?|texts?|excerpts?|context) \b .{0,40}?
          (?: \b(?:do|does|did) (?:\s+not\b|n['’]t\b) (?:\s+\w+){0,2}? \s+ (?:say|state|mention|cover|specify|contain|include|describe|give|provide|address|tell|explain|indicate|discuss|name|define)
            | \b(?:say|says|contain|contains|provide|provides|give|gives|have|has) \s+ (?:nothing|no\s+information) )
        | \b(?:is|are|was|were) (?:\s+not\b|n['’]t\b) \s+ (?:stated|mentioned|covered|specified|described|given|provided|addressed|explained|discussed|defined) \b .{0,20}
          \b (?:passages?|documents?|sources?|texts?|excerpts?|context) \b
        | \b (?:passagen?|dokumenten?|quellen?|texten?|texte) \b .{0,40}? \b (?:nicht|kein|keine|keinen|nichts) \b .{0,60}
        | \b (?:passages|documents|sources|textes?) \b .{0,20}? \b ne \b .{0,30} \b pas \b",
    )
    .ok()
});

/// What a claim may stand behind.
static TURN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)[;—–]|\b(?:but|however|although|though|while|whereas|because|since|aber|jedoch|weil|mais)\b",
    )
    .ok()
});

/// Whether a sentence says nothing but that the passages do not cover something. It names no number that is not in the
/// question.
pub fn is_gap(question: &str, sentence: &str) -> bool {
    let sentence = without_markers(sentence);
    let (Some(silence), Some(turn)) = (SILENCE.as_ref(), TURN.as_ref()) else { return false };
    let asked = numbers(question);
    silence.is_match(&sentence)
        && !turn.is_match(&sentence)
        && sentence.split_whitespace().count() <= MAX_WORDS
        && numbers(&sentence).iter().all(|number| asked.iter().any(|other| other.is(number)))
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&SILENCE);
    LazyLock::force(&TURN);
}

#[cfg(test)]
mod tests {
    use super::is_gap;

    #[test]
    fn silence_is_told_from_claims() {
        let question = "When was the tower built, and who paid the 12 masons?";
        for sentence in [
            "The passages do not say who paid for it.",
            "The documents don't explicitly mention the 12 masons. [1]",
            "Who paid is not stated in the passages.",
            "The context provides no information about the owner.",
            "Die Dokumente nennen den Bauherrn nicht.",
            "Les documents ne disent pas qui a payé.",
        ] {
            assert!(is_gap(question, sentence), "{sentence}");
        }
        for sentence in [
            "The tower was built in 1901.",
            "The passages do not say who paid, but it was the king.",
            "The passages do not mention the 13 masons.",
            "The documents are not signed.",
            "The tower does not contain stairs.",
            "The passages do not say it; the king paid.",
            "",
        ] {
            assert!(!is_gap(question, sentence), "{sentence}");
        }
    }
}
