//! Running headers and footers, and page numbers: what stands at the same place over the pages.

use super::line::Row;
use std::collections::HashMap;

/// Shares of a page's height that count as its head and foot.
const HEAD: f32 = 0.15;
const FOOT: f32 = 0.85;

/// Most lines of a header or footer.
const MAX_LINES: usize = 3;

/// A page before its running lines are removed.
pub(super) struct Sheet {
    pub(super) height: f32,
    pub(super) rows: Vec<Row>,
}

/// Removes them.
///
/// A line at the head or foot goes if the same words, numbers aside, stand at the same height on another page
/// nearby, or if it is or carries a page number where most pages have one.
pub(super) fn remove(sheets: &mut [Sheet]) {
    for at_head in [true, false] {
        for _ in 0..MAX_LINES {
            let edges: Vec<Option<Edge>> = sheets.iter().map(|sheet| Edge::of(sheet, at_head)).collect();
            let gone = running(&edges);
            if !gone.contains(&true) {
                break;
            }
            for (sheet, gone) in sheets.iter_mut().zip(gone) {
                if gone && at_head {
                    sheet.rows.remove(0);
                } else if gone {
                    sheet.rows.pop();
                }
            }
        }
    }
}

/// The outermost line of a page.
struct Edge {
    /// Points from the upper edge.
    y: f32,
    /// Its words with numbers blanked.
    words: String,
    numbers: Vec<i64>,
    /// Whether a number stands at one of its ends.
    ends_in_number: bool,
}

impl Edge {
    fn of(sheet: &Sheet, at_head: bool) -> Option<Self> {
        let row = if at_head { sheet.rows.first() } else { sheet.rows.last() }?;
        let is_there = if at_head { row.y < HEAD * sheet.height } else { row.y > FOOT * sheet.height };
        if !is_there {
            return None;
        }
        let text: Vec<&str> = row.segments.iter().map(|segment| segment.text.as_str()).collect();
        let text = text.join(" ");
        let tokens: Vec<&str> = text.split_whitespace().collect();
        let number_of = |token: &&str| number(token.trim_matches(|c: char| !c.is_alphanumeric()));
        let words: Vec<String> = tokens
            .iter()
            .map(|token| if number_of(token).is_some() { "#".to_owned() } else { token.to_lowercase() })
            .collect();
        let ends_in_number =
            [tokens.first(), tokens.last()].into_iter().flatten().any(|t| number_of(t).is_some());
        Some(Self {
            y: row.y,
            words: words.join(" "),
            numbers: tokens.iter().filter_map(number_of).collect(),
            ends_in_number,
        })
    }
}

/// For each page, whether its outermost line is a running one.
fn running(edges: &[Option<Edge>]) -> Vec<bool> {
    let mut places: HashMap<(&str, i32), Vec<usize>> = HashMap::new();
    for (page, edge) in edges.iter().enumerate() {
        if let Some(edge) = edge {
            places.entry((&edge.words, (edge.y / 4.0).round() as i32)).or_default().push(page);
        }
    }
    let needed = if edges.len() < 3 { 2 } else { 3 };
    let mut gone = vec![false; edges.len()];
    let mut bare = 0;
    for ((words, _), pages) in &places {
        // Numbers alone are page numbers only if they rise with the pages.
        let rises = |pages: &[usize]| {
            let offsets = pages.iter().filter_map(|&page| {
                let first = edges[page].as_ref()?.numbers.first()?;
                Some(first - page as i64)
            });
            let mut offsets: Vec<i64> = offsets.collect();
            offsets.sort_unstable();
            offsets.windows(2).filter(|pair| pair[0] == pair[1]).count() * 2 >= pages.len().max(2) - 1
        };
        let only_numbers = words.chars().all(|c| !c.is_alphabetic());
        if pages.len() >= needed && (!only_numbers || rises(pages)) {
            for &page in pages {
                gone[page] = true;
            }
            bare += pages.len();
        }
    }
    // Where most pages have a running line, one that differs by its words alone, such as the last page of a
    // chapter, is known by its height and its page number.
    if bare * 2 > edges.len() && edges.len() >= 4 {
        let heights: Vec<f32> = edges
            .iter()
            .zip(&gone)
            .filter(|(_, gone)| **gone)
            .filter_map(|(e, _)| Some(e.as_ref()?.y))
            .collect();
        for (page, edge) in edges.iter().enumerate() {
            if let Some(edge) = edge
                && edge.ends_in_number
                && heights.iter().take(2_000).any(|y| (y - edge.y).abs() < 2.0)
            {
                gone[page] = true;
            }
        }
    }
    gone
}

/// An Arabic or small Roman number.
fn number(token: &str) -> Option<i64> {
    if token.is_empty() || token.len() > 6 {
        return None;
    }
    if let Ok(number) = token.parse() {
        return Some(number);
    }
    let mut sum = 0;
    let mut last = 0;
    for c in token.chars().rev() {
        let value = match c {
            'i' => 1,
            'v' => 5,
            'x' => 10,
            'l' => 50,
            'c' => 100,
            _ => return None,
        };
        sum += if value < last { -value } else { value };
        last = last.max(value);
    }
    Some(sum)
}
