//! What a picture says to those who do not see it.

/// Longest description in characters.
const MAX_DESCRIPTION_CHARS: usize = 500;

/// A picture's description as it is written, if a person has given one: names of files say nothing, and the
/// paragraph after the first is a program's remark on its own description.
pub(crate) fn described(description: &str) -> Option<String> {
    let own = description.split("\n\n").next().unwrap_or_default();
    let own: String = own.chars().filter(|c| !"[]".contains(*c)).take(MAX_DESCRIPTION_CHARS).collect();
    let words: Vec<&str> = own.split_whitespace().collect();
    (words.len() > 1).then(|| format!(" ![{}]() ", words.join(" ")))
}
