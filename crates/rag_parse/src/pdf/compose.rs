//! From blocks to Markdown: lines joined to paragraphs, words parted at line ends put together again, and the
//! first character of each page noted, wherever in a paragraph or word it stands.

use super::block::{Block, Kind};
use super::column::Line;
use super::script;
use crate::writer::Writer;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Writes a document's blocks.
pub(super) fn write(blocks: &[Block], writer: &mut Writer) {
    let words = Words::of(blocks);
    let mut page = Pages { last: None };
    let mut open_lists: Vec<f32> = Vec::new();
    for block in blocks {
        if writer.is_full() {
            return;
        }
        let Kind::Item(marker, length) = &block.kind else {
            end_lists(writer, &mut open_lists, 0);
            write_block(block, &words, &mut page, writer);
            continue;
        };
        let left = block.lines[0].left;
        let tolerance = 0.6 * block.lines[0].size;
        let depth = open_lists.iter().take_while(|open| **open < left - tolerance).count();
        let is_first = depth >= open_lists.len();
        end_lists(writer, &mut open_lists, depth);
        page.begin(block.lines[0].page, writer);
        if depth == 0 && is_first {
            writer.structure();
        } else if is_first {
            writer.structure_line();
        }
        writer.item(marker.clone(), is_first);
        open_lists.push(left);
        write_lines(&block.lines, *length, &words, &mut page, writer);
    }
    end_lists(writer, &mut open_lists, 0);
}

fn end_lists(writer: &mut Writer, open: &mut Vec<f32>, depth: usize) {
    while open.len() > depth {
        open.pop();
        writer.end_item();
    }
    if depth == 0 {
        writer.block();
    }
}

/// Tells the writer where pages begin.
struct Pages {
    last: Option<usize>,
}

impl Pages {
    fn begin(&mut self, page: usize, writer: &mut Writer) {
        if self.last != Some(page) {
            self.last = Some(page);
            writer.page(page as u32 + 1);
        }
    }
}

fn write_block(block: &Block, words: &Words, page: &mut Pages, writer: &mut Writer) {
    match &block.kind {
        Kind::Heading(level) => {
            page.begin(block.lines[0].page, writer);
            writer.begin_flat(true);
            write_lines(&block.lines, 0, words, page, writer);
            let title = writer.end_flat();
            writer.heading(*level, title);
        }
        Kind::Paragraph | Kind::Item(..) => {
            writer.block();
            write_lines(&block.lines, 0, words, page, writer);
            writer.block();
        }
        Kind::Code => {
            page.begin(block.lines[0].page, writer);
            let lines = code(&block.lines, page);
            writer.lines_on_pages(lines.iter().map(|(line, page)| (line.as_str(), *page)));
        }
        Kind::Table(grid) => {
            page.begin(block.lines[0].page, writer);
            let mut lines = Vec::with_capacity(grid.rows.len() + 1);
            for (index, (on_page, cells)) in grid.rows.iter().enumerate() {
                let begins = (page.last != Some(*on_page)).then_some(*on_page as u32 + 1);
                page.last = Some(*on_page);
                let mut line = String::from("|");
                for cell in cells {
                    line.push(' ');
                    crate::table::escape_cell(cell, &mut line);
                    line.push_str(if cell.is_empty() { "|" } else { " |" });
                }
                lines.push((line, begins));
                if index == 0 {
                    lines.push((format!("|{}", " --- |".repeat(cells.len())), None));
                }
            }
            writer.lines_on_pages(lines.iter().map(|(line, page)| (line.as_str(), *page)));
        }
    }
}

/// Lines as running text. `skip` bytes of the first one are its list marker.
fn write_lines(lines: &[Line], skip: usize, words: &Words, page: &mut Pages, writer: &mut Writer) {
    let mut joined = false;
    for (index, line) in lines.iter().enumerate() {
        let text = line.text();
        let text = if index == 0 { text.get(skip..).unwrap_or(&text) } else { &text };
        let text = without_leaders(text);
        let next = lines.get(index + 1).map(Line::text);
        page.begin(line.page, writer);
        if index > 0 && !joined {
            writer.space();
        }
        let (text, joins) = match &next {
            Some(next) => words.end_of_line(&text, next),
            None => (text.trim_end_matches('\u{ad}').to_owned(), false),
        };
        // The first word without what is owed before it would lose the seam.
        for (at, word) in text.split_whitespace().enumerate() {
            if at > 0 {
                writer.space();
            }
            writer.word(word);
        }
        joined = joins;
    }
}

