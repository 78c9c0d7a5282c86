//! Times of many runs of one thing.

use std::time::{Duration, Instant};

/// Times, in the order in which they were taken.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<Duration>);

/// How long a call takes, and what it gives.
pub fn timed<T>(call: impl FnOnce() -> T) -> (Duration, T) {
    let begin = Instant::now();
    let value = call();
    (begin.elapsed(), value)
}

impl Times {
    /// Runs a call and keeps its time.
    pub fn take<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let (time, value) = timed(call);
        self.0.push(time);
        value
    }

    /// Keeps a time.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Takes the times of another in.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// How many times as long as the others these are: the median of the ratios of times that were taken in pairs, a moment
    /// apart, so that what slows the machine down slows both.
    pub fn ratio_to(&self, others: &Self) -> f64 {
        assert_eq!(self.len(), others.len(), "times in pairs");
        let ratio = |(time, other): (&Duration, &Duration)| time.as_secs_f64() / other.as_secs_f64();
        let mut ratios: Vec<f64> = self.0.iter().zip(&others.0).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The time that a share of the runs, from 0 to 1, stays below, in milliseconds.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let place = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
        sorted.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    /// The median, in milliseconds.
    pub fn p50(&self) -> f64 {
        self.quantile_ms(0.5)
    }

    /// What 95 of 100 runs stay below, in milliseconds.
    pub fn p95(&self) -> f64 {
        self.quantile_ms(0.95)
    }

    /// Median and 95th percentile, to be read.
    pub fn shown(&self) -> String {
        format!("{:.3} / {:.3} ms", self.p50(), self.p95())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_pairs() {
        let times = |ms: [u64; 3]| Times(ms.map(Duration::from_millis).to_vec());
        assert_eq!(times([2, 30, 400]).ratio_to(&times([1, 10, 400])), 2.0);
    }

    #[test]
    fn quantiles_are_times_that_were_taken() {
        let mut times = Times::default();
        (1..=100).rev().for_each(|ms| times.push(Duration::from_millis(ms)));
        assert_eq!((times.p50(), times.p95(), times.quantile_ms(1.0)), (51.0, 96.0, 100.0));
        assert!(Times::default().p50().is_nan());
    }
}
