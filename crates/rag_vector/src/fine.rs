//! Four bits per dimension: a second estimate, for the entries that one bit found.

use crate::encoder::length;
use multiversion::multiversion;

/// Highest step of a dimension above or below the centre.
const MOST: f32 = 7.0;

/// What is added to a step, so that it is no negative number.
const ZERO: u8 = 8;

/// Numbers that are added up side by side.
const LANES: usize = 16;

/// Bytes of an entry's row: the size of a step, then two dimensions per byte, the even one in its low bits.
pub(crate) fn row_bytes(dimension: usize) -> usize {
    4 + dimension.div_ceil(2)
}

/// Writes the row of what is left of a vector once the centre is taken off.
pub(crate) fn write_row(rest: &[f32], row: &mut Vec<u8>) {
    let largest = rest.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let step = largest / MOST;
    let steps = |value: &f32| {
        let steps = if step > 0.0 { (value / step).round().clamp(-MOST, MOST) } else { 0.0 };
        (steps as i8 + ZERO as i8) as u8
    };
    row.extend(step.to_le_bytes());
    row.extend(rest.chunks(2).map(|pair| steps(&pair[0]) | pair.get(1).map_or(ZERO, steps) << 4));
}

/// A query as rows want it: even and odd dimensions apart.
pub(crate) struct FineQuery {
    even: Vec<f32>,
    odd: Vec<f32>,
    /// What `ZERO` adds to the sum over all dimensions.
    zero: f32,
}

impl FineQuery {
    /// `unit` has the length 1.
    pub(crate) fn new(unit: &[f32]) -> Self {
        debug_assert!(length(unit).is_some());
        let every = |first: usize| {
            let mut values: Vec<f32> = unit.iter().copied().skip(first).step_by(2).collect();
            values.resize(unit.len().div_ceil(2), 0.0);
            values
        };
        let (even, odd) = (every(0), every(1));
        let sum = even.iter().chain(&odd).sum::<f32>();
        Self { zero: sum * f32::from(ZERO), even, odd }
    }

    /// The cosine with the vector of a row, of which `base` is the query's product with the centre.
    pub(crate) fn cosine(&self, row: &[u8], base: f32) -> f32 {
        let Some((step, steps)) = row.split_first_chunk::<4>() else { return f32::NEG_INFINITY };
        base + f32::from_le_bytes(*step) * (product(steps, &self.even, &self.odd) - self.zero)
    }
}

/// The sum of the low halves of bytes times the even numbers, and the high ones times the odd.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl+fma+avx2", "x86_64+avx2+fma"))]
fn product(steps: &[u8], even: &[f32], odd: &[f32]) -> f32 {
    let (whole, rest) = steps.as_chunks::<LANES>();
    let (whole_even, rest_even) = even.as_chunks::<LANES>();
    let (whole_odd, rest_odd) = odd.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for ((steps, even), odd) in whole.iter().zip(whole_even).zip(whole_odd) {
        for lane in 0..LANES {
            sums[lane] += even[lane] * f32::from(steps[lane] & 15) + odd[lane] * f32::from(steps[lane] >> 4);
        }
    }
    let of_rest = rest.iter().zip(rest_even).zip(rest_odd);
    let rest: f32 =
        of_rest.map(|((steps, even), odd)| even * f32::from(steps & 15) + odd * f32::from(steps >> 4)).sum();
    sums.iter().sum::<f32>() + rest
}
