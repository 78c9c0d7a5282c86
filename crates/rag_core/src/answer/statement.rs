//! What a passage states: the units that an extractive answer is made of.
//!
//! Most are sentences. A sentence that ends with a colon and the list or code that it leads to are one, if that is
//! short; else the items of the list know their lead-in. Which of them answer a question is decided in [`super::extract`].

use super::Passage;
use super::neutralise::{misleading, touches};
use crate::sentence::{LineKind, lines, sentences, trimmed};
use crate::terms::Terms;
use std::cell::LazyCell;
use std::ops::Range;

/// Fewest meaningful words of a sentence that can stand alone; a shorter one is joined with a neighbour.
const MIN_TERMS: usize = 3;

/// Most characters of a sentence and its neighbour together.
const MAX_JOINED_CHARS: usize = 400;

/// Most characters of a statement: beyond, it is a run-on text that no model reads to its end.
const MAX_STATEMENT_CHARS: usize = 1_200;

/// Most characters of a lead-in together with its list or code.
const MAX_BLOCK_CHARS: usize = 500;

/// Most characters of a term: more is a sentence that happens to have a colon.
const MAX_TERM_CHARS: usize = 80;

/// A sentence, list item, line of code, table row, or a lead-in with what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// Place in the passage's text.
    pub(super) bytes: Range<usize>,
    /// What it says: on one line, but for lists and code behind their lead-in, which keep their lines.
    pub(super) text: String,
    /// The lead-in of the list that it is an item of, if that is no part of it.
    pub(super) lead_in: Option<String>,
}

/// What a passage states: its sentences, without list markers, short ones joined, and the rows of its tables.
pub(super) fn statements(passage: &Passage<'_>, terms: &Terms) -> Vec<Statement> {
    let text = passage.text;
    let kinds = line_kinds(text);
    let (blocks, lists) = lead_ins(text, &kinds);
    let mut found: Vec<Range<usize>> = Vec::new();
    // A short sentence that waits for the one after it.
    let mut waiting: Option<Range<usize>> = None;
    let is_alone = |at| matches!(kind_at(text, &kinds, at), LineKind::TableRow | LineKind::Code);
    for range in sentences(text) {
        if let Some(block) = blocks.iter().find(|block| block.contains(&range.start)) {
            found.extend(waiting.take());
            // Its first sentence brings all of it.
            if block.start == range.start {
                found.push(block.clone());
            }
            continue;
        }
        let kind = kind_at(text, &kinds, range.start);
        let is_block = matches!(kind, LineKind::TableRow | LineKind::Code | LineKind::Fence);
        let sentence = &text[range.clone()];
        let has_words = sentence.contains(char::is_alphanumeric);
        if matches!(kind, LineKind::Heading | LineKind::Rule | LineKind::Fence) || !has_words {
            waiting = None;
            continue;
        }
        let range = without_marker(text, range);
        let joins = |a: &Range<usize>, b: &Range<usize>| {
            let between = &text[a.end..b.start];
            let blank = between.matches('\n').count() > 1;
            !is_block && !blank && text[a.start..b.end].chars().count() <= MAX_JOINED_CHARS
        };
        let range = match waiting.take() {
            Some(short) if joins(&short, &range) && kind != LineKind::ListItem => short.start..range.end,
            Some(short) => {
                found.push(short);
                range
            }
            None => range,
        };
        if is_block || terms.of(&text[range.clone()]).len() >= MIN_TERMS {
            found.push(range);
            continue;
        }
        match found.last_mut() {
            Some(last)
                if kind != LineKind::ListItem
                    && !is_alone(last.start)
                    && !blocks.contains(last)
                    && joins(last, &range) =>
            {
                last.end = range.end;
            }
            _ => waiting = Some(range),
        }
    }
    found.extend(waiting);
    found.retain(|range| {
        let sentence = &text[range.clone()];
        let chars = sentence.chars().take(MAX_STATEMENT_CHARS + 1).count();
        chars <= MAX_STATEMENT_CHARS && !has_torn_link(sentence) && !terms.of(sentence).is_empty()
    });
    let misleading = LazyCell::new(|| misleading(text));
    let in_words = |bytes: Range<usize>| {
        let lead_in = lists.iter().find(|(items, _)| items.contains(&bytes.start));
        let lead_in = lead_in.map(|(_, lead_in)| one_line(&text[lead_in.clone()]));
        if blocks.contains(&bytes) {
            let bytes = without_marker(text, bytes);
            return Some(Statement { text: text[bytes.clone()].to_owned(), bytes, lead_in });
        }
        let text = match kind_at(text, &kinds, bytes.start) {
            LineKind::TableRow => row_in_words(passage, &kinds, &misleading, bytes.clone())?,
            _ => one_line(&text[bytes.clone()]),
        };
        Some(Statement { bytes, text, lead_in })
    };
    found.into_iter().filter_map(in_words).collect()
}

