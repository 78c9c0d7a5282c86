//! Tables: lines whose parts stand below each other, with or without ruling lines.

use super::block::{self, Norm};
use super::column::Line;
use super::interpret::Rule;
use super::line::Segment;
use super::script;

/// The ruling lines of a page.
pub(super) type Rules = Vec<Rule>;

/// Most lines of a table that are looked at together; a longer one goes on as a new table.
const MAX_LINES: usize = 400;

/// Most columns of a table.
const MAX_COLUMNS: usize = 40;

/// A table's rows, each with its page and cells.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) rows: Vec<(usize, Vec<String>)>,
}

/// The table that begins with the first of these lines, and how many lines it has.
pub(super) fn find(lines: &[Line], rules: &[Rules], norm: &Norm) -> Option<(Grid, usize)> {
    let first = lines.first()?;
    let ruled = rules.get(first.page).map(|rules| Ruling::around(first, rules)).unwrap_or_default();
    if first.segments.len() < 2 && ruled.is_none() {
        return None;
    }
    let length = extent(lines, ruled.as_ref(), norm);
    let lines = &lines[..length];
    let parted = lines.iter().filter(|line| line.segments.len() > 1).count();
    if parted < 2 || lines.iter().any(|line| block::is_contents(&line.text())) {
        return None;
    }
    if lines.iter().all(|line| line.style.fixed_pitch) && ruled.is_none() && !norm.is_typewritten {
        return None;
    }
    let columns = columns(lines, ruled.as_ref())?;
    let rows = match &ruled {
        Some(ruled) if ruled.parts_rows(lines) => ruled.rows(lines),
        _ => rows_by_lines(lines, &columns),
    };
    let grid = fill(lines, &rows, &columns);
    is_table(&grid, lines, &columns, ruled.is_some()).then_some((grid, length))
}

/// How many lines may belong to a table that begins with the first one.
fn extent(lines: &[Line], ruled: Option<&Ruling>, norm: &Norm) -> usize {
    let mut last_parted = 0;
    let mut left = lines.first().map_or(0.0, |line| line.left);
    for (index, line) in lines.iter().enumerate().take(MAX_LINES) {
        let Some(last) = lines.get(index.wrapping_sub(1)) else {
            last_parted = 1;
            continue;
        };
        if line.page != last.page || line.flow != last.flow || line.y <= last.y {
            break;
        }
        if let Some(ruled) = ruled {
            let running = line.segments.len() == 1
                && line.letters > 40
                && line.right - line.left > 0.6 * (line.column.1 - line.column.0);
            if line.y > ruled.bottom || (ruled.down.is_empty() && running) {
                break;
            }
            last_parted = index + 1;
            continue;
        }
        let pitch = line.y - last.y;
        let far = 2.6 * norm.leading.max(1.0) * line.size.max(last.size);
        if pitch > far || block::marker(&line.text()).is_some_and(|(_, _, sure)| sure) {
            break;
        }
        if line.segments.len() > 1 {
            last_parted = index + 1;
            left = left.min(line.left);
        } else if pitch > 1.5 * norm.leading.max(1.0) * line.size
            || line.left < left + line.size
            || line.right - line.left > 0.6 * (line.column.1 - line.column.0)
            || index + 1 > last_parted + 3
        {
            // Running text, or a wrapped cell that is too long for one.
            break;
        }
    }
    last_parted
}

/// A box drawn with lines.
#[derive(Debug, Default)]
struct Ruling {
    bottom: f32,
    /// Heights of lines over its width, from top to bottom.
    across: Vec<f32>,
    /// Places of lines down, from left to right.
    down: Vec<f32>,
}

