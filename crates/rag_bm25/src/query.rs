//! What a user typed: words, "phrases", +must and -not.
//!
//! Nothing is a syntax error. Words are alternatives; a `+` directly before a word or a quote makes it a
//! condition, a single `-` excludes it, and a quote left open runs to the end. A word of several terms
//! (`pg_dump`, `FC-001-234`) is scored by its parts and, where it is a code, as a whole; as a condition its
//! parts must stand next to each other. Stop words are not indexed and so are left out wherever they stand: a
//! query of stop words only is empty, and an empty query matches nothing, like one that only excludes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::analyser::{Analyser, Beginnings, TermKind};
use crate::{Correction, Language};

/// The most distinct terms, and the most places in phrases, that a query keeps: the first ones.
pub const MAX_TERMS: usize = 1024;

/// The most pairs of words that a query keeps: the first ones.
const MAX_PAIRS: usize = 32;

/// Words of a pair stand at most this far apart.
const MAX_DISTANCE: u32 = 3;

/// A word typed more often than this counts no further.
const MAX_COUNT: u32 = 255;

/// A query ready to be searched with, in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub(crate) language: Language,
    pub(crate) terms: Vec<QueryTerm>,
    pub(crate) phrases: Vec<Phrase>,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) required: Vec<Operand>,
    pub(crate) excluded: Vec<Operand>,
}

/// A distinct term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryTerm {
    pub(crate) text: String,
    /// How often it counts towards the score by itself; 0 if it only stands in phrases or conditions.
    pub(crate) count: u32,
    /// Whether it was added to what was typed; see [`Query::with_more`].
    pub(crate) is_added: bool,
}

/// Terms at fixed distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// Index into the query's terms, and distance from the first place of the phrase.
    pub(crate) places: Vec<(usize, u32)>,
    /// How often it counts towards the score; 0 if it is only a condition.
    pub(crate) count: u32,
}

/// Two words that follow each other in the query, outside of quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    /// Indexes into the query's terms.
    pub(crate) terms: [usize; 2],
    /// How many words the second is behind the first: stop words may stand between.
    pub(crate) distance: u32,
}

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Index into the query's terms.
    Term(usize),
    /// Index into the query's phrases.
    Phrase(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plain,
    Required,
    Excluded,
}

impl Query {
    /// Reads what a user typed. Never fails; cost is linear in the text.
    pub fn parse(text: &str, language: Language) -> Query {
        let empty = Query {
            language,
            terms: vec![],
            phrases: vec![],
            pairs: vec![],
            required: vec![],
            excluded: vec![],
        };
        let mut parser = Parser {
            query: empty,
            term_index: HashMap::new(),
            phrase_index: HashMap::new(),
            analyser: Analyser::of(language),
            places: 0,
            position: 0,
            last: None,
        };
        let mut rest = text;
        while let Some((sign, quoted, words, after)) = next_piece(rest) {
            parser.piece(sign, quoted, words);
            rest = after;
        }
        parser.query
    }

    /// Whether the query cannot match anything: no words, stop words only, or exclusions only.
    pub fn is_empty(&self) -> bool {
        self.terms.iter().all(|term| term.count == 0) && self.phrases.iter().all(|phrase| phrase.count == 0)
    }

    /// Whether a text has words that tell what is looked for: one that is no stop word, one in double quotes, a number
    /// or code, or a sole word of one or two capitals (`C`, `IT`), which is a name.
    pub fn has_content(text: &str, language: Language) -> bool {
        let mut words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
        let sole = words
            .next()
            .filter(|_| words.next().is_none())
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        if sole.is_some_and(|word| word.chars().count() <= 2 && word.chars().all(char::is_uppercase)) {
            return true;
        }
        let quoted = text.split('"').skip(1).step_by(2);
        if text.contains(char::is_numeric)
            || quoted.into_iter().any(|part| part.contains(char::is_alphanumeric))
        {
            return true;
        }
        let mut found = false;
        Analyser::of(language).analyse(text, |_| found = true);
        found
    }

