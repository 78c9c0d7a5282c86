//! Whether an answer tells the prompt that asked for it.

use std::collections::HashSet;

/// Words in a row that no answer shares with a prompt by chance.
const RUN: usize = 8;

/// Whether a text has so many words in a row of the prompt, whatever stands between them.
pub fn repeats(text: &str, prompt: &str) -> bool {
    let (text, prompt) = (words(text), words(prompt));
    let known: HashSet<&[String]> = prompt.windows(RUN).collect();
    text.windows(RUN).any(|run| known.contains(run))
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::repeats;

    #[test]
    fn a_run_of_words_is_told() {
        let prompt = "You answer questions from passages of documents. Use only what the passages say.";
        assert!(repeats("Sure: you ANSWER questions *from* passages, of documents - use only", prompt));
        assert!(!repeats("The clerk answers questions from passages of law.", prompt));
        assert!(!repeats("", prompt) && !repeats("word", ""));
    }
}
