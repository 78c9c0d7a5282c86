//! Text to terms: words, codes and characters with their positions.
//!
//! Text is cut into *runs*: words joined by the characters that codes are made of (`FC-001-234`, `pg_dump`,
//! `10.0.0.1`, `a@b.org`). Each word of a run is a term with a position of its own, folded, stemmed and
//! dropped when it is a stop word. A run that looks like a code is also kept whole, unstemmed, at the
//! position of its first word, so phrases work across it. Scripts without spaces between words give character
//! pairs, and each character by itself so that a single one can be found.
//!
//! The same code runs over documents and queries; what a query does with the terms is left to `query`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

use rag_core::words::Stemmer;
use unicode_normalization::char::is_combining_mark;

use crate::Language;
use crate::normal_form::{fold_accents, push_normalised};

/// The version of the terms that an entry gives. A segment of another version still opens and can be searched,
/// but should be built again: its terms may differ from those of a query.
pub const ANALYSER_VERSION: u32 = 2;

/// Longer terms (in bytes of UTF-8) are dropped; their position stays taken.
pub(crate) const MAX_TERM_BYTES: usize = 255;

/// The most characters that may join two words of one run, as in `https://host`.
const MAX_CONNECTORS: usize = 3;

/// What a term stands for in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A word, or a pair of characters in a script without spaces.
    Word,
    /// A code kept whole, at the position of its first word.
    Whole,
    /// One character of a longer run in a script without spaces. Queries leave it out: the pairs say more.
    Character,
}

/// One term of a text.
#[derive(Debug)]
pub(crate) struct Term<'a> {
    pub(crate) text: &'a str,
    pub(crate) kind: TermKind,
    /// Counts words, stop words included, from 0. Never falls from one term to the next.
    pub(crate) position: u32,
    /// Where in the text it stands, in bytes.
    pub(crate) span: Range<usize>,
}

/// Turns text of one language into terms.
pub(crate) struct Analyser {
    stop_words: HashSet<String>,
    longest_stop_word: usize,
    stemmer: Option<Stemmer>,
    /// English keeps `don't` and `John's` in one word; elsewhere an apostrophe ends a word (`l'avion`).
    keeps_apostrophe: bool,
}

impl Analyser {
    /// The one analyser of `language` in this process.
    pub(crate) fn of(language: Language) -> &'static Analyser {
        static ANALYSERS: [OnceLock<Analyser>; 31] = [const { OnceLock::new() }; 31];
        ANALYSERS[usize::from(language.code())].get_or_init(|| Analyser::new(language))
    }

    fn new(language: Language) -> Analyser {
        let stop_words: HashSet<String> = (language.stop_words().iter())
            .map(|word| {
                let mut normal = String::new();
                push_normalised(word, &mut normal);
                normal
            })
            .collect();
        Analyser {
            longest_stop_word: stop_words.iter().map(String::len).max().unwrap_or(0),
            stop_words,
            stemmer: language.stemmer(),
            keeps_apostrophe: language == Language::English,
        }
    }

    /// Calls `sink` with each term of `text`, in the order of positions, and gives the number of positions. Cost is linear in
    /// the text.
    pub(crate) fn analyse(&self, text: &str, sink: impl FnMut(Term<'_>)) -> u32 {
        static ALL: Beginnings = Beginnings::all();
        self.analyse_where(text, &ALL, sink)
    }

    /// [`Self::analyse`] without words that begin otherwise, which are neither normalised nor stemmed.
    pub(crate) fn analyse_where(
        &self,
        text: &str,
        beginnings: &Beginnings,
        mut sink: impl FnMut(Term<'_>),
    ) -> u32 {
        let mut scan =
            Scan { analyser: self, beginnings, text, position: 0, buffer: String::new(), words: Vec::new() };
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            if let Some(end) = scan.unwanted_word(at) {
                at = end;
                continue;
            }
            let Some(character) = text[at..].chars().next() else { break };
            at = if !is_word_character(character) {
                at + character.len_utf8()
            } else if is_unspaced(character) {
                scan.unspaced_run(at, &mut sink)
            } else {
                scan.word_run(at, &mut sink)
            };
        }
        scan.position
    }

    fn is_stop_word(&self, word: &str) -> bool {
        word.len() <= self.longest_stop_word && self.stop_words.contains(word)
    }
}

/// How words begin that are wanted: by the first two letters. What is not ASCII always is wanted, for what it becomes
/// is not known before the word is normalised.
pub(crate) struct Beginnings {
    /// By the first byte, the kinds of the second one, a bit each.
    seconds: [u64; 256],
}

/// The kind of a second byte that is neither a letter nor a digit, of the same word or beyond its end.
const OTHER: u8 = 36;

