//! Texts that say the same in nearly the same words.
//!
//! Two texts are near-duplicates where more than 0.8 of their shingles, runs of three words, are common (Jaccard), and the
//! words with digits are the same, those of title and headings among them: a manual of two machines that differ in a
//! number or a code says two things.
//!
//! Source: Broder, "On the resemblance and containment of documents", 1997; candidates by prefix filtering: Bayardo, Ma and
//! Srikant, "Scaling up all pairs similarity search", WWW 2007.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Words of a shingle.
const WIDTH: usize = 3;

/// Texts are near-duplicates above this share of common shingles, in tenths.
const MOST_ALIKE: usize = 8;

/// Texts that are kept, each of which is no near-duplicate of one before it.
#[derive(Default)]
pub struct DistinctTexts {
    /// By the hash of their words with digits: where these differ, there is nothing to compare.
    by_numbers: HashMap<u64, Alike>,
    count: usize,
}

impl DistinctTexts {
    /// Keeps a text, unless it is a near-duplicate of one that is kept: then the number of that one, from 0. Of what stands
    /// above the text, its title and headings, words with digits count. Costs a look for digits, and more only where
    /// others have the same words with digits.
    pub fn admit(&mut self, above: &str, text: &str) -> Option<usize> {
        let mut numbers = Vec::new();
        for text in [above, text] {
            for_each_number(text, |hash| numbers.push(hash));
        }
        numbers.sort_unstable();
        let found = self.by_numbers.entry(hash_of(&numbers)).or_default().admit(self.count, text);
        self.count += usize::from(found.is_none());
        found
    }
}

/// Kept texts with the same words with digits.
#[derive(Default)]
struct Alike {
    /// The only one, which is compared with none yet.
    only: Option<(usize, String)>,
    kept: Vec<(usize, Shingles)>,
    /// Places in `kept` by the shingles that a near-duplicate must have one of.
    by_prefix: HashMap<u64, Vec<usize>, BuildHasherDefault<AsItIs>>,
}

impl Alike {
    fn admit(&mut self, number: usize, text: &str) -> Option<usize> {
        if self.only.is_none() && self.kept.is_empty() {
            self.only = Some((number, text.to_owned()));
            return None;
        }
        if let Some((first, text)) = self.only.take() {
            self.keep(first, Shingles::of(&text));
        }
        let shingles = Shingles::of(text);
        let similar: BTreeSet<usize> =
            shingles.prefix().iter().filter_map(|hash| self.by_prefix.get(hash)).flatten().copied().collect();
        let found =
            similar.into_iter().map(|place| &self.kept[place]).find(|(_, kept)| kept.is_near(&shingles));
        if let Some((number, _)) = found {
            return Some(*number);
        }
        self.keep(number, shingles);
        None
    }

    fn keep(&mut self, number: usize, shingles: Shingles) {
        for hash in shingles.prefix() {
            self.by_prefix.entry(*hash).or_default().push(self.kept.len());
        }
        self.kept.push((number, shingles));
    }
}

/// For keys that are hashes.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = step(self.0, u32::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Hashes of the shingles of a text, in rising order, each once.
struct Shingles(Vec<u64>);

impl Shingles {
    fn of(text: &str) -> Self {
        let mut words = Vec::with_capacity(text.len() / 6);
        for_each_word(text, |hash| words.push(hash));
        let mut hashes: Vec<u64> = words.windows(WIDTH.min(words.len()).max(1)).map(hash_of).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self(hashes)
    }

    /// The first ones, of which two near-duplicates have at least one in common: of `n`, fewer than `0.2 n` may be
    /// missing from the other.
    fn prefix(&self) -> &[u64] {
        let most_missing = self.0.len() * (10 - MOST_ALIKE) / 10;
        &self.0[..(most_missing + 1).min(self.0.len())]
    }

