//! Which paragraphs are headings, and of which level: by the outline where there is one, by size, weight and
//! numbers where there is none.

use super::block::{Block, Kind, Norm};
use super::outline::Bookmark;
use std::collections::{BTreeMap, HashMap};

/// Most characters and lines of a heading.
const MAX_CHARS: usize = 200;
const MAX_LINES: usize = 4;

/// A heading is this much larger than the text, or bold.
const LARGER: f32 = 1.12;

/// How a heading looks: its size in half points, and whether it is bold.
type Look = (i32, bool);

/// Turns paragraphs into headings.
pub(super) fn mark(blocks: &mut [Block], bookmarks: &[Bookmark], norm: &Norm) {
    let mut by_outline: HashMap<usize, u8> = HashMap::new();
    let mut looks: BTreeMap<Look, Vec<u8>> = BTreeMap::new();
    for (index, level) in matched(blocks, bookmarks) {
        by_outline.insert(index, level);
        looks.entry(look(&blocks[index])).or_default().push(level);
    }
    let candidates: Vec<usize> = (0..blocks.len())
        .filter(|&index| !by_outline.contains_key(&index) && looks_like_heading(blocks, index, norm))
        .collect();
    let outlined = by_outline.len() >= 3;
    let mut levels: BTreeMap<Look, u8> = BTreeMap::new();
    if outlined {
        for (look, mut found) in looks {
            found.sort_unstable();
            levels.insert(look, found[found.len() / 2]);
        }
    } else {
        let mut own: Vec<Look> = candidates.iter().map(|&index| look(&blocks[index])).collect();
        own.extend(by_outline.keys().map(|&index| look(&blocks[index])));
        own.sort_unstable_by(|a, b| b.cmp(a));
        own.dedup();
        // A title is the first heading, as large as any, and looks like no other.
        if let Some(title) = candidates.first().map(|&index| look(&blocks[index]))
            && own.first().is_some_and(|largest| title.0 + 2 >= largest.0)
            && candidates.iter().filter(|&&index| look(&blocks[index]) == title).count() == 1
            && let Some(rank) = own.iter().position(|own| *own == title)
        {
            own[..=rank].rotate_right(1);
        }
        for (rank, look) in own.into_iter().enumerate() {
            levels.insert(look, (rank + 1).min(6) as u8);
        }
    }
    for index in candidates {
        let look = look(&blocks[index]);
        let is_large = look.0 as f32 / 2.0 >= LARGER * norm.size;
        let level = match levels.get(&look) {
            // At the size of text, bold alone marks labels such as "Note" as well.
            Some(level) if is_large || !outlined => Some(*level),
            Some(_) => None,
            // Larger than all that the outline names: a title. Smaller: not worth a heading there.
            None if outlined && levels.keys().all(|known| known.0 < look.0) => Some(1),
            None => None,
        };
        if let Some(level) = level {
            blocks[index].kind = Kind::Heading(level);
        }
    }
    for (index, level) in by_outline {
        blocks[index].kind = Kind::Heading(level);
    }
}

fn look(block: &Block) -> Look {
    let first = &block.lines[0];
    ((first.size * 2.0).round() as i32, block.lines.iter().all(|line| line.style.bold))
}

fn text_of(block: &Block) -> String {
    let texts: Vec<String> = block.lines.iter().map(super::column::Line::text).collect();
    texts.join(" ")
}

fn looks_like_heading(blocks: &[Block], index: usize, norm: &Norm) -> bool {
    let block = &blocks[index];
    let is_text = match &block.kind {
        Kind::Paragraph => true,
        Kind::Item(written, _) => written.starts_with(|c: char| c.is_ascii_digit()),
        _ => false,
    };
    if !is_text || block.lines.len() > MAX_LINES || block.lines.iter().any(|line| line.segments.len() > 3) {
        return false;
    }
    let letters: usize = block.lines.iter().map(|line| line.letters).sum();
    let text = text_of(block);
    let chars = text.chars().count();
    if letters < 2 || chars > MAX_CHARS || !text.chars().any(char::is_alphabetic) {
        return false;
    }
    if text.ends_with([',', ';', ':']) || (text.ends_with('.') && chars > 60) {
        return false;
    }
    let size = block.lines[0].size;
    let bold = block.lines.iter().all(|line| line.style.bold);
    if size >= LARGER * norm.size {
        return true;
    }
    bold && size >= 0.95 * norm.size && block.lines.len() <= 2 && chars <= 120 && stands_out(blocks, index)
}

/// Whether text follows that is not bold.
fn stands_out(blocks: &[Block], index: usize) -> bool {
    blocks.get(index + 1).is_some_and(|next| {
        !next.lines[0].style.bold || next.lines[0].size > blocks[index].lines[0].size * LARGER
    })
}

/// The blocks that the outline names, with their levels.
fn matched(blocks: &[Block], bookmarks: &[Bookmark]) -> Vec<(usize, u8)> {
    let mut by_page: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, block) in blocks.iter().enumerate() {
        let is_text = matches!(block.kind, Kind::Paragraph | Kind::Item(..) | Kind::Code);
        if is_text && block.lines.len() <= MAX_LINES {
            by_page.entry(block.lines[0].page).or_default().push(index);
        }
    }
    let mut found = Vec::new();
    let mut taken = std::collections::HashSet::new();
    for bookmark in bookmarks {
        let wanted = normal(&bookmark.title);
        if wanted.is_empty() {
            continue;
        }
        let Some(here) = by_page.get(&bookmark.page) else { continue };
        let is_it = |&&index: &&usize| {
            if taken.contains(&index) {
                return false;
            }
            let text = text_of(&blocks[index]);
            if text.len() > 4 * MAX_CHARS {
                return false;
            }
            let own = normal(&text);
            own == wanted
                || (own.len() <= wanted.len() + 24
                    && own.ends_with(&wanted)
                    && own[..own.len() - wanted.len()].chars().all(|c| c.is_numeric() || c.is_alphabetic())
                    && is_label(&text, &bookmark.title))
                || (wanted.ends_with(&own) && own.len() >= 4 && is_label(&bookmark.title, &text))
        };
        if let Some(&index) = here.iter().find(is_it) {
            taken.insert(index);
            found.push((index, bookmark.level));
        }
    }
    found
}

/// Whether the longer text has only a number or "Chapter 3" before the shorter.
fn is_label(longer: &str, shorter: &str) -> bool {
    let extra = longer.split_whitespace().count().saturating_sub(shorter.split_whitespace().count());
    extra <= 2 && longer.chars().any(|c| c.is_numeric() || c.is_uppercase())
}

/// Letters and digits alone, in lower case.
fn normal(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