impl Ruling {
    /// The ruled table whose first line this is.
    fn around(first: &Line, rules: &[Rule]) -> Option<Self> {
        let (top, size) = (first.y - first.size, first.size);
        let flat = |rule: &&Rule| (rule.from.y - rule.to.y).abs() < 1.5;
        // Most lines have no rule above them, which is soon seen.
        let is_above = |rule: &Rule| {
            let y = rule.from.y as f32;
            y < first.y && first.y - y < 3.0 * size && rule.from.x.min(rule.to.x) as f32 <= first.right
        };
        if !rules.iter().filter(flat).any(is_above) {
            return None;
        }
        // Pieces of one line, as cells draw their own borders, are put together.
        let mut across: Vec<(f32, f32, f32)> = Vec::new();
        let mut pieces: Vec<(f32, f32, f32)> = rules
            .iter()
            .filter(flat)
            .map(|rule| {
                let (a, b) = (rule.from.x as f32, rule.to.x as f32);
                (rule.from.y as f32, a.min(b), a.max(b))
            })
            .filter(|(y, left, right)| *y > top - 1.2 * size && right - left > 4.0)
            .collect();
        pieces.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for (y, left, right) in pieces {
            match across.iter_mut().rev().take(8).find(|line| (line.0 - y).abs() < 2.0 && left < line.2 + 4.0)
            {
                Some(line) => {
                    line.1 = line.1.min(left);
                    line.2 = line.2.max(right);
                }
                None => across.push((y, left, right)),
            }
        }
        let head = across.iter().position(|(y, left, right)| {
            *y < first.y && *left < first.left + 2.0 && *right > first.right - 2.0 && first.y - y < 3.0 * size
        })?;
        let (head_y, head_left, head_right) = across[head];
        let down = verticals(rules, head_left, head_right);
        let framed = frame_end(&down, head_y);
        let end = if framed > head_y { framed + 2.0 } else { f32::INFINITY };
        let mut heights = vec![head_y];
        for (y, left, right) in &across[head + 1..] {
            let same = (left - head_left).abs() < 4.0 && (right - head_right).abs() < 4.0;
            if same && *y < end && y - heights[heights.len() - 1] > 1.5 {
                heights.push(*y);
            }
        }
        let bottom = if framed > head_y { framed } else { *heights.last()? };
        let mut places: Vec<(f32, f32)> = Vec::new();
        for (x, from, to) in down {
            let inside = to.min(bottom) - from.max(head_y);
            match places.iter().position(|place| (place.0 - x).abs() < 2.5) {
                _ if inside <= 0.0 => {}
                Some(known) => places[known].1 += inside,
                None => places.push((x, inside)),
            }
        }
        let tall = 0.5 * (bottom - head_y);
        let mut down: Vec<f32> =
            places.into_iter().filter(|place| place.1 > tall).map(|place| place.0).collect();
        // Tables are often open at their sides.
        let sides = [head_left, head_right].into_iter();
        let open: Vec<f32> = sides.filter(|x| down.iter().all(|known| (known - x).abs() > 4.0)).collect();
        if !down.is_empty() {
            down.extend(open);
        }
        down.sort_by(f32::total_cmp);
        // Two lines down are the frame of a box.
        let is_table = down.len() >= 3 || (down.is_empty() && heights.len() >= 3);
        (bottom > first.y && is_table).then_some(Self { bottom, across: heights, down })
    }

    /// Whether there is a line between most rows.
    fn parts_rows(&self, lines: &[Line]) -> bool {
        let bands = self.across.len() - 1;
        bands >= 4 || (bands >= 2 && lines.len() <= 2 * bands)
    }

    fn rows(&self, lines: &[Line]) -> Vec<usize> {
        let band = |line: &Line| self.across.partition_point(|y| *y < line.y - 0.3 * line.size);
        let mut rows = Vec::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            let same = index > 0 && band(&lines[index - 1]) == band(line);
            rows.push(match rows.last() {
                Some(last) if same => *last,
                Some(last) => last + 1,
                None => 0,
            });
        }
        rows
    }
}

/// The lines down between two places: their x, upper and lower end.
fn verticals(rules: &[Rule], left: f32, right: f32) -> Vec<(f32, f32, f32)> {
    let mut found: Vec<(f32, f32, f32)> = rules
        .iter()
        .filter(|rule| (rule.from.x - rule.to.x).abs() < 1.5)
        .map(|rule| {
            let (a, b) = (rule.from.y as f32, rule.to.y as f32);
            (rule.from.x as f32, a.min(b), a.max(b))
        })
        .filter(|(x, top, bottom)| *x > left - 3.0 && *x < right + 3.0 && bottom - top > 3.0)
        .collect();
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    found
}

/// How far down lines reach that begin at a height, one piece below the other; that height if none do.
fn frame_end(down: &[(f32, f32, f32)], top: f32) -> f32 {
    let mut end = top;
    // In the order of their upper ends, so a single pass finds all.
    for (_, from, to) in down {
        if *from <= end + 2.5 && *to > end && *from >= top - 2.5 {
            end = *to;
        }
    }
    end
}

/// What may be a cell: a piece of a line without even a narrow gap.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    left: f32,
    right: f32,
    text: &'a str,
}

