//! The tables of a sheet, told by the gaps between them.
//!
//! An empty row or column parts two tables, with two exceptions that forms and lists make: a single column beside a
//! gap is the labels of what stands beyond it, and rows of one shape with empty rows between are one table.

use super::sheet::Cell;

/// Deepest partition of a sheet; what is left is one table.
const MAX_DEPTH: usize = 8;

/// Parts the cells of a sheet, sorted by row and column, into tables in reading order. Each keeps that sorting.
pub(super) fn tables(cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    let mut tables = Vec::new();
    part(cells, 0, &mut tables);
    tables
}

fn part(cells: Vec<Cell>, depth: usize, tables: &mut Vec<Vec<Cell>>) {
    if depth >= MAX_DEPTH {
        tables.push(cells);
        return;
    }
    for band in bands(cells) {
        let mut pieces = pieces(band);
        match pieces.len() {
            0 => {}
            1 => {
                let (above, below) = corner_to_corner(pieces.remove(0));
                tables.push(above);
                if !below.is_empty() {
                    part(below, depth + 1, tables);
                }
            }
            _ => pieces.into_iter().for_each(|piece| part(piece, depth + 1, tables)),
        }
    }
}

/// Rows between empty rows.
fn bands(cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    let mut bands: Vec<Vec<Cell>> = Vec::new();
    for cell in cells {
        match bands.last_mut() {
            Some(band) if band.last().is_some_and(|last| cell.row - last.row <= 1) => band.push(cell),
            _ => bands.push(vec![cell]),
        }
    }
    let mut joined: Vec<Vec<Cell>> = Vec::new();
    let mut last_row: Vec<u32> = Vec::new();
    for band in bands {
        let is_row = band.first().map(|cell| cell.row) == band.last().map(|cell| cell.row);
        let columns: Vec<u32> =
            if is_row { band.iter().map(|cell| cell.column).collect() } else { Vec::new() };
        match joined.last_mut() {
            Some(table)
                if columns.len() > 1
                    && columns == last_row
                    && table.last().is_some_and(|last| band[0].row - last.row == 2) =>
            {
                table.extend(band);
            }
            _ => joined.push(band),
        }
        last_row = columns;
    }
    joined
}

/// Columns between empty columns, except where a single column is one side.
fn pieces(cells: Vec<Cell>) -> Vec<Vec<Cell>> {
    let mut columns: Vec<u32> = cells.iter().map(|cell| cell.column).collect();
    columns.sort_unstable();
    columns.dedup();
    // First and last column of each run.
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for column in columns {
        match runs.last_mut() {
            Some((_, last)) if column - *last == 1 => *last = column,
            _ => runs.push((column, column)),
        }
    }
    let mut joined: Vec<(u32, u32)> = Vec::new();
    let mut last_is_single = false;
    for (first, last) in runs {
        let is_single = first == last;
        match joined.last_mut() {
            Some(piece) if is_single || last_is_single => piece.1 = last,
            _ => joined.push((first, last)),
        }
        last_is_single = is_single;
    }
    if joined.len() < 2 {
        return vec![cells];
    }
    let mut pieces = vec![Vec::new(); joined.len()];
    for cell in cells {
        let at = joined.partition_point(|(_, last)| *last < cell.column);
        pieces[at].push(cell);
    }
    pieces
}

/// Parts a table that touches the next one at a corner alone; the second is empty if there is no such place.
fn corner_to_corner(cells: Vec<Cell>) -> (Vec<Cell>, Vec<Cell>) {
    let extent = |(first, last): (u32, u32), cell: &Cell| (first.min(cell.column), last.max(cell.column));
    // For each cell, the columns of all cells from it on.
    let mut below = vec![(u32::MAX, 0); cells.len() + 1];
    for (index, cell) in cells.iter().enumerate().rev() {
        below[index] = extent(below[index + 1], cell);
    }
    let mut above = (u32::MAX, 0);
    let is_table = |(first, last): (u32, u32), rows: u32| last > first && rows > 1;
    let (Some(top), Some(bottom)) = (cells.first(), cells.last()) else { return (cells, Vec::new()) };
    let (top, bottom) = (top.row, bottom.row);
    let place = cells.iter().enumerate().find_map(|(index, cell)| {
        let begins_row = index > 0 && cells[index - 1].row < cell.row;
        let apart = above.1 < below[index].0 || below[index].1 < above.0;
        let found = begins_row
            && apart
            && is_table(above, cell.row - top)
            && is_table(below[index], bottom - cell.row + 1);
        above = extent(above, cell);
        found.then_some(index)
    });
    let mut cells = cells;
    let rest = place.map(|at| cells.split_off(at)).unwrap_or_default();
    (cells, rest)
}
