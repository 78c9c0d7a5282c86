//! What is put before a chunk's text when it is embedded: title and headings, and a table's header.

use super::{MAX_CONTEXT_TOKENS, Tokenizer};

/// More tokens than two texts have because they are joined by a line break: tokenizers look no further than words.
const MOST_AT_SEAM: usize = 64;

/// The contexts of a section, from the fullest to none.
pub(super) struct Contexts {
    /// Each shorter than the one before it, with its token count.
    choices: Vec<(String, usize)>,
}

impl Contexts {
    /// No title, no headings.
    pub(super) fn none() -> Self {
        Self { choices: Vec::new() }
    }

    /// Title and headings joined by " > ", then the same with ever more left parts dropped.
    ///
    /// Repeated neighbours (a page's title is often its first heading) appear once. If the innermost heading
    /// alone has more than [`MAX_CONTEXT_TOKENS`], its beginning stands for it.
    pub(super) fn of(title: Option<&str>, header_path: &[String], tokenizer: &dyn Tokenizer) -> Self {
        let mut parts: Vec<String> = Vec::new();
        for part in title.into_iter().chain(header_path.iter().map(String::as_str)) {
            // A title is one line, and far shorter than this; a longer one is cut before it is tokenized.
            let words: Vec<&str> = part.split_whitespace().take(256).collect();
            let part: String = words.join(" ").chars().take(2_048).collect();
            if !part.is_empty() && parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        let mut choices = Vec::new();
        // Outer parts far beyond the limit cannot be used: six headings and a title are the most there are.
        for first in parts.len().saturating_sub(8)..parts.len() {
            let context = parts[first..].join(" > ");
            let tokens = tokenizer.count(&context);
            if tokens <= MAX_CONTEXT_TOKENS {
                choices.push((context, tokens));
            }
        }
        if choices.is_empty()
            && let Some(innermost) = parts.last()
        {
            choices = beginnings(innermost, tokenizer);
        }
        Self { choices }
    }

    /// The fullest context with which a text of `tokens` tokens has at most `room`; may be empty. `header`, of a
    /// table that the text begins within, comes before titles.
    pub(super) fn fitting(
        &self,
        header: Option<&str>,
        text: &str,
        tokens: usize,
        room: usize,
        tokenizer: &dyn Tokenizer,
    ) -> String {
        let Some(header) = header else {
            return self.titles(text, tokens, room, tokenizer).unwrap_or_default();
        };
        let headed = format!("{header}\n{text}");
        let headed_tokens = tokenizer.count(&headed);
        if headed_tokens > room {
            return self.titles(text, tokens, room, tokenizer).unwrap_or_default();
        }
        match self.titles(&headed, headed_tokens, room, tokenizer) {
            Some(titles) => format!("{titles}\n{header}"),
            None => header.to_owned(),
        }
    }

    fn titles(&self, text: &str, tokens: usize, room: usize, tokenizer: &dyn Tokenizer) -> Option<String> {
        // Where the sum is near the limit, the joined string decides, for tokens may differ at the seam.
        self.choices
            .iter()
            .filter(|(_, own)| own + tokens <= room)
            .find(|(context, own)| {
                own + tokens + MOST_AT_SEAM <= room || tokenizer.count(&format!("{context}\n{text}")) <= room
            })
            .map(|(context, _)| context.clone())
    }
}

/// Ever shorter beginnings of a heading that is over the limit.
fn beginnings(part: &str, tokenizer: &dyn Tokenizer) -> Vec<(String, usize)> {
    let mut words: Vec<&str> = part.split(' ').collect();
    let mut found = Vec::new();
    while words.len() > 1 {
        words.truncate(words.len() / 2);
        let context = words.join(" ");
        let tokens = tokenizer.count(&context);
        if tokens <= MAX_CONTEXT_TOKENS {
            found.push((context, tokens));
        }
    }
    found
}
