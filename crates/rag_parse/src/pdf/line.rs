//! From glyphs to rows of words: what stands on one baseline, with spaces where there are gaps.
//!
//! Which parts of a row belong to which column is left to [`super::column`].

use super::font::{Fonts, Style};
use super::interpret::{Drawn, Glyph};
use super::script;
use hayro_font::kurbo::{Point, Vec2};

/// A gap of this many font heights is a space. Letters are kerned by less, and spaces are rarely narrower.
const SPACE: f32 = 0.13;

/// A gap of this many font heights parts cells and columns. Spaces of justified text are narrower.
const PART: f32 = 1.0;

/// A gap of this many font heights may part cells, if others stand above and below it.
const MAY_PART: f32 = 0.5;

/// Text without a wide gap. Coordinates are points, with y growing downwards.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) left: f32,
    pub(super) right: f32,
    /// The baseline.
    pub(super) y: f32,
    /// Height of most of its letters.
    pub(super) size: f32,
    pub(super) text: String,
    /// What all its letters look like.
    pub(super) style: Style,
    /// Number of letters and digits.
    pub(super) letters: usize,
    /// The wider ones of its spaces.
    pub(super) gaps: Vec<Gap>,
    /// Place of its first glyph in the order of drawing.
    pub(super) order: usize,
}

/// A space inside a segment that is wide enough to part two cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    /// Where the text after it begins, in bytes.
    pub(super) at: usize,
    pub(super) left: f32,
    pub(super) right: f32,
}

impl Segment {
    pub(super) fn width(&self) -> f32 {
        self.right - self.left
    }

    /// Writes what begins at `left`, after a space if there is one.
    fn write(&mut self, text: &str, style: Style, letters: usize, left: f32, spaced: bool) {
        if spaced && !self.text.is_empty() {
            self.text.push(' ');
            if left - self.right >= MAY_PART * self.size {
                self.gaps.push(Gap { at: self.text.len(), left: self.right, right: left });
            }
        }
        // Punctuation has no style of its own.
        if self.letters == 0 {
            self.style = style;
        } else if letters > 0 {
            self.style.bold &= style.bold;
            self.style.italic &= style.italic;
            self.style.fixed_pitch &= style.fixed_pitch;
        }
        self.letters += letters;
        self.text.push_str(text);
    }

    /// Appends what stands to the right of this segment.
    fn append(&mut self, other: Self, spaced: bool) {
        if other.letters > self.letters {
            self.y = other.y;
            self.size = other.size;
        }
        self.write(&other.text, other.style, other.letters, other.left, spaced);
        let shift = self.text.len() - other.text.len();
        self.gaps.extend(other.gaps.into_iter().map(|gap| Gap { at: gap.at + shift, ..gap }));
        self.right = self.right.max(other.right);
        self.order = self.order.min(other.order);
    }
}

/// What stands on one baseline, from left to right.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) y: f32,
    pub(super) size: f32,
    pub(super) segments: Vec<Segment>,
}

/// The rows of a page from top to bottom; text that is written in another direction than most of it comes
/// after it. Slanted text, such as a watermark, is left out.
pub(super) fn rows(drawn: &Drawn, fonts: &Fonts<'_>) -> Vec<Row> {
    let mut groups: [Vec<(Placed, usize)>; 4] = Default::default();
    let mut last = 0;
    for (order, glyph) in drawn.glyphs.iter().enumerate() {
        let direction = match direction(glyph.end - glyph.origin) {
            Some(Direction::Straight(direction)) => direction,
            Some(Direction::Slanted) => continue,
            None => last,
        };
        last = direction;
        groups[direction].push((Placed::of(glyph, direction), order));
    }
    let mut order = [0, 1, 2, 3];
    order.sort_by_key(|&direction| std::cmp::Reverse(groups[direction].len()));
    let mut all = Vec::new();
    let mut below = 0.0f32;
    for direction in order {
        let runs = runs(drawn, &groups[direction], fonts);
        let mut rows = rows_of(runs);
        let Some(first) = rows.first() else { continue };
        if !all.is_empty() {
            let shift = below + 10.0 * first.size - first.y;
            for row in &mut rows {
                row.y += shift;
                row.segments.iter_mut().for_each(|segment| segment.y += shift);
            }
        }
        below = rows.last().map_or(below, |row| row.y);
        all.append(&mut rows);
    }
    all
}

enum Direction {
    /// In quarter turns.
    Straight(usize),
    Slanted,
}

fn direction(along: Vec2) -> Option<Direction> {
    let (x, y) = (along.x.abs(), along.y.abs());
    if x.max(y) < 1e-3 {
        return None;
    }
    // 11 degrees: scans are rarely more crooked.
    if x.min(y) > 0.2 * x.max(y) {
        return Some(Direction::Slanted);
    }
    Some(Direction::Straight(match (x > y, along.x > 0.0, along.y > 0.0) {
        (true, true, _) => 0,
        (false, _, true) => 1,
        (true, false, _) => 2,
        (false, _, false) => 3,
    }))
}

/// A glyph on a page that is turned so that its text runs from left to right.
struct Placed {
    left: f32,
    right: f32,
    y: f32,
    glyph: Glyph,
}