/// A line of a table of contents without its dots.
fn without_leaders(text: &str) -> String {
    if !text.contains(". . .") && !text.contains("....") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['.', '…']) {
        let length = rest[at..].find(|c| !matches!(c, '.' | ' ' | '…')).unwrap_or(rest.len() - at);
        let run = &rest[at..at + length];
        out.push_str(&rest[..at]);
        if run.bytes().filter(|b| *b == b'.').count() > 3 {
            out.push_str(" … ");
        } else {
            out.push_str(run);
        }
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// A code block, its indentation by the width of its letters.
fn code(lines: &[Line], page: &mut Pages) -> Vec<(String, Option<u32>)> {
    let left = lines.iter().map(|line| line.left).fold(f32::INFINITY, f32::min);
    let mut widths: Vec<f32> = lines
        .iter()
        .flat_map(|line| &line.segments)
        .map(|segment| (segment.right - segment.left) / segment.text.chars().count().max(1) as f32)
        .collect();
    widths.sort_by(f32::total_cmp);
    let width = widths.get(widths.len() / 2).copied().unwrap_or(5.0).max(0.5);
    // A fence is longer than the longest one inside.
    let inside = lines.iter().map(|line| longest_fence(&line.text())).max().unwrap_or(0);
    let fence = "`".repeat(inside.max(2) + 1);
    let mut out = vec![(fence.clone(), None)];
    let mut last: Option<&Line> = None;
    for line in lines {
        let begins = (page.last != Some(line.page)).then_some(line.page as u32 + 1);
        page.last = Some(line.page);
        if let Some(last) = last
            && last.page == line.page
            && line.y - last.y > 1.7 * 1.2 * line.size
        {
            out.push((String::new(), None));
        }
        let mut text = String::new();
        for segment in &line.segments {
            let column = ((segment.left - left) / width).round().clamp(0.0, 200.0) as usize;
            let have = text.chars().count();
            let gap = column.saturating_sub(have).max(usize::from(have > 0));
            text.extend(std::iter::repeat_n(' ', gap));
            text.push_str(&segment.text);
        }
        out.push((text, begins));
        last = Some(line);
    }
    out.push((fence, None));
    out
}

fn longest_fence(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// The words of a document, to tell whether a hyphen at a line's end parts a word or belongs to it.
struct Words {
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl Words {
    fn of(blocks: &[Block]) -> Self {
        let mut words = Self { hasher: RandomState::new(), seen: HashSet::new() };
        for line in blocks.iter().flat_map(|block| &block.lines) {
            for segment in &line.segments {
                for word in segment.text.split_whitespace() {
                    let word = trimmed(word);
                    if !word.is_empty() && !word.ends_with(['-', '\u{ad}']) {
                        words.seen.insert(words.hash(word));
                        for part in word.split(['-', '/']).filter(|part| part.len() < word.len()) {
                            words.seen.insert(words.hash(part));
                        }
                    }
                }
            }
        }
        words
    }

    fn hash(&self, word: &str) -> u64 {
        self.hasher.hash_one(word.to_lowercase())
    }

    fn knows(&self, word: &str) -> bool {
        self.seen.contains(&self.hash(word))
    }

    /// A line as it is written before the next one, and whether that follows without a space.
    fn end_of_line(&self, text: &str, next: &str) -> (String, bool) {
        let text = text.trim_end();
        let after = next.chars().next().unwrap_or(' ');
        let Some(last) = text.chars().next_back() else { return (String::new(), false) };
        if !matches!(last, '-' | '\u{ad}' | '\u{2010}') {
            return (text.to_owned(), script::joins_without_space(last, after));
        }
        let before = &text[..text.len() - last.len_utf8()];
        let stem = before.split_whitespace().next_back().unwrap_or_default();
        if !stem.ends_with(char::is_alphabetic) || !after.is_alphanumeric() {
            // A dash, or an option such as `-x`.
            let joins = stem.is_empty() || last == '\u{ad}';
            return (
                if last == '\u{ad}' { before.to_owned() } else { text.to_owned() },
                joins && after != ' ',
            );
        }
        if last == '\u{ad}' {
            return (before.to_owned(), true);
        }
        let rest = trimmed(next.split_whitespace().next().unwrap_or_default());
        let (stem, rest) = (trimmed(stem), rest.split(['-', '/']).next().unwrap_or_default());
        if self.is_one_word(stem, rest, after) { (before.to_owned(), true) } else { (text.to_owned(), true) }
    }

    fn is_one_word(&self, stem: &str, rest: &str, after: char) -> bool {
        if !after.is_lowercase() || stem.chars().any(|c| c.is_numeric()) {
            return false;
        }
        let tail = stem.rsplit(['-', '/']).next().unwrap_or(stem);
        if self.knows(&format!("{tail}{rest}")) {
            return true;
        }
        if self.knows(&format!("{tail}-{rest}")) {
            return false;
        }
        let compounds = ["self", "non", "well", "cross", "high", "low", "long", "short", "so", "half", "all"];
        let is_compound = compounds.contains(&tail.to_lowercase().as_str());
        let are_words = [tail, rest].iter().all(|part| part.chars().count() > 3 && self.knows(part));
        !is_compound && !are_words
    }
}

/// A word without the punctuation around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-' && c != '\u{ad}')
        .trim_start_matches(['-', '\u{ad}'])
}