/// A list, and the sentence that leads to it.
type List = (Range<usize>, Range<usize>);

/// Sentences that end with a colon, each with the list or code behind it: as one range where that is short, else the
/// range of the list's items and that of the sentence.
fn lead_ins(text: &str, kinds: &[(usize, LineKind)]) -> (Vec<Range<usize>>, Vec<List>) {
    let (mut blocks, mut lists) = (Vec::new(), Vec::new());
    let end_of = |index: usize| kinds.get(index).map_or(text.len(), |(start, _)| *start);
    let mut sentences = sentences(text).into_iter().peekable();
    for index in 0..kinds.len() {
        let (start, kind) = kinds[index];
        if !matches!(kind, LineKind::Prose | LineKind::ListItem)
            || !text[start..end_of(index + 1)].trim_end().ends_with(':')
        {
            continue;
        }
        let first = (index + 1..kinds.len()).find(|next| kinds[*next].1 != LineKind::Blank);
        let Some(first) = first else { continue };
        let after = match kinds[first].1 {
            LineKind::Fence => {
                (first + 1..kinds.len()).find(|next| kinds[*next].1 != LineKind::Code).map(|at| at + 1)
            }
            LineKind::ListItem if kind == LineKind::Prose => {
                let goes_on = |next: &usize| matches!(kinds[*next].1, LineKind::ListItem | LineKind::Prose);
                Some((first..kinds.len()).find(|next| !goes_on(next)).unwrap_or(kinds.len()))
            }
            _ => None,
        };
        let Some(after) = after else { continue };
        let colon = start + text[start..end_of(index + 1)].trim_end().len();
        while sentences.peek().is_some_and(|sentence| sentence.end < colon) {
            sentences.next();
        }
        let Some(sentence) = sentences.peek().filter(|sentence| sentence.start < colon).cloned() else {
            continue;
        };
        let end = trimmed(text, sentence.start..end_of(after)).end;
        let end = match kinds[first].1 {
            LineKind::Fence => end_of_sentence(text, end),
            _ => end,
        };
        if text[sentence.start..end].chars().count() <= MAX_BLOCK_CHARS {
            if blocks.last().is_none_or(|block: &Range<usize>| block.end <= sentence.start) {
                blocks.push(sentence.start..end);
            }
        } else if kinds[first].1 == LineKind::ListItem {
            lists.push((kinds[first].0..end, sentence.start..colon));
        }
    }
    (blocks, lists)
}

/// Where the sentence ends that a block of code stands within, and goes on behind it in small letters: "If you see (code) then
/// the server is not there."
fn end_of_sentence(text: &str, block: usize) -> usize {
    let rest = &text[block..text.floor_char_boundary(block + MAX_BLOCK_CHARS)];
    let gap = rest.len() - rest.trim_start().len();
    let goes_on = rest[gap..].starts_with(char::is_lowercase);
    match sentences(&rest[gap..]).first() {
        Some(sentence) if goes_on && sentence.start == 0 => block + gap + sentence.end,
        _ => block,
    }
}

/// The term that a list item defines, up to its colon, if it begins with one in code: `` `work_mem` (`integer`) ``.
pub(super) fn term_of(item: &str) -> Option<&str> {
    let (term, _) = item.split_once(": ")?;
    let is_term = term.starts_with('`') && term.chars().count() <= MAX_TERM_CHARS && !term.contains('\n');
    is_term.then_some(term)
}

/// What a sentence within a definition is about: manuals say "The default is 5 min" under the name of a setting
/// that the sentence does not repeat. `None` for the sentence that has the term itself, and behind the item: its further
/// paragraphs are indented.
pub(super) fn defined_term(text: &str, at: usize) -> Option<&str> {
    let before = &text[..at];
    let item = before
        .rfind("\n- `")
        .map(|newline| newline + 3)
        .or_else(|| before.starts_with("- `").then_some(2))?;
    let within = &before[item..];
    let begins_item = text[at..].starts_with('`') && before.ends_with("- ");
    let paragraph = within.rfind("\n\n").map_or("", |blank| &within[blank + 2..]);
    let leaves_item = within.contains("\n\n") && !text[at - paragraph.len()..].starts_with(' ');
    if begins_item || leaves_item || within.contains("\n#") {
        return None;
    }
    term_of(&text[item..])
}