    /// The query with more words that an entry may have instead of its own. They count a fiftieth: they find what has none of
    /// the query's own, and hardly change the order of what has some.
    #[must_use]
    pub fn with_more(mut self, words: &str) -> Query {
        let mut known: HashSet<String> = self.terms.iter().map(|term| term.text.clone()).collect();
        Analyser::of(self.language).analyse(words, |term| {
            let is_new = term.kind != TermKind::Character && self.terms.len() < MAX_TERMS;
            if is_new && known.insert(term.text.to_owned()) {
                self.terms.push(QueryTerm { text: term.text.to_owned(), count: 1, is_added: true });
            }
        });
        self
    }

    /// The query with other terms in place of some, as far as they are of its language.
    #[must_use]
    pub fn corrected(mut self, corrections: &[Correction]) -> Query {
        for correction in corrections.iter().filter(|correction| correction.language == self.language) {
            for term in self.terms.iter_mut().filter(|term| term.text == correction.from) {
                term.text.clone_from(&correction.to);
            }
        }
        self
    }

    /// The language that the words were analysed in.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Where in `text` words of this query stand; see [`Marker::mark`].
    pub fn highlight(&self, text: &str, language: Language) -> Vec<Range<usize>> {
        self.marker(language).mark(text)
    }

    /// What finds the words of this query in texts of a language. Excluded words are left out. Words of phrases are
    /// marked wherever they stand.
    pub fn marker(&self, language: Language) -> Marker {
        let scored = self.terms.iter().filter(|term| term.count > 0).map(|term| term.text.as_str());
        let in_phrases =
            self.phrases.iter().filter(|phrase| phrase.count > 0).flat_map(|phrase| &phrase.places);
        let in_phrases = in_phrases.map(|(term, _)| self.terms[*term].text.as_str());
        let wanted: BTreeSet<String> = scored.chain(in_phrases).map(str::to_owned).collect();
        // The English stemmer, like none at all, keeps a word's beginning: most words need not be stemmed to see that
        // they are none of these.
        let beginnings = match language {
            Language::English | Language::Simple => Beginnings::of(wanted.iter().map(String::as_str)),
            _ => Beginnings::all(),
        };
        Marker { wanted, beginnings, analyser: Analyser::of(language) }
    }
}

/// Finds the words of a query in texts.
pub struct Marker {
    wanted: BTreeSet<String>,
    beginnings: Beginnings,
    analyser: &'static Analyser,
}

impl Marker {
    /// Where in `text` the words stand: byte ranges in rising order that neither overlap nor touch within a word.
    pub fn mark(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        if self.wanted.is_empty() {
            return spans;
        }
        self.analyser.analyse_where(text, &self.beginnings, |term| {
            if !self.wanted.contains(term.text) {
                return;
            }
            match spans.last_mut() {
                // Terms come by position, so a later one can only start within or after the last span.
                Some(last) if term.span.start < last.end => last.end = last.end.max(term.span.end),
                _ => spans.push(term.span),
            }
        });
        spans
    }
}

struct Parser {
    query: Query,
    term_index: HashMap<String, usize>,
    phrase_index: HashMap<Vec<(usize, u32)>, usize>,
    analyser: &'static Analyser,
    /// Places in phrases so far.
    places: usize,
    /// Words outside of quotes so far.
    position: u32,
    /// The last word, and its position.
    last: Option<(usize, u32)>,
}

impl Parser {
    fn piece(&mut self, sign: Sign, quoted: bool, words: &str) {
        if quoted || sign == Sign::Excluded {
            self.last = None;
        }
        if quoted {
            let places = self.places_of(words);
            self.operand(places, sign, true);
            return;
        }
        if sign != Sign::Excluded {
            let (analyser, before) = (self.analyser, self.position);
            let count = analyser.analyse(words, |term| {
                if term.kind == TermKind::Character {
                    return;
                }
                if let Some(index) = self.intern(term.text) {
                    let count = &mut self.query.terms[index].count;
                    *count = (*count + 1).min(MAX_COUNT);
                    if term.kind == TermKind::Word {
                        self.word(index, before.saturating_add(term.position));
                    }
                }
            });
            self.position = before.saturating_add(count);
        }
        if sign != Sign::Plain {
            let places = self.places_of(words);
            self.operand(places, sign, false);
        }
    }

