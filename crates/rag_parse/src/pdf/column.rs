//! Reading order: which rows belong to one column, and which column is read first.
//!
//! Columns of text are told from columns of a table by the order of drawing (text is drawn column by column, a
//! table row by row) and by the width of their lines.

use super::font::Style;
use super::line::{Row, Segment};

/// Deepest nesting of columns in columns.
const MAX_DEPTH: usize = 4;

/// Most places on a page that are tried as a border between columns.
const MAX_CANDIDATES: usize = 12;

/// One line of one column.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// From 0.
    pub(super) page: usize,
    /// Lines that follow each other within a column have the same one.
    pub(super) flow: usize,
    pub(super) y: f32,
    pub(super) left: f32,
    pub(super) right: f32,
    pub(super) size: f32,
    pub(super) style: Style,
    pub(super) letters: usize,
    /// Borders of its column.
    pub(super) column: (f32, f32),
    /// More than one where there are wide gaps.
    pub(super) segments: Vec<Segment>,
}

impl Line {
    pub(super) fn text(&self) -> String {
        let parts: Vec<&str> = self.segments.iter().map(|segment| segment.text.as_str()).collect();
        parts.join(" ")
    }

    fn of(row: Row, page: usize, flow: usize) -> Option<Self> {
        let widest = row.segments.iter().max_by_key(|segment| segment.letters)?;
        let letters = row.segments.iter().map(|segment| segment.letters).sum();
        let mut style = widest.style;
        for segment in row.segments.iter().filter(|segment| segment.letters > 0) {
            style.bold &= segment.style.bold;
            style.italic &= segment.style.italic;
            style.fixed_pitch &= segment.style.fixed_pitch;
        }
        Some(Self {
            page,
            flow,
            y: row.y,
            left: row.segments.iter().map(|s| s.left).fold(f32::INFINITY, f32::min),
            right: row.segments.iter().map(|s| s.right).fold(f32::NEG_INFINITY, f32::max),
            size: widest.size,
            style,
            letters,
            column: (0.0, 0.0),
            segments: row.segments,
        })
    }
}

/// The lines of a page in reading order.
pub(super) fn lines(rows: Vec<Row>, page: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut flow = 0;
    order(rows, page, 0, &mut flow, &mut lines);
    lines
}

fn order(rows: Vec<Row>, page: usize, depth: usize, flow: &mut usize, out: &mut Vec<Line>) {
    if rows.is_empty() {
        return;
    }
    let found = if depth < MAX_DEPTH { gutter(&rows) } else { None };
    let Some((x, band)) = found else {
        *flow += 1;
        let from = out.len();
        out.extend(rows.into_iter().filter_map(|row| Line::of(row, page, *flow)));
        let lefts = out[from..].iter().map(|line| line.left);
        let left = lefts.fold(f32::INFINITY, f32::min);
        let right = out[from..].iter().map(|line| line.right).fold(f32::NEG_INFINITY, f32::max);
        out[from..].iter_mut().for_each(|line| line.column = (left, right));
        return;
    };
    let mut rows = rows;
    let below = rows.split_off(band.end);
    let inside = rows.split_off(band.start);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for row in inside {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for segment in row.segments {
            if segment.left < x { a.push(segment) } else { b.push(segment) }
        }
        for (segments, side) in [(a, &mut left), (b, &mut right)] {
            if !segments.is_empty() {
                side.push(Row { y: row.y, size: row.size, segments });
            }
        }
    }
    let to_left = left.iter().chain(&right).flat_map(|row: &Row| &row.segments).take(40);
    let to_left = to_left.filter(|segment| super::script::is_right_to_left(&segment.text)).count() > 20;
    order(rows, page, depth + 1, flow, out);
    let (first, second) = if to_left { (right, left) } else { (left, right) };
    order(first, page, depth + 1, flow, out);
    order(second, page, depth + 1, flow, out);
    order(below, page, depth + 1, flow, out);
}

