//! Vectors to a blob.

use crate::layout::{BLOCK, Header};

/// Encodes the vectors of a set, one after the other.
pub struct Encoder {
    header: Header,
    centre: Vec<f32>,
    body: Vec<u8>,
    block: Block,
}

/// The entries of a block that is not full yet.
struct Block {
    scales: [f32; BLOCK],
    offsets: [f32; BLOCK],
    /// Word by word, those of all entries.
    words: Vec<[u64; BLOCK]>,
}

impl Block {
    fn new(words: usize) -> Block {
        Block { scales: [0.0; BLOCK], offsets: [f32::NEG_INFINITY; BLOCK], words: vec![[0; BLOCK]; words] }
    }
}

/// The middle of vectors once each has the length 1: of all of a set, or of a sample. `None` where there are none.
pub fn centre<'v>(vectors: impl IntoIterator<Item = &'v [f32]>) -> Option<Vec<f32>> {
    let mut sum: Vec<f64> = Vec::new();
    let mut count = 0.0;
    for vector in vectors {
        let Some(length) = length(vector) else { continue };
        sum.resize(vector.len(), 0.0);
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += f64::from(value / length));
        count += 1.0;
    }
    (count > 0.0).then(|| sum.into_iter().map(|sum| (sum / count) as f32).collect())
}

impl Encoder {
    /// For vectors of the centre's dimension.
    ///
    /// # Panics
    /// If the centre is empty.
    pub fn new(centre: Vec<f32>) -> Encoder {
        assert!(!centre.is_empty(), "vectors have at least one dimension");
        let header = Header { dimension: centre.len(), entries: 0 };
        let body = centre.iter().flat_map(|value| value.to_le_bytes()).collect();
        Encoder { header, centre, body, block: Block::new(header.words()) }
    }

    /// Adds the next entry. One without a vector, or with one that has no direction or another dimension, is nobody's
    /// neighbour.
    pub fn push(&mut self, vector: Option<&[f32]>) {
        let place = self.header.entries % BLOCK;
        self.header.entries += 1;
        let vector = vector.filter(|vector| vector.len() == self.centre.len());
        if let Some((vector, length)) = vector.and_then(|vector| Some((vector, length(vector)?))) {
            let (mut square, mut sum, mut offset) = (0.0_f32, 0.0_f32, 0.0_f32);
            for (dimension, (value, centre)) in vector.iter().zip(&self.centre).enumerate() {
                let rest = value / length - centre;
                square += rest * rest;
                sum += rest.abs();
                offset += rest * centre;
                self.block.words[dimension / 64][place] |= u64::from(rest > 0.0) << (dimension % 64);
            }
            self.block.scales[place] = if sum > 0.0 { square / sum } else { 0.0 };
            self.block.offsets[place] = offset;
        }
        if place == BLOCK - 1 {
            self.flush();
        }
    }

    /// The blob.
    pub fn finish(mut self) -> Vec<u8> {
        if !self.header.entries.is_multiple_of(BLOCK) {
            self.flush();
        }
        self.header.write(&self.body)
    }

    fn flush(&mut self) {
        let full = std::mem::replace(&mut self.block, Block::new(self.header.words()));
        self.body.extend(full.scales.iter().chain(&full.offsets).flat_map(|value| value.to_le_bytes()));
        self.body.extend(full.words.iter().flatten().flat_map(|word| word.to_le_bytes()));
    }
}

/// The length of a vector that has a direction.
pub(crate) fn length(vector: &[f32]) -> Option<f32> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt() as f32;
    (length.is_finite() && length > 0.0).then_some(length)
}