impl Placed {
    fn of(glyph: &Glyph, direction: usize) -> Self {
        let turn = |point: Point| match direction {
            0 => (point.x, point.y),
            1 => (point.y, -point.x),
            2 => (-point.x, -point.y),
            _ => (-point.y, point.x),
        };
        let ((left, y), (right, _)) = (turn(glyph.origin), turn(glyph.end));
        Self { left: left as f32, right: right as f32, y: y as f32, glyph: *glyph }
    }
}

/// Glyphs that were drawn one after the other on one baseline.
struct Run {
    segment: Segment,
    starts_spaced: bool,
    ends_spaced: bool,
    last_left: f32,
}

fn runs(drawn: &Drawn, glyphs: &[(Placed, usize)], fonts: &Fonts<'_>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut spaced = false;
    for (placed, order) in glyphs {
        let text = &drawn.text[placed.glyph.from as usize..placed.glyph.to as usize];
        let visible = script::visual(text.trim_matches(' '));
        let visible = visible.as_ref();
        let size = placed.glyph.size;
        if visible.is_empty() {
            spaced |= !text.is_empty();
            if let (Some(run), true) = (runs.last_mut(), text.is_empty()) {
                run.segment.right = run.segment.right.max(placed.right);
            }
            continue;
        }
        let before = spaced || text.starts_with(' ');
        spaced = text.ends_with(' ');
        let style = fonts.style(placed.glyph.font);
        if let Some(run) = runs.last_mut() {
            let segment = &mut run.segment;
            let em = segment.size.max(size).max(0.1);
            let gap = placed.left - segment.right;
            let level = (placed.y - segment.y).abs() < 0.12 * em
                && (0.8..1.25).contains(&(size / segment.size.max(0.1)));
            if level && (placed.left - run.last_left).abs() < 0.08 * em && segment.text.ends_with(visible) {
                // Printed twice to look bold.
                continue;
            }
            if level && gap > -0.5 * em && gap < PART * em {
                segment.write(visible, style, letters(visible), placed.left, before || gap > SPACE * em);
                segment.right = segment.right.max(placed.right);
                run.last_left = placed.left;
                run.ends_spaced = spaced;
                continue;
            }
            run.ends_spaced |= before;
        }
        runs.push(Run {
            segment: Segment {
                left: placed.left,
                right: placed.right.max(placed.left),
                y: placed.y,
                size,
                text: visible.to_owned(),
                style,
                letters: letters(visible),
                gaps: Vec::new(),
                order: *order,
            },
            starts_spaced: before,
            ends_spaced: spaced,
            last_left: placed.left,
        });
    }
    runs
}

fn rows_of(mut runs: Vec<Run>) -> Vec<Row> {
    runs.sort_by(|a, b| a.segment.y.total_cmp(&b.segment.y).then(a.segment.order.cmp(&b.segment.order)));
    let mut rows: Vec<(f32, f32, Vec<Run>)> = Vec::new();
    for run in runs {
        let (y, size) = (run.segment.y, run.segment.size);
        let open = rows.len().saturating_sub(6);
        match rows[open..]
            .iter_mut()
            .rev()
            .find(|(row_y, row_size, _)| on_one_row(*row_y, *row_size, y, size))
        {
            Some((row_y, row_size, members)) => {
                if size > *row_size {
                    (*row_y, *row_size) = (y, size);
                }
                members.push(run);
            }
            None => rows.push((y, size, vec![run])),
        }
    }
    let mut rows: Vec<Row> = rows.into_iter().map(|(y, size, runs)| row(y, size, runs)).collect();
    rows.sort_by(|a, b| a.y.total_cmp(&b.y));
    rows
}

/// Whether a run of this size belongs to a row, for instance as its superscript.
fn on_one_row(row_y: f32, row_size: f32, y: f32, size: f32) -> bool {
    let (small, large) = (row_size.min(size), row_size.max(size));
    if large > 1.8 * small {
        return (row_y - y).abs() < 0.25 * small;
    }
    let top = (row_y - 0.8 * row_size).max(y - 0.8 * size);
    let bottom = (row_y + 0.2 * row_size).min(y + 0.2 * size);
    bottom - top >= 0.5 * small
}

fn row(y: f32, size: f32, mut runs: Vec<Run>) -> Row {
    runs.sort_by(|a, b| {
        a.segment.left.total_cmp(&b.segment.left).then(a.segment.order.cmp(&b.segment.order))
    });
    let mut segments: Vec<Segment> = Vec::new();
    let mut ends_spaced = false;
    for run in runs {
        let Some(last) = segments.last_mut() else {
            ends_spaced = run.ends_spaced;
            segments.push(run.segment);
            continue;
        };
        let gap = run.segment.left - last.right;
        let em = last.size.max(run.segment.size);
        if (run.segment.left - last.left).abs() < 0.3 * em && run.segment.text == last.text {
            continue;
        }
        if gap < PART * em {
            let spaced = ends_spaced || run.starts_spaced || gap > SPACE * em || gap < -0.6 * em;
            last.append(run.segment, spaced);
        } else {
            segments.push(run.segment);
        }
        ends_spaced = run.ends_spaced;
    }
    for segment in &mut segments {
        if let Some(logical) = script::logical(&segment.text) {
            segment.text = logical;
            segment.gaps.clear();
        }
    }
    if segments.iter().filter(|segment| script::is_right_to_left(&segment.text)).count() * 2 > segments.len()
    {
        segments.reverse();
    }
    Row { y, size, segments }
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}
