//! Whether a difference between two ways of searching is more than chance, told by the questions that both were asked.
//!
//! Source: Smucker, Allan and Carterette, "A comparison of statistical significance tests for information retrieval
//! evaluation", CIKM 2007: the paired bootstrap by the shift method.

/// Samples that make a p value worth three digits.
pub const RESAMPLES: usize = 10_000;

/// The two-sided p value of a mean difference, from as many differences as there are questions: how often a sample of as
/// many questions, drawn with replacement from the differences shifted to a mean of 0, is at least as far from 0.
///
/// 1 where there is no difference at all, or no question. Never 0: the sample that was seen counts as one. The same seed
/// gives the same value.
pub fn paired_bootstrap(differences: &[f64], resamples: usize, seed: u64) -> f64 {
    let count = differences.len();
    let mean = differences.iter().sum::<f64>() / count.max(1) as f64;
    if differences.iter().all(|difference| *difference == 0.0) {
        return 1.0;
    }
    // Sums of the same numbers in another order differ by rounding.
    let least = mean.abs() * count as f64 - 1e-9;
    let mut state = seed;
    let as_far = (0..resamples)
        .filter(|_| {
            let sum: f64 = (0..count).map(|_| differences[below(count, &mut state)] - mean).sum();
            sum.abs() >= least
        })
        .count();
    (as_far + 1) as f64 / (resamples + 1) as f64
}

/// A number below `limit`, by splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
fn below(limit: usize, state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((u128::from(z ^ (z >> 31)) * limit as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(differences: &[f64]) -> f64 {
        paired_bootstrap(differences, RESAMPLES, 1)
    }

    /// So many questions with a mean difference and a standard deviation: evenly spread, without any skew.
    fn spread(count: usize, mean: f64, deviation: f64) -> Vec<f64> {
        let place = |at: usize| 2.0 * (at as f64 + 0.5) / count as f64 - 1.0;
        (0..count).map(|at| mean + deviation * 3f64.sqrt() * place(at)).collect()
    }

    #[test]
    fn it_agrees_with_the_normal_distribution_where_there_are_many_questions() {
        // The mean of 400 questions with deviation 0.2 has the standard error 0.01.
        for (errors, expected) in [(1.0, 0.317), (1.96, 0.05), (2.576, 0.01)] {
            let found = p(&spread(400, errors * 0.01, 0.2));
            assert!((found - expected).abs() < 0.015, "{errors} standard errors: {found}");
        }
    }

    #[test]
    fn neither_sign_nor_scale_matters() {
        let differences = spread(50, 0.03, 0.1);
        let turned: Vec<f64> = differences.iter().map(|d| -4.0 * d).collect();
        assert!((p(&differences) - p(&turned)).abs() < 1e-3);
    }

    #[test]
    fn no_difference_is_no_finding_and_the_same_gain_everywhere_is_a_sure_one() {
        assert_eq!(p(&[]), 1.0);
        assert_eq!(p(&[0.0; 100]), 1.0);
        assert_eq!(p(&[0.01; 100]), 1.0 / 10_001.0);
        assert_eq!(p(&spread(100, 0.0, 0.3)), 1.0);
    }

    #[test]
    fn one_question_of_many_proves_nothing() {
        let mut differences = vec![0.0; 200];
        differences[17] = 1.0;
        assert!(p(&differences) > 0.3, "{}", p(&differences));
    }

    #[test]
    fn the_seed_decides() {
        let differences = spread(30, 0.05, 0.2);
        assert_eq!(p(&differences), p(&differences));
        assert_ne!(p(&differences), paired_bootstrap(&differences, RESAMPLES, 2));
    }
}
