//! Cutting a stretch of text into pieces of limited size.

use super::Tokenizer;
use super::border::{Borders, Level};
use super::grapheme::{
    ceil_char, grapheme_at, grapheme_floor, invisible_length, is_grapheme_border, visible,
};
use super::measure::{Limits, Ruler};
use crate::chunking::SizeUnit;
use crate::document::PageStart;
use crate::sentence::SentenceLanguage;
use std::collections::HashMap;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// A chunk or a section in the making.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Place in the document's text.
    pub(super) bytes: Range<usize>,
    /// Tokens of its text, counted on its own.
    pub(super) tokens: usize,
    /// Header row and delimiter row of the table within which it begins.
    pub(super) header: Option<String>,
}

/// What is cut.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    /// Place in the document's text.
    pub(super) bytes: Range<usize>,
    /// Where the text after the heading lines begins: a piece of headings alone says nothing.
    pub(super) body: usize,
    /// Header of the table within which it begins.
    pub(super) header: Option<String>,
}

/// How texts are read while they are cut.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) text: &'a str,
    pub(super) language: SentenceLanguage,
    pub(super) tokenizer: &'a dyn Tokenizer,
    /// Where the pages begin, in order.
    pub(super) pages: &'a [PageStart],
}

impl Reading<'_> {
    /// The first visible places of the pages that begin within a range, counted from its start.
    fn page_starts(&self, range: &Range<usize>) -> Vec<usize> {
        let from = self.pages.partition_point(|page| page.offset <= range.start);
        let until = self.pages.partition_point(|page| page.offset < range.end);
        let text = &self.text[range.clone()];
        let first_visible = |page: &PageStart| {
            let at = page.offset.checked_sub(range.start)?;
            Some(at + invisible_length(text.get(at..)?))
        };
        self.pages[from..until.max(from)].iter().filter_map(first_visible).collect()
    }
}

/// The pieces of a stretch, in order.
pub(super) fn pieces(reading: &Reading<'_>, stretch: &Stretch, limits: Limits) -> Vec<Piece> {
    let whole = visible(reading.text, stretch.bytes.clone());
    if whole.is_empty() {
        return Vec::new();
    }
    let section = &reading.text[whole.clone()];
    let ruler = Ruler::of(section, limits.unit, reading.tokenizer);
    if ruler.len() <= limits.size {
        let tokens = match limits.unit {
            SizeUnit::Tokens => ruler.len(),
            SizeUnit::Characters => reading.tokenizer.count(section),
        };
        let header = stretch.header.as_deref().map_or(0, |header| reading.tokenizer.count(header) + 1);
        if tokens + header <= limits.tokens {
            return vec![Piece { tokens, bytes: whole, header: stretch.header.clone() }];
        }
    }
    let borders = Borders::of(section, reading.language, stretch.header.as_deref());
    let body =
        visible(reading.text, stretch.body.clamp(whole.start, whole.end)..whole.end).start - whole.start;
    let is_sentence = |at: &usize| borders.sentences().binary_search(at).is_ok();
    let pages = reading.page_starts(&whole).into_iter().filter(is_sentence).collect();
    cut(section, &borders, pages, ruler, body, limits, reading.tokenizer)
        .into_iter()
        .map(|piece| Piece { bytes: whole.start + piece.bytes.start..whole.start + piece.bytes.end, ..piece })
        .collect()
}

/// The pieces of a text that begins and ends visibly, by places in that text.
fn cut(
    text: &str,
    borders: &Borders,
    pages: Vec<usize>,
    ruler: Ruler,
    body: usize,
    limits: Limits,
    tokenizer: &dyn Tokenizer,
) -> Vec<Piece> {
    let mut cutter =
        Cutter { text, borders, pages, body, ruler, limits, tokenizer, header_tokens: HashMap::new() };
    let mut pieces: Vec<Piece> = Vec::new();
    // First byte that is in no piece yet.
    let mut done = 0;
    let mut previous = 0;
    while done < text.len() {
        // What is repeated of the page before would have the piece name two pages.
        let begins_page = cutter.pages.binary_search(&done).is_ok();
        let overlap = if pieces.is_empty() || begins_page { 0 } else { limits.overlap };
        let found = cutter.next(previous, done, overlap);
        done = found.range.end;
        if let Some(tokens) = found.tokens {
            let inner = visible(text, found.range);
            previous = inner.start;
            pieces.push(Piece { tokens, bytes: inner, header: found.header });
        }
        // White space between two pieces belongs to neither.
        done += invisible_length(&text[done..]);
    }
    pieces
}

struct Cutter<'a> {
    text: &'a str,
    borders: &'a Borders,
    /// Starts of pages at which a sentence begins, in order.
    pages: Vec<usize>,
    /// Where the text after the heading lines begins.
    body: usize,
    ruler: Ruler,
    limits: Limits,
    tokenizer: &'a dyn Tokenizer,
    /// Tokens and units of the headers of tables, by where the tables' rows begin.
    header_tokens: HashMap<usize, (usize, usize)>,
}

/// A piece as it was found.
struct Found {
    range: Range<usize>,
    /// `None` if nothing in it is visible.
    tokens: Option<usize>,
    header: Option<String>,
}