/// A table row as a sentence: each cell behind the name of its column. `None` if the names are not known.
///
/// Names with digits are left out, and all of them where one is an order to a model, lies within the `misleading` parts of the
/// passage, or makes an order with a cell: only the row itself is looked at by those who take it.
fn row_in_words(
    passage: &Passage<'_>,
    kinds: &[(usize, LineKind)],
    misleading: &[Range<usize>],
    row: Range<usize>,
) -> Option<String> {
    let own = kinds.partition_point(|(start, _)| *start <= row.start).checked_sub(1)?;
    let mut top = own;
    while top > 0 && kinds[top - 1].1 == LineKind::TableRow {
        top -= 1;
    }
    let line = |index: usize| passage.text[kinds[index].0..].lines().next().unwrap_or_default();
    // Above the topmost row stand the dashes and the names, both rules, or the passage begins.
    let (header, is_sound) = match top {
        0 => {
            let header = passage.table_header?;
            (header.lines().find(|line| is_row(line))?, !misleads(header))
        }
        1 => return None,
        _ => {
            let header =
                Some(line(top - 2)).filter(|line| kinds[top - 1].1 == LineKind::Rule && is_row(line))?;
            let start = kinds[top - 2].0;
            (header, !touches(misleading, &(start..start + header.len())))
        }
    };
    let names = cells(header);
    let is_sound = is_sound && !names.iter().any(|name| misleads(name));
    let cells: Vec<(String, String)> = cells(&passage.text[row])
        .into_iter()
        .zip(names.into_iter().chain(std::iter::repeat(String::new())))
        .filter(|(cell, _)| !cell.is_empty())
        .collect();
    let in_words = |is_named: bool| {
        // The row is what is quoted, and what has digits in an answer must stand in a quote.
        let told = |(cell, name): &(String, String)| {
            let is_told = is_named && !name.is_empty() && !name.contains(|c: char| c.is_ascii_digit());
            if is_told { format!("{name}: {cell}") } else { cell.clone() }
        };
        cells.iter().map(told).collect::<Vec<_>>().join("; ")
    };
    let named = Some(in_words(true)).filter(|named| is_sound && !misleads(named));
    (!cells.is_empty()).then(|| named.unwrap_or_else(|| in_words(false)))
}

/// Whether a text has a part that is an order to a model or that no reader sees.
fn misleads(text: &str) -> bool {
    !misleading(text).is_empty()
}

pub(super) fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// The cells of a row. `\\|` is a character of one.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in row.chars() {
        match (c, cells.last_mut()) {
            ('|', _) if !is_escaped => cells.push(String::new()),
            ('|', Some(cell)) => {
                cell.pop();
                cell.push(c);
            }
            (_, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    cells.iter().map(|cell| one_line(cell)).collect()
}

/// Whether a text has a part of a link whose rest was cut off: a text without its target, a target that does not end
/// or that has no text.
fn has_torn_link(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let target = &rest[at + 2..];
        let mut depth = 1;
        let end = target.find(|c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let (Some(end), true) = (end, rest[..at].contains('[')) else { return true };
        rest = &target[end + 1..];
    }
    // The end of an address that began before: `b.org/page) and so on`.
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_tail = first.contains('/') && first.contains(')') && !first.contains(['(', '[']);
    // A link's text without an end. An interval such as [0, 1) has no letter behind its bracket.
    let open = text.rfind('[').filter(|at| !text[*at..].contains(']')).map(|at| &text[at + 1..]);
    is_tail || open.is_some_and(|rest| rest.starts_with(char::is_alphabetic) && !text.contains('`'))
}

/// Starts of lines with what they are.
fn line_kinds(text: &str) -> Vec<(usize, LineKind)> {
    let mut kinds: Vec<(usize, LineKind)> = lines(text).map(|line| (line.bytes.start, line.kind)).collect();
    for index in 1..kinds.len() {
        // The line above an underline is a heading.
        if kinds[index].1 == LineKind::Rule && kinds[index - 1].1 == LineKind::Prose {
            kinds[index - 1].1 = LineKind::Heading;
        }
        // The row above the dashes is a table's header.
        let row = text[kinds[index].0..].lines().next().unwrap_or_default();
        let is_dashes = row.contains('-') && row.chars().all(|c| "|-: \t".contains(c));
        if kinds[index].1 == LineKind::TableRow && is_dashes {
            kinds[index].1 = LineKind::Rule;
            if kinds[index - 1].1 == LineKind::TableRow {
                kinds[index - 1].1 = LineKind::Rule;
            }
        }
    }
    kinds
}

/// What the line is in which a sentence begins. A later sentence of a list item's first line is prose.
fn kind_at(text: &str, kinds: &[(usize, LineKind)], at: usize) -> LineKind {
    let after = kinds.partition_point(|(start, _)| *start <= at);
    match after.checked_sub(1).map(|index| kinds[index]) {
        Some((start, LineKind::ListItem)) if !text[start..at].trim().is_empty() => LineKind::Prose,
        Some((_, kind)) => kind,
        None => LineKind::Prose,
    }
}

/// The range without the marker of a list item or quote.
fn without_marker(text: &str, range: Range<usize>) -> Range<usize> {
    let sentence = &text[range.clone()];
    let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    if !text[line_start..range.start].trim().is_empty() {
        return range;
    }
    let quote = sentence.len() - sentence.trim_start_matches(['>', ' ']).len();
    let marker = crate::sentence::marker_length(&sentence[quote..]);
    let inner = trimmed(text, range.start + quote + marker..range.end);
    if inner.is_empty() { range } else { inner }
}

/// A text on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
