//! How many rows may run together: on the CPU as many as answer soon, on a GPU as many as its free memory takes.
//!
//! Numbers alone: whoever asks the driver for the free memory is [`crate::device`], whoever joins rows [`crate::batch`].

/// Most rows of one batch on a GPU. More of them gain nothing, and whoever asks a question waits for the batch to end.
const GPU_ROWS: u32 = 256;

/// Most padded tokens of one batch on a GPU, however much memory it has.
const GPU_TOKENS: u32 = 262_144;

/// What part of the free memory a batch may take: two or three run at once, of one model or of two, and weights and the
/// allocator's slack take some too.
const PART_OF_FREE: u64 = 8;

/// Bytes of a GPU's memory per padded token: activations of a BERT-large in single precision, with room to spare.
const BYTES_PER_TOKEN: u64 = 256 * 1024;

/// Bytes per pair of tokens of one row, where attention is computed as a table: 16 heads, 4 bytes, and the table three
/// times (products, masked, softmax). More than [`BYTES_PER_TOKEN`] from about 1,400 tokens on.
const BYTES_PER_TOKEN_PAIR: u64 = 16 * 4 * 3;

/// Tokens of a fixed shape are a multiple of this.
const SHAPE_STEP: u32 = 64;

/// Most rows of a fixed shape.
const SHAPE_ROWS: u32 = 32;

/// Most padded tokens of a fixed shape of more than one row: what a GPU does in about the time that a single row takes.
const SHAPE_TOKENS: u32 = 8192;

/// What bounds a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Most rows.
    pub rows: u32,
    /// Most padded tokens: rows × longest row.
    pub padded_tokens: u32,
    /// Most bytes of activations, where memory of the device's own bounds a batch.
    pub bytes: Option<u64>,
}

impl BatchLimits {
    /// On the processor: enough tokens to keep a core busy, few enough to answer soon.
    pub const CPU: Self = Self { rows: 64, padded_tokens: 4096, bytes: None };

    /// On a GPU with so much free memory.
    pub fn for_free_memory(free_bytes: u64) -> Self {
        Self { rows: GPU_ROWS, padded_tokens: GPU_TOKENS, bytes: Some(free_bytes / PART_OF_FREE) }
    }

    /// Most rows of which the longest has `longest` tokens. At least 1: a row that exceeds the limits runs alone.
    pub fn rows_of(self, longest: u32) -> u32 {
        let tokens = u64::from(longest.max(1));
        let by_tokens = u64::from(self.padded_tokens) / tokens;
        let row_bytes = tokens.saturating_mul(BYTES_PER_TOKEN + tokens * BYTES_PER_TOKEN_PAIR);
        let by_bytes = self.bytes.map_or(u64::MAX, |bytes| bytes / row_bytes);
        // As small as `rows`, so it fits.
        by_tokens.min(by_bytes).clamp(1, u64::from(self.rows.max(1))) as u32
    }
}

/// A batch whose size depends on the length of its rows alone.
///
/// Which of its kernels a GPU takes, and so in which order it adds, depends on the size of a batch. In a fixed shape a row's
/// result is the same whatever runs beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedShape {
    /// Rows; what is missing is filled up.
    pub rows: u32,
    /// Tokens of each row.
    pub tokens: u32,
}

impl FixedShape {
    /// The shape in which a row of so many tokens runs.
    pub fn of(tokens: u32) -> Self {
        let tokens = tokens.max(1).div_ceil(SHAPE_STEP).saturating_mul(SHAPE_STEP);
        Self { rows: (SHAPE_TOKENS / tokens).clamp(1, SHAPE_ROWS), tokens }
    }

    /// The shape of the first of some rows, told by their tokens, and how many of the first ones run in it together.
    pub fn of_first(tokens: impl IntoIterator<Item = u32>) -> (Self, usize) {
        let mut shapes = tokens.into_iter().map(Self::of);
        let Some(first) = shapes.next() else { return (Self::of(0), 0) };
        let others = shapes.take(first.rows as usize - 1).take_while(|shape| *shape == first).count();
        (first, 1 + others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_cpu_takes_so_many_rows_and_tokens_whatever_the_memory() {
        for (longest, expected) in [(0, 64), (1, 64), (64, 64), (65, 63), (512, 8), (4096, 1), (8192, 1)] {
            assert_eq!(BatchLimits::CPU.rows_of(longest), expected, "{longest} tokens");
        }
    }

    #[test]
    fn a_gpu_takes_as_many_rows_as_an_eighth_of_its_free_memory_holds() {
        // 32 GiB free: 4 GiB for rows of 32 + 3, 128 + 48 and 2,048 + 12,288 MiB.
        let cases =
            [(32, 128, 117), (32, 512, 23), (32, 8192, 1), (128, 8192, 1), (80, 128, 256), (16, 128, 58)];
        for (free, longest, expected) in cases {
            let rows = BatchLimits::for_free_memory(free * GIB).rows_of(longest);
            assert_eq!(rows, expected, "{free} GiB, {longest} tokens");
        }
    }

    #[test]
    fn one_row_runs_even_where_nothing_seems_free() {
        assert_eq!(BatchLimits::for_free_memory(0).rows_of(512), 1);
        assert_eq!(BatchLimits::for_free_memory(u64::MAX).rows_of(u32::MAX), 1);
        assert_eq!(BatchLimits::for_free_memory(u64::MAX).rows_of(1), GPU_ROWS);
    }

    #[test]
    fn more_memory_never_means_fewer_rows_and_longer_rows_never_more() {
        for free in (0..90).map(|gib| gib * GIB) {
            let limits = BatchLimits::for_free_memory(free);
            for longest in (1..8192).step_by(61) {
                assert!(limits.rows_of(longest) <= BatchLimits::for_free_memory(free + GIB).rows_of(longest));
                assert!(limits.rows_of(longest) >= limits.rows_of(longest + 61));
            }
        }
    }

    #[test]
    fn a_fixed_shape_follows_from_the_length_alone() {
        let cases =
            [(0, 64, 32), (64, 64, 32), (65, 128, 32), (256, 256, 32), (257, 320, 25), (512, 512, 16)];
        for (tokens, length, rows) in cases {
            assert_eq!(FixedShape::of(tokens), FixedShape { rows, tokens: length }, "{tokens} tokens");
        }
        assert_eq!(FixedShape::of(8192).rows, 1);
        (1..9000).for_each(|tokens| assert!(FixedShape::of(tokens).tokens >= tokens));
        assert!(FixedShape::of(u32::MAX).rows == 1);
    }

    #[test]
    fn rows_of_the_first_ones_shape_run_together_as_many_as_it_has_room_for() {
        let count = |tokens: &[u32]| FixedShape::of_first(tokens.iter().copied()).1;
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[130, 129, 128, 130]), 2);
        assert_eq!(count(&[100; 40]), 32);
        assert_eq!(count(&[8000; 3]), 1);
    }
}