/// The kind of each byte: small and large letters are of one.
static KINDS: [u8; 256] = {
    let mut kinds = [OTHER; 256];
    let mut place = 0;
    while place < 26 {
        kinds[b'a' as usize + place] = place as u8;
        kinds[b'A' as usize + place] = place as u8;
        place += 1;
    }
    while place < 36 {
        kinds[b'0' as usize + place - 26] = place as u8;
        place += 1;
    }
    // Dying and die.
    kinds[b'y' as usize] = kinds[b'i' as usize];
    kinds[b'Y' as usize] = kinds[b'i' as usize];
    kinds
};

impl Beginnings {
    /// All words.
    pub(crate) const fn all() -> Self {
        Self { seconds: [u64::MAX; 256] }
    }

    /// Words whose terms may be among these: in languages whose stemmers keep the first two letters, but for a `y`
    /// that becomes an `i`.
    pub(crate) fn of<'t>(terms: impl Iterator<Item = &'t str>) -> Self {
        let mut seconds = [u64::MAX; 256];
        seconds[..128].fill(0);
        for term in terms {
            let mut bytes = term.bytes();
            let Some(first) = bytes.next() else { continue };
            if !first.is_ascii() {
                return Self::all();
            }
            let wanted = match bytes.next().map(|second| KINDS[usize::from(second)]) {
                // Little is left of the word, which may have been longer.
                None | Some(OTHER) => u64::MAX,
                Some(kind) => 1 << kind | 1 << OTHER,
            };
            for first in [first.to_ascii_lowercase(), first.to_ascii_uppercase()] {
                seconds[usize::from(first)] |= wanted;
            }
        }
        Self { seconds }
    }

    /// Whether a word may be wanted that begins with these bytes; what follows the word does not matter.
    fn allow(&self, word: &[u8]) -> bool {
        let Some(first) = word.first() else { return true };
        let second = word.get(1).map_or(OTHER, |byte| KINDS[usize::from(*byte)]);
        self.seconds[usize::from(*first)] >> second & 1 == 1
    }
}

/// One pass over a text.
struct Scan<'a> {
    analyser: &'a Analyser,
    beginnings: &'a Beginnings,
    text: &'a str,
    position: u32,
    buffer: String,
    words: Vec<Range<usize>>,
}