    /// Notes a word that stands outside of quotes, and that it follows another one.
    fn word(&mut self, index: usize, position: u32) {
        if let Some((last, at)) = self.last.replace((index, position)) {
            let pair = Pair { terms: [last, index], distance: position - at };
            let is_near = (1..=MAX_DISTANCE).contains(&pair.distance);
            let pairs = &mut self.query.pairs;
            if is_near && last != index && pairs.len() < MAX_PAIRS && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }

    /// The words of a phrase, without the codes that are also kept whole.
    fn places_of(&mut self, words: &str) -> Vec<(usize, u32)> {
        let mut places = Vec::new();
        let mut first = None;
        let analyser = self.analyser;
        analyser.analyse(words, |term| {
            if term.kind != TermKind::Word || self.places + places.len() >= MAX_TERMS {
                return;
            }
            if let Some(index) = self.intern(term.text) {
                let first = *first.get_or_insert(term.position);
                places.push((index, term.position - first));
            }
        });
        self.places += places.len();
        places
    }

    /// Adds a phrase, or the term that is left of it, to the score and to the conditions.
    fn operand(&mut self, places: Vec<(usize, u32)>, sign: Sign, is_scored: bool) {
        let add = u32::from(is_scored && sign != Sign::Excluded);
        let operand = match places.as_slice() {
            [] => return,
            [(term, _)] => {
                let count = &mut self.query.terms[*term].count;
                *count = (*count + add).min(MAX_COUNT);
                Operand::Term(*term)
            }
            _ => {
                let phrases = &mut self.query.phrases;
                let index = *self.phrase_index.entry(places).or_insert_with_key(|places| {
                    phrases.push(Phrase { places: places.clone(), count: 0 });
                    phrases.len() - 1
                });
                phrases[index].count = (phrases[index].count + add).min(MAX_COUNT);
                Operand::Phrase(index)
            }
        };
        let list = match sign {
            Sign::Plain => return,
            Sign::Required => &mut self.query.required,
            Sign::Excluded => &mut self.query.excluded,
        };
        if !list.contains(&operand) {
            list.push(operand);
        }
    }

    fn intern(&mut self, text: &str) -> Option<usize> {
        if let Some(index) = self.term_index.get(text) {
            return Some(*index);
        }
        let index = self.query.terms.len();
        if index == MAX_TERMS {
            return None;
        }
        self.query.terms.push(QueryTerm { text: text.to_owned(), count: 0, is_added: false });
        self.term_index.insert(text.to_owned(), index);
        Some(index)
    }
}

/// The next word or quotation of `text`: its sign, whether it is quoted, what it says, and the text after it.
fn next_piece(text: &str) -> Option<(Sign, bool, &str, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    let after_first = &text[first.len_utf8()..];
    let binds = after_first.starts_with(|next: char| next.is_alphanumeric() || is_quote(next));
    let (sign, body) = match first {
        '+' if binds => (Sign::Required, after_first),
        '-' | '\u{2212}' if binds => (Sign::Excluded, after_first),
        _ => (Sign::Plain, text),
    };
    if let Some(quote) = body.chars().next().filter(|first| is_quote(*first)) {
        let inside = &body[quote.len_utf8()..];
        let end = inside.find(is_quote).unwrap_or(inside.len());
        let after = inside[end..].chars().next().map_or("", |close| &inside[end + close.len_utf8()..]);
        return Some((sign, true, &inside[..end], after));
    }
    let end = body.find(|c: char| c.is_whitespace() || is_quote(c)).unwrap_or(body.len());
    Some((sign, false, &body[..end], &body[end..]))
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\u{201c}'..='\u{201f}' | '«' | '»' | '\u{ff02}')
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