fn parts(line: &Line) -> impl Iterator<Item = Part<'_>> {
    line.segments.iter().flat_map(|segment: &Segment| {
        (0..=segment.gaps.len()).filter_map(|index| {
            let before = index.checked_sub(1).map(|index| segment.gaps[index]);
            let after = segment.gaps.get(index);
            let from = before.map_or(0, |gap| gap.at);
            let to = after.map_or(segment.text.len(), |gap| gap.at);
            Some(Part {
                left: before.map_or(segment.left, |gap| gap.right),
                right: after.map_or(segment.right, |gap| gap.left),
                text: segment.text.get(from..to)?.trim_end(),
            })
        })
    })
}

/// Left and right borders of the columns; `None` if there are not two.
fn columns(lines: &[Line], ruled: Option<&Ruling>) -> Option<Vec<(f32, f32)>> {
    let columns = match ruled {
        Some(ruled) if ruled.down.len() >= 3 => {
            let borders = ruled.down.windows(2).map(|pair| (pair[0], pair[1]));
            borders.flat_map(|border| within(lines, border)).collect()
        }
        _ => {
            projected(lines.iter().filter(|line| line.segments.len() > 1), (f32::NEG_INFINITY, f32::INFINITY))
        }
    };
    (2..=MAX_COLUMNS).contains(&columns.len()).then_some(columns)
}

/// The columns between two lines down: one, unless most rows have two cells there.
fn within(lines: &[Line], border: (f32, f32)) -> Vec<(f32, f32)> {
    let inside = |part: &Part<'_>| part.left >= border.0 - 2.0 && part.right <= border.1 + 2.0;
    let filled = lines.iter().filter(|line| parts(line).any(|part| inside(&part)));
    let (mut all, mut parted) = (0, 0);
    for line in filled {
        all += 1;
        parted += usize::from(parts(line).filter(inside).count() > 1);
    }
    if all == 0 {
        // Nothing between the two lines of a double border.
        return Vec::new();
    }
    if parted < 3 || parted * 3 < all * 2 {
        return vec![border];
    }
    let found = projected(lines.iter(), border);
    if found.len() < 2 { vec![border] } else { found }
}

/// Columns as what is between the gaps that rows have in common.
fn projected<'a>(lines: impl Iterator<Item = &'a Line>, border: (f32, f32)) -> Vec<(f32, f32)> {
    let (mut ends, mut count, mut size) = (Vec::new(), 0, 0.0f32);
    for line in lines {
        count += 1;
        size = size.max(line.size);
        for part in parts(line).filter(|part| part.left >= border.0 - 2.0 && part.right <= border.1 + 2.0) {
            ends.push((part.left, 1));
            ends.push((part.right, -1));
        }
    }
    ends.sort_by(|a: &(f32, i32), b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    // A cell that spans columns, as in a header, may bridge a gap that all other rows have.
    let allowed = if count >= 4 { (count / 6).max(1) } else { 0 };
    let mut columns: Vec<(f32, f32)> = Vec::new();
    let (mut depth, mut start) = (0, None);
    for (x, step) in ends {
        let before = depth;
        depth += step;
        if before <= allowed && depth > allowed {
            start = Some(x);
        } else if before > allowed
            && depth <= allowed
            && let Some(from) = start.take()
        {
            match columns.last_mut() {
                Some(last) if from - last.1 < 0.35 * size => last.1 = x,
                _ => columns.push((from, x)),
            }
        }
    }
    columns
}

/// The column that most of a segment stands in, or the nearest.
fn column_of(columns: &[(f32, f32)], left: f32, right: f32) -> usize {
    let overlap = |column: &(f32, f32)| right.min(column.1) - left.max(column.0);
    let mut best = 0;
    for (index, column) in columns.iter().enumerate() {
        if overlap(column) > overlap(&columns[best]) {
            best = index;
        }
    }
    best
}

/// The row of each line where no rules part them: a line whose first cell is empty goes on with the row above,
/// if it stands closer to it than rows stand to each other.
fn rows_by_lines(lines: &[Line], columns: &[(f32, f32)]) -> Vec<usize> {
    let fills_first = |line: &Line| {
        line.segments.iter().any(|segment| column_of(columns, segment.left, segment.right) == 0)
    };
    let pitches = |wanted: bool| {
        let mut found: Vec<f32> = lines
            .windows(2)
            .filter(|pair| fills_first(&pair[1]) == wanted)
            .map(|pair| pair[1].y - pair[0].y)
            .collect();
        found.sort_by(f32::total_cmp);
        found
    };
    let (full, partial) = (pitches(true), pitches(false));
    let middle = |found: &[f32]| found.get(found.len() / 2).copied();
    let wraps = match (middle(&full), middle(&partial)) {
        (Some(full), Some(partial)) => {
            partial < 0.97 * full || partial <= full && partial_is_text(lines, columns)
        }
        _ => false,
    };
    let mut rows: Vec<usize> = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let goes_on = wraps && index > 0 && !fills_first(line);
        rows.push(match rows.last() {
            Some(last) if goes_on => *last,
            Some(last) => last + 1,
            None => 0,
        });
    }
    rows
}

