//! Whether to list all that a filter lets through, or to ask about what a search finds.

/// How much longer asking about one hit takes than listing one chunk: it is found and ranked first, and looked up by itself.
const ASKED_PER_LISTED: f64 = 5.0;

/// Most times as many hits as are wanted that are taken at first.
const MOST_AT_FIRST: usize = 16;

/// Size of the sample that an estimate is taken to be as sure as.
const ESTIMATED: usize = 256;

/// Some that a filter was asked about, and how many of them it let through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// How many.
    pub of: usize,
    /// Of these.
    pub passed: usize,
}

impl Asked {
    /// With as many more.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { of: self.of + other.of, passed: self.passed + other.passed }
    }

    /// As sure as a sample of [`ESTIMATED`], of which the same part passed.
    #[must_use]
    pub fn estimated(passed: usize, of: usize) -> Self {
        let part = passed.min(of) as f64 / of.max(1) as f64;
        Self { of: ESTIMATED, passed: (part * ESTIMATED as f64).round() as usize }
    }

    /// The part of all that is let through, by these: half a one more, for none of some is not none of all.
    fn part(self) -> f64 {
        (self.passed as f64 + 0.5) / (self.of as f64 + 1.0)
    }

    /// The standard deviation of that part, by how many it is told from.
    fn deviation(self) -> f64 {
        let part = self.part();
        (part * (1.0 - part) / (self.of as f64 + 1.0)).sqrt()
    }
}

/// Most that are listed for it to be quicker than asking, of `size` chunks.
pub fn most_listed(size: usize, wanted: usize) -> usize {
    // Of so many, asking takes `size / listed` hits for each that is wanted: see `is_quicker`.
    (ASKED_PER_LISTED * wanted as f64 * size as f64).sqrt() as usize
}

/// Whether a sample leaves open if listing is quicker than asking: it is by less than the sample's part, and is not by more,
/// as much as that may be wrong by.
pub fn is_undecided(size: usize, wanted: usize, sample: Asked) -> bool {
    let is_listing_quicker = |part: f64| is_quicker(size as f64 * part, wanted as f64 / part);
    let (part, deviation) = (sample.part(), sample.deviation());
    is_listing_quicker((part - deviation).max(part / 2.0)) && !is_listing_quicker(part + deviation)
}

/// Whether listing so many chunks is quicker than asking about so many hits.
fn is_quicker(listed: f64, asked: f64) -> bool {
    listed <= ASKED_PER_LISTED * asked
}

/// Whether listing all that is let through of `size` chunks is likely to be quicker than asking about hits until `wanted`
/// are found. `sample` is of the chunks, whichever they are, `hits` of those that were found so far, which a filter may
/// let through more or less often. It counts as quicker, too, once as much was asked as listing is estimated to take, so that
/// asking in vain ends.
pub fn is_listing_quicker(size: usize, wanted: usize, sample: Asked, hits: Asked) -> bool {
    let listed = size as f64 * sample.part();
    let part = if hits.of == 0 { sample.part() } else { hits.part() };
    let left = wanted.saturating_sub(hits.passed) as f64 / part;
    left > 0.0 && is_quicker(listed, left.max(hits.of as f64))
}

/// How many hits to take at first, for `wanted` of them to be let through: some more than by the sample's part less a
/// standard deviation of it, for ranking all of them again costs more.
pub fn at_first(wanted: usize, sample: Asked) -> usize {
    let part = sample.part();
    let needed = wanted as f64 / (part - sample.deviation()).max(part / 2.0) * 1.15;
    (needed as usize).clamp(wanted, wanted.saturating_mul(MOST_AT_FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(of: usize, passed: usize) -> Asked {
        Asked { of, passed }
    }

    #[test]
    fn few_are_listed_and_many_asked_about() {
        let is_listed = |size, passed| is_listing_quicker(size, 100, asked(64, passed), Asked::default());
        // One of a hundred, whatever there is up to a million, and a third of little.
        assert!([10_000, 100_000, 1_000_000].into_iter().all(|size| is_listed(size, 0)));
        assert!(is_listed(3_000, 20) && !is_listed(10_000, 20));
        assert!(is_listed(100_000, 2) && !is_listed(1_000_000, 2));
        // The fewer hits are wanted, the sooner they are found.
        assert!(!is_listing_quicker(1_000_000, 10, asked(64, 0), Asked::default()));
    }

    #[test]
    fn so_many_are_listed_that_asking_takes_as_long() {
        assert_eq!(most_listed(10_000, 100), 2_236);
        for (size, wanted) in [(10_000, 100), (1_000_000, 10), (300_000, 116)] {
            let most = most_listed(size, wanted) as f64;
            let asked = |listed: f64| wanted as f64 * size as f64 / listed;
            assert!(is_quicker(most, asked(most)) && !is_quicker(most + 2.0, asked(most + 2.0)));
        }
        assert_eq!(most_listed(0, 10), 0);
    }

    #[test]
    fn an_estimate_is_as_sure_as_a_sample() {
        assert_eq!(Asked::estimated(300, 1_000), asked(256, 77));
        assert_eq!(Asked::estimated(3, 0), asked(256, 0));
        assert_eq!(Asked::estimated(0, 10), asked(256, 0));
    }

    #[test]
    fn a_small_sample_leaves_open_what_is_about_as_quick() {
        // Below some 2 % of a million listing is quicker.
        let is_undecided = |of, passed| is_undecided(1_000_000, 100, asked(of, passed));
        assert!(is_undecided(256, 4) && is_undecided(256, 5) && is_undecided(256, 7));
        assert!(!is_undecided(256, 0) && !is_undecided(256, 12));
        assert!(!is_undecided(1_024, 10) && is_undecided(1_024, 20) && !is_undecided(1_024, 30));
    }

    #[test]
    fn hits_that_are_let_through_more_seldom_than_others_count() {
        let sample = asked(64, 32);
        assert!(!is_listing_quicker(100_000, 10, sample, asked(100, 2)));
        assert!(!is_listing_quicker(100_000, 10, sample, asked(1_000, 1)));
        assert!(is_listing_quicker(100_000, 10, sample, asked(5_000, 1)));
        // As many were found as are wanted.
        assert!(!is_listing_quicker(100, 10, sample, asked(5_000, 10)));
    }

    proptest! {
        #[test]
        fn asking_ends(size in 0usize..10_000_000, wanted in 1usize..1_000, of in 1usize..100, passed in 0usize..100) {
            let sample = asked(of, passed.min(of));
            // Without a single hit that passes, all is listed before as many were asked about as there are chunks.
            let hits = asked(size + 1, 0);
            prop_assert!(is_listing_quicker(size, wanted, sample, hits));
        }

        #[test]
        fn at_first_as_many_are_taken_as_are_wanted_or_more(wanted in 0usize..10_000, of in 0usize..100, passed in 0usize..100) {
            let first = at_first(wanted, asked(of, passed.min(of)));
            prop_assert!(first >= wanted && first <= MOST_AT_FIRST * wanted);
        }
    }
}
