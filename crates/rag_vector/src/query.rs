//! A query as the codes of one set want it: relative to their centre, and cut into planes of bits.

use crate::layout::Header;

/// Bits per dimension of a query. What they leave out is a tenth of what one bit per dimension of a code leaves out.
pub(crate) const PLANES: usize = 4;

/// A query relative to a set's centre.
pub(crate) struct Query {
    /// Word by word, that of each plane. A dimension's value is a whole number in two's complement, the last plane its
    /// sign, times `step`.
    pub(crate) planes: Vec<[u64; PLANES]>,
    /// What a code's sum over its positive dimensions counts: its estimate is `scale * (weight * sum - total) + offset +
    /// base`.
    pub(crate) weight: f32,
    pub(crate) total: f32,
    pub(crate) base: f32,
}

impl Query {
    /// `vector` has the length 1 and the centre's dimension.
    pub(crate) fn new(vector: &[f32], centre: &[f32], header: Header) -> Query {
        let rest: Vec<f32> = vector.iter().zip(centre).map(|(value, centre)| value - centre).collect();
        let base = vector.iter().zip(centre).map(|(value, centre)| value * centre).sum();
        let step = step(&rest);
        let mut planes = vec![[0; PLANES]; header.words()];
        let mut total = 0.0;
        for (dimension, value) in rest.iter().enumerate() {
            let whole = ((value / step).round() as i32).clamp(LEAST, MOST);
            total += whole as f32 * step;
            for (plane, word) in planes[dimension / 64].iter_mut().enumerate() {
                *word |= u64::from(whole >> plane & 1 == 1) << (dimension % 64);
            }
        }
        Query { planes, weight: 2.0 * step, total, base }
    }
}

const MOST: i32 = (1 << (PLANES - 1)) - 1;
const LEAST: i32 = -MOST - 1;

/// How far apart the values are: so that few dimensions are cut off, for a few are much larger than the others.
fn step(rest: &[f32]) -> f32 {
    let deviation = (rest.iter().map(|value| value * value).sum::<f32>() / rest.len() as f32).sqrt();
    let largest = rest.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let reach = largest.min(DEVIATIONS * deviation);
    if reach > 0.0 { reach / MOST as f32 } else { 1.0 }
}

/// Standard deviations within which a value is not cut off.
const DEVIATIONS: f32 = 3.0;