/// Whether lines without a first cell have just one: the rest of a long one.
fn partial_is_text(lines: &[Line], columns: &[(f32, f32)]) -> bool {
    lines
        .iter()
        .filter(|line| !line.segments.iter().any(|s| column_of(columns, s.left, s.right) == 0))
        .all(|line| line.segments.len() == 1)
}

fn fill(lines: &[Line], rows: &[usize], columns: &[(f32, f32)]) -> Grid {
    let mut grid = Grid { rows: Vec::new() };
    for (line, &row) in lines.iter().zip(rows) {
        if grid.rows.len() <= row {
            grid.rows.push((line.page, vec![String::new(); columns.len()]));
        }
        let Some((_, cells)) = grid.rows.last_mut() else { continue };
        let mut parts: Vec<Part<'_>> = parts(line).collect();
        parts.sort_by(|a, b| a.left.total_cmp(&b.left));
        for part in parts {
            let cell = &mut cells[column_of(columns, part.left, part.right)];
            let stem = cell.strip_suffix('-').filter(|stem| stem.ends_with(char::is_lowercase));
            match stem.map(str::len) {
                // A word parted at the end of a line of the cell.
                Some(length) if part.text.starts_with(char::is_lowercase) => cell.truncate(length),
                _ if !cell.is_empty() => cell.push(' '),
                _ => {}
            }
            cell.push_str(part.text);
        }
    }
    let texts = || lines.iter().flat_map(|line| &line.segments).filter(|segment| segment.letters > 0);
    if texts().filter(|segment| script::is_right_to_left(&segment.text)).count() * 2 > texts().count() {
        grid.rows.iter_mut().for_each(|(_, cells)| cells.reverse());
    }
    grid
}

/// Whether a grid is a table and not, say, an address beside a date.
fn is_table(grid: &Grid, lines: &[Line], columns: &[(f32, f32)], ruled: bool) -> bool {
    // Text that runs over borders: there are lines on the page, but not those of a table.
    let over = |part: &Part<'_>| {
        columns.windows(2).any(|pair| part.left < pair[0].1 - 3.0 && part.right > pair[1].0 + 3.0)
    };
    let crossing = lines.iter().flat_map(parts).filter(over).count();
    let width = columns.len();
    let filled: usize =
        grid.rows.iter().map(|(_, cells)| cells.iter().filter(|cell| !cell.is_empty()).count()).sum();
    let full_rows = grid
        .rows
        .iter()
        .filter(|(_, cells)| cells.iter().filter(|cell| !cell.is_empty()).count() > 1)
        .count();
    let running = lines.iter().filter(|line| {
        let only = line.segments.len() == 1 && line.letters > 40;
        only && line.right - line.left > 0.6 * (line.column.1 - line.column.0)
    });
    if running.count() * 4 > lines.len() {
        return false;
    }
    if crossing * 5 > lines.iter().flat_map(parts).count() {
        return false;
    }
    if ruled {
        return grid.rows.len() >= 2 && full_rows >= 2 && full_rows * 2 >= grid.rows.len();
    }
    // A list whose markers stand apart from their text is none.
    let markers = grid.rows.iter().filter(|(_, cells)| {
        let first = cells.first().map(String::as_str).unwrap_or_default();
        first.is_empty() || block::marker(&format!("{first} x")).is_some()
    });
    let all_marked = width == 2 && markers.count() == grid.rows.len();
    let letters: usize = lines.iter().map(|line| line.letters).sum();
    let share = filled as f32 / (grid.rows.len() * width).max(1) as f32;
    grid.rows.len() >= 3 && full_rows * 2 >= grid.rows.len() && share >= 0.5 && !all_marked && letters > 0
}
