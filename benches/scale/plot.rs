//! Pictures of what was measured, in `docs/plots/`.

use crate::figures::Figures;
use crate::peers::{OURS, PEERS};
use crate::plainly::{PLAINLY, PLAINLY_ANY};
use crate::searches::RATIO;
use rag_benches::{AXIS, Anchor, COLOURS, Drawing, GRID};

/// A name, and values by number of chunks.
type Series = (String, Vec<(usize, f64)>);

/// Draws times, those beside peers, room on the disk, and what a small owner pays.
pub(crate) fn draw(figures: &Figures) {
    let of = |what: &str, owner: &str| figures.series(what, owner);
    let times = [
        ("keyword, sentence", of("keyword, sentence", "large")),
        ("vector", of("vector", "large")),
        ("hybrid", of("hybrid", "large")),
        ("keyword, 1 word", of("keyword, 1 word", "large")),
        ("tsvector, any word of a sentence", of("keyword, sentence", PLAINLY_ANY)),
        ("pgvector, exact", of("vector", PLAINLY)),
    ];
    save("scale-times.svg", "Median of a search, milliseconds", &named(times));
    let filtered = [
        ("vector", of("vector", "large")),
        ("vector, filter 1 %", of("vector, filter 1 %", "large")),
        ("vector, filter 30 %", of("vector, filter 30 %", "large")),
        ("hybrid, filter 1 %", of("hybrid, filter 1 %", "large")),
        ("hybrid, filter 30 %", of("hybrid, filter 30 %", "large")),
        ("pgvector, exact, filter 30 %", of("vector, filter 30 %", PLAINLY)),
    ];
    save("scale-filtered.svg", "Median of a search with a filter, milliseconds", &named(filtered));
    for (form, of_form) in [("word", "1 word"), ("words", "4 words"), ("sentence", "sentence")] {
        let what = format!("keyword, {of_form}");
        let engines = [OURS, PEERS[0].name, PEERS[1].name, PEERS[2].name];
        let title = format!("Median of a keyword search, {of_form}, milliseconds");
        save(&format!("scale-peers-{form}.svg"), &title, &named(engines.map(|name| (name, of(&what, name)))));
    }
    let disk = ["chunks", "keyword segments", "embeddings", "vector codes"]
        .map(|store| (store, of(&format!("disk: {store}"), "all")));
    save("scale-disk.svg", "Room on the disk, MiB", &named(disk));
    let small = ["keyword, sentence", "vector", "hybrid"].map(|what| (what, of(what, RATIO)));
    save("scale-small-owner.svg", "1,000 chunks beside a large owner, times as slow as alone", &named(small));
}

/// Those of which there is something.
fn named<const N: usize>(series: [(&str, Vec<(usize, f64)>); N]) -> Vec<Series> {
    let series = series.into_iter().filter(|(_, points)| !points.is_empty());
    series.map(|(name, points)| (name.to_owned(), points)).collect()
}

fn save(path: &str, title: &str, series: &[Series]) {
    if !series.is_empty() {
        Panel::around(series).draw(title, series).save(&format!("plots/{path}"));
    }
}

/// Numbers of chunks against values, both by powers of ten.
struct Panel {
    chunks: [f64; 2],
    values: [f64; 2],
}

impl Panel {
    const LEFT: f64 = 70.0;
    const TOP: f64 = 60.0;
    const SIZE: [f64; 2] = [480.0, 300.0];

    /// From the power of ten below all points to the one above.
    fn around(series: &[Series]) -> Self {
        let points = || series.iter().flat_map(|(_, points)| points);
        let span = |values: &mut dyn Iterator<Item = f64>| {
            let (least, most) =
                values.fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
            let from = least.log10().floor();
            [from, most.log10().ceil().max(from + 1.0)]
        };
        Self {
            chunks: span(&mut points().map(|point| point.0 as f64)),
            values: span(&mut points().map(|point| point.1)),
        }
    }

    fn point(&self, chunks: f64, value: f64) -> [f64; 2] {
        let share = |value: f64, [from, to]: [f64; 2]| (value.log10() - from) / (to - from);
        let [width, height] = Self::SIZE;
        [
            Self::LEFT + width * share(chunks, self.chunks),
            Self::TOP + height * (1.0 - share(value, self.values)),
        ]
    }

    fn draw(&self, title: &str, series: &[Series]) -> Drawing {
        let [width, height] = Self::SIZE;
        let (right, bottom) = (Self::LEFT + width, Self::TOP + height);
        let mut drawing = Drawing::new(right + 270.0, bottom + 60.0);
        drawing.text([20.0, 28.0], Anchor::Start, 16.0, title);
        for power in powers(self.values) {
            let [_, y] = self.point(10f64.powf(self.chunks[0]), power);
            drawing.line([Self::LEFT, y], [right, y], GRID, 1.0);
            drawing.faint_text([Self::LEFT - 8.0, y + 4.0], Anchor::End, 11.0, &power.to_string());
        }
        for power in powers(self.chunks) {
            let [x, _] = self.point(power, 10f64.powf(self.values[0]));
            drawing.line([x, Self::TOP], [x, bottom], GRID, 1.0);
            drawing.faint_text([x, bottom + 18.0], Anchor::Middle, 11.0, &power.to_string());
        }
        drawing.line([Self::LEFT, bottom], [right, bottom], AXIS, 1.0);
        drawing.faint_text([Self::LEFT + width / 2.0, bottom + 38.0], Anchor::Middle, 11.0, "chunks");
        for (at, ((name, points), colour)) in series.iter().zip(COLOURS).enumerate() {
            let places: Vec<[f64; 2]> =
                points.iter().map(|(chunks, value)| self.point(*chunks as f64, *value)).collect();
            drawing.curve(&places, colour);
            let y = Self::TOP + 10.0 + 20.0 * at as f64;
            drawing.bar([right + 24.0, y], [12.0, 12.0], colour);
            drawing.text([right + 42.0, y + 10.0], Anchor::Start, 12.0, name);
        }
        drawing
    }
}

/// Powers of ten within a span of exponents, both ends included.
fn powers([from, to]: [f64; 2]) -> impl Iterator<Item = f64> {
    (from as i32..=to as i32).map(|exponent| 10f64.powi(exponent))
}
