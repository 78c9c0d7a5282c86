//! The order in which a slide's shapes are read.

use super::shape::{Bounds, Shape};

/// Most shapes whose places are looked into; more are read in the order of the file.
const MAX_SHAPES: usize = 500;

/// Part of a shape's size at each side that others may overlap, since boxes are larger than their text.
const SLACK: i64 = 20;

/// Shapes in reading order: the widest gap between them parts them, across into what is above and below, or down
/// into columns, and so on within the parts. Shapes that no gap parts, and all if one has no place, stay in the
/// order of the file, which is the one that a screen reader takes.
pub(super) fn in_reading_order(shapes: Vec<Shape>) -> Vec<Shape> {
    let places: Option<Vec<Bounds>> = shapes.iter().map(|shape| shape.bounds).collect();
    let Some(places) = places.filter(|places| places.len() <= MAX_SHAPES) else { return shapes };
    let mut order = Vec::with_capacity(places.len());
    part((0..places.len()).collect(), &places, &mut order);
    let mut shapes: Vec<Option<Shape>> = shapes.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| shapes[index].take()).collect()
}

fn part(group: Vec<usize>, places: &[Bounds], order: &mut Vec<usize>) {
    let mut waiting = vec![group];
    while let Some(group) = waiting.pop() {
        let across = widest_gap(&group, |index| places[index].vertical());
        let down = widest_gap(&group, |index| places[index].horizontal());
        let cut = match (across, down) {
            (Some((gap, _)), Some((other, at))) if other > gap => Some((at, false)),
            (Some((_, at)), _) => Some((at, true)),
            (None, Some((_, at))) => Some((at, false)),
            (None, None) => None,
        };
        let Some((at, is_across)) = cut else {
            order.extend(group);
            continue;
        };
        let (before, after) = group.into_iter().partition(|index| {
            let (start, _) = if is_across { places[*index].vertical() } else { places[*index].horizontal() };
            start < at
        });
        waiting.push(after);
        waiting.push(before);
    }
}

/// The widest gap between the extents of a group, and the start of what comes after it.
fn widest_gap(group: &[usize], extent: impl Fn(usize) -> (i64, i64)) -> Option<(i64, i64)> {
    let mut extents: Vec<(i64, i64)> = group.iter().map(|index| extent(*index)).collect();
    extents.sort_unstable();
    let (first, mut reach) = *extents.first()?;
    let mut widest: Option<(i64, i64)> = None;
    for (start, end) in extents {
        let gap = start.saturating_sub(reach);
        // Something must remain before the cut.
        if gap >= 0 && start > first && widest.is_none_or(|(known, _)| gap > known) {
            widest = Some((gap, start));
        }
        reach = reach.max(end);
    }
    widest
}

impl Bounds {
    fn vertical(&self) -> (i64, i64) {
        within_slack(self.top, self.height)
    }

    fn horizontal(&self) -> (i64, i64) {
        within_slack(self.left, self.width)
    }
}

fn within_slack(start: i64, size: i64) -> (i64, i64) {
    let slack = size.max(0) / SLACK;
    (start.saturating_add(slack), start.saturating_add(size.max(0)).saturating_sub(slack))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of shapes given as left, top, width, height.
    fn order(places: &[[i64; 4]]) -> Vec<usize> {
        let places: Vec<Bounds> = places
            .iter()
            .map(|[left, top, width, height]| Bounds {
                left: *left,
                top: *top,
                width: *width,
                height: *height,
            })
            .collect();
        let mut order = Vec::new();
        part((0..places.len()).collect(), &places, &mut order);
        order
    }

    #[test]
    fn columns_are_read_one_after_the_other() {
        // Two headings above two texts, close to them.
        let places = [[0, 0, 400, 100], [500, 0, 400, 100], [0, 110, 400, 500], [500, 110, 400, 500]];
        assert_eq!(order(&places), [0, 2, 1, 3]);
    }

    #[test]
    fn rows_are_read_one_after_the_other() {
        let places = [[500, 0, 480, 100], [0, 0, 480, 100], [0, 300, 480, 100], [500, 300, 480, 100]];
        assert_eq!(order(&places), [1, 0, 2, 3]);
    }

    #[test]
    fn what_overlaps_stays_in_the_order_of_the_file() {
        assert_eq!(order(&[[0, 50, 100, 100], [20, 0, 100, 100], [10, 20, 100, 100]]), [0, 1, 2]);
        assert_eq!(order(&[[7, 7, 0, 0], [7, 7, 0, 0], [i64::MIN, i64::MAX, -1, i64::MAX]]), [2, 0, 1]);
    }
}
