//! What the codes promise, on vectors made up around a few centres.

use proptest::prelude::*;
use rag_vector::{Candidate, Codes, Encoder, Error, FORMAT_VERSION, centre, nearest};

const DIMENSION: usize = 100;

/// The `seed`-th of some vectors: one of eight directions, and noise.
fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (0..DIMENSION).map(|i| noise() + if i % 8 == seed as usize % 8 { 2.0 } else { 0.3 }).collect()
}

fn vectors(count: u64) -> Vec<Vec<f32>> {
    (0..count).map(vector).collect()
}

fn encode(vectors: &[Option<Vec<f32>>]) -> Vec<u8> {
    let there = || vectors.iter().flatten().map(Vec::as_slice);
    let mut encoder = Encoder::new(centre(there()).unwrap_or_else(|| vec![0.0; DIMENSION]), Vec::new());
    vectors.iter().for_each(|vector| encoder.push(vector.as_deref()).expect("room in memory"));
    let (beginning, end) = encoder.finish();
    [beginning, end].concat()
}

fn codes(vectors: &[Vec<f32>]) -> Codes {
    Codes::open(encode(&vectors.iter().cloned().map(Some).collect::<Vec<_>>())).expect("a sound blob")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

fn found(codes: &[Codes], query: &[f32], limit: usize) -> Vec<Candidate> {
    nearest(codes, query, limit, None, || true).expect("candidates").candidates
}

#[test]
fn the_nearest_are_among_few_candidates_and_nearly_in_order() {
    let vectors = vectors(4000);
    let codes = [codes(&vectors)];
    let (mut hits, mut first) = (0, 0);
    for query in (0..40).map(|i| vector(1_000_000 + i)) {
        let mut exact: Vec<usize> = (0..vectors.len()).collect();
        exact.sort_by(|a, b| cosine(&vectors[*b], &query).total_cmp(&cosine(&vectors[*a], &query)));
        let candidates = found(&codes, &query, 10);
        assert!(candidates.len() < 3000, "{}", candidates.len());
        let place = |i: &&usize| candidates.iter().position(|c| c.entry == **i);
        hits += exact.iter().take(10).filter(|i| place(i).is_some()).count();
        first += exact.iter().take(10).filter(|i| place(i).is_some_and(|place| place < 40)).count();
    }
    assert!(hits >= 396, "{hits} of 400");
    assert!(first >= 392, "{first} of 400");
}

#[test]
fn estimates_are_near_the_cosine_and_on_neither_side_of_it() {
    let vectors = vectors(2000);
    let codes = [codes(&vectors)];
    let query = vector(7_000_001);
    let errors: Vec<f32> = found(&codes, &query, vectors.len())
        .iter()
        .map(|candidate| candidate.estimate - cosine(&vectors[candidate.entry], &query))
        .collect();
    assert_eq!(errors.len(), vectors.len());
    let mean = errors.iter().sum::<f32>() / errors.len() as f32;
    let deviation = (errors.iter().map(|error| error * error).sum::<f32>() / errors.len() as f32).sqrt();
    assert!(mean.abs() < 0.002, "{mean}");
    assert!(deviation < 0.015, "{deviation}");
}

#[test]
fn a_vector_of_any_length_finds_itself() {
    let vectors = vectors(500);
    let codes = [codes(&vectors)];
    for entry in [0, 7, 8, 499] {
        let longer: Vec<f32> = vectors[entry].iter().map(|value| value * 37.5).collect();
        assert_eq!(found(&codes, &longer, 1)[0].entry, entry);
    }
}

#[test]
fn several_sets_are_searched_as_one_each_about_its_own_centre() {
    let vectors = vectors(600);
    let (left, right) = vectors.split_at(150);
    let sets = [codes(left), codes(right)];
    for entry in [3, 149, 150, 599] {
        let best = found(&sets, &vectors[entry], 1)[0];
        assert_eq!(best.source * 150 + best.entry, entry);
    }
    assert_eq!(found(&sets, &vectors[0], 1000).len(), 600);
}

#[test]
fn absent_entries_and_those_without_direction_are_never_found() {
    let mut some: Vec<Option<Vec<f32>>> = vectors(20).into_iter().map(Some).collect();
    some[3] = None;
    some[9] = Some(vec![0.0; DIMENSION]);
    some[11] = Some(vec![f32::NAN; DIMENSION]);
    some[13] = Some(vec![1.0; DIMENSION + 1]);
    let codes = [Codes::open(encode(&some)).expect("a sound blob")];
    assert_eq!(codes[0].len(), 20);
    let mut entries: Vec<usize> = found(&codes, &vector(5), 100).iter().map(|c| c.entry).collect();
    entries.sort_unstable();
    assert_eq!(entries, [0, 1, 2, 4, 5, 6, 7, 8, 10, 12, 14, 15, 16, 17, 18, 19]);
    assert!(found(&codes, &[0.0; DIMENSION], 100).is_empty());
    assert!(found(&codes, &vector(5), 0).is_empty());
}

#[test]
fn sets_of_no_or_one_vector_or_of_equal_ones_are_searched() {
    assert_eq!(centre([].into_iter()), None);
    let empty = Codes::open(encode(&[])).expect("a sound blob");
    assert!(empty.is_empty());
    assert!(found(&[empty], &vector(1), 10).is_empty());
    let equal = [codes(&vec![vector(1); 9])];
    let candidates = found(&equal, &vector(1), 10);
    assert_eq!(candidates.iter().map(|c| c.entry).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    assert!(candidates.iter().all(|c| (c.estimate - 1.0).abs() < 1e-3), "{candidates:?}");
}

#[test]
fn what_is_not_accepted_takes_no_place() {
    let codes = [codes(&vectors(300)), codes(&vectors(300))];
    let accept = |source: usize, entry: usize| source == 1 && entry.is_multiple_of(10);
    let found = nearest(&codes, &vector(77), 30, Some(&accept), || true).expect("candidates");
    assert!(found.is_all && found.candidates.len() == 30);
    assert!(found.candidates.iter().all(|c| c.source == 1 && c.entry.is_multiple_of(10)));
}

#[test]
fn somebody_may_end_it_and_other_vectors_are_refused() {
    let codes = [codes(&vectors(10))];
    assert_eq!(nearest(&codes, &vector(1), 5, None, || false), Err(Error::Interrupted));
    let other = nearest(&codes, &[1.0; 7], 5, None, || true);
    assert_eq!(other, Err(Error::Dimension { found: DIMENSION, expected: 7 }));
}

#[test]
fn a_blob_of_another_version_says_so() {
    let mut blob = encode(&[Some(vector(1))]);
    blob[8] += 1;
    let error = Codes::open(blob).err();
    assert_eq!(error, Some(Error::FormatVersion { found: FORMAT_VERSION + 1, expected: FORMAT_VERSION }));
}

proptest! {
    #[test]
    fn damage_is_noticed_wherever_it_is(count in 0_u64..40, at in any::<prop::sample::Index>(), bit in 0_u8..8, cut in any::<bool>()) {
        let mut blob = encode(&vectors(count).into_iter().map(Some).collect::<Vec<_>>());
        let at = at.index(blob.len());
        if cut { blob.truncate(at) } else { blob[at] ^= 1 << bit }
        prop_assert!(Codes::open(blob).is_err());
    }

    #[test]
    fn any_bytes_are_refused_or_searched(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(codes) = Codes::open(bytes) {
            let query = vec![1.0; codes.dimension()];
            let _ = nearest(&[codes], &query, 10, None, || true);
        }
    }
}
