//! Pictures of what was measured, in `docs/plots/`.

use crate::rerank::Curve;
use crate::{rerank, ways};
use rag_benches::{AXIS, Anchor, COLOURS, Drawing, GRID, Half};

/// Draws those of which there is something.
pub(crate) fn draw(ways: &[ways::Measured], reranked: &[rerank::Measured]) {
    let ways: Vec<&ways::Measured> = ways.iter().filter(|set| !set.ways.is_empty()).collect();
    if !ways.is_empty() {
        bars(&ways).save("plots/ways.svg");
    }
    let curves: Vec<_> = reranked.iter().filter_map(rerank::Measured::curve).collect();
    if !curves.is_empty() {
        depths(&curves).save("plots/rerank.svg");
    }
}

/// nDCG@10 of each way, a panel for each set, all from 0 to 1.
fn bars(sets: &[&ways::Measured]) -> Drawing {
    const PANEL: [f64; 2] = [430.0, 144.0];
    const NAMES: f64 = 150.0;
    const BAR: f64 = 15.0;
    const STEP: f64 = 20.0;
    let length = PANEL[0] - NAMES - 70.0;
    let rows = sets.len().div_ceil(2);
    let mut drawing = Drawing::new(2.0 * PANEL[0] + 20.0, rows as f64 * PANEL[1] + 60.0);
    drawing.text([20.0, 28.0], Anchor::Start, 16.0, "nDCG@10 of four ways of searching");
    for (number, set) in sets.iter().enumerate() {
        let left = 20.0 + (number % 2) as f64 * PANEL[0];
        let top = 62.0 + (number / 2) as f64 * PANEL[1];
        drawing.text([left, top], Anchor::Start, 13.0, set.title);
        let base = left + NAMES;
        let bottom = top + 12.0 + STEP * set.ways.len() as f64;
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let x = base + share * length;
            let colour = if share == 0.0 { AXIS } else { GRID };
            drawing.line([x, top + 8.0], [x, bottom], colour, 1.0);
            if share * 2.0 % 1.0 == 0.0 {
                drawing.faint_text([x, bottom + 13.0], Anchor::Middle, 10.0, &share.to_string());
            }
        }
        for (at, (outcome, (way, ..))) in set.ways.iter().zip(ways::WAYS).enumerate() {
            let y = top + 12.0 + STEP * at as f64;
            let ndcg = outcome.ndcg(Half::Both);
            let way = way.trim_end_matches(" (default)");
            drawing.bar([base, y], [ndcg * length, BAR], COLOURS[at]);
            drawing.faint_text([base - 8.0, y + 12.0], Anchor::End, 12.0, way);
            drawing.text([base + ndcg * length + 6.0, y + 12.0], Anchor::Start, 12.0, &format!("{ndcg:.3}"));
        }
    }
    drawing
}

/// Depth of reranking against nDCG@10 and against milliseconds: two panels, both from 0 on.
fn depths(curves: &[Curve]) -> Drawing {
    let slowest = curves.iter().flat_map(|(_, points)| points).map(|point| point.2).fold(0.0, f64::max);
    // A round number above the slowest.
    let unit = 10f64.powf(slowest.log10().floor());
    let most = (slowest / unit).ceil() * unit;
    let mut drawing = Drawing::new(880.0, 400.0);
    drawing.text([20.0, 28.0], Anchor::Start, 16.0, "Reranking the first hits of a hybrid search");
    let mut quality = Panel { left: 60.0, most: 1.0, drawing: &mut drawing };
    quality.frame("nDCG@10", |value| format!("{value:.2}"));
    for ((_, points), colour) in curves.iter().zip(COLOURS.iter().skip(1)) {
        quality.curve(&points.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>(), colour, |value| {
            format!("{value:.3}")
        });
    }
    let mut cost = Panel { left: 500.0, most, drawing: &mut drawing };
    cost.frame("milliseconds per query, median", |value| format!("{value:.0}"));
    for ((_, points), colour) in curves.iter().zip(COLOURS.iter().skip(1)) {
        cost.curve(&points.iter().map(|p| (p.0, p.2)).collect::<Vec<_>>(), colour, |_| String::new());
    }
    for (at, ((title, _), colour)) in curves.iter().zip(COLOURS.iter().skip(1)).enumerate() {
        let x = 500.0 + 120.0 * at as f64;
        drawing.bar([x, 18.0], [12.0, 12.0], colour);
        drawing.text([x + 18.0, 28.0], Anchor::Start, 12.0, title);
    }
    drawing
}

/// Depths from 0 to 50 against values from 0 to `most`.
struct Panel<'a> {
    left: f64,
    most: f64,
    drawing: &'a mut Drawing,
}

impl Panel<'_> {
    const TOP: f64 = 80.0;
    const SIZE: [f64; 2] = [320.0, 260.0];
    const DEEPEST: f64 = 50.0;
    /// Room between the axis and the first point, for its label.
    const INSET: f64 = 26.0;

    fn point(&self, depth: usize, value: f64) -> [f64; 2] {
        let [width, height] = Self::SIZE;
        [
            self.left + Self::INSET + depth as f64 / Self::DEEPEST * (width - 2.0 * Self::INSET),
            Self::TOP + height * (1.0 - value / self.most),
        ]
    }

    fn frame(&mut self, title: &str, shown: impl Fn(f64) -> String) {
        let right = self.left + Self::SIZE[0];
        self.drawing.text([self.left, Self::TOP - 26.0], Anchor::Start, 13.0, title);
        for step in 0..=4 {
            let value = self.most * f64::from(step) / 4.0;
            let (x, [_, y]) = (self.left, self.point(0, value));
            self.drawing.line([x, y], [right, y], if step == 0 { AXIS } else { GRID }, 1.0);
            self.drawing.faint_text([x - 8.0, y + 4.0], Anchor::End, 11.0, &shown(value));
        }
        for depth in [0, 10, 20, 50] {
            let [x, y] = self.point(depth, 0.0);
            let name = if depth == 0 { "none".to_owned() } else { depth.to_string() };
            self.drawing.line([x, y], [x, y + 4.0], AXIS, 1.0);
            self.drawing.faint_text([x, y + 18.0], Anchor::Middle, 11.0, &name);
        }
        let middle = self.left + Self::SIZE[0] / 2.0;
        let below = Self::TOP + Self::SIZE[1] + 36.0;
        self.drawing.faint_text([middle, below], Anchor::Middle, 11.0, "pairs that are reranked");
    }

    fn curve(&mut self, points: &[(usize, f64)], colour: &str, shown: impl Fn(f64) -> String) {
        let places: Vec<[f64; 2]> = points.iter().map(|(depth, value)| self.point(*depth, *value)).collect();
        self.drawing.curve(&places, colour);
        for ([x, y], (_, value)) in places.iter().zip(points) {
            self.drawing.text([*x, y - 9.0], Anchor::Middle, 11.0, &shown(*value));
        }
    }
}
