//! From lines to paragraphs, list items, code and tables. Which paragraphs are headings is left to
//! [`super::heading`].

use super::column::Line;
use super::font::Style;
use super::table::{self, Grid};

/// What lines form together.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// Never empty.
    pub(super) lines: Vec<Line>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Paragraph,
    /// With its level, from 1.
    Heading(u8),
    /// With the marker it is written with, and the bytes of the marker that it has on the page.
    Item(String, usize),
    Code,
    Table(Grid),
}

/// What is usual in a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norm {
    /// Size of most letters.
    pub(super) size: f32,
    /// Distance of baselines within a paragraph, as a multiple of the size.
    pub(super) leading: f32,
    /// Whether most of the text is in a typewriter font, which then says nothing about code.
    pub(super) is_typewritten: bool,
}

impl Norm {
    pub(super) fn of(lines: &[Line]) -> Self {
        let mut sizes: std::collections::BTreeMap<i32, usize> = Default::default();
        let (mut letters, mut fixed) = (0, 0);
        for line in lines {
            *sizes.entry((line.size * 4.0).round() as i32).or_default() += line.letters;
            letters += line.letters;
            fixed += if line.style.fixed_pitch { line.letters } else { 0 };
        }
        let size = sizes.iter().max_by_key(|(_, count)| **count).map_or(10.0, |(size, _)| *size as f32 / 4.0);
        let mut pitches: Vec<f32> = lines
            .windows(2)
            .filter(|pair| follows(&pair[0], &pair[1]) && same_size(&pair[0], &pair[1]))
            .map(|pair| (pair[1].y - pair[0].y) / pair[1].size.max(1.0))
            .filter(|pitch| (0.8..2.5).contains(pitch))
            .collect();
        pitches.sort_by(f32::total_cmp);
        let leading = pitches.get(pitches.len() / 2).copied().unwrap_or(1.2);
        Self { size: size.max(1.0), leading, is_typewritten: fixed * 2 > letters }
    }
}

/// The blocks of a document.
pub(super) fn blocks(lines: Vec<Line>, rules: &[table::Rules], norm: &Norm) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some((grid, length)) = table::find(&lines[at..], rules, norm) {
            blocks.push(Block { kind: Kind::Table(grid), lines: lines[at..at + length].to_vec() });
            at += length;
            continue;
        }
        add(&mut blocks, lines[at].clone(), norm);
        at += 1;
    }
    blocks
}

fn add(blocks: &mut Vec<Block>, line: Line, norm: &Norm) {
    let is_code = line.style.fixed_pitch && !norm.is_typewritten && line.letters > 0;
    let text = line.text();
    let Some(block) = blocks.last_mut() else {
        blocks.push(begin(line, &text, is_code, true));
        return;
    };
    let Some(last) = block.lines.last() else { return };
    let apart = is_apart(last, &line, norm);
    match &block.kind {
        Kind::Code => {
            // A line of code may have a comment in another font, or no letters at all.
            let goes_on = is_code || (line.letters == 0 && !apart && same_size(last, &line));
            if goes_on && (line.y - last.y < 3.5 * line.size || !follows(last, &line)) {
                block.lines.push(line);
                return;
            }
        }
        Kind::Table(_) | Kind::Heading(_) => {}
        Kind::Paragraph | Kind::Item(..) => {
            let marked = marker(&text).is_some_and(|(written, _, sure)| {
                sure || apart || ends_sentence(&last.text()) || is_next_item(block, &line, &written)
            });
            let code_begins = is_code && (apart || is_indented(last, &line)) && !last.style.fixed_pitch;
            if !marked && !code_begins && !is_contents(&text) && goes_on(block, &line, &text, apart) {
                block.lines.push(line);
                return;
            }
        }
    }
    let next_item = marker(&text).is_some_and(|(written, ..)| is_next_item(block, &line, &written));
    let free = apart || !is_running(block) || ends_sentence(&last.text()) || next_item;
    blocks.push(begin(line, &text, is_code, free));
}

fn is_running(block: &Block) -> bool {
    matches!(block.kind, Kind::Paragraph | Kind::Item(..))
}

/// Whether a marker goes on with the list of an item: below it, with the same sign or the next number.
fn is_next_item(block: &Block, line: &Line, written: &str) -> bool {
    let Kind::Item(last, _) = &block.kind else { return false };
    let number = |marker: &str| marker.strip_suffix(". ").and_then(|number| number.parse::<u32>().ok());
    let follows = match (number(last), number(written)) {
        (Some(last), Some(next)) => Some(next) == last.checked_add(1),
        (None, None) => true,
        _ => false,
    };
    follows && (block.lines[0].left - line.left).abs() < 0.5 * line.size
}

fn begin(line: Line, text: &str, is_code: bool, free: bool) -> Block {
    let kind = match marker(text) {
        Some((written, length, sure)) if sure || free => Kind::Item(written, length),
        _ if is_contents(text) => Kind::Item("- ".to_owned(), 0),
        _ if is_code => Kind::Code,
        _ => Kind::Paragraph,
    };
    Block { kind, lines: vec![line] }
}

