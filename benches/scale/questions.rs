//! What is asked.

use rag_benches::Texts;
use rag_tests::Random;

/// Queries of each form.
const QUERIES: usize = 100;

/// Shortest word that is asked for by itself: shorter ones are rarely what a text is about.
const SHORTEST: usize = 5;

/// Form of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One word.
    Word,
    /// Four words that stand in one sentence.
    Words,
    /// A sentence.
    Sentence,
}

/// Queries of each form, as many of each.
pub(crate) struct Questions {
    words: Vec<String>,
    several: Vec<String>,
    sentences: Vec<String>,
}

impl Questions {
    /// Queries of the texts, or words of them.
    pub(crate) fn of(texts: &Texts) -> Self {
        let mut random = Random::seeded(5);
        let long = |sentence: &&String| long_words(sentence).len() >= 4;
        let sentences: Vec<String> = texts.queries.iter().filter(long).take(QUERIES).cloned().collect();
        assert_eq!(sentences.len(), QUERIES, "the texts have too few queries");
        let words =
            sentences.iter().map(|sentence| (*random.pick(&long_words(sentence))).to_owned()).collect();
        let several = sentences.iter().map(|sentence| long_words(sentence)[..4].join(" ")).collect();
        Self { words, several, sentences }
    }

    pub(crate) fn of_form(&self, form: Form) -> &[String] {
        match form {
            Form::Word => &self.words,
            Form::Words => &self.several,
            Form::Sentence => &self.sentences,
        }
    }
}

fn long_words(sentence: &str) -> Vec<&str> {
    let words = sentence.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.len() >= SHORTEST && word.chars().all(char::is_alphabetic)).collect()
}
