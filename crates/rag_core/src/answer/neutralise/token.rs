//! Tokens of chat templates, and the marks of our own fence.

use unicode_normalization::UnicodeNormalization;

/// What they begin with, in lower case and without blanks. A name that goes on is another: `<username>`.
const TOKENS: &[&str] = &[
    "<|",
    "<passage",
    "</passage",
    "<query",
    "</query",
    "<<sys",
    "<</sys",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<unk>",
    "<pad>",
    "<start_of_turn",
    "<end_of_turn",
    "<im_start",
    "<im_end",
    "<system",
    "</system",
    "<assistant",
    "</assistant",
    "<user",
    "</user",
    "<human",
    "</human",
    "<instruction",
    "</instruction",
    "<instructions",
    "</instructions",
    "<think",
    "</think",
    "<tool_call",
    "</tool_call",
    "<tool_response",
    "</tool_response",
    "[inst",
    "[/inst",
    "[system_prompt",
    "[/system_prompt",
    "[available_tools",
    "[/available_tools",
    "[tool_calls",
    "[tool_results",
    "[/tool_results",
    "[bos]",
    "[eos]",
];

/// Characters of a token that are looked at.
const MAX_TOKEN_CHARS: usize = 20;

/// Adds a text whose tokens have another bracket, and says how many there were.
pub(super) fn push_defused(text: &str, shown: &mut String) -> usize {
    let mut count = 0;
    for (at, c) in text.char_indices() {
        let replaced = match c {
            // Compatibility forms that some tokenizers fold into the plain bracket.
            '＜' | '﹤' => '‹',
            '<' | '[' if begins_token(&text[at..]) => {
                count += 1;
                if c == '<' { '‹' } else { '(' }
            }
            _ => c,
        };
        shown.push(replaced);
    }
    count
}

fn begins_token(text: &str) -> bool {
    // White space inside a tag, as in "< / passage", reads as the tag to a lenient reader.
    let head: String = text
        .chars()
        .take(4 * MAX_TOKEN_CHARS)
        .nfkc()
        .filter(|c| !c.is_whitespace())
        .take(MAX_TOKEN_CHARS)
        .flat_map(char::to_lowercase)
        .collect();
    TOKENS.iter().any(|token| {
        let rest = head.strip_prefix(token);
        // Nothing may look like our own fence.
        let is_open = token.ends_with(char::is_alphanumeric)
            && !token.ends_with("passage")
            && !token.ends_with("query");
        rest.is_some_and(|rest| !is_open || !rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    })
}
