//! The estimates of a block of entries.

use crate::layout::{BLOCK, Header};
use crate::query::{PLANES, Query};
use multiversion::multiversion;

/// Estimates the cosine of a query with the entries of blocks, in their order.
///
/// With AVX-512 a register holds a word of each entry. Without, counting bits word by word is quicker than what AVX2 can
/// do, so it gets no version.
#[multiversion(targets(
    "x86_64+avx512f+avx512vl+avx512vpopcntdq+popcnt+bmi1+bmi2+avx2",
    "x86_64+popcnt+bmi1+bmi2",
))]
pub(crate) fn scan(query: &Query, header: Header, blocks: &[u8], estimates: &mut Vec<f32>) {
    let numbers = BLOCK * 4;
    estimates.clear();
    for block in blocks.chunks_exact(header.block_bytes()) {
        let (scales, rest) = block.split_at(numbers);
        let (offsets, words) = rest.split_at(numbers);
        let (words, _) = words.as_chunks::<{ BLOCK * 8 }>();
        let mut sums = [0_i64; BLOCK];
        for (word, planes) in words.iter().zip(&query.planes) {
            let (entries, _) = word.as_chunks::<8>();
            for (sum, bits) in sums.iter_mut().zip(entries) {
                let bits = u64::from_le_bytes(*bits);
                for (plane, mask) in planes.iter().enumerate() {
                    let count = i64::from((bits & mask).count_ones()) << plane;
                    *sum += if plane == PLANES - 1 { -count } else { count };
                }
            }
        }
        let (scales, _) = scales.as_chunks::<4>();
        let (offsets, _) = offsets.as_chunks::<4>();
        estimates.extend((0..BLOCK).map(|place| {
            let (scale, offset) = (f32::from_le_bytes(scales[place]), f32::from_le_bytes(offsets[place]));
            scale * (query.weight * sums[place] as f32 - query.total) + offset + query.base
        }));
    }
}
