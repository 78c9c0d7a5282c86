//! Vectors to a blob.

use crate::fine;
use crate::layout::{BLOCK, Header};
use std::io::{self, Write};

/// Encodes the vectors of a set, one after the other. Four fifths of the blob, its end, go to a writer meanwhile.
pub struct Encoder<W> {
    header: Header,
    centre: Vec<f32>,
    body: Vec<u8>,
    block: Block,
    row: Vec<u8>,
    rows: W,
    checksum: crc32fast::Hasher,
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

impl<W: Write> Encoder<W> {
    /// For vectors of the centre's dimension. The end of the blob is written to `rows`.
    ///
    /// # Panics
    /// If the centre is empty.
    pub fn new(centre: Vec<f32>, rows: W) -> Self {
        assert!(!centre.is_empty(), "vectors have at least one dimension");
        let header = Header { dimension: centre.len(), entries: 0 };
        let body = centre.iter().flat_map(|value| value.to_le_bytes()).collect();
        let block = Block::new(header.words());
        Self { header, centre, body, block, row: Vec::new(), rows, checksum: crc32fast::Hasher::new() }
    }

    /// Adds the next entry. One without a vector, or with one that has no direction or another dimension, is nobody's
    /// neighbour.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn push(&mut self, vector: Option<&[f32]>) -> io::Result<()> {
        let place = self.header.entries % BLOCK;
        self.header.entries += 1;
        let vector = vector.filter(|vector| vector.len() == self.centre.len());
        if let Some((vector, length)) = vector.and_then(|vector| Some((vector, length(vector)?))) {
            let (mut square, mut sum, mut offset) = (0.0_f32, 0.0_f32, 0.0_f32);
            let rest = vector.iter().zip(&self.centre).map(|(value, centre)| value / length - centre);
            let rest: Vec<f32> = rest.collect();
            for (dimension, (rest, centre)) in rest.iter().zip(&self.centre).enumerate() {
                square += rest * rest;
                sum += rest.abs();
                offset += rest * centre;
                self.block.words[dimension / 64][place] |= u64::from(*rest > 0.0) << (dimension % 64);
            }
            self.block.scales[place] = if sum > 0.0 { square / sum } else { 0.0 };
            self.block.offsets[place] = offset;
            self.row.clear();
            fine::write_row(&rest, &mut self.row);
        } else {
            self.row.clear();
            self.row.resize(fine::row_bytes(self.centre.len()), 0);
        }
        self.checksum.update(&self.row);
        self.rows.write_all(&self.row)?;
        if place == BLOCK - 1 {
            self.flush();
        }
        Ok(())
    }

    /// The beginning of the blob, and the writer that has the end.
    pub fn finish(mut self) -> (Vec<u8>, W) {
        if !self.header.entries.is_multiple_of(BLOCK) {
            self.flush();
        }
        (self.header.write(&self.body, &self.checksum), self.rows)
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
