//! Texts that say the same in nearly the same words.
//!
//! Two texts are near-duplicates where more than 0.8 of their shingles, runs of three words, are common (Jaccard), and the
//! words with digits are the same, those of title and headings among them: a manual of two machines that differ in a
//! number or a code says two things.
//!
//! Source: Broder, "On the resemblance and containment of documents", 1997; candidates by prefix filtering: Bayardo, Ma and
//! Srikant, "Scaling up all pairs similarity search", WWW 2007.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use unicode_segmentation::UnicodeSegmentation;

/// Words of a shingle.
const WIDTH: usize = 3;

/// Texts are near-duplicates above this share of common shingles, in tenths.
const MOST_ALIKE: usize = 8;

/// Texts that are kept, each of which is no near-duplicate of one before it.
#[derive(Default)]
pub struct DistinctTexts {
    kept: Vec<Shingles>,
    /// Kept texts by the shingles that a near-duplicate must have one of.
    by_prefix: HashMap<u64, Vec<usize>>,
}

struct Shingles {
    /// In rising order, each once.
    hashes: Vec<u64>,
    /// Of the words with digits.
    numbers: u64,
}

impl DistinctTexts {
    /// Keeps a text, unless it is a near-duplicate of one that is kept: then the number of that one, from 0. Of what stands
    /// above the text, its title and headings, words with digits count.
    pub fn admit(&mut self, above: &str, text: &str) -> Option<usize> {
        let shingles = Shingles::of(above, text);
        let prefix = shingles.prefix().to_vec();
        let similar: BTreeSet<usize> =
            prefix.iter().filter_map(|hash| self.by_prefix.get(hash)).flatten().copied().collect();
        let found = similar.into_iter().find(|kept| self.kept[*kept].is_near(&shingles));
        if found.is_none() {
            for hash in prefix {
                self.by_prefix.entry(hash).or_default().push(self.kept.len());
            }
            self.kept.push(shingles);
        }
        found
    }
}

impl Shingles {
    fn of(above: &str, text: &str) -> Self {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        for_each_word(text, |word| {
            let hash = hasher.hash_one(word);
            words.push(hash);
            if word.contains(char::is_numeric) {
                numbers.push(hash);
            }
        });
        if above.contains(char::is_numeric) {
            let numeric = |word: &str| word.contains(char::is_numeric).then(|| hasher.hash_one(word));
            for_each_word(above, |word| numbers.extend(numeric(word)));
        }
        let mut hashes: Vec<u64> =
            words.windows(WIDTH.min(words.len()).max(1)).map(|words| hasher.hash_one(words)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        numbers.sort_unstable();
        Self { hashes, numbers: hasher.hash_one(numbers) }
    }

    /// The first shingles, of which two near-duplicates have at least one in common: of `n`, fewer than `0.2 n` may be
    /// missing from the other.
    fn prefix(&self) -> &[u64] {
        let most_missing = self.hashes.len() * (10 - MOST_ALIKE) / 10;
        &self.hashes[..(most_missing + 1).min(self.hashes.len())]
    }

    fn is_near(&self, other: &Self) -> bool {
        if self.numbers != other.numbers {
            return false;
        }
        let (mut a, mut b, mut common) = (0, 0, 0);
        while let (Some(x), Some(y)) = (self.hashes.get(a), other.hashes.get(b)) {
            common += usize::from(x == y);
            a += usize::from(x <= y);
            b += usize::from(y <= x);
        }
        let all = self.hashes.len() + other.hashes.len() - common;
        common * 10 > all * MOST_ALIKE
    }
}

/// Words in small letters.
fn for_each_word(text: &str, mut sink: impl FnMut(&str)) {
    let lower = text.to_lowercase();
    if lower.is_ascii() {
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter(|word| !word.is_empty()).for_each(sink);
    } else {
        lower.unicode_words().for_each(&mut sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "Drain the boiler before the first frost, close the valve behind the pump, and leave the tap of \
        the garden open until spring, so that what is left in the pipe may expand without harm to the brass.";

    fn admitted(texts: &[&str]) -> Vec<Option<usize>> {
        let mut distinct = DistinctTexts::default();
        texts.iter().map(|text| distinct.admit("", text)).collect()
    }

    #[test]
    fn a_text_with_another_end_or_case_is_near_and_another_text_is_not() {
        let end = TEXT.replace("the brass", "the copper");
        let upper = TEXT.to_uppercase().replace(',', ";");
        let other = "The ferry to the island leaves at six in the morning and returns at noon.";
        assert_eq!(admitted(&[TEXT, other, &end, &upper, other]), [None, None, Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn texts_that_differ_in_a_number_or_code_are_two() {
        let (first, second) = (format!("{TEXT} See FC-001-234."), format!("{TEXT} See FC-001-235."));
        assert_eq!(admitted(&[&first, &second, &first]), [None, None, Some(0)]);
    }

    #[test]
    fn a_code_in_the_heading_makes_two_texts_of_the_same_words() {
        let mut distinct = DistinctTexts::default();
        assert_eq!(distinct.admit("FC-001 > Reset", TEXT), None);
        assert_eq!(distinct.admit("FC-002 > Reset", TEXT), None);
        assert_eq!(distinct.admit("Reset of FC-001", TEXT), Some(0));
    }

    #[test]
    fn short_texts_are_near_where_they_are_the_same() {
        assert_eq!(
            admitted(&["red fox", "Red fox!", "red", "fox red", ""]),
            [None, Some(0), None, None, None]
        );
    }

    #[test]
    fn writing_without_spaces_is_compared_too() {
        let text = "東京都の水道は明治時代に建設され、現在も多くの人々に安全な水を供給している";
        let near = text.replace("安全な水", "安全の水");
        assert_eq!(admitted(&[text, &near, "大阪の水道"]), [None, Some(0), None]);
    }

    proptest! {
        /// Prefixes lose nothing that comparing all with all finds.
        #[test]
        fn what_is_near_is_found(texts in proptest::collection::vec("([abc] ){0,40}", 0..12)) {
            let mut distinct = DistinctTexts::default();
            let mut kept: Vec<Shingles> = Vec::new();
            for text in &texts {
                let shingles = Shingles::of("", text);
                let expected = kept.iter().position(|other| other.is_near(&shingles));
                prop_assert_eq!(distinct.admit("", text), expected, "{:?}", text);
                if expected.is_none() {
                    kept.push(shingles);
                }
            }
        }
    }
}
