//! Random numbers that can be had again: the seed is printed, and taken from `RAG_TEST_SEED` if set.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64. Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from `RAG_TEST_SEED`, else from the clock, and prints the seed (shown when the test fails).
    pub fn announced(test: &str) -> Self {
        let seed = match std::env::var("RAG_TEST_SEED") {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("RAG_TEST_SEED is no number: {text:?}")),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
        };
        eprintln!("{test}: RAG_TEST_SEED={seed}");
        Self(seed)
    }

    /// Starts from this seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