impl Scan<'_> {
    /// Passes over a word of ASCII that is not wanted and stands by itself, with white space or the end of a sentence
    /// behind it: most of a text where a few words are looked for. Gives the byte after it.
    fn unwanted_word(&mut self, start: usize) -> Option<usize> {
        let rest = &self.text.as_bytes()[start..];
        if self.beginnings.allow(rest) {
            return None;
        }
        let is_part = |byte: &u8| KINDS[usize::from(*byte)] != OTHER;
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let is_alone = match &rest[length..] {
            [] | [b' ' | b'\n' | b',' | b';' | b')', ..] => true,
            [b'.' | b':', after, ..] => matches!(after, b' ' | b'\n'),
            _ => false,
        };
        if !is_alone {
            return None;
        }
        self.position = self.position.saturating_add(1);
        Some(start + length)
    }

    /// Takes the run of words that starts at byte `start`; gives the byte after it.
    fn word_run(&mut self, start: usize, sink: &mut impl FnMut(Term<'_>)) -> usize {
        self.words.clear();
        let mut end = self.word_end(start);
        self.words.push(start..end);
        while let Some(next) = self.next_word(end) {
            end = self.word_end(next);
            self.words.push(next..end);
        }
        let whole = start..end + self.code_suffix(end);
        if self.is_code(&whole) {
            self.buffer.clear();
            push_normalised(&self.text[whole.clone()], &mut self.buffer);
            fold_accents(&mut self.buffer);
            if self.buffer.len() <= MAX_TERM_BYTES {
                let position = self.position;
                sink(Term { text: &self.buffer, kind: TermKind::Whole, position, span: whole.clone() });
            }
        }
        for at in 0..self.words.len() {
            self.word(self.words[at].clone(), sink);
        }
        whole.end
    }

    /// Gives one word to `sink`, unless nothing of it is left or it is a stop word.
    fn word(&mut self, span: Range<usize>, sink: &mut impl FnMut(Term<'_>)) {
        let position = self.position;
        self.position = self.position.saturating_add(1);
        if !self.beginnings.allow(&self.text.as_bytes()[span.clone()]) {
            return;
        }
        self.buffer.clear();
        push_normalised(&self.text[span.clone()], &mut self.buffer);
        if self.analyser.is_stop_word(&self.buffer) {
            return;
        }
        // Stemmers are made for words: `ps2s` and `0xffed` are names.
        let is_plain =
            self.buffer.len() <= MAX_TERM_BYTES && !self.buffer.bytes().any(|b| b.is_ascii_digit());
        if let (Some(stemmer), true) = (self.analyser.stemmer, is_plain)
            && let Cow::Owned(stem) = stemmer.stem(&self.buffer)
        {
            self.buffer = stem;
        }
        fold_accents(&mut self.buffer);
        if !self.buffer.is_empty() && self.buffer.len() <= MAX_TERM_BYTES {
            sink(Term { text: &self.buffer, kind: TermKind::Word, position, span });
        }
    }

    /// Takes the run of unspaced script that starts at byte `start`; gives the byte after it.
    fn unspaced_run(&mut self, start: usize, sink: &mut impl FnMut(Term<'_>)) -> usize {
        let mut characters = self.text[start..].char_indices().map(|(at, c)| (start + at, c)).peekable();
        let mut end = start;
        while let Some((at, character)) = characters.next() {
            if !(is_unspaced(character) && is_word_character(character)) {
                break;
            }
            let is_first = at == start;
            end = at + character.len_utf8();
            let following = characters.peek().map(|(_, next)| *next);
            let following = following.filter(|next| is_unspaced(*next) && is_word_character(*next));
            let kind = if is_first && following.is_none() { TermKind::Word } else { TermKind::Character };
            self.characters(at..end, kind, sink);
            if let Some(next) = following {
                self.characters(at..end + next.len_utf8(), TermKind::Word, sink);
            }
            self.position = self.position.saturating_add(1);
        }
        end
    }

    fn characters(&mut self, span: Range<usize>, kind: TermKind, sink: &mut impl FnMut(Term<'_>)) {
        self.buffer.clear();
        push_normalised(&self.text[span.clone()], &mut self.buffer);
        if !self.buffer.is_empty() {
            sink(Term { text: &self.buffer, kind, position: self.position, span });
        }
    }

    /// The byte after the word that starts at byte `start`.
    fn word_end(&self, start: usize) -> usize {
        // Most words of most languages are nothing else, and bytes are cheaper to look at than characters.
        let start =
            start + self.text.as_bytes()[start..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let mut characters = self.text[start..].char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let is_inside = (is_word_character(character) && !is_unspaced(character))
                || (self.analyser.keeps_apostrophe
                    && matches!(character, '\'' | '\u{2019}')
                    && characters
                        .peek()
                        .is_some_and(|(_, next)| next.is_alphabetic() && !is_unspaced(*next)));
            if !is_inside {
                return start + at;
            }
        }
        self.text.len()
    }

    /// Where the next word of the same run starts, if only connectors stand between.
    fn next_word(&self, end: usize) -> Option<usize> {
        for (count, (at, character)) in self.text[end..].char_indices().enumerate() {
            if is_word_character(character) {
                return (count > 0 && !is_unspaced(character)).then_some(end + at);
            }
            if count == MAX_CONNECTORS || !is_connector(character) {
                return None;
            }
        }
        None
    }

    /// Bytes of a suffix that belongs to the name, as in `C++` and `F#`: only after one short word.
    fn code_suffix(&self, end: usize) -> usize {
        let [word] = self.words.as_slice() else { return 0 };
        let name = &self.text[word.clone()];
        if name.len() > 3 || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return 0;
        }
        let rest = &self.text[end..];
        let suffix = ["++", "#"].into_iter().find(|suffix| rest.starts_with(suffix)).map_or(0, str::len);
        let is_last = rest[suffix..].chars().next().is_none_or(|next| !is_word_character(next));
        if is_last { suffix } else { 0 }
    }

    /// Whether a run is worth keeping whole: it has a suffix, or several words joined like a name, a path, an
    /// address or a number. `double-blind` and `and/or` are not.
    fn is_code(&self, whole: &Range<usize>) -> bool {
        let Some(last) = self.words.last() else { return false };
        if whole.end > last.end {
            return true;
        }
        if self.words.len() < 2 || whole.len() > 4 * MAX_TERM_BYTES {
            return false;
        }
        let text = &self.text[whole.clone()];
        let has_sign =
            text.contains(['_', '.', '@', '\\', '#']) || text.contains("::") || text.contains("//");
        has_sign
            || text.bytes().any(|byte| byte.is_ascii_digit())
            || text.matches('/').count() > 1
            || self.text[..whole.start].ends_with('/')
    }
}

fn is_word_character(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    // Soft hyphens and joiners stand inside words and do not show.
    character.is_alphanumeric()
        || matches!(character, '\u{ad}' | '\u{200c}' | '\u{200d}')
        || is_combining_mark(character)
}

fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_' | '.' | '/' | '\\' | ':' | '@' | '+' | '#' | '\u{2010}' | '\u{2011}')
}

/// Whether the character belongs to a script that does not put spaces between words, or, like Hangul, is
/// better found by pairs of characters: Thai, Lao, Myanmar, Khmer, kana, Han, Hangul.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
#[path = "analyser_tests.rs"]
mod tests;
