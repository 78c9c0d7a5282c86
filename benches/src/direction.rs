//! Directions of chance.

use rag_tests::Random;

/// A vector of length 1, whose direction is as likely as any other.
pub fn direction(random: &mut Random, dimension: usize) -> Vec<f32> {
    let mut share = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
    // A sum of some is nearly normal, so that no direction is more likely than another.
    let values: Vec<f64> = (0..dimension).map(|_| (0..6).map(|_| share()).sum::<f64>() - 3.0).collect();
    let length = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    values.iter().map(|value| (value / length) as f32).collect()
}
