//! The texts and questions to measure with.

use crate::{Corpus, Document, eval_data};
use rag_tests::Random;

/// Documents and questions, all different.
pub struct Texts {
    /// Where they are from.
    pub name: String,
    /// What is to be found.
    pub documents: Vec<Document>,
    /// What is asked, in an order of chance.
    pub queries: Vec<String>,
}

const DOCUMENTS: usize = 5_000;
const QUERIES: usize = 1_000;

impl Texts {
    /// SciFact's, or made-up ones.
    pub fn choose() -> Self {
        match eval_data() {
            Some(data) => {
                let corpus = Corpus::read(&data, "scifact");
                let mut queries: Vec<String> = corpus.queries.into_iter().map(|query| query.text).collect();
                queries.sort();
                queries.dedup();
                Random::seeded(7).shuffle(&mut queries);
                Self { name: corpus.name, documents: corpus.documents, queries }
            }
            None => Self::made_up(),
        }
    }

    fn made_up() -> Self {
        let mut words = Words::seeded(1);
        let document =
            |id: usize| Document { id: format!("made-{id}"), title: words.text(8), text: words.text(180) };
        let documents = (0..DOCUMENTS).map(document).collect();
        let queries = (0..QUERIES).map(|_| words.text(12)).collect();
        Self { name: "made-up".into(), documents, queries }
    }
}

/// Words of which the n-th is about n times rarer than the first.
pub struct Words {
    random: Random,
    vocabulary: f64,
}

impl Words {
    /// Always the same ones for a seed.
    pub fn seeded(seed: u64) -> Self {
        Self::among(seed, 40_000)
    }

    /// The same out of a vocabulary of this size. The more are drawn, the more different ones there are.
    pub fn among(seed: u64, vocabulary: u32) -> Self {
        Self { random: Random::seeded(seed), vocabulary: vocabulary.into() }
    }

    /// A text of so many words.
    pub fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn word(&mut self) -> String {
        const SYLLABLES: [&str; 16] = [
            "ba", "cor", "del", "fim", "gan", "hul", "jo", "kes", "lim", "mor", "nat", "pel", "qua", "ris",
            "tov", "zu",
        ];
        let share = (self.random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let mut number = (self.vocabulary.powf(share) - 1.0) as usize;
        let mut word = String::new();
        loop {
            word += SYLLABLES[number % 16];
            number /= 16;
            if number == 0 {
                return word;
            }
        }
    }
}

/// In an order that only the seed decides.
trait Shuffle {
    fn shuffle<T>(&mut self, items: &mut [T]);
}

impl Shuffle for Random {
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
