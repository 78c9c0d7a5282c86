//! How much of two multisets is the same.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

/// Sizes of two multisets and of what they share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Score {
    /// In the parser's result.
    found: usize,
    /// In the reference.
    wanted: usize,
    /// In both.
    shared: usize,
}

impl Score {
    /// Adds the counts of other files, so that a word weighs the same in a long file and in a short one.
    pub(crate) fn add(&mut self, other: &Self) {
        self.found += other.found;
        self.wanted += other.wanted;
        self.shared += other.shared;
    }

    /// Harmonic mean of precision and recall; nothing where neither side holds anything.
    pub(crate) fn f1(&self) -> Option<f64> {
        let both = self.found + self.wanted;
        (both > 0).then(|| 2.0 * self.shared as f64 / both as f64)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.f1() {
            Some(f1) => write!(f, "{f1:.3} ({}∩{}={})", self.found, self.wanted, self.shared),
            None => f.write_str("–"),
        }
    }
}

/// Compares what was found with what was wanted. Order does not count, repetition does.
pub(crate) fn shared<T: Eq + Hash>(found: &[T], wanted: &[T]) -> Score {
    let mut left: HashMap<&T, usize> = HashMap::new();
    for item in wanted {
        *left.entry(item).or_default() += 1;
    }
    let mut shared = 0;
    for item in found {
        if let Some(count) = left.get_mut(item)
            && *count > 0
        {
            *count -= 1;
            shared += 1;
        }
    }
    Score { found: found.len(), wanted: wanted.len(), shared }
}
