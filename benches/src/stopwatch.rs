//! The best of several times.

use crate::{Times, timed};
use std::time::{Duration, Instant};

/// Times that are taken of each query, after a first one.
const ROUNDS: u32 = 3;

/// After it, a measurement goes on with fewer queries.
const LONGEST: Duration = Duration::from_secs(120);

/// Queries that are measured however long they take.
const FEWEST: usize = 10;

/// The best time of each query by each of some ways, which take turns. `call` is given the place of the way and that of the
/// query.
///
/// Fewer queries are measured where all of them would take too long.
pub fn best_times<const WAYS: usize>(queries: usize, mut call: impl FnMut(usize, usize)) -> [Times; WAYS] {
    let begun = Instant::now();
    let mut measured = queries;
    let mut best = vec![[Duration::MAX; WAYS]; queries];
    for round in 0..=ROUNDS {
        let mut at = 0;
        while at < measured {
            for turn in 0..WAYS {
                // Each way is the first of them as often as the others.
                let way = (turn + at + round as usize) % WAYS;
                let (time, ()) = timed(|| call(way, at));
                if round > 0 {
                    best[at][way] = time.min(best[at][way]);
                }
            }
            at += 1;
            if at >= FEWEST && begun.elapsed() > LONGEST * (round + 1) / (ROUNDS + 1) {
                measured = measured.min(at);
            }
        }
    }
    std::array::from_fn(|way| {
        let mut times = Times::default();
        best[..measured].iter().for_each(|best| times.push(best[way]));
        times
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_query_is_asked_once_more_than_it_is_timed() {
        let mut calls = 0;
        let [times] = best_times(20, |_, _| calls += 1);
        assert_eq!((times.len(), calls), (20, 80));
    }
}
