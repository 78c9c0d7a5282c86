//! Texts and vectors that are like real ones, as many as wanted, always the same for a seed.

use rag_benches::{KeptVectors, Texts, Words, direction, embed_all, model_digest};
use rag_tests::Random;

/// Words of a chunk, about.
const WORDS: usize = 120;

/// Longest piece of a text that is taken as a sentence, in words.
const SENTENCE: usize = 40;

/// Words that each chunk has of a vocabulary without end: the more chunks, the more words, as by Heaps' law.
const RARE_WORDS: usize = 2;
const VOCABULARY: u32 = 5_000_000;

/// Real vectors that all others lie around.
const REAL_VECTORS: usize = 2_000;

/// Length of what is added to them in a direction of chance.
const NOISE: f32 = 0.25;

/// What texts and vectors are made of.
pub(crate) struct Source {
    sentences: Vec<String>,
    vectors: Vec<Vec<f32>>,
}

impl Source {
    /// Sentences of the texts, and vectors of some of them by the default model; those are kept between runs.
    pub(crate) fn of(texts: &Texts) -> Self {
        let sentences = texts.documents.iter().flat_map(|document| sentences(&document.text)).collect();
        let embedded: Vec<String> =
            texts.documents.iter().take(REAL_VECTORS).map(|document| document.titled_text()).collect();
        let mut kept = KeptVectors::open(&format!("{}.vectors", texts.name), &model_digest());
        Self { sentences, vectors: embed_all(&embedded, &mut kept) }
    }
}

/// Pieces of a text that end with a full stop, or are as long as a sentence may be.
fn sentences(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ended = words.split_inclusive(|word| word.ends_with('.'));
    ended.flat_map(|sentence| sentence.chunks(SENTENCE)).map(|sentence| sentence.join(" ")).collect()
}

/// Makes what one owner has.
pub(crate) struct Maker<'a> {
    source: &'a Source,
    random: Random,
    rare: Words,
}

impl<'a> Maker<'a> {
    pub(crate) fn seeded(source: &'a Source, seed: u64) -> Self {
        Self { source, random: Random::seeded(seed), rare: Words::among(seed, VOCABULARY) }
    }

    /// A few words.
    pub(crate) fn title(&mut self) -> String {
        let sentence = self.random.pick(&self.source.sentences);
        sentence.split(' ').take(8).collect::<Vec<_>>().join(" ")
    }

    /// Some sentences.
    pub(crate) fn text(&mut self) -> String {
        let mut text = self.rare.text(RARE_WORDS);
        let mut words = RARE_WORDS;
        while words < WORDS - SENTENCE / 4 {
            let sentence = self.random.pick(&self.source.sentences);
            text.push(' ');
            text.push_str(sentence);
            words += sentence.split(' ').count();
        }
        text
    }

    /// A vector of length 1, between two real ones and nearer to the first, but for some noise.
    pub(crate) fn vector(&mut self) -> Vec<f32> {
        let [near, far] = [(); 2].map(|()| self.random.pick(&self.source.vectors).as_slice());
        let share = (self.random.bits() >> 40) as f32 / (1u64 << 24) as f32;
        let noise = direction(&mut self.random, near.len());
        let values: Vec<f32> = near
            .iter()
            .zip(far)
            .zip(noise)
            .map(|((near, far), noise)| near + share * far + NOISE * noise)
            .collect();
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        values.iter().map(|value| value / length).collect()
    }
}