    fn is_near(&self, other: &Self) -> bool {
        let (own, others) = (&self.0, &other.0);
        let (mut a, mut b, mut common) = (0, 0, 0);
        while let (Some(x), Some(y)) = (own.get(a), others.get(b)) {
            common += usize::from(x == y);
            a += usize::from(x <= y);
            b += usize::from(y <= x);
        }
        let all = own.len() + others.len() - common;
        common * 10 > all * MOST_ALIKE
    }
}

fn hash_of(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |all: u64, hash| mixed(all.rotate_left(5) ^ hash))
}

/// Calls `sink` with the hash of each word, in small letters.
fn for_each_word(text: &str, mut sink: impl FnMut(u64)) {
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let end = end_of_word(rest);
        sink(hash_of_word(&rest[..end]));
        rest = &rest[end..];
    }
}

/// Calls `sink` with the hash of each word that has a digit, in small letters. Where there are none, this costs a look at
/// each byte.
fn for_each_number(text: &str, mut sink: impl FnMut(u64)) {
    let is_ascii = text.is_ascii();
    let mut from = 0;
    loop {
        let rest = &text[from..];
        let found = match is_ascii {
            true => rest.bytes().position(|byte| byte.is_ascii_digit()),
            false => rest.find(char::is_numeric),
        };
        let Some(digit) = found else { return };
        let letters = rest[..digit].char_indices().rev();
        let before = letters.take_while(|(_, c)| c.is_alphanumeric() && !is_unspaced(*c)).last();
        let is_alone = rest[digit..].chars().next().is_some_and(is_unspaced);
        let start = from + before.filter(|_| !is_alone).map_or(digit, |(at, _)| at);
        from = start + end_of_word(&text[start..]);
        sink(hash_of_word(&text[start..from]));
    }
}

/// Where the word ends that a text begins with. A point or comma between digits is part of a number; of scripts without
/// spaces between words, each character is a word.
fn end_of_word(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else { return 0 };
    if is_unspaced(first) {
        return first.len_utf8();
    }
    for (at, character) in characters {
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let joins = matches!(character, '.' | ',') && is_digit(at - 1) && is_digit(at + 1);
        if !joins && (!character.is_alphanumeric() || is_unspaced(character)) {
            return at;
        }
    }
    text.len()
}

/// FNV-1a of a word in small letters, spread over all bits.
fn hash_of_word(word: &str) -> u64 {
    if word.is_ascii() {
        return mixed(
            word.bytes().fold(BASIS, |hash, byte| step(hash, u32::from(byte.to_ascii_lowercase()))),
        );
    }
    let small = word.chars().flat_map(char::to_lowercase);
    mixed(small.fold(BASIS, |hash, character| step(hash, u32::from(character))))
}

/// Where the hash of a word begins: FNV-1a's.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash with a further character, by FNV-1a: words are short, and what is compared is not secret.
fn step(hash: u64, character: u32) -> u64 {
    (hash ^ u64::from(character)).wrapping_mul(0x0100_0000_01b3)
}

/// Spreads a hash over all bits. Source: the finalizer of Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Thai, Lao, Myanmar, Khmer, kana and Han, which put no spaces between words.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
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
    fn a_number_keeps_its_point_and_its_place_does_not_matter() {
        let with = |numbers: &str| format!("{TEXT} {numbers}");
        assert_eq!(
            admitted(&[&with("1.5 mm"), &with("5.1 mm"), &with("1,5 mm"), &with("1.5 mm, mm")]),
            [None, None, None, Some(0)]
        );
    }

    #[test]
    fn texts_without_digits_are_told_from_many_others() {
        let texts: Vec<String> =
            ('a'..='z').map(|first| TEXT.replace("the ", &format!("the {first} "))).collect();
        let mut distinct = DistinctTexts::default();
        assert!(texts.iter().all(|text| distinct.admit("", text).is_none()));
        assert_eq!(distinct.admit("", &texts[17].to_uppercase()), Some(17));
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
                let shingles = Shingles::of(text);
                let expected = kept.iter().position(|other| other.is_near(&shingles));
                prop_assert_eq!(distinct.admit("", text), expected, "{:?}", text);
                if expected.is_none() {
                    kept.push(shingles);
                }
            }
        }
    }
}
