//! How many candidates are worth comparing exactly, by what comparing the first ones has shown.

use crate::Candidate;

/// Standard deviations of the estimates' error that are reckoned with.
const DEVIATIONS: f64 = 2.5;

/// How many of the candidates, best first, may be among the nearest `rank`.
///
/// `cosines` are those of the first candidates; `None` for one that is gone. What their estimates were wrong by tells how
/// far the others may be: one counts whose estimate, mended by the mean error and 2.5 standard deviations in its favour,
/// is not below the `rank`-th of these cosines. Codes are wrong by more or less as vectors are spread, and the more of
/// them there are the more of them are near that cosine, so neither is a number to be fixed once. All count where there
/// are fewer than `rank` cosines.
pub fn reach(candidates: &[Candidate], cosines: &[Option<f32>], rank: usize) -> usize {
    reach_by(candidates, cosines, rank, |mean| mean)
}

/// [`reach`] of candidates that are the first of very many by rough estimates, and so for the most part the first because
/// theirs are too high. That says nothing of the others, so the mean error counts only in their favour.
pub(crate) fn reach_of_first(candidates: &[Candidate], cosines: &[Option<f32>], rank: usize) -> usize {
    reach_by(candidates, cosines, rank, |mean| mean.max(0.0))
}

fn reach_by(
    candidates: &[Candidate],
    cosines: &[Option<f32>],
    rank: usize,
    mended_by: impl FnOnce(f64) -> f64,
) -> usize {
    let mut known: Vec<f32> = cosines.iter().copied().flatten().collect();
    let errors = candidates
        .iter()
        .zip(cosines)
        .filter_map(|(candidate, cosine)| Some(f64::from((*cosine)? - candidate.estimate)));
    let (mut sum, mut squares) = (0.0, 0.0);
    for error in errors {
        sum += error;
        squares += error * error;
    }
    if known.len() < rank.max(1) {
        return candidates.len();
    }
    let count = known.len() as f64;
    let mean = sum / count;
    let deviation = (squares / count - mean * mean).max(0.0).sqrt();
    let (_, last, _) = known.select_nth_unstable_by(rank.max(1) - 1, |a, b| b.total_cmp(a));
    let least = f64::from(*last) - mended_by(mean) - DEVIATIONS * deviation;
    let within = candidates.partition_point(|candidate| f64::from(candidate.estimate) >= least);
    within.max(cosines.len()).min(candidates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these estimates, best first, are within reach of the cosine of this rank: by [`reach`], and by
    /// [`reach_of_first`].
    fn within(rank: usize, estimates: &[f32], cosines: &[f32]) -> [usize; 2] {
        let candidate =
            |(entry, estimate): (usize, &f32)| Candidate { source: 0, entry, estimate: *estimate };
        let candidates: Vec<Candidate> = estimates.iter().enumerate().map(candidate).collect();
        let cosines: Vec<Option<f32>> = cosines.iter().copied().map(Some).collect();
        [reach, reach_of_first].map(|reach| reach(&candidates, &cosines, rank))
    }

    #[test]
    fn others_are_taken_to_be_wrong_as_the_first_ones_were_but_not_too_high_where_these_are_the_first_for_that()
     {
        assert_eq!(within(2, &[0.75, 0.5, 0.5, 0.25], &[0.875, 0.625]), [3, 3]);
        assert_eq!(within(1, &[1.0, 0.875, 0.75, 0.75, 0.5], &[0.75, 0.625]), [2, 4]);
    }
}