/// Whether a line stands below another in its column.
fn follows(last: &Line, line: &Line) -> bool {
    last.page == line.page && last.flow == line.flow && line.y > last.y
}

fn same_size(a: &Line, b: &Line) -> bool {
    (a.size - b.size).abs() <= 0.08 * a.size.max(b.size)
}

/// Whether there is more room between two lines than within a paragraph.
fn is_apart(last: &Line, line: &Line, norm: &Norm) -> bool {
    !follows(last, line) || line.y - last.y > 1.22 * norm.leading.max(1.0) * last.size.max(line.size)
}

fn is_indented(last: &Line, line: &Line) -> bool {
    (line.left - last.left).abs() > 0.8 * line.size
}

/// Whether a line belongs to a paragraph or item.
fn goes_on(block: &Block, line: &Line, text: &str, apart: bool) -> bool {
    let Some(last) = block.lines.last() else { return false };
    let bold = |style: Style| style.bold;
    if !same_size(last, line)
        || (bold(last.style) != bold(line.style) && line.letters > 0 && last.letters > 0)
    {
        return false;
    }
    let end = last.text();
    let goes_over = !follows(last, line);
    let starts_small = text.chars().next().is_some_and(char::is_lowercase);
    if goes_over {
        // Over a column or page: only where the sentence is open.
        let is_open = !ends_sentence(&end) && (is_full(last, 0.2) || ends_in_hyphen(&end));
        return is_open && (starts_small || (line.left - line.column.0) < 0.8 * line.size);
    }
    if apart {
        return false;
    }
    let item = matches!(block.kind, Kind::Item(..));
    let shift = line.left - last.left;
    if shift > 0.8 * line.size {
        // The first line of a paragraph, unless the first line of this one hangs out.
        let hangs = block.lines.len() == 1 && (item || (is_full(last, 0.15) && !ends_sentence(&end)));
        if !hangs {
            return false;
        }
    }
    if shift < -0.8 * line.size && (item || block.lines.len() > 1) {
        return false;
    }
    // A line that ends early though the next word had room.
    let first_word = text.split(' ').next().unwrap_or_default().chars().count() as f32;
    let room = last.column.1 - last.right - (first_word + 1.0) * 0.5 * line.size;
    let ended = room > 1.5 * line.size && ends_sentence(&end);
    let far = room > 0.35 * (last.column.1 - last.column.0) && !starts_small && !item;
    // Lines that are all short are not as long as the column allows, but as their writer wanted.
    let wanted = far && block.lines.len() < 3;
    !ended && !wanted
}

fn is_full(line: &Line, share: f32) -> bool {
    line.column.1 - line.right <= share * (line.column.1 - line.column.0)
}

fn ends_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '”', '’', '\'', ')', ']', '»'])
        .ends_with(['.', '!', '?', ':', '。', '؟', '۔'])
}

fn ends_in_hyphen(text: &str) -> bool {
    text.ends_with(['-', '\u{ad}', '\u{2010}'])
}

/// Whether a line belongs to a table of contents: a title, dots and a page number.
pub(super) fn is_contents(text: &str) -> bool {
    text.contains(". . . .") || text.contains(".....") || text.contains("……")
}

/// The list marker at the start of a line: as it is written, its bytes in the line, and whether it is one even
/// in the middle of a paragraph.
pub(super) fn marker(text: &str) -> Option<(String, usize, bool)> {
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    if "•◦▪‣●○■□➢✓✔❖·∙⁃".contains(first) && !rest.trim().is_empty() {
        return Some(("- ".to_owned(), text.len() - rest.trim_start().len(), true));
    }
    if "-–—*".contains(first) && rest.starts_with(' ') && rest.trim().chars().any(char::is_alphanumeric) {
        return Some(("- ".to_owned(), text.len() - rest.trim_start().len(), false));
    }
    let (token, rest) = text.split_once(' ')?;
    if token.len() > 5 || rest.trim().is_empty() {
        return None;
    }
    let inner = token.strip_prefix('(').unwrap_or(token);
    let inner = inner.strip_suffix([')', '.'])?;
    let is_number = !inner.is_empty() && inner.len() <= 3 && inner.bytes().all(|b| b.is_ascii_digit());
    let is_letter = inner.len() == 1 && inner.bytes().all(|b| b.is_ascii_lowercase());
    let is_roman = !inner.is_empty() && inner.bytes().all(|b| b"ivx".contains(&b));
    if !is_number && !is_letter && !is_roman {
        return None;
    }
    // Markdown knows numbers alone; other markers stay part of the text.
    if is_number && token.ends_with('.') && !token.starts_with('(') {
        return Some((format!("{inner}. "), text.len() - rest.trim_start().len(), false));
    }
    Some(("- ".to_owned(), 0, false))
}
