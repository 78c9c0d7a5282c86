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
    let least = f64::from(*last) - mean - DEVIATIONS * deviation;
    let within = candidates.partition_point(|candidate| f64::from(candidate.estimate) >= least);
    within.max(cosines.len()).min(candidates.len())
}