/// What a piece may have besides the header that it repeats.
#[derive(Clone, Copy)]
struct Share {
    size: usize,
    tokens: usize,
}

impl Cutter<'_> {
    /// The next piece: it begins after `previous`, where the one before it does, takes up the text at `done`
    /// and goes as far beyond as fits.
    fn next(&mut self, previous: usize, done: usize, mut overlap: usize) -> Found {
        loop {
            let start = if overlap == 0 { done } else { self.overlap_start(previous, done, overlap) };
            let (header, share) = self.header_at(start);
            if let Some((range, tokens)) = self.fill(start, done, share) {
                return Found { range, tokens, header };
            }
            // The overlap leaves no room for anything new: less of it, at last none.
            overlap /= 2;
        }
    }

    /// The piece from `start` that goes beyond `done`, as far as it may; `None` if it does not get there, which
    /// does not happen where both are the same.
    fn fill(&self, start: usize, done: usize, share: Share) -> Option<(Range<usize>, Option<usize>)> {
        // Tokens of a slice can differ from those of the whole; then less is tried until it fits.
        let mut size = share.size;
        loop {
            let end = self.cut(start, size);
            let cuts_grapheme = !is_grapheme_border(self.text, end);
            if end <= done || (cuts_grapheme && start < done) {
                return None;
            }
            if cuts_grapheme && let Some(fitting) = self.first_grapheme(start) {
                return Some(fitting);
            }
            let inner = visible(self.text, start..end);
            if inner.is_empty() {
                return Some((start..end, None));
            }
            let tokens = self.tokenizer.count(&self.text[inner]);
            if tokens <= share.tokens || end <= start + self.code_point(start) {
                return Some((start..end, Some(tokens)));
            }
            let used = self.ruler.between(start, end).min(size);
            // In proportion, for a unit need not be a token.
            let less = used - (used * (tokens - share.tokens) / tokens).max(1).min(used);
            if less == 0 {
                if start < done {
                    return None;
                }
                // Not even one unit is left to take away: the shortest piece there is.
                let end = start + self.code_point(start);
                let tokens = self.tokenizer.count(&self.text[start..end]);
                return Some((start..end, Some(tokens)));
            }
            size = less;
        }
    }

    /// The header that a piece from `start` repeats, and what this leaves to the piece.
    ///
    /// None is repeated that takes more than half of a piece, or with which the row at `start` no longer fits.
    fn header_at(&mut self, start: usize) -> (Option<String>, Share) {
        let whole = Share { size: self.limits.size, tokens: self.limits.tokens };
        let Some(table) = self.borders.table_around(start) else { return (None, whole) };
        let (tokens, units) = *self.header_tokens.entry(table.body.start).or_insert_with(|| {
            let tokens = self.tokenizer.count(&table.header) + 1;
            let units = Ruler::of(&table.header, self.limits.unit, self.tokenizer).len() + 1;
            (tokens, units)
        });
        if tokens * 2 > whole.tokens || units * 2 > whole.size {
            return (None, whole);
        }
        let share = Share { size: whole.size - units, tokens: whole.tokens - tokens };
        let rows = self.borders.items();
        let next = rows.get(rows.partition_point(|at| *at <= start)).copied().unwrap_or(self.text.len());
        let row = self.ruler.between(start, next);
        if row > share.size && row <= whole.size {
            return (None, whole);
        }
        (Some(table.header.clone()), share)
    }

    /// Where a piece that begins at `start` and may have `size` units ends: beyond `start`, always.
    fn cut(&self, start: usize, size: usize) -> usize {
        let first = self.ruler.before(start);
        let Some(limit) = self.ruler.start(first + size) else { return self.text.len() };
        let limit = self.text.floor_char_boundary(limit);
        if let Some(page) =
            self.page_border(start, self.ruler.start(first + size / 2).unwrap_or(limit), limit)
        {
            return page;
        }
        // In the last third of the piece every border of a level is as good as another. With a third, a change in
        // prose without paragraphs makes 4 chunks of 40 new, instead of 15, and there are 16 % more chunks.
        let least = self.ruler.start(first + size - size / 3).unwrap_or(limit);
        for level in &self.borders.levels {
            let Some(border) = self.border(level, start, least, limit) else { continue };
            let after = level.starts.partition_point(|at| *at <= limit);
            let last = after.checked_sub(1).and_then(|at| level.starts.get(at)).copied().unwrap_or(border);
            let next = level.starts.get(after).copied().unwrap_or(self.text.len());
            if self.ruler.between(last, next) > self.limits.size {
                // What stands on the limit does not fit a piece of its own either: it is cut anyway.
                continue;
            }
            let filled = self.ruler.between(start, border);
            if level.may_leave_little || filled * 4 >= size || self.borders.is_kept_whole(border) {
                return border;
            }
        }
        self.word_or_less(start, limit)
    }

    /// The last start of a page from `least` up to `limit`: a piece that ends there is cited by a page less.
    fn page_border(&self, start: usize, least: usize, limit: usize) -> Option<usize> {
        let after = self.pages.partition_point(|at| *at <= limit);
        let from = self.pages[..after].partition_point(|at| *at < least);
        let is_usable = |at: &usize| {
            *at > start && !(start < self.body && *at <= self.body) && self.borders.headed_by(*at).is_none()
        };
        self.pages[from..after].iter().rev().copied().find(|at| is_usable(at))
    }

    /// The border of a level at which a piece from `start` best ends: the last one up to `limit`, unless there are
    /// several from `least` on.
    ///
    /// Of these the text after them chooses, by its hash: so pieces end at the same places after a change before
    /// them, and what follows the change stays as it was. A border after a heading or a table's header gives way to
    /// one before it.
    fn border(&self, level: &Level, start: usize, least: usize, limit: usize) -> Option<usize> {
        let usable = |at: usize| at > start && !(start < self.body && at <= self.body);
        let after = level.starts.partition_point(|at| *at <= limit);
        let from = level.starts[..after].partition_point(|at| *at < least);
        let chosen = level.starts[from..after]
            .iter()
            .copied()
            .filter(|at| usable(*at) && self.borders.headed_by(*at).is_none())
            .min_by_key(|at| (self.fingerprint(*at), std::cmp::Reverse(*at)));
        let border = chosen.or_else(|| level.starts[..after].last().copied().filter(|at| usable(*at)))?;
        // A table's own heading may stand before it.
        let mut head = border;
        while let Some(above) = self.borders.headed_by(head) {
            head = above;
        }
        Some(if usable(head) { head } else { border })
    }

    /// A hash of the text after a border: FNV-1a of 48 bytes.
    fn fingerprint(&self, at: usize) -> u64 {
        let end = (at + 48).min(self.text.len());
        self.text.as_bytes()[at..end].iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The last word border, else grapheme border, else code point after `start` and up to `limit`.
    fn word_or_less(&self, start: usize, limit: usize) -> usize {
        let middle = start + (limit - start) / 2;
        let space = self.last_space(start, limit);
        if let Some(space) = space
            && space > middle
        {
            return space;
        }
        // Scripts without spaces have word borders all the same.
        let from = grapheme_floor(self.text, middle).max(start);
        let until = ceil_char(self.text, limit + 1);
        let word = self.text[from..until]
            .split_word_bound_indices()
            .skip(1)
            .map(|(at, _)| from + at)
            .filter(|at| *at <= limit && is_grapheme_border(self.text, *at))
            .last();
        if let Some(border) = word.or(space) {
            return border;
        }
        let grapheme = grapheme_floor(self.text, limit);
        if grapheme > start {
            grapheme
        } else if limit > start {
            limit
        } else {
            start + self.code_point(start)
        }
    }

    /// The last border after `start` and up to `limit` with white space on one side.
    fn last_space(&self, start: usize, limit: usize) -> Option<usize> {
        let mut after = self.text[limit..].chars().next().is_some_and(char::is_whitespace);
        let mut at = limit;
        for c in self.text[start..limit].chars().rev() {
            if (after || c.is_whitespace()) && is_grapheme_border(self.text, at) {
                return Some(at);
            }
            after = c.is_whitespace();
            at -= c.len_utf8();
        }
        None
    }

    /// Where the overlap of at most `overlap` units before `done` begins: a sentence, else a word, after
    /// `floor`.
    fn overlap_start(&self, floor: usize, done: usize, overlap: usize) -> usize {
        let first_new = self.ruler.before(done);
        let earliest = first_new.checked_sub(overlap).and_then(|at| self.ruler.start(at));
        let earliest = ceil_char(self.text, earliest.unwrap_or(0).max(floor + 1)).min(done);
        let sentences = self.borders.sentences();
        let at = sentences.partition_point(|start| *start < earliest);
        if let Some(&sentence) = sentences.get(at)
            && sentence < done
        {
            return sentence;
        }
        // Half a table row repeated says less than none.
        let lines = self.borders.lines();
        let line = lines.partition_point(|start| *start <= earliest).checked_sub(1).map(|at| lines[at]);
        if line.is_some_and(|start| self.text[start..].trim_start().starts_with('|')) {
            return done;
        }
        let in_word = !self.text[..earliest].ends_with(char::is_whitespace);
        self.text[earliest..done]
            .split_word_bound_indices()
            .skip(usize::from(in_word))
            .map(|(at, word)| (earliest + at, word))
            .find(|(at, word)| word.contains(char::is_alphanumeric) && is_grapheme_border(self.text, *at))
            .map_or(done, |(at, _)| at)
    }

    /// The grapheme at `start` as a piece, if it fits one.
    fn first_grapheme(&self, start: usize) -> Option<(Range<usize>, Option<usize>)> {
        let end = start + grapheme_at(self.text, start).len();
        let inner = visible(self.text, start..end);
        if inner.is_empty() {
            return (end > start).then_some((start..end, None));
        }
        let tokens = self.tokenizer.count(&self.text[inner]);
        (tokens <= self.limits.tokens).then_some((start..end, Some(tokens)))
    }

    fn code_point(&self, at: usize) -> usize {
        self.text[at..].chars().next().map_or(1, char::len_utf8)
    }
}