/// Where the right one of two columns of text begins, and in which rows.
fn gutter(rows: &[Row]) -> Option<(f32, std::ops::Range<usize>)> {
    let segments = || rows.iter().flat_map(|row| &row.segments);
    let start = segments().map(|segment| segment.left).fold(f32::INFINITY, f32::min);
    let mut counts: std::collections::BTreeMap<i32, (usize, f32)> = Default::default();
    for segment in segments().filter(|segment| segment.left > start + 8.0 * segment.size) {
        let (count, left) = counts.entry((segment.left / 4.0) as i32).or_insert((0, f32::INFINITY));
        *count += 1;
        *left = left.min(segment.left);
    }
    let mut candidates: Vec<(usize, f32)> = counts.into_values().filter(|(count, _)| *count >= 3).collect();
    candidates.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)));
    candidates.truncate(MAX_CANDIDATES);
    let mut best: Option<(usize, f32, std::ops::Range<usize>)> = None;
    for (_, left) in candidates {
        let x = left - 0.5;
        let mut from = 0;
        for to in 0..=rows.len() {
            let crosses = rows
                .get(to)
                .is_none_or(|row| row.segments.iter().any(|segment| segment.left < x && segment.right > x));
            if !crosses {
                continue;
            }
            if let Some(lines) = columns_of_text(&rows[from..to], x)
                && best.as_ref().is_none_or(|(most, ..)| lines > *most)
            {
                best = Some((lines, x, from..to));
            }
            from = to + 1;
        }
    }
    best.map(|(_, x, band)| (x, band))
}

/// How many lines the shorter of two columns has, if these rows are two columns of text that part at `x`.
fn columns_of_text(rows: &[Row], x: f32) -> Option<usize> {
    let left = Side::of(rows, |segment| segment.left < x)?;
    let right = Side::of(rows, |segment| segment.left >= x)?;
    let overlap = left.bottom.min(right.bottom) - left.top.max(right.top);
    let apart = right.left - left.right >= 0.5 * left.size;
    if !apart || overlap < 0.4 * (left.bottom - left.top).min(right.bottom - right.top) {
        return None;
    }
    let drawn_apart = left.share_before(right.first) >= 0.9 || right.share_before(left.first) >= 0.9;
    let are_text = if drawn_apart {
        left.median_letters >= 6 && right.median_letters >= 6
    } else {
        // Row by row, as some converters do with real columns: only if both look like running text.
        left.median_letters >= 25
            && right.median_letters >= 25
            && left.median_width >= 0.75 * (left.right - left.left)
            && right.median_width >= 0.75 * (right.right - right.left)
    };
    are_text.then_some(left.lines.min(right.lines))
}

/// What stands on one side of a border.
struct Side {
    lines: usize,
    left: f32,
    right: f32,
    top: f32,
    bottom: f32,
    size: f32,
    median_letters: usize,
    median_width: f32,
    first: usize,
    orders: Vec<usize>,
}

impl Side {
    fn of(rows: &[Row], is_here: impl Fn(&Segment) -> bool) -> Option<Self> {
        let (mut letters, mut widths, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        let mut side = Self {
            lines: 0,
            left: f32::INFINITY,
            right: f32::NEG_INFINITY,
            top: f32::INFINITY,
            bottom: f32::NEG_INFINITY,
            size: 0.0,
            median_letters: 0,
            median_width: 0.0,
            first: usize::MAX,
            orders: Vec::new(),
        };
        for row in rows {
            let (mut count, mut width, mut any) = (0, 0.0, false);
            for segment in row.segments.iter().filter(|segment| is_here(segment)) {
                any = true;
                count += segment.letters;
                width += segment.width();
                side.left = side.left.min(segment.left);
                side.right = side.right.max(segment.right);
                side.first = side.first.min(segment.order);
                side.size = side.size.max(segment.size);
                orders.push(segment.order);
            }
            if any {
                side.top = side.top.min(row.y);
                side.bottom = side.bottom.max(row.y);
                letters.push(count);
                widths.push(width);
            }
        }
        side.lines = letters.len();
        if side.lines < 3 {
            return None;
        }
        letters.sort_unstable();
        widths.sort_by(f32::total_cmp);
        side.median_letters = letters[letters.len() / 2];
        side.median_width = widths[widths.len() / 2];
        side.orders = orders;
        Some(side)
    }

    /// How much of it was drawn before a place in the order of drawing.
    fn share_before(&self, order: usize) -> f32 {
        self.orders.iter().filter(|own| **own < order).count() as f32 / self.orders.len() as f32
    }
}
