//! The estimates of all entries of blocks, and which of them are good.

use crate::layout::{BLOCK, Header};
use crate::query::{PLANES, Query};
use multiversion::multiversion;
use std::hint::black_box;

/// Estimates the cosine of a query with the entries of blocks, in their order.
///
/// With AVX-512 a register holds a word of each entry, and what takes the time is to fetch the blocks from memory. That
/// is quicker from two places at once, so it goes over both halves side by side.
#[multiversion(targets(
    "x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx512vpopcntdq+popcnt+bmi1+bmi2+avx2",
    "x86_64+avx2+popcnt+bmi1+bmi2",
    "x86_64+popcnt+bmi1+bmi2",
))]
pub(crate) fn scan(query: &Query, header: Header, blocks: &[u8], estimates: &mut Vec<[f32; BLOCK]>) {
    let bytes = header.block_bytes();
    let count = blocks.len() / bytes;
    estimates.clear();
    estimates.resize(count, [0.0; BLOCK]);
    let (of_left, of_right) = estimates.split_at_mut(count.div_ceil(2));
    let (left, right) = blocks.split_at(count.div_ceil(2) * bytes);
    let mut right = right.chunks_exact(bytes).zip(of_right);
    for (block, estimates) in left.chunks_exact(bytes).zip(of_left) {
        *estimates = of_block(query, block);
        if let Some((block, estimates)) = right.next() {
            *estimates = of_block(query, block);
        }
    }
}

/// The estimates of a block. It is part of each version of [`scan`], and so compiled for what that may use.
#[inline(always)]
fn of_block(query: &Query, block: &[u8]) -> [f32; BLOCK] {
    let (scales, rest) = block.split_at(BLOCK * 4);
    let (offsets, words) = rest.split_at(BLOCK * 4);
    let (words, _) = words.as_chunks::<{ BLOCK * 8 }>();
    let mut sums = [0_i64; BLOCK];
    for (word, planes) in words.iter().zip(&query.planes) {
        // A compiler that may reckon with several words at once makes vectors of the words of one entry, and with getting
        // them in and out it takes four times as long. Not knowing where the planes are it goes word by word, and makes
        // vectors of entries.
        let planes = black_box(planes);
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
    std::array::from_fn(|place| {
        let (scale, offset) = (f32::from_le_bytes(scales[place]), f32::from_le_bytes(offsets[place]));
        scale * (query.weight * sums[place] as f32 - query.total) + offset + query.base
    })
}

/// Writes the places of the estimates above a threshold to `places`, which has room for all, and returns how many there
/// are. Most blocks have none once many were gone over: a block is looked into only where it has.
pub(crate) fn above(estimates: &[[f32; BLOCK]], threshold: f32, places: &mut [usize]) -> usize {
    let mut count = 0;
    for (block, estimates) in estimates.iter().enumerate() {
        if estimates.iter().fold(false, |any, estimate| any | (*estimate > threshold)) {
            for (place, estimate) in estimates.iter().enumerate() {
                places[count] = block * BLOCK + place;
                count += usize::from(*estimate > threshold);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codes, Encoder};
    use proptest::prelude::*;

    /// What a block's entry is estimated at, dimension by dimension.
    fn plain(query: &Query, block: &[u8], dimension: usize, place: usize) -> f32 {
        let number = |at: usize| f32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let mut sum = 0;
        for i in 0..dimension {
            let byte = block[BLOCK * 8 + i / 64 * BLOCK * 8 + place * 8 + i % 64 / 8];
            let planes = query.planes[i / 64].map(|plane| (plane >> (i % 64) & 1) as i32);
            let value = planes[0] + 2 * planes[1] + 4 * planes[2] - 8 * planes[3];
            sum += value * i32::from(byte >> (i % 8) & 1);
        }
        let (scale, offset) = (number(place * 4), number(BLOCK * 4 + place * 4));
        scale * (query.weight * sum as f32 - query.total) + offset + query.base
    }

    /// Vectors of one dimension, some of them absent.
    fn vectors() -> impl Strategy<Value = Vec<Option<Vec<f32>>>> {
        (1_usize..200).prop_flat_map(|dimension| {
            let vector = prop::collection::vec(-1.0_f32..1.0, dimension);
            prop::collection::vec(prop::option::weighted(0.9, vector), 1..80)
        })
    }

    fn estimate() -> impl Strategy<Value = f32> {
        prop_oneof![Just(0.5), Just(f32::NAN), Just(f32::NEG_INFINITY), -1.0_f32..1.0]
    }

    proptest! {
        #[test]
        fn estimates_are_those_of_a_loop_over_dimensions(vectors in vectors(), of_query in any::<prop::sample::Index>()) {
            let there: Vec<&Vec<f32>> = vectors.iter().flatten().collect();
            prop_assume!(!there.is_empty());
            let dimension = there[0].len();
            let centre = vec![0.01; dimension];
            let mut encoder = Encoder::new(centre.clone(), Vec::new());
            vectors.iter().for_each(|vector| encoder.push(vector.as_deref()).expect("room in memory"));
            let (beginning, end) = encoder.finish();
            let codes = Codes::open([beginning, end].concat()).expect("a sound blob");
            let query = Query::new(there[of_query.index(there.len())], &centre, codes.header());

            let blocks = codes.blocks().chunks_exact(codes.header().block_bytes());
            let expected: Vec<u32> = blocks
                .clone()
                .flat_map(|block| (0..BLOCK).map(|place| plain(&query, block, dimension, place).to_bits()))
                .collect();
            let mut estimates = vec![[7.0; BLOCK]; 3];
            scan(&query, codes.header(), codes.blocks(), &mut estimates);
            prop_assert_eq!(estimates.as_flattened().iter().map(|estimate| estimate.to_bits()).collect::<Vec<_>>(), &expected[..]);
            // As it is for a processor without vectors.
            let portable = blocks.flat_map(|block| of_block(&query, block)).map(f32::to_bits);
            prop_assert_eq!(portable.collect::<Vec<_>>(), expected);
        }

        #[test]
        fn places_are_those_above(
            estimates in prop::collection::vec(prop::array::uniform8(estimate()), 0..20),
            threshold in prop_oneof![Just(f32::NEG_INFINITY), Just(0.5), 0.9_f32..1.0],
        ) {
            let all = estimates.as_flattened();
            let expected: Vec<usize> = (0..all.len()).filter(|place| all[*place] > threshold).collect();
            let mut places = vec![0; all.len()];
            let count = above(&estimates, threshold, &mut places);
            prop_assert_eq!(&places[..count], expected);
        }
    }
}
