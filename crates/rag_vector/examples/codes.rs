//! How fast vectors are encoded and searched, and how many of the nearest are among the candidates:
//! `cargo run --release -p rag_vector --example codes [FILE DIMENSION] COUNT`, where the file has vectors of single
//! precision, one after the other. More are made between them than there are, and without a file all are made up.

#![allow(clippy::print_stdout)]

use rag_vector::{Codes, Encoder, centre, nearest, reach};
use std::collections::HashMap;
use std::time::Instant;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// About normally distributed.
    fn normal(&mut self) -> f32 {
        (0..6).map(|_| self.unit()).sum::<f32>() * 2.0_f32.sqrt() - 3.0 * 2.0_f32.sqrt()
    }
}

fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (real, dimension): (Vec<Vec<f32>>, usize) = match &arguments[..] {
        [file, dimension, _] => {
            let dimension: usize = dimension.parse().expect("a dimension");
            let bytes = std::fs::read(file).expect("a readable file");
            let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            (values.chunks_exact(dimension).map(|vector| normalised(vector.to_vec())).collect(), dimension)
        }
        _ => ((0..2000).map(|_| normalised((0..384).map(|_| random.normal()).collect())).collect(), 384),
    };
    let count: usize = arguments.last().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let mut between = |noise: f32| {
        let (a, b) = (random.next() as usize % real.len(), random.next() as usize % real.len());
        let share = random.unit();
        normalised(
            (0..dimension).map(|i| real[a][i] + share * real[b][i] + noise * random.normal()).collect(),
        )
    };
    let vectors: Vec<Vec<f32>> = (0..count).map(|_| between(0.02)).collect();
    let queries: Vec<Vec<f32>> = (0..100).map(|_| between(0.03)).collect();

    let began = Instant::now();
    let sample = vectors.iter().step_by(count.div_ceil(4096)).map(Vec::as_slice);
    let mut encoder = Encoder::new(centre(sample).expect("vectors"), Vec::new());
    vectors.iter().for_each(|vector| encoder.push(Some(vector)).expect("room in memory"));
    let (beginning, end) = encoder.finish();
    let blob = [beginning, end].concat();
    println!("{count} encoded in {:?}, {} bytes each", began.elapsed(), blob.len() / count);
    let codes = [Codes::open(blob).expect("a sound blob")];

    let exact: Vec<Vec<(f32, usize)>> = queries
        .iter()
        .map(|query| {
            let cosine = |vector: &Vec<f32>| vector.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
            let mut all: Vec<(f32, usize)> =
                vectors.iter().enumerate().map(|(i, vector)| (cosine(vector), i)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            all
        })
        .collect();
    for limit in [10, 100, 1000] {
        let began = Instant::now();
        let found: Vec<_> =
            queries.iter().map(|q| nearest(&codes, q, limit, None, || true).expect("candidates")).collect();
        let took = began.elapsed() / queries.len() as u32;
        let (mut candidates, mut compared, mut hits, mut hits_of_ten) = (0, 0, 0, 0);
        for (exact, found) in exact.iter().zip(&found) {
            let found = &found.candidates;
            let cosine_of: HashMap<usize, f32> = exact.iter().map(|(cosine, i)| (*i, *cosine)).collect();
            let first = found.len().min(limit + limit / 4 + 16);
            let cosines: Vec<Option<f32>> =
                found[..first].iter().map(|c| cosine_of.get(&c.entry).copied()).collect();
            let reach = reach(found, &cosines, limit);
            let is_found = |i: &usize| found[..reach].iter().any(|c| c.entry == *i);
            candidates += found.len();
            compared += reach;
            hits += exact.iter().take(limit).filter(|(_, i)| is_found(i)).count();
            hits_of_ten += exact.iter().take(10).filter(|(_, i)| is_found(i)).count();
        }
        let queries = queries.len();
        println!(
            "{limit} wanted: {took:?}, {} candidates, {} compared, recall {:.4}, at 10 {:.4}",
            candidates / queries,
            compared / queries,
            hits as f64 / (limit * queries) as f64,
            hits_of_ten as f64 / (10 * queries) as f64
        );
    }
}
